# Marginalized estimators (MKME, MMKME): each point is replaced by a normal
# distribution around it, N(x_i, diag(e)), and the estimate is the mean of their
# embeddings. The sections and inner products stay in closed form: for RBF
# kernels with theta^2 + e in place of theta^2, for polynomial kernels up to
# degree 3 by the moments of the normal distribution. Noise that is given may
# also be a covariance, of all points or of each: for RBF kernels.

#' @rdname estimators
#' @export
est_mkme <- function(noise = NULL, select = NULL, ..., guard = FALSE) {
  check_dots(...)
  new_marginal("mkme", "MKME", "marginalized", noise, select, guard)
}
register_estimator("mkme", est_mkme)

#' @rdname estimators
#' @export
est_mmkme <- function(noise = NULL, select = NULL, ..., guard = FALSE) {
  check_dots(...)
  new_marginal("mmkme", "MMKME", "marginalized by column", noise, select, guard,
               TRUE)
}
register_estimator("mmkme", est_mmkme)

new_marginal <- function(name, label, kind, noise, select, guard,
                         by_column = FALSE) {
  if (length(dim(noise)) > 1L) {
    if (!by_column) {
      stop_input("'noise' must be one variance, not ", describe(noise),
                 "; est_mmkme() takes covariances")
    }
    noise <- check_noise_covariance(noise)
  } else if (!is.null(noise)) {
    noise[] <- take(noise, numbers(count = if (!by_column) 1L))
  }
  select <- check_rule(select, "loocv", noise, "noise")
  estimator <- new_estimator(name, label, kind, by_column = by_column,
                             arguments = list(noise = noise, select = select),
                             traits = c("unshrunk", "noisy", "poly"))
  class(estimator) <- append(class(estimator), "est_marginal", 1L)
  with_guard(estimator, guard)
}

# --- Arguments -------------------------------------------------------------

# Is the noise a covariance, of all points or of each?
has_covariance <- function(estimator) length(dim(estimator$noise)) > 1L

# Checks noise that is a covariance, d x d, or one for each point, d x d x n.
check_noise_covariance <- function(noise) {
  shape <- dim(noise)
  if (!is.numeric(noise) || !length(shape) %in% 2:3 || shape[1L] != shape[2L] ||
        !length(noise)) {
    stop_input("'noise' must be variances, a d x d covariance matrix or a ",
               "d x d x n array of them, not ", describe(noise))
  }
  count <- if (length(shape) == 3L) shape[3L] else 1L
  noise[] <- check_covariances(array(noise, c(shape[1:2], count)), shape[1L],
                               count, "noise")
  names <- Filter(length, dimnames(noise)[1:2])
  if (length(unique(unname(names))) > 1L) {
    stop_input("'noise' must have the same names for rows and columns, not ",
               paste(vapply(names, shorten, ""), collapse = " and "))
  }
  noise
}

# The covariance with its columns in the order of the points x, n x d. owner:
# words for whose columns these are.
fit_covariance <- function(noise, x, owner = NULL) {
  wanted <- c(ncol(x), ncol(x), if (length(dim(noise)) == 3L) nrow(x))
  if (!identical(dim(noise), wanted)) {
    stop_input("'noise' must be ", paste(wanted, collapse = " x "),
               ", a covariance of the columns", owner,
               if (length(wanted) == 3L) " for each point", ", not ",
               describe(noise))
  }
  names <- Filter(length, dimnames(noise)[1:2])
  columns <- stats::setNames(seq_len(ncol(x)), unlist(names[1L]))
  at <- in_order(columns, colnames(x), "noise", paste0("the columns", owner))
  if (length(wanted) == 3L) noise[at, at, , drop = FALSE] else
    noise[at, at, drop = FALSE]
}

# The estimator with the covariance of each point in this order of points. An
# array that does not fit stays as it is, and fit_covariance() refuses it.
order_noise <- function(estimator, order) {
  if (is_each(estimator$noise) &&
        dim(estimator$noise)[3L] == length(order)) {
    estimator$noise <- estimator$noise[, , order, drop = FALSE]
  }
  estimator
}

