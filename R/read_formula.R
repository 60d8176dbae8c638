# Formulas. A formula has sides, as y ~ x has two, and beside it stand units,
# such as the weights or the clusters of the rows, which are looked up in the
# same data. read_sides() reads all of them for a method of a door, read_again()
# reads a side in new data, and keep_layout() stores in a fit how that is done.

# --- Records -----------------------------------------------------------------

# A side is how its values are made from the variables of a formula.
#   kind     "value": one variable as it is; "groups", "bags" and "answers" are
#            values, too, and may stand on the other side, see turn_parts();
#            "terms": a matrix, or a data frame where some columns are factors;
#            "numbers": a matrix; "levels": like "terms", with logical values as
#            factors; "variable" and "named": see bind_terms(); "columns": a
#            data frame
#   names    what the formula calls each variable
#   calls    the expression of each variable, with scale() or poly() as they
#            were fitted
#   terms    a terms object where there are interactions, else NULL
#   classes  the class of each variable, in the words of stats::.MFclass()
#   columns  the columns that new data must have
new_side <- function(kind, calls, names = vapply(calls, deparse1, ""),
                     terms = NULL, classes = NULL, columns = NULL) {
  list(kind = kind, names = names, calls = calls, terms = terms,
       classes = classes, columns = columns)
}

# A reading is what the sides and the units of a formula hold.
#   (the name of a side or a unit) its values
#   names      a list: what the formula calls the variables of each side
#   rows       the names of the rows, or NULL
#   layout     a list: the sides and units by name. Its attribute "home" is an
#              environment with the constants that they use, and its attribute
#              "formula" is the formula with the columns that a dot stands for
#   na.action  the rows that were dropped, as model.frame() describes them
new_reading <- function(values, names, rows, layout, na.action) {
  c(values, list(names = names, rows = rows, layout = layout,
                 na.action = na.action))
}

# --- The two readers ---------------------------------------------------------

# The reading of the formula of the method in whose frame this is called. sides:
# the kind of each side by name, from left to right; a formula without a left
# side has only the last, which is an error if there is an `example` of one with
# both; or "variables", which are as many as the formula says, at least `least`.
# units: the arguments of the method that are units. parts: the sides as calls
# by name, if the method splits the formula itself.
read_sides <- function(sides, units = NULL, example = NULL, least = 1L,
                       parts = NULL, formula = NULL, frame = parent.frame()) {
  formula <- formula %||% given_formula(frame)
  data <- given_data(frame)
  asked <- method_request(frame, names(sides), units)
  open <- identical(sides, "variables")
  parts <- parts %||% formula_parts(formula, if (!open) names(sides), example)
  if (open) sides <- sapply(parts, \(part) "variable")
  check_columns(unlist(lapply(parts, all.vars)), data)
  home <- new.env(parent = environment(formula))
  parts <- turn_parts(parts, sides, data, home)
  sides <- make_sides(parts, sides, data,
                      unlist(lapply(asked$units, all.vars)), home)
  if (open) sides <- open_sides(sides, least)
  evaluated <- evaluate_sides(
    c(sides, unit_sides(asked$units)), data,
    read_subset(asked$subset, data, environment(formula)), asked$action, home
  )
  frame <- evaluated$frame
  layout <- evaluated$sides
  labels <- lapply(layout[seq_along(sides)], \(side) {
    if (identical(side$names, ".")) colnames(frame[["."]]) else side$names
  })
  if (open) {
    names <- vapply(labels, shorten, "", sep = " + ")
    names(labels) <- names(layout)[seq_along(sides)] <- names
  }
  values <- lapply(layout, side_data, frame)
  check_group_sides(values, parts, sides)
  new_reading(values, labels, given_rows(frame),
              kept_layout(layout, sides, data, formula),
              attr(frame, "na.action"))
}

# The fit with its layout, by which read_again() reads new data.
keep_layout <- function(fit, read) {
  fit$layout <- read$layout
  fit$na.action <- read$na.action
  fit
}

