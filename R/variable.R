# Variables: what tests of independence and covariance operators take. A
# variable is list(name, sample, levels): a sample, and for a factor the levels
# in the order of their columns of indicators.

is_several <- function(x) is.list(x) && !is.data.frame(x)

# The variables that a door was given: `data` is list(x) or list(x, y), x a
# variable or, without y, a plain list of them (`alone`: it may be just one). A
# variable without a kernel of its own has the one given for it, list(x, y),
# the one for all, `kernel`, or its default, if there are `defaults`.
read_variables <- function(data, given, kernel = NULL, defaults = NULL,
                           alone = FALSE) {
  paired <- "y" %in% names(data)
  several <- !paired && is_plain_list(data[[1L]])
  if (paired) check_second(data$x, data$y)
  each <- if (several) data$x else data
  if (!is.null(kernel)) {
    given <- share_kernel(kernel, given, each, several)
  }
  if (several || !paired && !alone) {
    kernels <- if (is.null(given[[1L]])) defaults else given[[1L]]
    return(read_list(data$x, kernels, given$y))
  }
  if (!paired && !is.null(given$y)) {
    stop_input("'kernel_y' must not be given without 'y'")
  }
  kernels <- given[names(data)]
  for (l in seq_along(defaults)) {
    if (is.null(kernels[[l]]) && !has_own_kernel(data[[l]])) {
      kernels[l] <- defaults[l]
    }
  }
  Map(read_variable, data, kernels, names(data), paste0("kernel_", names(data)))
}

is_plain_list <- function(x) is_several(x) && !is.object(x)

check_second <- function(x, y) {
  if (inherits(y, "kernmean_kernel")) {
    stop_input("'y' must be the second variable; a kernel is given by name, ",
               "as in kernel = kernel_rbf()")
  }
  if (is_plain_list(x)) {
    stop_input("'y' must be missing when 'x' is a list of variables")
  }
}

share_kernel <- function(kernel, given, each, several) {
  check_kernel(kernel)
  if (!all(vapply(given, is.null, NA))) {
    stop_input("'kernel' is the kernel of every variable and must be NULL ",
               "if 'kernel_x' or 'kernel_y' is given")
  }
  own <- vapply(each, has_own_kernel, NA)
  if (all(own)) {
    stop_input("'kernel' must not be given when every variable has a kernel ",
               "of its own, as factors and grams have")
  }
  if (several) {
    return(list(x = kernel, y = NULL))
  }
  given <- list(x = NULL, y = NULL)
  given[names(each)[!own]] <- list(kernel)
  given
}

# The variables of a list, named.
read_list <- function(x, kernels, given_y) {
  if (!is_several(x)) {
    stop_input("'y' must be given unless 'x' is a plain list of variables",
               if (is.data.frame(x)) "; as.list() makes one of a data frame")
  }
  if (!is.null(given_y)) {
    stop_input("'kernel_y' must not be given with a list of variables; ",
               "'kernel_x' may be a list of kernels")
  }
  d <- length(x)
  if (d < 2L) {
    stop_input("'x' must be a list of at least 2 variables, not ", d)
  }
  labels <- names(x)
  if (is.null(labels) || !all(nzchar(labels)) || anyDuplicated(labels)) {
    labels <- paste0("x[[", seq_len(d), "]]")
  }
  shared <- is.null(kernels) || inherits(kernels, "kernmean_kernel")
  if (!shared && !(is.list(kernels) && length(kernels) == d)) {
    stop_input("'kernel_x' must be a kernel or a list of ", d, " kernels, not ",
               describe(kernels))
  }
  variables <- lapply(seq_len(d), \(l) {
    kernel <- if (!shared) {
      kernels[[l]]
    } else if (!has_own_kernel(x[[l]])) {
      kernels
    }
    read_variable(x[[l]], kernel, labels[l], paste0("kernel_x[[", l, "]]"))
  })
  stats::setNames(variables, labels)
}

is_nominal <- function(x) is.factor(x) || is.logical(x) && is.null(dim(x))

has_own_kernel <- function(x) is_nominal(x) || brings_kernel(x)