# Stops unless the sample has points, and a kernel with a closed form for noise.
check_noisy <- function(estimator, sample) {
  poly <- has_trait(estimator, "poly") && !has_covariance(estimator)
  sample_points(sample, "'x' must hold points for estimator \"",
                estimator$name, "\", not a matrix of kernel values")
  kernel <- sample$kernel
  if (!has_noise_form(kernel, poly)) {
    stop_input("'kernel' must be an RBF",
               if (poly) ", linear or polynomial kernel up to degree 3" else
                 " kernel", " for estimator \"", estimator$name, "\"",
               if (has_covariance(estimator)) " with covariances", ", not the ",
               format_kernel(kernel))
  }
  # Variances, up to exp(8) theta^2 in a search, are added to theta^2 and
  # squared.
  theta2 <- range(1, kernel$bandwidth^2)
  if (theta2[1L] < 1e-150 || theta2[2L] > 1e150) {
    stop_kernmean(
      "numeric", "squared bandwidths overflow; rescale the columns of 'x'"
    )
  }
}

# --- The estimators --------------------------------------------------------

est_fit.est_marginal <- function(estimator, sample) {
  least <- if (is.null(estimator$noise)) 2L else 1L
  check_shrinkable(estimator, sample, least)
  check_noisy(estimator, sample)
  x <- sample$x
  chosen <- find_noise(estimator, x, sample$kernel)
  noise <- chosen$noise
  if (!estimator$by_column) {
    noise <- noise[1L]
  } else if (!has_covariance(estimator)) {
    names(noise) <- colnames(x)
  }
  weights <- rep(1 / sample$n, sample$n)
  part <- fit_parts(list(weights = weights, noise = noise), sample)[[1L]]
  new_estimate(
    weights, parts_at(list(part), sample$kernel, own_points(sample)),
    max(0, norm2_parts(list(part), sample$kernel)), sample_moments(sample),
    more = c(list(noise = noise, select = estimator$select),
             chosen[c("score", "minimum", "reference", "border")])
  )
}

est_bags.est_marginal <- function(estimator, sample, sizes) {
  check_noisy(estimator, sample)
  if (has_covariance(estimator)) {
    if (is_each(estimator$noise)) {
      stop_input("'noise' must be one covariance for all points of all bags, ",
                 "not ", describe(estimator$noise))
    }
    return(list(parts = unname(each_bag(sample, sizes, \(bag) {
      est_parts(estimator, bag)
    })), chosen = list()))
  }
  noise <- each_bag(sample, sizes, \(bag) {
    if (bag$n == 1L && is.null(estimator$noise)) {
      numeric(ncol(bag$x))
    } else {
      find_noise(estimator, bag$x, bag$kernel)$noise
    }
  })
  noise <- matrix(unlist(noise), ncol(sample$x))
  list(noise = noise, chosen = list(noise = colMeans(noise)))
}

# In a test the marginalized kernel takes the place of an RBF kernel (Xia et
# al., eqs. 30 and 34): it is `height` times a wider one.
est_settle.est_marginal <- function(estimator, sample, where) {
  if (!knows_points(sample) ||
        !kernel_has(sample$kernel, "Gaussian form")) {
    stop_input(where, " must be points with kernel_rbf() for estimator \"",
               estimator$name, "\" in a test, not ",
               words_of_sample(sample))
  }
  check_noisy(estimator, sample)
  noise <- find_noise(estimator, sample$x, sample$kernel,
                      paste(" of", where))$noise
  if (!is_each(noise)) {
    return(settle_noisy(sample, noise, list(noise = noise)))
  }
  check_memory(sample$n, sample$n, "use fewer points", copies = 3)
  values <- inner_matrix(by_point(sample$x, noise), sample$kernel)
  new_settlement(est_kme(), list(noise = noise), gram_sample(new_gram(values)))
}