# The values of a side of a layout in new data, which messages call `name`.
read_again <- function(layout, newdata, of, name = "newdata", hint = NULL) {
  side <- layout[[of]]
  if (!is.list(newdata)) {
    stop_input("'", name, "' must be a data frame, not ", describe(newdata))
  }
  missing <- setdiff(side$columns, names(newdata))
  if (length(missing)) {
    stop_input("'", name, "' must have the variables of the formula; missing: ",
               quoted(missing), hint)
  }
  refuse_twice(names(newdata)[names(newdata) %in% side$columns], name)
  home <- term_home(newdata, attr(layout, "home"))
  frame <- Map(\(call, label) {
    term <- read_formula(term_value(call, label, home), name)
    decode_levels(term$value, term$levels)
  }, side$calls, side$names)
  n <- if (is.data.frame(newdata)) nrow(newdata) else NROW(newdata[[1L]])
  sizes <- vapply(frame, NROW, 1L)
  if (any(sizes != n)) {
    stop_input("'formula' must have variables with a value for each of the ",
               n, " rows of '", name, "', not ", sizes[sizes != n][1L])
  }
  side_data(side, structure(
    frame, names = side$names, class = "data.frame",
    row.names = given_rows(newdata) %||% .set_row_names(n)
  ), name)
}

# --- Arguments ---------------------------------------------------------------

given_formula <- function(frame) {
  if (eval(quote(missing(formula)), frame)) {
    stop_input("'formula' must be given, as in ~ a + b")
  }
  get("formula", frame)
}

# The data of a method: a data frame, a list, an environment, or NULL.
given_data <- function(frame) {
  data <- tryCatch(get("data", frame), error = \(e) {
    stop_input("'data' must be a data frame; ", conditionMessage(e))
  })
  if (is.environment(data)) {
    data
  } else if (is.object(data)) {
    read_formula(as.data.frame(data))
  } else if (is.null(data) || is.list(data) && all(nzchar(names2(data)))) {
    data
  } else {
    stop_input("'data' must be a data frame, not ", describe(data))
  }
}

# A list of what the method in this frame was asked for beside its formula: the
# calls of its units, the call of its subset, and its na.action. The arguments
# `said` are what the formula says, and must not be given.
method_request <- function(frame, said, units) {
  at <- match(TRUE, vapply(sys.frames(), identical, NA, frame))
  caller <- sys.frame(sys.parents()[at])
  call <- as.list(match.call(sys.function(at), sys.call(at), FALSE, caller))
  twice <- intersect(said, names(call[["..."]]))
  if (length(twice)) {
    stop_input("'", twice[1L], "' must not be given with a formula, which ",
               "says what it is")
  }
  list(
    units = Map(unit_call, call[intersect(units, names(call))],
                intersect(units, names(call))),
    subset = if (!"subset" %in% units) call$subset,
    action = if ("na.action" %in% names(call)) {
      read_formula(eval(call$na.action, caller))
    } else {
      stats::na.pass
    }
  )
}

# The expression of a unit, in which "a" and ~ a mean the column a.
unit_call <- function(value, unit) {
  formula <- is.call(value) && identical(value[[1L]], quote(`~`))
  if (formula && (length(value) != 2L || !is.name(value[[2L]]))) {
    stop_input("'", unit, "' must be one column, as in ~ id (of two, ",
               "interaction(a, b)), not ", deparse1(value))
  }
  if (formula) {
    value[[2L]]
  } else if (is.character(value) && nzchar(value) && !is.na(value)) {
    as.name(value)
  } else {
    value
  }
}

unit_sides <- function(units) {
  Map(\(unit, name) new_side("value", list(unit), paste0("(", name, ")")),
      units, names(units))
}

# The sides of a formula as calls, with the `names` of sides if there are any.
formula_parts <- function(formula, names, example) {
  refuse_bar(formula)
  parts <- as.list(formula)[-1L]
  if (!is.null(example) && length(parts) < 2L) {
    stop_input("'formula' must have a left side, as in ", example)
  }
  if (is.null(names)) {
    return(stats::setNames(parts, seq_along(parts)))
  }
  if (length(parts) > length(names)) {
    stop_input("'formula' must have no response, as in ~ a + b")
  }
  stats::setNames(parts, utils::tail(names, length(parts)))
}

# Stops at a | b, which R would evaluate as a logical value.
refuse_bar <- function(formula) {
  right <- formula[[length(formula)]]
  if (is.call(right) && identical(right[[1L]], quote(`|`))) {
    stop_input("'formula' must have no '|' but in mmd_test() and hsic_test(), ",
               "where it stands before what is given, and in fits with ",
               "instruments; columns are added by '+'")
  }
}

# Stops if a column of the data that the formula may mean has no name, or the
# name of another one.
check_columns <- function(names, data) {
  columns <- if (is.list(data)) names(data)
  refuse_twice(columns["." %in% names | columns %in% c("", names)], "data")
}