# A factor becomes the indicators of its levels, whose inner products are its
# kernel. The kernel NULL is that of the kind of variable.
read_variable <- function(x, kernel, name, kernel_name) {
  if (has_own_kernel(x) && !is.null(kernel)) {
    stop_input("'", kernel_name, "' must not be given when '", name,
               "' is a ", if (is_nominal(x)) "factor" else "gram")
  }
  if (is_nominal(x)) {
    return(read_factor(x, name))
  }
  if (is.character(x)) {
    stop_input("'", name, "' must be numeric or a factor, not ",
               if (is.matrix(x)) "a character matrix" else "characters",
               "; factor() makes one of them")
  }
  sample <- if (has_own_kernel(x)) {
    gram_sample(x)
  } else {
    x <- check_data(x, name)
    kernel <- if (is.null(kernel)) kernel_rbf() else
      check_kernel(kernel, kernel_name, estimator_hint(kernel))
    points_sample(x, fit_kernel(kernel, x))
  }
  list(name = name, sample = sample)
}

read_factor <- function(x, name) {
  if (anyNA(x)) {
    stop_input("'", name, "' must have no missing values, not ",
               sum(is.na(x)), " NA")
  }
  levels <- unique(as.integer(x))
  check_memory(length(x), length(levels), "use fewer levels", copies = 2)
  points <- outer(as.integer(x), levels, `==`)
  storage.mode(points) <- "double"
  list(name = name, sample = points_sample(points, kernel_linear()),
       levels = as.character(unique(x)))
}

is_factor_variable <- function(variable) !is.null(variable$levels)

# What a variable was made from; with another kernel to come, its points.
variable_input <- function(variable, rekernel = FALSE) {
  if (is_factor_variable(variable)) {
    levels <- variable$levels
    factor(levels[max.col(variable$sample$x, "first")], levels)
  } else {
    sample_input(variable$sample, rekernel)
  }
}

# The kernel that the variable was given, or NULL where it has its own.
variable_kernel <- function(variable) {
  if (!is_factor_variable(variable)) sample_kernel(variable$sample)
}

# Of update(): `kernel`, among arguments or changes, for each of the variables
# that `takes` it, by the name that the door has for that.
spread_kernel <- function(arguments, takes, several) {
  if ("kernel" %in% names(arguments)) {
    names <- if (several) {
      "kernel_x"
    } else {
      paste0("kernel_", c("x", "y")[seq_along(takes)][takes])
    }
    arguments[names] <- list(arguments$kernel)
    arguments["kernel"] <- NULL
  }
  arguments
}

# New values of a variable as new points of its sample.
variable_newdata <- function(variable, newdata, label) {
  if (is_factor_variable(variable)) {
    new_points(level_indicators(newdata, variable$levels, label))
  } else {
    sample_newdata(variable$sample, newdata)
  }
}

# "2 columns", "factor of 3 levels"
describe_variable <- function(variable) {
  if (is_factor_variable(variable)) {
    paste("factor of", count_of(length(variable$levels), "level"))
  } else if (knows_points(variable$sample)) {
    count_of(ncol(variable$sample$x), "column")
  } else {
    "Gram matrix"
  }
}

# Its kernel for print(); factors have none to speak of.
variable_lines <- function(variable, label) {
  if (!is_factor_variable(variable)) {
    kernel_lines(variable$sample$kernel, label)
  }
}

check_lengths <- function(variables) {
  sizes <- vapply(variables, \(v) v$sample$n, numeric(1))
  bad <- which(sizes != sizes[1L])
  if (length(bad)) {
    stop_input(
      "'", variables[[bad[1L]]]$name, "' must have as many rows as '",
      variables[[1L]]$name, "', ", sizes[1L], ", not ", sizes[bad[1L]]
    )
  }
  sizes[[1L]]
}

name_rows <- function(x, names) {
  if (is.matrix(x)) {
    rownames(x) <- names
  } else if (is.numeric(x)) {
    names(x) <- names
  }
  x
}

# A variable made by I() is what it was made of.
plain_term <- function(x) {
  if (inherits(x, "AsIs")) class(x) <- setdiff(class(x), "AsIs")
  x
}

# The term number l of a formula at new data.
read_term <- function(layout, newdata, l, name = "newdata") {
  term <- attr(layout, "predvars")[[l + 1L]]
  check_variables(layout, newdata, name,
                  intersect(all.vars(term), attr(layout, "columns")))
  value <- plain_term(eval(term, newdata, environment(layout)))
  if (.row_names_info(newdata) > 0L) name_rows(value, row.names(newdata)) else
    value
}

level_indicators <- function(z, levels, name) {
  if (!(is.factor(z) || is.logical(z) || is.character(z)) ||
        !is.null(dim(z))) {
    stop_input("'newdata' must hold a factor for '", name, "', not ",
               describe(z))
  }
  if (anyNA(z)) {
    stop_input("'newdata' must have no missing values, not ", sum(is.na(z)),
               " NA")
  }
  points <- outer(as.character(z), levels, `==`)
  storage.mode(points) <- "double"
  points
}
