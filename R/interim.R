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