# The rows for which a formula method was asked, by its argument `subset`. They
# must be in the data, since R makes rows of missing values for others.
read_subset <- function(subset, data, home) {
  rows <- read_formula(eval(subset, data, home))
  framed <- is.data.frame(data)
  n <- if (framed) nrow(data) else 1e7
  fine <- is.null(rows) || !is.object(rows) && switch(
    mode(rows),
    character = !framed || all(rows %in% row.names(data)),
    logical = length(rows) <= n,
    numeric = length(rows) <= 100 * max(n, 1e5) &&
      all(abs(rows) <= n, na.rm = TRUE),
    FALSE
  )
  if (!fine) {
    stop_input("'subset' must say which rows of 'data', by TRUE and FALSE, by ",
               "numbers or by names, not ", describe(rows))
  }
  rows
}

# The value of an expression. Its errors become errors of this package: those of
# stats for a formula that it cannot read, or for variables that do not go
# together, and those of functions that the formula calls.
read_formula <- function(value, name = "data") {
  tryCatch(value, error = \(e) {
    if (inherits(e, "kernmean_error")) stop(e)
    stop_input("'formula' must be one that can be read with '", name, "'; ",
               sub("(moment)", "subset", conditionMessage(e), fixed = TRUE))
  })
}

# --- Sides -------------------------------------------------------------------

# The calls of two sides, one of which is documented to hold groups. The user
# may have written them the other way round. They change places if only the
# other side is a grouping variable, or if groups belong on the left but the
# left has several columns and the right has numbers. The attribute "left" is
# the name of the side that stands on the left of the formula.
turn_parts <- function(parts, kinds, data, home) {
  at <- match(TRUE, kinds %in% c("groups", "bags", "answers"))
  if (length(parts) < 2L) {
    return(parts)
  }
  attr(parts, "left") <- names(parts)[1L]
  if (is.na(at)) {
    return(parts)
  }
  left <- parts[[1L]]
  if (list(left) %in% summands(parts[[2L]])) refuse_same_sides()
  if (length(summands(left)) > 1L) {
    stop_input("'formula' must have one variable on its left, not ",
               deparse1(left), "; columns are bound by cbind(a, b)")
  }
  groups <- single_value(parts[[at]], data, home)
  others <- if (!is_grouping(groups)) single_value(parts[[3L - at]], data, home)
  if (is_grouping(others) ||
        is.null(groups) && at == 1L && is.numeric(others)) {
    bound <- if (at == 1L) unname(bound_parts(left))
    if (length(bound)) parts[[1L]] <- sum_of(bound)
    parts[] <- parts[2:1]
    attr(parts, "left") <- names(parts)[2L]
  }
  parts
}

# The value of a call that is one column; NULL if it has several. A call that
# can only be read as part of a formula gives an empty list.
single_value <- function(part, data, home) {
  if (length(summands(part)) > 1L || length(bound_parts(part)) ||
        "." %in% all.vars(part)) {
    return(NULL)
  }
  value <- tryCatch({
    value <- eval(part, data, home)
    if (is.call(part)) assign(kept_as(part), value, home)
    value
  }, error = \(e) list())
  if (NCOL(value) == 1L) value
}

is_grouping <- \(x) is.factor(x) || is.character(x) || is.logical(x)

refuse_same_sides <- function() {
  stop_input("'formula' must have different terms on its two sides")
}

# The sides that these calls describe. A dot in a call stands for the columns of
# the data without those that are `used` or stand in another side.
make_sides <- function(parts, kinds, data, used, home) {
  dotted <- vapply(parts, \(part) "." %in% all.vars(part), NA)
  sides <- lapply(seq_along(parts), \(i) {
    part <- parts[[i]]
    taken <- c(used, unlist(lapply(parts[-i], all.vars)))
    if (is.list(data)) data <- data[!names(data) %in% taken]
    if (dotted[i] && (sum(dotted) > 1L || is.list(data) && !length(data))) {
      stop_input("'formula' must have '.' on one side, and there be columns ",
                 "in 'data' that are not on the other")
    }
    kind <- kinds[[names(parts)[i]]]
    if (identical(names(parts)[i], attr(parts, "left"))) {
      return(left_side(part, kind, data))
    }
    side <- right_side(part, kind, data, home)
    if (kind %in% one_variable && length(side$names) != 1L) {
      stop_input("'formula' must have one grouping variable on its right, as ",
                 "interaction(a, b) is, not ", length(side$names), ", or one ",
                 "on its left, as factor(", deparse1(parts[[1L]]), ") is")
    }
    side
  })
  stats::setNames(sides, names(parts))
}

