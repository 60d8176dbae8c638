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
      stop_input("'", unit, "' must be one column, as in ~ id, not ",
                 deparse1(value))
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
# refused. Data and subset are evaluated once: they may draw numbers.
formula_frame <- function(call, formula, data, no_action, home) {
  call <- call[!names(call) %in% "..."]
  call[[1L]] <- quote(stats::model.frame)
  call$formula <- formula
  if (is.object(data) && !is.environment(data)) {
    data <- read_formula(as.data.frame(data))
  }
  call$data <- data
  call$subset <- read_subset(call$subset, data, environment(formula))
  if (no_action || identical(read_formula(eval(call$na.action, home)),
                             stats::na.fail)) {
    call$na.action <- quote(stats::na.pass)
  }
  read_formula(eval(call, home))
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

formula_terms <- function(formula, data) {
  terms <- read_formula(stats::terms(formula, data = data))
  if (!is.null(attr(terms, "offset"))) {
    stop_input("'formula' must have no offset()")
  }
  terms
}

# What stats says of a formula that it cannot read, or of variables that do not
# go together, as an error of ours; an error of a function that the formula
# calls is one of them.
read_formula <- function(value, name = "data") {
  tryCatch(value, error = \(e) {
    if (inherits(e, "kernmean_error")) stop(e)
    stop_input("'formula' must be one that can be read with '", name, "'; ",
               conditionMessage(e))
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

# One side as a variable of one column; NULL if it has several, and list() if it
# can only be read as part of the formula.
side_value <- function(formula, side, data) {
  part <- formula[[side]]
  if (length(summands(part)) > 1L || "." %in% all.vars(part)) {
    return(NULL)
  }
  value <- tryCatch(suppressWarnings(eval(part, data, environment(formula))),
                    error = \(e) list())
  if (NCOL(value) == 1L) value
}

# The columns on a side, as a list of their names or calls.
side_columns <- function(formula, data, side, used) {
  if (side == 3L) {
    layout <- formula_terms(formula, data_without(data, used))
    if (any(attr(layout, "order") > 1L)) {
      stop_input("'formula' must have no interactions beside its groups")
    }
    return(lapply(attr(layout, "term.labels"), str2lang))
  }
  left <- formula[[2L]]
  parts <- bound_parts(left)
  if (identical(left, quote(.))) left_columns(formula, data, used) else
    parts %||% list(left)
}

# a and b of cbind(a, b).
bound_parts <- function(part) {
  if (is.call(part) && identical(part[[1L]], quote(cbind))) as.list(part)[-1L]
}

# In cbind() a factor becomes the numbers of its levels: the levels of each
# column of `part`, NULL for numbers.
bound_levels <- function(part, data, home) {
  parts <- bound_parts(part)
  unlist(lapply(parts %||% list(part), \(part) {
    value <- read_formula(eval(part, data, home))
    rep(list(if (is.factor(value)) {
      structure(levels(value), ordered = is.ordered(value))
    }), NCOL(value))
  }), recursive = FALSE)
}

# Where the sum of terms is one variable, factors are terms.
refuse_bound_factors <- function(parts, data, home) {
  for (part in as.list(parts)) {
    bound <- bound_parts(part)
    if (length(bound) && any(lengths(bound_levels(part, data, home)))) {
      stop_input("'formula' must have factors as ", deparse1(sum_of(bound)),
                 ", not in ", deparse1(part), ", which makes numbers of them")
    }
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
  classes <- attr(layout, "dataClasses")
  if (all(attr(layout, "order") == 1L) &&
        any(classes[used] %in% attr(layout, "nominal"))) {
    characters <- used[classes[used] == "character"]
    frame[characters] <- lapply(frame[characters], factor)
    rows <- given_rows(frame)
    return(data.frame(as.list(frame[used]), row.names = rows,
                      check.names = FALSE))
  }
  for (column in used) {
    value <- frame[[column]]
    if (xor(stats::.MFclass(value) == "other", classes[[column]] == "other")) {
      stop_input("column '", column, "' of '", name, "' must be a date or ",
                 "time, or none, as in the fit")
    }
    frame[[column]] <- read_column(value, column, name, TRUE)
  }
  attr(layout, "intercept") <- 0L
  x <- read_formula(stats::model.matrix(layout, frame))
  attr(x, "assign") <- NULL
  x
}

# Of the formula's environment only the constants are kept, such as the degree
# of poly(a, degree); `columns` are the variables that new data must have.
keep_constants <- function(layout, data) {
  home <- environment(layout)
  value <- \(name) get0(name, home)
  used <- all.vars(layout)
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
}

# The columns of a formula's terms from new data.
read_terms <- function(layout, newdata, name = "newdata") {
  check_variables(layout, newdata, name)
  # Its warning of other numbers of rows is our error.
  frame <- suppressWarnings(read_formula(
    stats::model.frame(layout, newdata, na.action = stats::na.pass), name
  ))
  if (nrow(frame) != NROW(newdata[[1L]])) {
    stop_input("'formula' must have variables with a value for each of the ",
               NROW(newdata[[1L]]), " rows of '", name, "', not ", nrow(frame))
  }
  formula_matrix(layout, frame, name)
}
