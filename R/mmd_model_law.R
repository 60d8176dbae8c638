# What a sample is tested against: laws of three kinds, of class
# c("<kind>_law", "kernmean_law").
#   mixture  weights, means and covariances of normal components (mixture, in
#            the units of the user), and roots of the covariances
#   draws    a function that simulates (draw) and what it gave at first (points;
#            when settled, the sample)
#   normal   d; a normal law whose mean and covariance are free
# When they have settled they know the kernel and the units in which the sample
# is compared with them.

new_law <- function(kind, ...) {
  structure(list(...), class = c(paste0(kind, "_law"), "kernmean_law"))
}

# --- Reading -----------------------------------------------------------------

# The model that was given for the points x.
read_law <- function(model, x, name = "model") {
  d <- ncol(x)
  if (identical(model, "normal")) {
    new_law("normal", d = d)
  } else if (is.function(model)) {
    first <- draw_from(model, most_model_draws, x)
    new_law("draws", draw = model, points = first)
  } else if (inherits(model, "kme_density")) {
    warn_same_points(model, x)
    read_mixture(density_mixture(model), x)
  } else if (is.list(model) && !is.object(model)) {
    read_mixture(model, x)
  } else {
    stop_input(
      "'model' must be \"normal\", a Gaussian mixture (a list with weights, ",
      "means and covariances, or a fit of kme_density()) or a function that ",
      "simulates, not ", describe(model)
    )
  }
}

read_mixture <- function(model, x) {
  columns <- colnames(model$means)
  mixture <- check_mixture(model, ncol(x), "model")
  roots <- lapply(seq_along(mixture$weights), \(c) {
    covariance_root(component(mixture, c)$cov)
  })
  new_law("mixture", mixture = mixture, roots = roots, columns = columns)
}

# R with R'R = S, which may be singular.
covariance_root <- function(s) {
  e <- eigen(s, symmetric = TRUE)
  sqrt(pmax(e$values, 0)) * t(e$vectors)
}

# The mixture that a fit is, with covariances in the units of the user.
density_mixture <- function(fit) {
  covariances <- fit$covariances
  if (is.null(covariances)) {
    d <- ncol(fit$means)
    one <- crossprod(scaling_back(fit$kernel, d))
    covariances <- outer(one, fit$variances)
  }
  list(weights = fit$weights, means = fit$means, covariances = covariances)
}

# Parameters that were estimated from these points make p too large.
warn_same_points <- function(fit, x) {
  own <- known_rows(fit$sample)
  sorted <- \(z) {
    z <- unname(z)
    z[do.call(order, lapply(seq_len(ncol(z)), \(j) z[, j])), , drop = FALSE]
  }
  if (identical(dim(own), dim(x)) && identical(sorted(own), sorted(x))) {
    warn_kernmean(
      "'model' was fitted to the points of 'x': the p-value is too large, as ",
      "it takes the model for one that was known before; fit it to one part ",
      "of the points and test the other, see help(\"mmd_model\")",
      kind = "refit"
    )
  }
}

most_model_draws <- 10000L

# n draws of the function `model`, with the columns of x.
draw_from <- function(model, n, x) {
  call <- paste0("model(", format(n, scientific = FALSE), ")")
  z <- tryCatch(model(n), error = \(e) {
    stop_input("'model' must be a function of the number of draws; ", call,
               " stopped: ", conditionMessage(e))
  })
  d <- ncol(x)
  check_draws(z, n, d, call)
  if (is.data.frame(z)) z <- check_columns(z, call)
  if (is.null(dim(z))) z <- matrix(z, ncol = 1L)
  check_finite(z, call)
  if (d == 1L) colnames(z) <- NULL
  # Later draws are matched by the names of the first ones.
  matrix(check_newdata(z, x, call, "'x'"), n,
         dimnames = list(NULL, colnames(x)))
}

check_draws <- function(z, n, d, call) {
  vector <- is.null(dim(z)) && is.numeric(z) && !is.object(z)
  table <- is.data.frame(z) || is.matrix(z) && is.numeric(z)
  size <- if (vector) c(length(z), 1L) else if (table) dim(z)
  if (is.null(size) || any(size != c(n, d))) {
    stop_input(
      "'model' must return n draws, ", if (d == 1L) {
        "n numbers or a matrix or data frame of n rows and 1 column"
      } else {
        paste("a numeric matrix or a data frame of n rows and", d, "columns")
      }, "; ", call, " returned ", describe(z),
      if (is.data.frame(z)) paste(" of", nrow(z), "x", ncol(z))
    )
  }
}