# The settlement for points that all have the same noise: the average in a
# sample with a wider kernel, times a height.
settle_noisy <- function(sample, noise, chosen) {
  wider <- noisy_sample(sample, noise)
  new_settlement(est_kme(), chosen, wider$sample, wider$height)
}

# --- Selection -------------------------------------------------------------

# The noise that was given, or the variances with the smallest leave-one-out
# score, for points x, n x d, and a fitted kernel: `noise`, d variances or a
# covariance, with the fields of an estimate that say how it was chosen. owner:
# words for whose columns these are.
find_noise <- function(estimator, x, kernel, owner = NULL) {
  noise <- estimator$noise
  if (is.null(noise)) {
    score <- marginal_score(x, kernel)
    shared <- select_shared(score)
    return(if (estimator$by_column) select_each(score, shared) else shared)
  }
  d <- ncol(x)
  if (has_covariance(estimator)) {
    return(list(noise = fit_covariance(noise, x, owner), border = FALSE))
  }
  if (!length(noise) %in% c(1L, d)) {
    stop_input("'noise' must be non-negative numbers, one or ", d,
               " (a variance for each column", owner, "), not ",
               describe(noise))
  }
  if (length(noise) > 1L) {
    noise <- in_order(noise, colnames(x), "noise",
                      paste0("the columns", owner))
  }
  list(noise = rep_len(as.double(noise), d), border = FALSE)
}

# The leave-one-out score
#   rho' - 2 (sum L - tr L)/(n(n-1)) + ((1-2/n) sum Q + tr(Q)/n)/(n-1)^2,
# with L_ij = E k(x_i, x~_j), Q_ij = E k(x~_i, x~_j), rho' = mean k(x_i, x_i),
# of points x, n x d. at: a function of d variances that returns the value and,
# on demand, the gradient; scale: the scale of the variances to be tried; terms:
# the coefficients of a score that is quadratic; equal: are all points equal?
marginal_score <- function(x, kernel) {
  score_of <- if (kernel_has(kernel, "Gaussian form")) rbf_score else poly_score
  score <- score_of(x, kernel)
  # The score of equal points is constant but for rounding, which must not
  # choose.
  c(score, list(d = ncol(x), equal = all(x == rep(x[1L, ], each = nrow(x)))))
}

# The sum F of all values of a kernel with bandwidths v, where v is theta^2 + e
# or theta^2 + 2e, takes one fold. The gradient also takes the quadratic forms
# of the columns, with W the matrix of the values and e, here, the vector of
# ones:
#   d F/d v_l = -F/(2 v_l) + D_l/(2 v_l^2),
#   D_l = sum_ij W_ij (x_il - x_jl)^2 = 2(sum_i x_il^2 (We)_i - x_l'W x_l).
rbf_score <- function(x, kernel) {
  n <- nrow(x)
  theta2 <- rep_len(kernel$bandwidth, ncol(x))^2
  centered <- sweep(x, 2, colMeans(x))
  squares <- centered^2
  sums <- function(v, gradient) {
    kernel$bandwidth <- sqrt(v)
    source <- native_source(kernel, x)
    height <- prod(sqrt(theta2 / v))
    # One walk over the tiles gives both sums, if the gradient is asked for.
    folds <- if (gradient) .Call(C_r_kernel_moments, source, centered) else
      list(rows = .Call(C_r_kernel_rows, source))
    total <- height * sum(folds$rows)
    trace <- n * height
    slope <- if (gradient) {
      spread <- drop(crossprod(squares, folds$rows)) - folds$forms
      spread <- 2 * height * spread
      list(total = (spread / v - total) / (2 * v), trace = -trace / (2 * v))
    }
    list(total = total, trace = trace, slope = slope)
  }
  value <- function(l, q) {
    -2 * (l$total - l$trace) / (n * (n - 1)) +
      ((1 - 2 / n) * q$total + q$trace / n) / (n - 1)^2
  }
  at <- function(e, gradient = FALSE) {
    l <- sums(theta2 + e, gradient)
    q <- sums(theta2 + 2 * e, gradient)
    list(value = 1 + value(l, q), gradient = if (gradient) {
      value(l$slope, lapply(q$slope, `*`, 2))
    })
  }
  list(at = at, scale = mean(theta2))
}