# The sides of a formula of variables: its two sides, or, if it has one only, a
# side for each term.
open_sides <- function(sides, least) {
  if (length(sides) == 1L) {
    side <- sides[[1L]]
    sides <- Map(\(call, name) new_side("variable", list(call), name),
                 side$calls, side$names, USE.NAMES = FALSE)
  }
  sides <- sides[lengths(lapply(sides, `[[`, "calls")) > 0L]
  if (length(sides) < least) {
    stop_input("'formula' must have at least ", count_of(least, "variable"),
               ", as ", if (least > 1L) "y ~ a or ~ a + b" else "~ a",
               ", not ", length(sides))
  }
  if (anyDuplicated(unlist(lapply(sides, `[[`, "names")))) refuse_same_sides()
  sides
}

# On the left a + b is two variables, and a - b is the difference.
left_side <- function(part, kind, data) {
  if (kind %in% one_variable) {
    return(new_side(kind, list(part)))
  }
  calls <- summands(part)
  dot <- vapply(calls, identical, NA, quote(.))
  if (any(dot) && is.list(data)) {
    if (length(data) > most_terms) {
      return(new_side(kind, list(bind_call(names(data))), "."))
    }
    calls <- c(calls[!dot], lapply(names(data), as.name))
  }
  new_side(kind, calls)
}

# On the right signs mean what they do in R's formulas.
right_side <- function(part, kind, data, home) {
  layout <- formula_terms(part, data, home)
  variables <- as.list(attr(layout, "variables"))[-1L]
  names <- vapply(variables, deparse1, "")
  variables[names == "."] <- list(bind_call(setdiff(
    names(data), vapply(Filter(is.name, variables), as.character, "")
  )))
  factors <- attr(layout, "factors")
  sums <- all(attr(layout, "order") == 1L)
  # Columns that a minus sign took away are not read.
  used <- length(factors) & (!sums | rowSums(as.matrix(factors)) > 0)
  side <- new_side(kind, variables[used], names[used],
                   terms = if (!sums) layout)
  if (!sums && !kind %in% c("terms", "numbers", "levels")) {
    stop_input("'formula' must have no interactions; a sum on ",
               "one side is one variable, as in y ~ a + b")
  }
  side
}

one_variable <- c("value", "groups", "bags", "answers")

# The terms of ~ part.
formula_terms <- function(part, data, home) {
  formula <- structure(call("~", part), class = "formula", .Environment = home)
  words <- all.names(part)
  dotted <- "." %in% words
  wide <- dotted && is.list(data) && length(data) > most_terms &&
    !any(c("^", "*", "/", ":", "%in%") %in% words)
  terms <- read_formula(if (wide) {
    stats::terms(formula, allowDotAsName = TRUE)
  } else {
    stats::terms(formula, data = if (dotted) data)
  })
  if (!is.null(attr(terms, "offset"))) {
    stop_input("'formula' must have no offset()")
  }
  terms
}

# The time and memory of terms() grow with the square of the number of terms. If
# a dot stands for more columns than this, they are one variable, called ".".
most_terms <- 500L

bind_call <- \(columns) as.call(lapply(c("cbind", columns), as.name))

# The arguments a and b of cbind(a, b), with their names.
bound_parts <- function(part) {
  if (is.call(part) && identical(part[[1L]], quote(cbind))) {
    parts <- as.list(part)[-1L]
    given <- names2(parts)
    stats::setNames(parts, ifelse(nzchar(given), given, vapply(parts, \(part) {
      if (is.name(part)) as.character(part) else deparse1(part)
    }, "")))
  }
}

sum_of <- \(parts) Reduce(\(a, b) call("+", a, b), parts)

# The summands a, b and c of a + b + c, in a list.
summands <- function(part) {
  word <- if (is.call(part)) as.character(part[[1L]])[1L] else ""
  if (word == "(" || word == "+") {
    unlist(lapply(as.list(part)[-1L], summands))
  } else {
    list(part)
  }
}

