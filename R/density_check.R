# The arguments of kme_density(), and densities in the units of the user.

# --- Units ---------------------------------------------------------------

# A mixture in the units of the user, and back. Variances stay in those of the
# kernel: in others, such components need not be round.
user_mixture <- function(q, sample) {
  q$means <- unscale_points(sample$kernel, q$means)
  if (!is.null(colnames(sample$x))) colnames(q$means) <- colnames(sample$x)
  if (!is.null(q$covariances)) {
    back <- scaling_back(sample$kernel, ncol(q$means))
    q$covariances[] <- apply(q$covariances, 3L, \(s) {
      crossprod(back, matrix(s, nrow(back)) %*% back)
    })
  }
  q[intersect(c("weights", "means", "variances", "covariances", "objective"),
              names(q))]
}

kernel_mixture <- function(q, kernel) {
  if (!is.null(q$covariances)) {
    return(scale_mixture(kernel, q))
  }
  q$means <- scale_points(kernel, q$means)
  q
}

# The d x d matrix that takes points of the kernel to those of the user.
scaling_back <- function(kernel, d) {
  scaling <- kernel$scaling
  if (is.null(scaling)) {
    diag(1, d)
  } else if (is.matrix(scaling$factor)) {
    scaling$back
  } else {
    diag(scaling$factor, d)
  }
}

# The log of the volume of a unit of the user's in those of the kernel.
log_jacobian <- function(kernel) {
  factor <- kernel$scaling$factor
  if (is.null(factor)) {
    0
  } else if (is.matrix(factor)) {
    c(determinant(factor)$modulus)
  } else {
    -sum(log(factor))
  }
}

# --- Arguments ---------------------------------------------------------------

# The share of the points that is held out; `wanted`: what is to be chosen;
# `steps`: a number where it says how far to go.
check_validate <- function(validate, estimator, wanted, steps) {
  if (is.null(validate)) {
    validate <- if (any(wanted)) 0.2 else 0
  }
  if (validate > 0 && !any(wanted)) {
    stop_input("'validate' must be 0 ", if (is.null(steps)) {
      paste("for optimize = \"weights\" and one 'm', which runs to its end;",
            "choose optimize = \"all\"")
    } else {
      "with 'steps' and one 'm': nothing is left to decide"
    })
  }
  if (validate == 0 && any(wanted[c("m", "bandwidths")])) {
    stop_input("'validate' must be positive to choose among ",
               if (wanted[["m"]]) "numbers of components; give one as 'm'" else
                 "'bandwidths'")
  }
  if (validate > 0 && !is.null(estimator$sample$weights)) {
    stop_input(
      "'validate' must be 0 where 'estimator' is a fit with weights of its own",
      if (wanted[["m"]]) ", and 'm' a number"
    )
  }
  validate
}

# The numbers of components to choose from; one if there is nothing to choose.
read_sizes <- function(m, absent, start, n) {
  if (!is.null(start)) {
    count <- length(start$weights)
    if (!absent && !(is.numeric(m) && length(m) == 1L && m %in% count)) {
      stop_input("'m' must be the number of components of 'start', ", count,
                 ", not ", describe(m))
    }
    return(count)
  }
  if (identical(m, "validate")) {
    return(candidate_sizes(n))
  }
  if (!is.numeric(m) || !length(m)) {
    stop_input("'m' must be \"validate\" or a whole number (several to choose ",
               "from), not ", describe(m))
  }
  sort(unique(vapply(m, take, integer(1), count(), "m")))
}

# What components look like: that of the start, if there is one.
read_shape <- function(shape, optimize, start, sample) {
  if (optimize == "all") {
    if (!is.null(shape) && shape != "isotropic" ||
          !is.null(start$covariances)) {
      stop_input(if (is.null(start$covariances)) "'shape'" else "'start'",
                 " must be isotropic for optimize = \"all\", which moves one ",
                 "variance for each component")
    }
    return("isotropic")
  }
  own <- if (!is.null(start$covariances)) {
    c("full", "common")
  } else if (!is.null(start)) {
    "isotropic"
  } else if (is_scaled(sample$kernel) && !spans_all(sample)) {
    c("isotropic", "full", "common")
  } else {
    c("full", "common", "isotropic")
  }
  if (is.null(shape)) {
    return(own[1L])
  }
  if (!shape %in% own) {
    stop_input("'start' must have ", if (shape == "isotropic") "variances" else
      "covariances", " for shape = \"", shape, "\"")
  }
  shape
}

