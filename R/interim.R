# What families of doors still use that are not on request.R and fit.R yet.

# What update() of a fit with sample, terms and arguments goes by: list(changes,
# arguments with the points of the fit unless they change, same_columns).
change_arguments <- function(object, changes) {
  check_changes(changes)
  arguments <- object$arguments
  sample <- object$sample
  same_columns <- !"x" %in% names(changes)
  if ("data" %in% names(changes) && !is.null(object$terms)) {
    changes$x <- read_terms(object$terms, changes$data, "data")
    changes$data <- NULL
  }
  if ("x" %in% names(changes)) {
    arguments["kernel"] <- list(
      kernel_for(changes$x, arguments$kernel, sample)
    )
  } else {
    arguments$x <- sample_input(
      sample, any(c("kernel", "scale") %in% names(changes))
    )
    # In other units the bandwidth is another.
    if (!"scale" %in% names(changes)) {
      arguments["kernel"] <- list(sample_kernel(sample))
    } else if (stores_gram(sample)) {
      arguments$kernel <- open_kernel(sample$kernel)
    }
    if ("kernel" %in% names(changes) && !"scale" %in% names(changes)) {
      changes["kernel"] <- list(keep_units(changes$kernel, sample))
    }
  }
  if (brings_kernel(if (same_columns) arguments$x else changes$x) ||
        is_scaled(changes$kernel)) {
    arguments["scale"] <- NULL
  }
  list(changes = changes, arguments = arguments, same_columns = same_columns)
}

# The fit of a door to what change_arguments() found, with what was asked for: a
# bandwidth that was chosen is taken over with its points, and chosen anew with
# others.
refit <- function(door, object, found) {
  arguments <- merge_changes(found$arguments, found$changes)
  if (!found$same_columns) {
    return(do.call(door, arguments, quote = TRUE))
  }
  fit <- without_warning("units", do.call(door, arguments, quote = TRUE))
  if (!is.null(object$terms)) fit$terms <- object$terms
  kept <- if (!"kernel" %in% names(found$changes)) c("kernel", "scale")
  for (name in setdiff(kept, names(found$changes))) {
    fit$arguments[name] <- list(object$arguments[[name]])
  }
  fit
}

# The changes over the arguments of a fit.
merge_changes <- function(arguments, changes) {
  arguments[names(changes)] <- changes
  arguments[!vapply(arguments, is.null, logical(1))]
}

# The weights of a summary, in units of 1/n.
print_weights <- function(fit, digits) {
  own <- length(fit$weights) == fit$n
  cat("\nWeights", if (own) " times n" else " on the landmarks", ":\n",
      sep = "")
  print(quantile((if (own) fit$n else 1) * fit$weights), digits = digits)
  cat(sum(fit$weights < 0), " negative; sum ",
      format(sum(fit$weights), digits = digits), "\n", sep = "")
}

# The points of the sample, as they are or as `data`, with the columns `own`; or
# new points with the columns that at(newdata) gives.
augmented <- function(sample, data, newdata, own, at) {
  if (is.null(newdata)) {
    frame <- if (is.null(data)) points_frame(sample) else
      check_sample_rows(data, sample$n)
    added <- own
  } else {
    if (!is.null(data)) {
      stop_input("'data' must be NULL where 'newdata' is given")
    }
    added <- at(newdata)
    frame <- if (knows_points(sample)) named_frame(newdata) else
      blank_frame(nrow(added), value_names(newdata, added))
  }
  add_columns(frame, added)
}

# --- Tests ---

# list(estimator, null, statistic, progress)
read_options <- function(estimator, null, nulls, statistic, progress) {
  estimator <- read_estimator(estimator)
  check_no_target(estimator)
  null <- check_choice(null, nulls, "null")
  statistic <- check_choice(statistic, c("biased", "unbiased"), "statistic")
  must_be(is_unshrunk(estimator) || statistic == "biased", "statistic",
          "\"biased\"", paste("for estimator", estimator_word(estimator)),
          statistic)
  if (null != "permutation") {
    reason <- paste0("for null = \"", null, "\"")
    must_be(is_average(estimator), "estimator", "\"kme\"", reason,
            estimator$name)
    must_be(null != "gamma" || statistic == "biased", "statistic",
            "\"biased\"", reason, statistic)
  }
  list(estimator = estimator, null = null, statistic = statistic,
       progress = check_flag(progress, "progress"))
}

# list(name, ratio, order, factors), or NULL where nothing is asked for.
# `orders`: those that the test knows, 0 being the plain statistic.
read_filter <- function(filter, ratio, order, factors, orders) {
  name <- read_filter_name(filter)
  if (name == "none") {
    must_be(is.null(ratio), "ratio", "NULL", "for filter = \"none\"")
    must_be(is.null(order), "order", "NULL", "for filter = \"none\"")
    if (is.null(factors)) {
      return(NULL)
    }
    order <- 0L
  }
  ratio <- if (is.null(ratio)) usual_ratios else
    check_positives(ratio, "ratio")
  order <- if (is.null(order)) orders else check_orders(order, orders)
  list(name = name, ratio = if (any(order > 0L)) ratio, order = order,
       factors = if (is.null(factors)) 1 else
         check_positives(factors, "factors"))
}

