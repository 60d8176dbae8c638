# Variables are what tests of independence and covariance operators take.

# A variable.
#   name    its name
#   sample  its sample: points, or the indicators of the levels of a factor
#   open    of points, the kernel that was asked for, whose bandwidth may be a
#           rule; refit_variable() fits it to other points
#   scale   of points, the units that were asked for
#   levels  of a factor, its levels in the order of the columns of indicators
#   first   of a factor, the first level in its own order
new_variable <- function(name, sample, ...) {
  list(name = name, sample = sample, ...)
}

# The variables that a door was given. `data` has x, and perhaps y: x is a
# variable or, without y, a plain list of variables (where `alone` is TRUE it
# may be just one). A variable without a kernel of its own takes the one that
# `named` has for it, the one for all (`kernel`), or its default where there are
# `defaults`. `scale` holds for the columns of each.
read_variables <- function(data, named, kernel = NULL, defaults = NULL,
                           alone = FALSE, scale = NULL) {
  x <- data$x
  paired <- "y" %in% names(data)
  several <- !paired && (is_plain_list(x) || !alone)
  if (paired && is_plain_list(x)) {
    stop_input("'y' must be missing when 'x' is a list of variables")
  }
  if (!paired && !is.null(named$y)) {
    stop_input("'kernel_y' must be NULL without 'y'")
  }
  if (several && !(is_several(x) && length(x) > 1L)) {
    stop_input("'y' must be given unless 'x' is a plain list of at least 2 ",
               "variables",
               if (is.data.frame(x)) "; as.list() makes one of a data frame")
  }
  each <- if (several) x else data
  d <- length(each)
  labels <- names2(each)
  if (!all(nzchar(labels)) || anyDuplicated(labels)) {
    labels <- paste0("x[[", seq_len(d), "]]")
  }
  each <- stats::setNames(Map(as_factors, each, labels), labels)
  check_order(each)
  fixed <- vapply(each, has_own_kernel, NA)
  if (all(fixed)) {
    refuse_beside_own(!is.null(kernel) && !kernel_has(kernel, "factors"), scale)
  }
  kernels <- if (several) named$x else unname(named[names(data)])
  if (!is.null(kernel) || several && !is_plain_list(kernels)) {
    kernels <- rep(list(kernel %||% kernels), d)
    dropped <- fixed & !(kernel_has(kernel, "factors") &
                           vapply(each, is.data.frame, NA))
    kernels[dropped] <- list(NULL)
  } else if (length(kernels) != d) {
    stop_input("'kernel_x' must be a kernel or a list of ", d, " kernels, not ",
               describe(kernels))
  }
  open <- vapply(kernels, is.null, NA) & !fixed
  if (!is.null(defaults)) kernels[open] <- defaults[open]
  names <- if (several) paste0("kernel_x[[", seq_len(d), "]]") else
    paste0("kernel_", names(data))
  stats::setNames(Map(read_variable, each, kernels, labels, names, list(scale)),
                  labels)
}

# Stops if one kernel or a scale was asked for, though every variable has a
# kernel of its own.
refuse_beside_own <- function(one_kernel, scale) {
  asked <- c("kernel"[one_kernel], "scale"[asks_scale(scale)])
  if (length(asked)) {
    stop_input("'", asked[1L], "' must be NULL when every variable has a ",
               "kernel of its own, as factors and grams have")
  }
}

has_own_kernel <- function(x) {
  has_levels(x) || brings_kernel(x) || inherits(x, "dist") ||
    is.data.frame(x) && any(vapply(x, has_levels, NA))
}

# A factor becomes the indicators of its levels, whose inner products are its
# kernel. If the kernel is NULL the variable gets the default of its kind.
read_variable <- function(x, kernel, name, kernel_name, scale = NULL) {
  if (inherits(x, "kme_sketch")) {
    stop_input("'", name, "' must hold rows or be a gram, not a sketch; one ",
               "sketch of both variables is made by kme_sketch(y ~ x, data)")
  }
  if (has_own_kernel(x)) {
    if (is.ordered(x)) x <- stats::setNames(data.frame(x), name)
    mixed <- is.data.frame(x) &&
      (ncol(x) > 1L || kernel_has(kernel, "factors") || is.ordered(x[[1L]]))
    if (mixed) {
      x <- read_mixed(x, name)
      if (!is.null(kernel)) take(kernel, a_kernel, kernel_name)
      kernel <- kernel_of(x, kernel, name = kernel_name)
      return(fit_variable(x, kernel, name))
    }
    if (!is.null(kernel)) {
      stop_input("'", kernel_name, "' must be NULL when '", name, "' has a ",
                 "kernel of its own, as factors and grams have")
    }
    if (is.data.frame(x)) x <- x[[1L]]
    return(if (is_nominal(x)) read_factor(x, name) else
      list(name = name, sample = if (brings_kernel(x)) gram_sample(x) else
        dist_sample(x, name)))
  }
  if (!is.null(kernel)) {
    take(kernel, a_kernel, kernel_name)
    # A kernel with a scaling keeps it; `scale` is for variables with other
    # kernels.
    if (kernel_has(kernel, "scaling")) scale <- NULL
  }
  fit_variable(check_data(x, name), kernel %||% kernel_rbf(), name, scale)
}

# A variable of points.
fit_variable <- function(x, open, name, scale = NULL) {
  new_variable(name, fit_sample(x, open, scale, name), open = open,
               scale = scale)
}

