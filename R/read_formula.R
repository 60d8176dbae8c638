# What the formula methods share.

# What a formula is read with; `dots`: what was given beside it, among which
# must not be what it says itself, the arguments `sides`.
check_formula <- function(formula, data, dots = NULL, sides = NULL) {
  if (missing(formula)) stop_input("'formula' must be given, as in ~ a + b")
  tryCatch(data, error = \(e) {
    stop_input("'data' must be a data frame; ", conditionMessage(e))
  })
  # model.frame() makes data frames of what has a class.
  if (!is.null(data) && !is.environment(data) && !is.object(data) &&
        !(is.list(data) && all(nzchar(names2(data))))) {
    stop_input("'data' must be a data frame, not ", describe(data))
  }
  check_columns(formula, data)
  twice <- intersect(sides, dots)
  if (length(twice)) {
    stop_input("'", twice[1L], "' must not be given with a formula, which ",
               "says what it is")
  }
}

# The call of a formula method, in which "a" and ~ a stand for the column a of
# what tells units apart.
name_columns <- function(call) {
  units <- c("blocks", "clusters", "id", "weights")
  for (unit in intersect(names(call), units)) {
    value <- call[[unit]]
    if (is.call(value) && identical(value[[1L]], quote(`~`)) &&
          length(value) == 2L && is.name(value[[2L]])) {
      value <- value[[2L]]
    }
    if (is.call(value) && identical(value[[1L]], quote(`~`))) {
      stop_input("'", unit, "' must be one column, as in ~ id (of two, ",
                 "interaction(a, b)), not ", deparse1(value))
    }
    if (is.character(value) && nzchar(value) && !is.na(value)) {
      value <- as.name(value)
    }
    call[unit] <- list(value)
  }
  call
}

# The model frame that the call of a formula method describes; missing values
# stay in it where no na.action is given, or na.fail(), to be counted and
# refused. Terms, data and subset are evaluated once: they may draw numbers.
formula_frame <- function(call, formula, data, no_action, home) {
  call <- call[!names(call) %in% "..."]
  call[[1L]] <- quote(stats::model.frame)
  if (is.object(data) && !is.environment(data)) {
    data <- read_formula(as.data.frame(data))
  }
  call$subset <- read_subset(call$subset, data, environment(formula))
  if (no_action || identical(read_formula(eval(call$na.action, home)),
                             stats::na.fail)) {
    call$na.action <- quote(stats::na.pass)
  }
  layout <- formula_terms(formula, data)
  frame <- read_formula(settled_frame(call, layout, data, home))
  for (name in names(frame)[vapply(frame, is_grouping, NA)]) {
    check_no_na(frame[[name]], gsub("^[(]|[)]$", "", name))
  }
  frame
}

# The frame of terms whose variables are evaluated first, which the call then
# finds by names in their environment: a variable of numbers and factors is a
# data frame in it.
settled_frame <- function(call, layout, data, home) {
  parts <- as.list(attr(layout, "predvars") %||% attr(layout, "variables"))[-1L]
  from <- term_home(data, environment(layout))
  values <- lapply(parts, term_value, from, data)
  names <- paste0(".term", seq_along(parts), recycle0 = TRUE)
  call$data <- if (!is.environment(data)) data
  call$formula <- structure(
    layout, predvars = as.call(lapply(c("list", names), as.name)),
    .Environment = list2env(
      stats::setNames(lapply(values, `[[`, "value"), names),
      parent = if (is.environment(data)) data else environment(layout)
    )
  )
  frame <- eval(call, home)
  kept <- attr(frame, "terms")
  for (i in which(lengths(lapply(values, `[[`, "levels")) > 0L)) {
    frame[[i]] <- decode_levels(frame[[i]], values[[i]]$levels)
    attr(kept, "dataClasses")[i] <- "factor"
  }
  attr(kept, "predvars") <- as.call(c(quote(list), Map(\(value, part) {
    stats::makepredictcall(value$value, part)
  }, values, parts)))
  environment(kept) <- environment(layout)
  attr(frame, "terms") <- kept
  frame
}

# Where terms are evaluated: a look-up among many columns of a list takes long.
term_home <- function(data, home) {
  if (is.list(data)) list2env(data[nzchar(names2(data))], parent = home) else
    data %||% home
}