# With a polynomial kernel the score is a quadratic function of each variance,
# whatever the others are: reference + sum_l (linear_l e_l + square_l e_l^2). It
# follows from expectations over x~_i = x_i + noise. With a_ij = x_i'x_j +
# offset, degree 2 adds x_i'Ex_i to L_ij, and x_i'Ex_i + x_j'Ex_j + tr(E^2) to
# Q_ij; degree 3 adds three times this times a_ij, and 6 x_i'E^2x_j to Q_ij.
poly_score <- function(x, kernel) {
  n <- nrow(x)
  d <- ncol(x)
  m <- colMeans(x)
  linear <- numeric(d)
  square <- rep(kernel$degree - 1, d)
  if (kernel$degree == 3L) {
    squares <- x^2
    lengths <- rowSums(squares)
    linear <- 6 * drop(crossprod(squares, lengths - drop(x %*% m))) / (n - 1)^2
    total <- 3 * (sum(m^2) + kernel$offset) + 6 * m^2
    trace <- 3 * (mean(lengths) + kernel$offset) + 6 * colMeans(squares)
    square <- (n * (n - 2) * total + trace) / (n - 1)^2
  }
  reference <- loo_score(0, n, mean(fold_rows(kernel, x)) / n,
                         mean(fold_diagonal(kernel, x)))
  list(
    at = \(e, gradient) list(
      value = reference + sum(e * (linear + e * square)),
      gradient = linear + 2 * e * square
    ),
    scale = mean(colMeans(sweep(x, 2, m)^2)) * n / (n - 1),
    terms = list(linear = linear, square = square)
  )
}

# Chooses one variance for all columns (MKME).
select_shared <- function(score) {
  d <- score$d
  along <- \(s) vapply(s, \(one) score$at(rep(one, d))$value, 0)
  reference <- along(0)
  if (score$equal || !(score$scale > 0)) {
    return(list(noise = numeric(d), score = NULL, minimum = reference,
                reference = reference, border = FALSE))
  }
  grid <- score$scale * exp(-15:8)
  if (is.null(score$terms)) {
    best <- search_log(along, grid)
  } else {
    at <- lowest(sum(score$terms$linear), sum(score$terms$square))
    best <- list(at = at, minimum = along(at), border = FALSE,
                  path = c(grid, at), values = c(along(grid), along(at)))
  }
  list(
    noise = rep(if (best$minimum < reference) best$at else 0, d),
    score = score_curve(best$path, best$values, "noise"),
    minimum = min(best$minimum, reference), reference = reference,
    border = best$border
  )
}

# The e >= 0 with the smallest linear e + square e^2. `square` is not negative,
# and if it is 0 then `linear` is 0, too.
lowest <- function(linear, square) {
  ifelse(square > 0, pmax(0, -linear / (2 * square)), 0)
}

# Chooses a variance for each column (MMKME), starting from the best single one.
select_each <- function(score, shared) {
  shared["score"] <- list(NULL)
  if (!is.null(score$terms)) {
    noise <- lowest(score$terms$linear, score$terms$square)
    best <- list(noise = noise, minimum = score$at(noise)$value)
  } else if (shared$noise[1L] > 0) {
    best <- descend(score, shared)
  } else {
    return(shared)
  }
  if (best$minimum < shared$minimum) {
    shared[names(best)] <- best
  }
  shared$border <- max(shared$noise) >= score$scale * exp(8)
  shared
}