read_filter_name <- function(filter) {
  if (isTRUE(filter) || identical(filter, "aggregate")) {
    return("tikhonov")
  }
  if (isFALSE(filter) || is.null(filter) || identical(filter, filter_names)) {
    return("none")
  }
  if (!is.character(filter) || length(filter) != 1L ||
        !filter %in% filter_names) {
    stop_input("'filter' must be one of ",
               paste0("\"", filter_names, "\"", collapse = ", "),
               " or TRUE for \"tikhonov\", not ",
               if (is.character(filter) && length(filter) == 1L) {
                 paste0("\"", filter, "\"")
               } else {
                 describe(filter)
               })
  }
  filter
}

check_positives <- function(x, name) {
  if (!is.numeric(x) || !length(x) || !all(is.finite(x) & x > 0)) {
    stop_input("'", name, "' must be positive numbers, not ",
               if (is.numeric(x) && length(x)) {
                 shorten(format(x[!(is.finite(x) & x > 0)], trim = TRUE))
               } else {
                 describe(x)
               })
  }
  unique(as.double(x))
}

check_orders <- function(order, orders) {
  if (!is.numeric(order) || !length(order) || !all(order %in% orders)) {
    stop_input("'order' must be some of ", paste(orders, collapse = ", "),
               ", not ", if (is.numeric(order) && length(order)) {
                 shorten(format(order, trim = TRUE))
               } else {
                 describe(order)
               })
  }
  sort(unique(as.integer(order)))
}

# What goes with filters, and with many bandwidths by `factors`. averages: is
# the estimator one of those for the test that `names` lists?
check_filter_options <- function(filter, bandwidths, options, averages,
                                 names) {
  reason <- if (filter$name == "none") "when 'factors' is given" else
    paste0("for filter = \"", filter$name, "\"")
  must_be(is.null(bandwidths), "bandwidths", "NULL",
          paste0(reason, "; 'factors' multiply the bandwidth"))
  must_be(options$null == "permutation", "null", "\"permutation\"", reason,
          options$null)
  if (!identical(filter$factors, 1)) {
    must_be(is_average(options$estimator), "estimator", "\"kme\"",
            "when 'factors' is given", options$estimator$name)
  } else if (!averages) {
    stop_input("'estimator' must be an average, ", names, ", ", reason,
               ", which weighs differences of plain means, not ",
               estimator_word(options$estimator))
  }
}

# Changes of a test in which filters, and many bandwidths, take the place of one
# another, with what the earlier arguments lose.
drop_filter <- function(arguments, changes) {
  given <- names(changes)
  plain <- "filter" %in% given && read_filter_name(changes$filter) == "none"
  drop <- c(if (plain) c("filter", "ratio", "order"),
            if (!is.null(changes$bandwidths)) {
              c("filter", "ratio", "order", "factors")
            },
            if (any(c("filter", "factors") %in% given)) "bandwidths")
  arguments[setdiff(drop, given)] <- NULL
  arguments
}

fewest_draws <- 999
most_draws <- 9999

# As many permutations as about a second allows, in thousands, where one takes
# so many seconds.
usual_draws <- function(seconds) {
  thousands <- floor((1 / seconds + 1) / 1000)
  min(most_draws, max(fewest_draws, 1000 * thousands - 1))
}

# Seconds of a statistic for which an estimator is fitted to n points.
refit_cost <- function(n) 6e-4 + 3e-10 * n^3

filter_names <- c("none", "tikhonov", "iterated", "showalter", "cutoff")

# Pairs are blocks.
refuse_paired <- function(...) {
  if ("paired" %in% ...names()) {
    stop_input(
      "'paired' is no argument of mmd_test(): pairs are given by 'blocks', as ",
      "in mmd_test(x, y, blocks = c(id_x, id_y)) or mmd_test(extra ~ group, ",
      "sleep, blocks = ID)"
    )
  }
}

# Arguments of the default method, by name, none of those that the data stand
# for.
check_named <- function(..., refused) {
  refuse_paired(...)
  names <- ...names()
  if (...length() > 0L && (is.null(names) || !all(nzchar(names)))) {
    stop_input("the arguments of the test must be named, as in B = 999")
  }
  wrong <- intersect(names, refused)
  if (length(wrong)) {
    stop_input("'", wrong[1L], "' must not be given; it comes with the data")
  }
}

# Arguments that tests of points have and those of sketches have not.
refuse_rows <- function(...) {
  names <- ...names()
  kernels <- intersect(names, c("kernel", "kernel_x", "kernel_y", "bandwidths",
                                "scale"))
  if (length(kernels)) {
    stop_input("'", kernels[1L], "' must not be given when 'x' is a sketch, ",
               "which has the kernel and the units of its landmarks")
  }
  rows <- intersect(names, c("blocks", "clusters"))
  if (length(rows)) {
    stop_input("'", rows[1L], "' must not be given when 'x' is a sketch, ",
               "which keeps sums, not rows that could change places")
  }
  whole <- intersect(names, c("filter", "ratio", "order", "factors", "control",
                              "pairwise", "model"))
  if (length(whole)) {
    stop_input("'", whole[1L], "' must not be given when 'x' is a sketch: it ",
               "takes points")
  }
  if ("bins" %in% names) {
    stop_input("'bins' must not be given when 'x' is a sketch, whose bins ",
               "were filled when it was made, as kme_sketch(bin = 100) does")
  }
}

sketch_estimator <-
  "for sketches, which do not have the norms of rows that shrinking needs"