# Stops if numeric groups look like points: if some of their values come only
# once, or if there are more of them than on the other side. A class or a sample
# has at least two points. A bag may have one, and is refused only if the other
# side would make groups.
check_group_sides <- function(values, parts, sides) {
  kinds <- lapply(sides, `[[`, "kind")
  at <- match(TRUE, kinds %in% c("groups", "bags"))
  if (is.na(at)) {
    return(invisible())
  }
  groups <- values[[at]]
  points <- values[[3L - at]]
  once <- \(x) !all(is.na(x) | x %in% x[duplicated(x)])
  one <- NCOL(points) == 1L
  if (is.numeric(groups) && if (kinds[at] == "bags") {
    once(groups) && one && !once(points)
  } else {
    once(groups) || one && length(unique(points)) < length(unique(groups))
  }) {
    formula <- call("~", parts[[1L]], parts[[2L]])
    calls <- vapply(if (one) 2:3 else at + 1L, \(i) {
      formula[[i]] <- call("factor", formula[[i]])
      deparse1(formula)
    }, "")
    stop_input("'formula' must have groups on one side, and '",
               deparse1(parts[[at]]), "' is numeric; factor() makes ",
               "groups of numbers, as in ", paste(calls, collapse = " or "))
  }
  check_no_na(groups, sides[[at]]$names)
}

# --- Values ------------------------------------------------------------------

# The variables of the sides in one data frame, and the sides with what new data
# need, without units that are NULL. Each variable is evaluated once, since it
# may draw random numbers. Missing values stay in the frame unless na.action
# drops them; they are counted and refused later.
evaluate_sides <- function(sides, data, rows, action, home) {
  if (identical(action, stats::na.fail)) action <- stats::na.pass
  calls <- do.call(c, unname(lapply(sides, `[[`, "calls")))
  names <- unlist(lapply(sides, `[[`, "names"), use.names = FALSE)
  calls <- stats::setNames(calls, names)[!duplicated(names)]
  values <- read_formula(Map(term_value, calls, names(calls),
                             list(term_home(data, home)), list(data)))
  given <- lengths(lapply(values, `[[`, "value")) > 0L |
    !startsWith(names(values), "(")
  values <- values[given]
  sides <- Filter(\(side) all(side$names %in% names(values)), sides)
  inner <- paste0(".term", seq_along(values), recycle0 = TRUE)
  as_list <- \(names) as.call(lapply(c("list", names), as.name))
  terms <- structure(
    quote(~ .), variables = as_list(names(values)), predvars = as_list(inner),
    response = 1L, class = c("terms", "formula"), .Environment = list2env(
      stats::setNames(lapply(values, `[[`, "value"), inner),
      parent = if (is.environment(data)) data else home
    )
  )
  frame <- read_formula(do.call(stats::model.frame, c(
    list(terms), if (is.list(data)) list(data = data),
    list(subset = rows, na.action = action)
  ), quote = TRUE))
  if (anyNA(match(names(values), names(frame)))) {
    stop_input("'na.action' must be a function that returns the data frame ",
               "it is given, less some rows; its result has other columns")
  }
  classes <- vapply(frame, stats::.MFclass, "")
  for (name in names(values)) {
    levels <- values[[name]]$levels
    if (isTRUE(values[[name]]$distances)) {
      frame[[name]] <- left_distances(frame[[name]], values[[name]]$labels)
      classes[name] <- "distances"
    }
    if (length(levels)) {
      frame[[name]] <- decode_levels(frame[[name]], levels)
      classes[name] <- "factor"
    }
    if (is_grouping(frame[[name]])) {
      check_no_na(frame[[name]], gsub("^[(]|[)]$", "", name))
    }
  }
  list(frame = frame, sides = lapply(sides, \(side) {
    side$calls <- Map(\(call, name) {
      if (is.call(call)) stats::makepredictcall(values[[name]]$value, call) else
        call
    }, side$calls, side$names)
    side$classes <- classes[side$names]
    side
  }))
}

# The environment in which terms are evaluated: to look up many columns in a
# list takes long.
term_home <- function(data, home) {
  if (is.list(data)) list2env(data[nzchar(names2(data))], parent = home) else
    data %||% home
}