# Do the points vary in every direction?
spans_all <- function(sample) covariance_spans(sample_raw(sample))

covariance_spans <- function(x) {
  scaling <- tryCatch(new_scaling(x, "whiten", "x"),
                      kernmean_error_input = \(e) NULL)
  !is.null(scaling) && scaling$rank == ncol(x)
}

# The points with their kernel; a fit in place of an estimator brings its own.
density_sample <- function(x, kernel, estimator, bandwidths, scale) {
  fitted <- inherits(estimator, "kme")
  if (!is.null(bandwidths) && (fitted || brings_kernel(x))) {
    stop_input("'bandwidths' must be NULL when ",
               if (fitted) "'estimator' is a fit" else "'x' is a gram",
               ", which has its own kernel")
  }
  sample <- if (fitted && !brings_kernel(x)) {
    if (!is.null(scale)) {
      stop_input("'scale' must not be given when 'estimator' is a fit, which ",
                 "has its own")
    }
    units <- fit_units(estimator$kernel, check_data(x), if (
      !is_scaled(estimator$kernel)) FALSE)
    points_sample(units$x, units$kernel, raw = units$raw)
  } else {
    if (is.null(scale)) scale <- default_scale(x, kernel)
    read_sample(x, kernel, default = if (is.numeric(bandwidths)) {
      kernel_rbf(bandwidths[1L])
    }, scale = scale)
  }
  sample_points(sample, "'x' must hold points, not a matrix of kernel values")
  check_directions(sample)
  own <- if (fitted) estimator$estimator else estimator
  check_weights_alone(own)
  if (fitted) check_fit(estimator, sample, kernel)
  check_density_kernel(sample, own, !is.null(bandwidths))
  sample
}

check_directions <- function(sample) {
  rank <- sample$kernel$scaling$rank
  if (!is.null(rank) && rank < ncol(sample$x)) {
    stop_input("'scale' must not be \"whiten\" for a density of points that ",
               "vary in ", rank, " of ", count_of(ncol(sample$x), "direction"),
               " only; take scale = TRUE")
  }
}

check_weights_alone <- function(estimator) {
  if (!is.null(estimator$target)) {
    stop_input("'estimator' must have no target: a mixture is matched to ",
               "weights on the points")
  }
}

# The units where nothing was said of them: whitened, where that can be.
default_scale <- function(x, kernel) {
  if (brings_kernel(x) || is_scaled(kernel)) {
    return(NULL)
  }
  if (is.numeric(kernel$bandwidth) && length(kernel$bandwidth) > 1L) {
    return(FALSE)
  }
  x <- check_data(x)
  check_spread(x)
  if (covariance_spans(x)) {
    return("whiten")
  }
  warn_kernmean(
    "the ", count_of(nrow(x), "point"), " in ", count_of(ncol(x), "column"),
    " of 'x' do not vary in every direction, or hardly outnumber the columns: ",
    "scale = TRUE and shape = \"isotropic\" are the defaults here",
    kind = "whiten"
  )
  TRUE
}

# A fit must be one to the points, with the kernel that they have.
check_fit <- function(fit, sample, kernel) {
  if (!identical(unname(fit$sample$x), unname(sample$x))) {
    stop_input("'estimator' must be a fit of kme() on the points of 'x'")
  }
  if (!is.null(kernel)) {
    stop_input("'kernel' must not be given when 'estimator' is a fit, which ",
               "has its own")
  }
  if (!same_kernel(fit$kernel, sample$kernel, ncol(sample$x))) {
    stop_input("'estimator' must be a fit with the kernel of the gram, ",
               format_kernel(sample$kernel), ", not ",
               format_kernel(fit$kernel))
  }
}