# x with its columns in the order of the model.
law_columns <- function(law, x) UseMethod("law_columns")
law_columns.kernmean_law <- \(law, x) x
law_columns.mixture_law <- function(law, x) {
  if (is.null(law$columns) || ncol(x) == 1L) {
    return(x)
  }
  means <- law$mixture$means
  colnames(means) <- law$columns
  check_newdata(x, means, "x", "the model")
}

# --- What goes with them -----------------------------------------------------

is_free <- function(law) inherits(law, "normal_law")

is_simulator <- function(law) inherits(law, "draws_law")

check_law_options <- function(law, options) UseMethod("check_law_options")

check_law_options.mixture_law <- function(law, options) {
  kernel <- options$kernel
  if (!is.null(kernel) && !is_rbf(kernel) && !is_poly(kernel, 1:3)) {
    stop_input(
      "'kernel' must be an RBF kernel or a polynomial kernel up to degree 3 ",
      "for a model that is a mixture, not ", format_kernel(kernel), "; for ",
      "others give a function of n that returns n draws of the model"
    )
  }
}

check_law_options.draws_law <- function(law, options) NULL

check_law_options.normal_law <- function(law, options) {
  reason <- paste("for the model \"normal\", whose points are standardized",
                  "and compared with an RBF kernel of a bandwidth of its own")
  must_be(is.null(options$kernel), "kernel", "NULL", reason)
  must_be(!asks_scale(options$scale), "scale", "FALSE", reason)
  must_be(is_average(options$estimator), "estimator", "the kernel mean itself",
          paste("for the model \"normal\": shrunk means do not know that the",
                "points are standardized"), options$estimator$name)
}

# The law, its kernel and units fixed where they do not depend on the sample.
settle_law <- function(law, options) UseMethod("settle_law")

settle_law.kernmean_law <- function(law, options) law

settle_law.draws_law <- function(law, options) {
  kernel <- if (is.null(options$kernel)) kernel_rbf() else options$kernel
  law$sample <- fit_sample(law_points(law), kernel, options$scale, "model")
  law$points <- NULL
  law$norm2 <- mean(sample_rows(law$sample)) / law$sample$n
  law
}

# What a function gave at first, with the columns of x.
law_points <- function(law) {
  if (is.null(law$sample)) law$points else sample_raw(law$sample)
}

# What the statistic of n points is multiplied by.
law_height <- function(law, n) UseMethod("law_height")
law_height.kernmean_law <- \(law, n) 1
law_height.normal_law <- \(law, n) n

# --- Draws -------------------------------------------------------------------

# n points of the law, in the units of the user.
law_draw <- function(law, n) UseMethod("law_draw")

law_draw.mixture_law <- function(law, n) {
  q <- law$mixture
  d <- ncol(q$means)
  which <- sample.int(length(q$weights), n, replace = TRUE, prob = q$weights)
  noise <- matrix(stats::rnorm(as.double(n) * d), n)
  for (c in unique(which)) {
    rows <- which == c
    noise[rows, ] <- noise[rows, , drop = FALSE] %*% law$roots[[c]]
  }
  q$means[which, , drop = FALSE] + noise
}

law_draw.draws_law <- \(law, n) draw_from(law$draw, n, law_points(law))

law_draw.normal_law <- \(law, n) matrix(stats::rnorm(as.double(n) * law$d), n)

# --- Samples -----------------------------------------------------------------

# The points x with a kernel, in its units.
law_sample <- function(law, x, options) UseMethod("law_sample")

law_sample.mixture_law <- function(law, x, options) {
  fit_sample(x, if (is.null(options$kernel)) kernel_rbf() else options$kernel,
             options$scale)
}

law_sample.draws_law <- function(law, x, options) {
  kernel <- law$sample$kernel
  points_sample(scale_points(kernel, x), kernel,
                raw = if (is_scaled(kernel)) x)
}

law_sample.normal_law <- function(law, x, options) {
  n <- nrow(x)
  d <- ncol(x)
  kernel <- kernel_rbf(sqrt(2) / ((2 * d + 1) * n / 4)^(1 / (d + 4)))
  kernel$rule <- "Henze and Zirkler"
  found <- standardize(x)
  kernel$scaling <- found$scaling
  points_sample(found$y, kernel, raw = x)
}

# The embedding of the law for a kernel and in its units, a part as of
# embedding_parts().
law_part <- function(law, kernel) UseMethod("law_part")

law_part.mixture_law <- function(law, kernel) {
  list(mixture = scale_mixture(kernel, law$mixture), weights = 1)
}

law_part.draws_law <- function(law, kernel) {
  n <- law$sample$n
  list(sample = law$sample, weights = rep(1 / n, n))
}