# The value of a term, and the levels of the factors in it. A table, and what
# cbind() binds, becomes a matrix that holds the numbers of the levels; `levels`
# has an entry for each of its columns. Distances become a matrix as well, and
# `labels` has the names of their points.
term_value <- function(part, label, home, rows = NULL) {
  bound <- bound_parts(part)
  if (length(bound)) {
    value <- lapply(bound, eval, home)
    names(value) <- names(bound)
  } else {
    value <- (if (is.call(part)) get0(kept_as(part), home)) %||%
      eval(part, home)
  }
  levels <- NULL
  if (inherits(value, "dist")) {
    return(list(value = distance_rows(value), distances = TRUE,
                labels = attr(value, "Labels")))
  }
  if (is.data.frame(value) || length(bound)) {
    value <- bind_columns(unclass(value), names(value), unit_names(value))
    levels <- lapply(value, \(x) if (is.factor(x)) {
      structure(levels(x), ordered = is.ordered(x))
    })
    value <- data.matrix(value)
  } else if (inherits(value, "POSIXlt")) {
    value <- as.POSIXct(value)
  } else if (is.list(value)) {
    read_column(value, label, "formula")
  }
  check_order(stats::setNames(list(rows, value), c("data", label)))
  list(value = value, levels = if (any(lengths(levels))) levels)
}

# Distances as a matrix with a row for each point, from which model.frame() may
# drop rows. The names of the rows say which are left.
distance_rows <- function(distances) {
  x <- as.matrix(distances)
  dimnames(x) <- rep(list(seq_len(nrow(x))), 2L)
  x
}

# The distances between the points whose rows are left, a matrix of class
# "distances".
left_distances <- function(x, labels) {
  kept <- as.integer(rownames(x))
  structure(unname(take_columns(x, kept)), class = "distances",
            labels = labels[kept])
}

# The name under which the value of a call is kept, so that it is evaluated
# once.
kept_as <- \(call) paste(".value of", deparse1(call))

# The columns with factors in place of the numbers that term_value() made of
# them.
decode_levels <- function(x, levels) {
  if (is.null(levels)) {
    return(x)
  }
  x <- as.data.frame(x)
  of <- lengths(levels) > 0L
  x[of] <- Map(\(codes, levels) {
    factor(levels[codes], levels, ordered = attr(levels, "ordered"))
  }, x[of], levels[of])
  x
}

# The values of a side, by its kind, from a frame of its variables. source:
# "formula", or the name of new data, whose characters become factors.
side_data <- function(side, frame, source = "formula") {
  names <- side$names
  if (!length(names) && side$kind != "columns") {
    stop_input("'formula' must have columns for points, or covariates, as in ",
               "~ a + b, not none")
  }
  if ("distances" %in% side$classes) {
    return(side_distances(side, frame))
  }
  if (side$kind %in% one_variable) {
    return(frame[[names]])
  }
  if (side$kind %in% c("terms", "numbers", "levels")) {
    return(side_matrix(side, frame, source))
  }
  terms <- as.list(frame[names])
  if (source != "formula") terms <- lapply(terms, as_factors)
  if (side$kind == "columns") {
    return(bind_columns(terms, names, given_rows(frame)))
  }
  bind_terms(terms, names, given_rows(frame), side$kind == "named")
}

# The distances that are a side. New points have none among these.
side_distances <- function(side, frame) {
  points <- side$kind %in% c("terms", "levels", "named", "variable")
  if (length(side$names) > 1L || !points) {
    stop_input("'formula' must have distances only as all the points of a ",
               "test or of components, as in distances ~ group, not in ",
               shorten(side$names, sep = " + "), "; cmdscale() makes points ",
               "of distances")
  }
  x <- frame[[side$names]]
  if (!inherits(x, "distances")) {
    stop_input("'newdata' must be missing: new points have no place among ",
               "distances")
  }
  distances <- stats::as.dist(unclass(x))
  attr(distances, "Labels") <- attr(x, "labels")
  distances
}

# A matrix of the columns of a side, without an intercept. If the side is a sum
# and some of its columns are factors, or of a class that its kind takes for
# factors, the result is a data frame.
side_matrix <- function(side, frame, source) {
  names <- side$names
  frame <- frame[names]
  classes <- side$classes
  nominal <- names[classes %in% switch(
    side$kind, terms = c("factor", "ordered", "character"),
    levels = c("factor", "ordered", "character", "logical")
  )]
  if (source != "formula") {
    frame <- put_columns(frame, nominal, lapply(frame[nominal], as_factors))
  }
  if (is.null(side$terms) && length(nominal)) {
    return(bind_columns(frame, names, given_rows(frame)))
  }
  for (column in names) {
    value <- frame[[column]]
    if (is.data.frame(value)) Map(read_column, value, names(value), source)
    if (xor(stats::.MFclass(value) == "other", classes[[column]] == "other")) {
      stop_input("column '", column, "' of '", source, "' must be a date or ",
                 "time, or none, as in the fit")
    }
    frame[[column]] <- read_column(value, column, source, TRUE)
  }
  if (is.null(side$terms)) {
    return(as.matrix(bind_columns(frame, names, row.names(frame), "")))
  }
  terms <- side$terms
  attr(terms, "intercept") <- 0L
  attr(frame, "terms") <- terms
  x <- read_formula(stats::model.matrix(terms, frame))
  attr(x, "assign") <- NULL
  x
}