# The variable with other points. Warnings about the points were given when they
# were first read.
refit_variable <- function(variable, x) {
  suppressWarnings(fit_variable(x, variable$open, variable$name,
                                variable$scale))
}

read_factor <- function(x, name) {
  if (!length(x)) {
    stop_input("'", name, "' must have at least one value, not none")
  }
  check_no_na(x, name)
  levels <- intersect(levels(as_factor(x)), as.character(unique(x)))
  check_memory(length(x), length(levels), "use fewer levels", copies = 2)
  new_variable(name, points_sample(indicators_of(x, levels), kernel_linear()),
               levels = levels, first = levels[1L])
}

is_factor_variable <- function(variable) !is.null(variable$levels)

# The levels of the factors among the columns of a variable, by name; NULL for
# none.
mixed_levels <- function(variable) variable$sample$kernel$scaling$levels

is_mixed_variable <- function(variable) !is.null(mixed_levels(variable))

# The data that a variable was made from; its points, if another kernel is to be
# fitted to them.
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

# May the variable be given a kernel?
takes_kernel <- function(variable) {
  !is_factor_variable(variable) && !is_mixed_variable(variable)
}

# The changes of update(), in which each variable that `takes` a kernel gets the
# new `kernel`, as `kernel_x` or `kernel_y`. A new kernel for a gram keeps the
# units of its points, unless `scale` is changed as well.
change_kernels <- function(changes, variables, several,
                           takes = vapply(variables, takes_kernel, NA)) {
  names <- c("kernel_x", if (!several && length(variables) > 1L) "kernel_y")
  if ("kernel" %in% names(changes)) {
    changes[if (several) names else names[takes]] <- list(changes$kernel)
    changes["kernel"] <- NULL
  }
  if ("scale" %in% names(changes)) {
    return(changes)
  }
  samples <- lapply(unname(variables), `[[`, "sample")
  for (l in which(names %in% names(changes))) {
    kernel <- changes[[names[l]]]
    changes[names[l]] <- list(if (!several) {
      keep_units(kernel, samples[[l]])
    } else if (is.list(kernel)) {
      each <- if (is_plain_list(kernel)) unname(kernel) else
        lapply(unname(takes), \(open) if (open) kernel)
      Map(keep_units, each, samples)
    })
  }
  changes
}

# New values of a variable as new points of its sample.
variable_newdata <- function(variable, newdata, label) {
  if (is_factor_variable(variable)) {
    check_levels(newdata, label)
    return(new_points(indicators_of(newdata, variable$levels)))
  }
  sample_newdata(variable$sample, newdata)
}

indicators_of <- function(z, levels) {
  outer(as.character(z), levels, `==`) + 0
}

# Covariates as numbers. An ordered factor becomes the numbers of its levels;
# other factors become indicators, one column for two levels, a column for each
# level of more. With first = FALSE all factors, ordered ones too, become
# indicators of all levels but the first. like: the data frame whose columns new
# rows must have.
covariate_columns <- function(x, like = x, name = "x", first = TRUE) {
  if (!identical(x, like)) {
    x <- check_newdata(x, like, name, "the rows that are weighted")
  }
  if (!is.data.frame(like)) {
    return(named_columns(x))
  }
  columns <- Map(\(column, known, label) {
    levels <- levels(if (has_levels(known)) as_factor(known))
    placed <- first && is.ordered(known)
    if (placed) column <- as.double(seen_levels(column, levels, label, name))
    if (placed || is.null(levels)) {
      return(matrix(column, dimnames = list(NULL, label)))
    }
    alone <- length(levels) == 2L || !first && length(levels) > 1L
    shown <- if (alone) levels[-1L] else levels
    values <- indicators_of(seen_levels(column, levels, label, name), shown)
    colnames(values) <- paste0(label, shown)
    values
  }, x, like, names(like))
  do.call(cbind, unname(columns))
}

# "2 columns", "factor of 3 levels"
describe_variable <- function(variable) {
  if (is_factor_variable(variable)) {
    paste("factor of", count_of(length(variable$levels), "level"))
  } else if (knows_points(variable$sample)) {
    count_of(ncol(sample_raw(variable$sample)), "column")
  } else {
    "Gram matrix"
  }
}

# The lines of print() on the kernel of a variable, none for a factor.
variable_lines <- function(variable, label) {
  if (!is_factor_variable(variable)) {
    kernel_lines(variable$sample$kernel, label)
  }
}

check_lengths <- function(variables) {
  sizes <- vapply(variables, `[[`, 1, c("sample", "n"))
  bad <- which(sizes != sizes[1L])
  if (length(bad)) {
    stop_input(
      "'", variables[[bad[1L]]]$name, "' must have as many rows as '",
      variables[[1L]]$name, "', ", sizes[1L], ", not ", sizes[bad[1L]]
    )
  }
  sizes[[1L]]
}

# kernel_x and kernel_y of a formula with two sides, as a list for its two
# variables.
side_kernels <- function(arguments, variables) {
  sides <- c("kernel_x", "kernel_y")
  one <- \(kernel) is.null(kernel) || inherits(kernel, "kernmean_kernel")
  if (length(variables) == 2L && any(lengths(arguments[sides])) &&
        one(arguments$kernel_x) && one(arguments$kernel_y)) {
    arguments["kernel_x"] <- list(list(arguments$kernel_x, arguments$kernel_y))
    arguments["kernel_y"] <- NULL
  }
  arguments
}