law_part.normal_law <- function(law, kernel) {
  d <- law$d
  list(mixture = list(weights = 1, means = matrix(0, 1L, d),
                      covariances = array(diag(d), c(d, d, 1L))), weights = 1)
}

# Its squared norm.
law_norm2 <- function(law, part, kernel) UseMethod("law_norm2")
law_norm2.kernmean_law <- function(law, part, kernel) {
  mixture_inner(part$mixture, part$mixture, kernel)
}
law_norm2.draws_law <- \(law, part, kernel) law$norm2
law_norm2.normal_law <- function(law, part, kernel) {
  (kernel$bandwidth^2 / (2 + kernel$bandwidth^2))^(law$d / 2)
}

# list(y, scaling): the points with mean 0 and covariance I (divisor n), and the
# units that make them so.
standardize <- function(x) {
  n <- nrow(x)
  d <- ncol(x)
  if (n < d + 2L) {
    stop_input("'x' must have at least ", d + 2L, " points for the model ",
               "\"normal\" in ", count_of(d, "column"), ", not ", n)
  }
  constant <- is_constant(x)
  of <- column_spreads(x)
  unit <- of$unit * of$spread
  z <- of$z / rep(of$spread, each = n)
  if (!any(constant)) {
    # What the mean of a column far from 0 leaves is rounding.
    z <- z - rep(colMeans(z), each = n)
    s <- svd(z)
    values <- s$d^2
    small <- values <= n * .Machine$double.eps * values[1L]
  }
  if (any(constant) || any(small)) {
    stop_singular(x, constant, if (!any(constant)) s$v[, small, drop = FALSE])
  }
  half <- sqrt(n) / s$d
  list(y = structure(sqrt(n) * s$u, dimnames = dimnames(x)),
       scaling = list(
         type = "whiten", center = of$unit * of$center,
         factor = s$v * rep(half, each = d) / unit,
         back = t(s$v * rep(1 / half, each = d) * unit), rank = d,
         columns = colnames(x)
       ))
}

# null: a basis of the directions in which nothing varies, NULL where columns
# are constant.
stop_singular <- function(x, constant, null) {
  names <- if (is.null(colnames(x))) paste("column", seq_len(ncol(x))) else
    paste0("'", colnames(x), "'")
  rank <- if (is.null(null)) {
    qr(scale(x[, !constant, drop = FALSE]))$rank
  } else {
    ncol(x) - ncol(null)
  }
  among <- names[if (is.null(null)) constant else rowSums(null^2) > 1e-8]
  stop_input(
    "'x' must have a covariance of full rank for the model \"normal\", not of ",
    "rank ", rank, " in ", count_of(ncol(x), "column"), ": ",
    shorten(among, 8L), if (is.null(null)) {
      if (length(among) > 1L) " are constant" else " is constant"
    } else {
      " are linearly dependent"
    }
  )
}

# --- Cost --------------------------------------------------------------------

# Seconds that one draw takes, about, on one processor, by the sizes alone:
# measured once (Zen 5, reference BLAS).
law_cost <- function(law, options, n) {
  d <- law_width(law)
  fixed <- 2e-3 + 2e-8 * n * (d + 2)^2
  fit <- if (is_average(options$estimator)) 0 else refit_cost(n)
  fixed + fit + (1.4e-9 + 7e-11 * d) * law_pairs(law, options, n)
}

law_width <- function(law) UseMethod("law_width")
law_width.mixture_law <- \(law) ncol(law$mixture$means)
law_width.draws_law <- \(law) ncol(law_points(law))
law_width.normal_law <- \(law) law$d

# Pairs of points of which one draw takes kernel values; a median to be found is
# worth twice as many again.
law_pairs <- function(law, options, n) UseMethod("law_pairs")
law_pairs.mixture_law <- function(law, options, n) {
  open <- is.null(options$kernel) ||
    identical(options$kernel$bandwidth, "median")
  if (open) 1.5 * n^2 else n^2 / 2
}
law_pairs.draws_law <- \(law, options, n) n * (n / 2 + law$sample$n)
law_pairs.normal_law <- \(law, options, n) n^2 / 2

# --- Words -------------------------------------------------------------------

# What data.name calls it; `name`: what the user does.
law_words <- function(law, name) UseMethod("law_words")
law_words.mixture_law <- function(law, name) {
  m <- length(law$mixture$weights)
  paste0(if (nchar(name) <= 40L) paste0(name, ", "), if (m == 1L) {
    "a normal distribution"
  } else {
    paste("a mixture of", m, "normal distributions")
  })
}
law_words.draws_law <- function(law, name) {
  paste0("draws of ", if (nchar(name) <= 60L) name else "a function")
}
law_words.normal_law <- \(law, name) "all normal distributions"