# Several terms as one variable, a data frame of all their columns. A single
# term stays as it is, but becomes a matrix with its name if `named` is TRUE.
bind_terms <- function(terms, names, rows, named = FALSE) {
  terms <- Map(\(term, name) as_factors(plain_term(term), name), terms, names)
  if (length(terms) == 1L) {
    x <- terms[[1L]]
    numbers <- if (!has_levels(x)) as_numbers(x, names)
    if (!is.null(numbers)) x <- numbers
    if (is.matrix(x)) {
      if (!is.null(rows)) rownames(x) <- rows
    } else if (is.numeric(x)) {
      if (!is.null(rows)) names(x) <- rows
      if (named) x <- matrix(x, dimnames = list(names(x), names))
    }
    return(x)
  }
  bind_columns(terms, names, rows)
}

# A data frame of all columns of terms. The columns of a matrix have its name
# before their own, unless a dot stands for them.
bind_columns <- function(terms, names, rows = NULL, sep = ".") {
  columns <- Map(\(term, name) {
    if (is.data.frame(term) || name == "." && length(dim(term))) {
      return(as.list(as.data.frame(term)))
    }
    term <- as_factors(plain_term(term), name)
    if (!has_levels(term)) term <- read_column(term, name, "formula", TRUE)
    if (is.null(dim(term))) {
      if (is.numeric(term)) term <- as.double(term)
      return(stats::setNames(list(term), name))
    }
    stats::setNames(as.list(as.data.frame(unclass_matrix(term))), paste0(
      name, if (!is.null(colnames(term))) paste0(sep, colnames(term)) else
        if (ncol(term) > 1L) paste0(sep, seq_len(ncol(term)))
    ))
  }, terms, names)
  frame <- list2DF(unlist(unname(columns), recursive = FALSE))
  if (!is.null(rows)) row.names(frame) <- rows
  frame
}

# The variable without the class that I() gave it.
plain_term <- function(x) {
  if (inherits(x, "AsIs")) class(x) <- setdiff(class(x), "AsIs")
  x
}

# --- The layout --------------------------------------------------------------

# The sides and units, as new data are read by them. From the environment of the
# formula only constants are kept, such as the degree of poly(a, degree); all
# other variables of a side are columns that new data must have.
kept_layout <- function(layout, sides, data, formula) {
  home <- environment(formula)
  used <- lapply(layout, \(side) {
    setdiff(unlist(lapply(side$calls, all.vars)), ".")
  })
  words <- unique(unlist(used))
  constants <- words[!words %in% names(data) & vapply(words, \(word) {
    NROW(get0(word, home)) == 1L
  }, NA)]
  home <- list2env(lapply(stats::setNames(nm = constants), get0, home),
                   parent = globalenv())
  layout <- Map(\(side, used) {
    side$columns <- setdiff(used, constants)
    side
  }, layout, used)
  shown <- lapply(sides, \(side) {
    if (is.null(side$terms)) sum_of(side$calls) else
      stats::formula(side$terms)[[2L]]
  })[vapply(sides, `[[`, "", "kind") != "columns"]
  formula <- if (length(formula) == 2L) call("~", sum_of(shown)) else
    call("~", shown[[1L]], Reduce(\(a, b) call("|", a, b), shown[-1L]))
  structure(layout, home = home, formula = structure(
    formula, class = "formula", .Environment = home
  ))
}

# The formula of a fit, with the columns that a dot stands for.
#' @importFrom stats formula
#' @export
formula.kernmean_fit <- function(x, ...) {
  attr(same_version(x, "x")$layout, "formula") %||%
    stop_input("'x' must be a fit by formula",
               if (inherits(x, "htest")) "; tests do not keep theirs" else
                 paste(", not", describe(x)))
}