check_density_kernel <- function(sample, estimator, searched) {
  kernel <- sample$kernel
  check_closed_form(kernel)
  if (searched && !(is_rbf(kernel) && length(kernel$bandwidth) == 1L)) {
    stop_input("'kernel' must be an RBF kernel with one bandwidth when ",
               "'bandwidths' is given, not ", format_kernel(kernel))
  }
  # A stack of its own choice has what the kernel allows.
  noisy <- vapply(c(list(estimator), estimator$candidates),
                  \(one) "noise" %in% names(one), NA)
  if (!is_rbf(kernel) &&
        (any(noisy) || !allows_sample(estimator, sample))) {
    stop_input("'kernel' must be an RBF kernel for the density by estimator ",
               "\"", estimator$name, "\", which has noise, not ",
               format_kernel(kernel))
  }
}

# The kernels to choose from, first the one to be taken where all are as good;
# one if there is nothing to choose.
candidate_kernels <- function(bandwidths, kernel) {
  if (is.character(bandwidths)) {
    bandwidths <- kernel$bandwidth * 2^c(0, -0.5, 0.5, -1, 1, -1.5, -2)
  }
  if (!all(in_reach(c(kernel$bandwidth, bandwidths)^2))) {
    stop_kernmean("numeric", "squared bandwidths over- or underflow; ",
                  "rescale the columns of 'x'")
  }
  if (is.null(bandwidths)) {
    return(list(kernel))
  }
  lapply(bandwidths, \(bandwidth) {
    kernel$bandwidth <- bandwidth
    kernel$rule <- paste0("held-out likelihood",
                          if (bandwidth == min(bandwidths)) {
                            ", the smallest tried"
                          } else if (bandwidth == max(bandwidths)) {
                            ", the largest tried"
                          })
    kernel
  })
}

# The mean variance of the columns.
check_spread <- function(x) {
  n <- nrow(x)
  spread <- if (n > 1L) mean(scale(x, scale = FALSE)^2) * n / (n - 1) else 0
  if (spread == 0 && all(x == rep(x[1L, ], each = n))) {
    stop_input("'x' must have at least two distinct points")
  }
  if (!in_reach(spread)) {
    stop_kernmean("numeric", "variances over- or underflow; rescale the ",
                  "columns of 'x'")
  }
  spread
}

# Squares and inverses must be numbers too.
in_reach <- function(variance) variance > 1e-140 & variance < 1e140

# The user's start in the units of the kernel: list(weights, means, and
# variances or covariances), or NULL for clusters.
check_start <- function(start, sample) {
  if (is.null(start) || identical(start, "kmeans")) {
    return(NULL)
  }
  fields <- c("weights", "means")
  lacks <- if (is.list(start)) {
    c(setdiff(fields, names(start)),
      if (!any(c("variances", "covariances") %in% names(start))) {
        "variances (or covariances)"
      })
  }
  if (!is.list(start) || length(lacks)) {
    stop_input(
      "'start' must be \"kmeans\", a fit of kme_density() or a list with the ",
      "names weights, means and variances (or covariances), ",
      if (is.list(start)) {
        paste0("which lacks ", toString(lacks))
      } else {
        paste("not", describe(start))
      }
    )
  }
  x <- sample_raw(sample)
  weights <- check_shares(start[["weights"]], "start$weights")
  count <- length(weights)
  means <- check_newdata(start[["means"]], x, "start$means")
  if (nrow(means) != count) {
    stop_input("'start$means' must have ", count, " rows, one for each ",
               "component, not ", nrow(means))
  }
  q <- list(weights = weights, means = unname(means))
  if (is.null(start[["variances"]])) {
    q$covariances <- check_covariances(start[["covariances"]], ncol(x), count,
                                       "start$covariances")
    for (j in seq_len(count)) check_positive_definite(component(q, j)$cov, j)
  } else {
    within_reach <- numbers(1e-140, 1e140, open = TRUE, count = count)
    q$variances <- take(start[["variances"]], within_reach, "start$variances")
  }
  q <- kernel_mixture(q, sample$kernel)
  ends <- .Call(C_r_column_ranges, rbind(q$means, unname(sample$x)))
  if (!in_reach(max(ends[2L, ] - ends[1L, ])^2)) {
    stop_kernmean("numeric", "distances overflow; 'start$means' must be near ",
                  "the points")
  }
  q
}

check_positive_definite <- function(s, number) {
  tryCatch(chol(s), error = \(e) {
    stop_input("'start$covariances' must be positive definite; number ",
               number, " is not")
  })
}