# list(value, levels) of a term: a table, and what cbind() binds, is a matrix,
# with the numbers of levels for factors, which `levels` has for each column.
term_value <- function(part, home, rows = NULL) {
  label <- deparse1(part)
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
    stop_input("'", label, "' holds distances, which come before groups, as ",
               "in mmd_test(distances, groups), and not in a formula")
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

# What the value of a call is kept as, for it is evaluated once.
kept_as <- \(call) paste(".value of", deparse1(call))

# The factors that some of these numbers were.
decode_levels <- function(x, levels) {
  x <- as.data.frame(x)
  of <- lengths(levels) > 0L
  x[of] <- Map(\(codes, levels) {
    factor(levels[codes], levels, ordered = attr(levels, "ordered"))
  }, x[of], levels[of])
  x
}

# The rows that a formula method is for, by name or as its third argument; they
# must be there, for R would make rows of missing values of the others.
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

# The columns of data that a formula uses must have names of their own.
check_columns <- function(formula, data) {
  columns <- if (is.list(data)) names(data)
  names <- all.vars(formula)
  refuse_twice(columns["." %in% names | columns %in% c("", names)], "data")
  columns
}

formula_terms <- function(formula, data) {
  if (inherits(formula, "terms")) {
    return(formula)
  }
  columns <- check_columns(formula, data)
  words <- all.names(formula)
  dotted <- "." %in% words
  wide <- dotted && is.list(data) && length(columns) > most_terms &&
    !any(c("^", "*", "/", ":", "%in%") %in% words)
  terms <- read_formula(if (wide) wide_terms(formula, columns) else
    stats::terms(formula, data = if (dotted) data))
  if (!is.null(attr(terms, "offset"))) {
    stop_input("'formula' must have no offset()")
  }
  terms
}

# The time and memory of terms() go with the square of their number. So many
# columns of a dot are one variable, which is called so.
most_terms <- 500L

wide_terms <- function(formula, columns) {
  layout <- stats::terms(formula, allowDotAsName = TRUE)
  variables <- attr(layout, "variables")
  named <- vapply(Filter(is.name, as.list(variables)), as.character, "")
  left <- if (length(formula) == 3L) all.vars(formula[[2L]])
  variables[as.list(variables) %in% list(quote(.))] <- list(as.call(
    lapply(c("cbind", setdiff(columns, c(named, left))), as.name)
  ))
  structure(layout, predvars = variables)
}

# What stats says of a formula that it cannot read, or of variables that do not
# go together, as an error of ours; an error of a function that the formula
# calls is one of them.
read_formula <- function(value, name = "data") {
  tryCatch(value, error = \(e) {
    if (inherits(e, "kernmean_error")) stop(e)
    stop_input("'formula' must be one that can be read with '", name, "'; ",
               sub("(moment)", "subset", conditionMessage(e), fixed = TRUE))
  })
}

# R reads a | b as a value.
check_dot <- function(formula, hint = paste(
  "within what points change places in a test, its argument 'blocks' says"
)) {
  right <- formula[[length(formula)]]
  if (is.call(right) && identical(right[[1L]], quote(`|`))) {
    stop_input("'formula' must have no '|'; ", hint)
  }
}

# The columns that . ~ g has on its left, and others than those `used` for
# something else, as names.
left_columns <- function(formula, data, used = NULL) {
  right <- all.vars(formula[[3L]])
  others <- setdiff(names(data), c(right, used))
  if (!length(others) || "." %in% right) {
    stop_input("'formula' must have '.' on one side, and there be columns in ",
               "'data' that are not on the other")
  }
  lapply(others, as.name)
}

# What a dot in a formula may stand for, where these columns have a use.
data_without <- function(data, used) {
  if (is.list(data)) data[!names(data) %in% used] else data
}

# list(x, terms, na.action, weights) of a formula without response; weights:
# NULL unless the call has some; nominal: see formula_matrix(), kept for new
# data.
formula_sample <- function(call, formula, data, no_action, home,
                           nominal = NULL) {
  check_dot(formula)
  # A dot leaves out the weights, unless the formula names them.
  named <- setdiff(all.vars(call$weights), all.vars(formula))
  layout <- formula_terms(formula, data_without(data, named))
  if (attr(layout, "response") > 0L) {
    stop_input("'formula' must have no response, as in ~ a + b")
  }
  frame <- formula_frame(call, layout, data, no_action, home)
  # With what scale() or poly() were fitted to, for new data.
  layout <- attr(frame, "terms")
  attr(layout, "nominal") <- nominal
  list(x = formula_matrix(layout, frame),
       terms = keep_constants(layout, data),
       na.action = attr(frame, "na.action"), weights = frame[["(weights)"]])
}

usual_nominal <- c("factor", "ordered", "character")

# The fit of a door to the sample of a formula without response. The dots are
# the door's: no name among them may match one of these.
fit_formula <- function(.door, .call, .formula, .data, .no_action, .home, ...) {
  check_formula(.formula, .data)
  sample <- formula_sample(.call, .formula, .data, .no_action, .home,
                           usual_nominal)
  fit <- if (is.null(sample$weights)) .door(sample$x, ...) else
    .door(sample$x, ..., weights = sample$weights)
  fit$terms <- sample$terms
  fit$na.action <- sample$na.action
  fit
}

# --- Groups on either side ---------------------------------------------------

is_grouping <- \(x) is.factor(x) || is.character(x) || is.logical(x)

# A formula with its groups on this side, 2 left, 3 right: turned where only the
# other one is a grouping variable, or the left has several columns. A dot
# leaves out `used`.
turn_formula <- function(formula, data, side, used = NULL) {
  check_dot(formula)
  if (length(formula) != 3L) {
    return(formula)
  }
  environment(formula) <- new.env(parent = environment(formula))
  if (list(formula[[2L]]) %in% summands(formula[[3L]])) refuse_same_sides()
  if (side == 2L) check_left(formula_terms(formula, data))
  groups <- side_value(formula, side, data)
  other <- 5L - side
  others <- if (!is_grouping(groups)) side_value(formula, other, data)
  if (is_grouping(others) ||
        is.null(groups) && side == 2L && is.numeric(others)) {
    columns <- side_columns(formula, data, side, used)
    formula[[side]] <- formula[[other]]
    formula[[other]] <- if (side == 2L) sum_of(columns) else
      if (length(columns) == 1L) columns[[1L]] else
        as.call(c(quote(cbind), columns))
  }
  formula
}

refuse_same_sides <- function() {
  stop_input("'formula' must have different terms on its two sides")
}

# One side as a variable of one column; NULL if it has several, and list() if it
# can only be read as part of the formula.
side_value <- function(formula, side, data) {
  part <- formula[[side]]
  if (length(summands(part)) > 1L || length(bound_parts(part)) ||
        "." %in% all.vars(part)) {
    return(NULL)
  }
  home <- environment(formula)
  value <- tryCatch({
    value <- eval(part, data, home)
    if (is.call(part)) assign(kept_as(part), value, home)
    value
  }, error = \(e) list())
  if (NCOL(value) == 1L) value
}

# The columns on a side, as a list of their names or calls.
side_columns <- function(formula, data, side, used) {
  if (side == 3L) {
    layout <- formula_terms(formula, data_without(data, used))
    if (any(attr(layout, "order") > 1L)) {
      stop_input("'formula' must have no interactions beside its groups")
    }
    labels <- setdiff(attr(layout, "term.labels"), ".")
    wide <- unlist(lapply(as.list(attr(layout, "predvars")), bound_parts))
    return(c(unname(wide), lapply(labels, str2lang)))
  }
  left <- formula[[2L]]
  parts <- bound_parts(left)
  if (identical(left, quote(.))) left_columns(formula, data, used) else
    unname(parts) %||% list(left)
}

# a and b of cbind(a, b), by their names.
bound_parts <- function(part) {
  if (is.call(part) && identical(part[[1L]], quote(cbind))) {
    parts <- as.list(part)[-1L]
    given <- names2(parts)
    stats::setNames(parts, ifelse(nzchar(given), given, vapply(parts, \(part) {
      if (is.name(part)) as.character(part) else deparse1(part)
    }, "")))
  }
}

# Groups on this side that are numbers of which some come once, or more than
# those on the other: classes and samples take two points or more. Bags may have
# one, unless the other side would make groups.
check_groups_of <- function(groups, points, formula, side, bags = FALSE) {
  once <- \(x) !all(is.na(x) | x %in% x[duplicated(x)])
  one <- NCOL(points) == 1L
  if (is.numeric(groups) && if (bags) {
    once(groups) && one && !once(points)
  } else {
    once(groups) || one && length(unique(points)) < length(unique(groups))
  }) {
    calls <- vapply(if (one) 2:3 else side, \(at) {
      formula[[at]] <- call("factor", formula[[at]])
      deparse1(formula)
    }, "")
    stop_input("'formula' must have groups on one side, and '",
               deparse1(formula[[side]]), "' is numeric; factor() makes ",
               "groups of numbers, as in ", paste(calls, collapse = " or "))
  }
}

sum_of <- \(parts) Reduce(\(a, b) call("+", a, b), parts)

# a, b and c of a + b + c.
summands <- function(part) {
  word <- if (is.call(part)) as.character(part[[1L]])[1L] else ""
  if (word == "(" || word == "+") {
    unlist(lapply(as.list(part)[-1L], summands))
  } else {
    list(part)
  }
}

# One variable stands on the left; a + b would be added up.
check_left <- function(layout) {
  left <- if (attr(layout, "response") > 0L) attr(layout, "variables")[[2L]]
  if (length(summands(left)) > 1L) {
    stop_input("'formula' must have one variable on its left, not ",
               deparse1(left), "; columns are bound by cbind(a, b)")
  }
}

# The matrix of a formula's columns, without an intercept; a data frame where
# some are of the classes that its attribute `nominal` says, in sums of terms.
formula_matrix <- function(layout, frame, name = "formula") {
  factors <- attr(layout, "factors")
  used <- if (length(factors)) names(frame)[which(rowSums(factors) > 0)]
  if (!length(used)) {
    stop_input("'formula' must have columns for points, or covariates, as in ",
               "~ a + b, not none")
  }
  classes <- attr(layout, "dataClasses")
  nominal <- used[classes[used] %in% attr(layout, "nominal")]
  # In new data characters stand for levels that are known.
  if (name != "formula") {
    frame <- put_columns(frame, nominal, lapply(frame[nominal], as_factors))
  }
  sums <- all(attr(layout, "order") == 1L)
  if (sums && length(nominal)) {
    return(bind_columns(frame[used], used, given_rows(frame)))
  }
  for (column in used) {
    value <- frame[[column]]
    if (is.data.frame(value)) Map(read_column, value, names(value), name)
    if (xor(stats::.MFclass(value) == "other", classes[[column]] == "other")) {
      stop_input("column '", column, "' of '", name, "' must be a date or ",
                 "time, or none, as in the fit")
    }
    frame[[column]] <- read_column(value, column, name, TRUE)
  }
  if (sums) {
    return(as.matrix(bind_columns(frame[used], used, row.names(frame), "")))
  }
  attr(layout, "intercept") <- 0L
  x <- read_formula(stats::model.matrix(layout, frame))
  attr(x, "assign") <- NULL
  x
}

# A data frame of all columns of terms; those of a matrix have its name before
# theirs, but for what a dot bound.
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

# A variable made by I() is what it was made of.
plain_term <- function(x) {
  if (inherits(x, "AsIs")) class(x) <- setdiff(class(x), "AsIs")
  x
}

# Of the formula's environment only the constants are kept, such as the degree
# of poly(a, degree); `columns` are the variables that new data must have.
keep_constants <- function(layout, data) {
  home <- environment(layout)
  value <- \(name) get0(name, home)
  used <- c(all.vars(layout), all.vars(attr(layout, "predvars")))
  used <- setdiff(unique(used), ".")
  constant <- !used %in% names(data) &
    vapply(used, \(name) NROW(value(name)) == 1L, logical(1))
  kept <- lapply(stats::setNames(nm = used[constant]), value)
  attr(layout, "columns") <- used[!constant]
  attr(layout, ".Environment") <- list2env(kept, parent = globalenv())
  layout
}

# A formula of groups and columns: list(response, x: the matrix of the columns,
# layout: what new data are read by, list(terms: of these columns, response,
# na.action)).
formula_parts <- function(call, formula, data, no_action, home, example, bags) {
  formula <- turn_formula(formula, data, 2L)
  layout <- formula_terms(formula, data)
  if (attr(layout, "response") == 0L) {
    stop_input("'formula' must have a left side, as in ", example)
  }
  frame <- formula_frame(call, layout, data, no_action, home)
  left <- call("~", attr(layout, "variables")[[2L]])
  left <- terms(stats::as.formula(left, environment(layout)))
  # With what scale() or poly() were fitted to, for new data.
  right <- stats::delete.response(attr(frame, "terms"))
  if (!bags) attr(right, "nominal") <- usual_nominal
  x <- formula_matrix(right, structure(frame[-1L], terms = right))
  check_groups_of(frame[[1L]], x, formula, 2L, bags)
  list(response = frame[[1L]], x = x,
       layout = list(terms = keep_constants(right, data),
                     response = keep_constants(left, data),
                     na.action = attr(frame, "na.action")))
}

# The value of a formula's only term, ~ class, in new data.
read_response <- function(layout, newdata, name = "data", hint = NULL) {
  if (!is.data.frame(newdata)) {
    stop_input("'", name, "' must be a data frame, not ", describe(newdata))
  }
  check_variables(layout, newdata, name, hint = hint)
  read_formula(eval(attr(layout, "variables")[[2L]], newdata,
                    environment(layout)), name)
}

check_variables <- function(layout, newdata, name,
                            needed = attr(layout, "columns"),
                            hint = NULL) {
  missing <- setdiff(needed, names(newdata))
  if (length(missing)) {
    stop_input(
      "'", name, "' must have the variables of the formula; missing: ",
      quoted(missing), hint
    )
  }
  refuse_twice(names(newdata)[names(newdata) %in% needed], name)
}

# The columns of a formula's terms from new data.
read_terms <- function(layout, newdata, name = "newdata") {
  check_variables(layout, newdata, name)
  # Its warning of other numbers of rows is our error.
  frame <- suppressWarnings(read_formula(settled_frame(
    quote(stats::model.frame(na.action = stats::na.pass)), layout, newdata,
    topenv()
  ), name))
  if (nrow(frame) != NROW(newdata[[1L]])) {
    stop_input("'formula' must have variables with a value for each of the ",
               NROW(newdata[[1L]]), " rows of '", name, "', not ", nrow(frame))
  }
  formula_matrix(layout, frame, name)
}
