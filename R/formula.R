# What the formula methods share.

# In formula methods the third argument by position is a subset of rows.
check_subset <- function(subset) {
  kernel <- !missing(subset) &&
    inherits(tryCatch(subset, error = identity), "kernmean_kernel")
  if (kernel) {
    stop_input("a kernel must be given by name with a formula, as in ",
               "kernel = kernel_rbf()")
  }
}

# The model frame that the call of a formula method describes; missing values
# stay in it where no na.action is given, to be counted and refused.
formula_frame <- function(call, formula, no_action, home) {
  call$... <- NULL
  call[[1L]] <- quote(stats::model.frame)
  call$formula <- formula
  if (no_action) {
    call$na.action <- quote(stats::na.pass)
  }
  eval(call, home)
}

# The matrix of a formula's columns, without an intercept.
formula_matrix <- function(layout, frame) {
  for (column in names(frame)) {
    if (!is.numeric(frame[[column]])) {
      stop_input(
        "'formula' must name numeric columns only; column '", column, "' is ",
        describe(frame[[column]])
      )
    }
  }
  attr(layout, "intercept") <- 0L
  x <- stats::model.matrix(layout, frame)
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

# The columns of a formula's terms from new data.
read_terms <- function(layout, newdata, name = "newdata") {
  missing <- setdiff(attr(layout, "columns"), names(newdata))
  if (length(missing)) {
    stop_input(
      "'", name, "' must have the variables of the formula; missing: ",
      paste0("'", missing, "'", collapse = ", ")
    )
  }
  frame <- model.frame(layout, newdata, na.action = stats::na.pass)
  formula_matrix(layout, frame)
}