# The function f that remembers its last value: optim() asks for the value and
# for the gradient at one point in two calls.
keep_last <- function(f) {
  last <- NULL
  \(u) {
    if (!identical(u, last$u)) last <<- list(u = u, value = f(u))
    last$value
  }
}

# Finds the variances by descent. They are in units of the best single variance,
# and the score is in units of what that variance gains, so that the stopping
# rule sees the differences.
descend <- function(score, shared) {
  unit <- shared$noise[1L]
  gain <- shared$reference - shared$minimum
  at <- keep_last(\(u) score$at(unit * u, TRUE))
  descent <- tryCatch(
    stats::optim(
      rep(1, score$d), \(u) (at(u)$value - shared$reference) / gain,
      \(u) at(u)$gradient * unit / gain, method = "L-BFGS-B", lower = 0
    ),
    error = \(e) {
      stop_kernmean("numeric", "the descent to one 'noise' for each column ",
                    "failed: ", conditionMessage(e))
    }
  )
  list(noise = unit * descent$par,
       minimum = descent$value * gain + shared$reference)
}

# --- print -----------------------------------------------------------------

est_lines.est_marginal <- function(estimator, fit, digits, plain = "the KME",
                                   target = "the target") {
  noise <- fit$noise
  theta <- fit$kernel$bandwidth
  what <- if (has_covariance(estimator)) {
    paste("noise:", describe_covariance(noise))
  } else if (!estimator$by_column) {
    paste0("noise sigma^2 = ", format_number(noise, digits),
           if (length(theta) == 1L) {
             paste0(" = ", format_number(noise / theta^2, digits), " theta^2")
           })
  } else {
    paste0("noise ", paste(unique(format_number(range(noise), digits)),
                           collapse = " to "), ", ", sum(noise == 0), " of ",
           length(noise), " exactly 0")
  }
  c(
    paste0(what, " (", describe_rule(estimator), ")"),
    if (kernel_has(fit$kernel, "linear form")) {
      paste("a linear kernel sees no noise: the estimate is", plain)
    } else if (all(noise == 0)) {
      paste("without noise the estimate is", plain)
    } else if (fit$border) {
      "noise is on the border of the range searched"
    },
    describe_score(fit, digits, plain)
  )
}

# --- Many samples -------------------------------------------------------------

# The M x M inner products of the embeddings of bags, each with the noise of its
# column of `noise`, d x M. `new`: NULL, or the points z, sizes and noise of new
# bags, which stand in the rows then.
marginal_bags <- function(sample, sizes, noise, new = NULL) {
  x <- sample$x
  kernel <- sample$kernel
  if (kernel_has(kernel, "Gaussian form")) {
    if (is.null(new)) {
      return(.Call(C_r_bag_marginal, native_source(kernel, x),
                   as.integer(sizes), noise, NULL, NULL))
    }
    return(.Call(C_r_bag_marginal, native_source(kernel, new$z, x),
                 as.integer(new$sizes), new$noise, as.integer(sizes), noise))
  }
  on_one_thread(inner_matrix(
    marginal_parts(x, kernel, sizes, noise), kernel,
    if (!is.null(new)) marginal_parts(new$z, kernel, new$sizes, new$noise)
  ))
}

# A list with the part of each bag.
marginal_parts <- function(x, kernel, sizes, noise) {
  Map(\(rows, b) {
    points <- points_sample(take_rows(x, rows), kernel)
    e <- noise[, b]
    noisy <- !kernel_has(kernel, "linear form") && any(e > 0)
    list(new_mean_part(points, plain_weights(points), if (noisy) e))
  }, bag_rows(sizes), seq_along(sizes))
}

# The squared norms of new bags.
marginal_norms <- function(sample, new) {
  parts <- marginal_parts(sample$x, sample$kernel, new$sizes, new$noise)
  vapply(parts, norm2_parts, numeric(1), sample$kernel)
}

words_of_sample <- function(sample) {
  if (knows_points(sample)) paste("the", format_kernel(sample$kernel)) else
    "a matrix of kernel values"
}
