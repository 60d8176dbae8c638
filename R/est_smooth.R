# Smoothing about the mean: with m the mean of the points, z_i = x_i - m and S a
# shrunken covariance, the point x_i is replaced by the normal distribution
# N(m + sqrt(1 - h) z_i, hS), which leaves the mean as it is and the covariance
# nearly so, and the estimate is c times the mean of the embeddings of these.
# For RBF kernels.

#' @rdname estimators
#' @export
est_smooth <- function(h = NULL, c = NULL, folds = NULL, ...,
                       guard = TRUE) {
  check_dots(...)
  share <- maybe(number(0, 1))
  with_guard(new_estimator(
    "smooth", "smoothing", "smoothed about the mean",
    arguments = list(
      h = take(h, share), c = take(c, share),
      folds = check_smooth_folds(folds),
      select = if (is.null(h) || is.null(c)) "loocv"
    ), traits = "noisy"
  ), guard)
}
register_estimator(
  "smooth", est_smooth, aliases = "smoothing",
  candidates = \(sample) {
    if (takes_noise(sample, FALSE)) {
      h <- c(0.15, 0.4, 0.8)
      stats::setNames(lapply(h, est_smooth, c = 1), paste("smoothing", h))
    }
  }
)

# --- Folds -----------------------------------------------------------------

# With fewer than three folds no two training sets have points in common.
check_smooth_folds <- function(folds) {
  if (identical(folds, Inf)) folds else take(folds, maybe(count(3L)))
}

# The fold that each of n points is left out with.
fold_codes <- function(n, folds) {
  make_folds(n, folds %||% if (n <= 60L) n else 20L, "turns")
}

# --- The covariance ----------------------------------------------------------

# The mean m and the d x d covariance S of points, by the shrinkage of Ledoit
# and Wolf (2004) towards a multiple of the identity, in units of the bandwidths
# theta. Constant columns have variance 0 and do not count.
smooth_moments <- function(x, theta) {
  x <- unname(x)
  n <- nrow(x)
  theta <- rep_len(theta, ncol(x))
  mean <- colMeans(x)
  z <- check_result((x - rep(mean, each = n)) / rep(theta, each = n),
                    "a distance from the mean")
  varying <- which(!is_constant(x))
  covariance <- matrix(0, ncol(x), ncol(x))
  if (length(varying)) {
    z <- take_columns(z, varying)
    # In this unit fourth powers do not overflow.
    unit <- power_below(max(abs(z)))
    covariance[varying, varying] <- unit^2 * shrunken_covariance(z / unit) *
      outer(theta[varying], theta[varying])
  }
  list(mean = mean,
       covariance = check_result(covariance, "the covariance of the columns"))
}

# The shrunken covariance (b2/delta2) t I + (1 - b2/delta2) S^ of centered rows
# z, where t is the mean variance.
shrunken_covariance <- function(z) {
  n <- nrow(z)
  plain <- cross(z) / n
  level <- mean(diag(plain))
  target <- diag(level, ncol(z))
  apart <- sum((plain - target)^2)
  noise <- (sum(rowSums(z^2)^2) - n * sum(plain^2)) / n^2
  share <- if (apart > 0) min(1, max(0, noise) / apart) else 0
  share * target + (1 - share) * plain
}

# --- Selection ---------------------------------------------------------------

smooth_grid <- c(0, 0.01, 0.03, 0.07, 0.13, seq(0.2, 1, by = 0.1))

# The fields h and c of an estimate, those of the estimator if it has them, with
# the fields that say how they were chosen. The score is varrho - 2 c A + c^2 B:
# A is the mean over the points of the estimate without their fold, B its
# squared norm.
choose_smooth <- function(estimator, sample) {
  amounts <- estimator[c("h", "c")]
  if (is.null(estimator$select)) {
    return(amounts)
  }
  n <- sample$n
  fold <- fold_codes(n, estimator$folds)
  grid <- if (is.null(amounts$h)) smooth_grid else unique(c(0, amounts$h))
  left_out <- check_result(smooth_folds(sample, fold, grid),
                        "the score of smoothing")
  at <- rowMeans(left_out$at)
  norms <- drop(left_out$norms %*% tabulate(fold)) / n
  share <- if (is.null(amounts$c)) pmin(1, pmax(0, at / norms)) else
    rep(amounts$c, length(grid))
  reference <- 1 - 2 * at[1L] + norms[1L]
  # A bandwidth so small that squared norms are 0 leaves no share to choose.
  asked <- if (is.null(amounts$h)) TRUE else grid == amounts$h
  kept <- which(asked & is.finite(share) & norms >= .Machine$double.xmin)
  curve <- data.frame(h = grid, score = 1 - 2 * share * at + share^2 * norms,
                      c = share)[kept, ]
  rownames(curve) <- NULL
  # Nothing is left if h was given and is far too large.
  if (!length(kept)) {
    warn_kernmean("'h' = ", format_number(amounts$h), " spreads the points so ",
                  "far beyond the bandwidth that the estimate is 0 to ",
                  "rounding; the KME is taken instead", kind = "smooth")
    curve <- data.frame(h = 0, score = reference, c = 1)
  }
  best <- which.min(curve$score)
  list(h = curve$h[best], c = curve$c[best],
       score = if (nrow(curve) > 1L) curve, minimum = curve$score[best],
       reference = reference, folds = max(fold))
}

# The estimates without each fold for the values of h in `grid`, with c = 1: at,
# h x n, their values at the points left out; norms, h x folds, their squared
# norms, or with `pairs`, h x h x folds, their inner products; cross, h x q x
# folds, their inner products with the embeddings of weights, n x q x folds.
smooth_folds <- function(sample, fold, grid, weights = NULL, pairs = FALSE) {
  x <- unname(sample$x)
  theta <- rep_len(sample$kernel$bandwidth, ncol(x))
  points <- smooth_coordinates(x, theta, fold)
  .Call(C_r_smooth_folds, points$x, fold, points$lost, points$unseen,
        as.double(grid), weights, pairs)
}

# The points x in units of the bandwidths and, if they have more columns than
# rows, in axes of their span. lost: for each column the fold without which it
# is constant, or 0. unseen: the numbers of directions in which no point lies,
# first of those that are never lost, then of those lost with each fold.
smooth_coordinates <- function(x, theta, fold) {
  varying <- !is_constant(x)
  # Equal points have one column, of zeros.
  if (!any(varying)) varying[1L] <- TRUE
  x <- take_columns(x, varying)
  n <- nrow(x)
  x <- (x - rep(colMeans(x), each = n)) / rep(theta[varying], each = n)
  lost <- integer(ncol(x))
  for (f in seq_len(max(fold))) {
    lost[is_constant(take_rows(x, fold != f))] <- f
  }
  unseen <- integer(max(fold) + 1L)
  if (ncol(x) <= n) {
    return(list(x = x, lost = lost, unseen = unseen))
  }
  # Columns that are lost with a fold are 0 but for its points, and have axes of
  # their own.
  parts <- lapply(sort(unique(lost)), \(f) {
    columns <- take_columns(x, lost == f)
    rows <- if (f == 0L) seq_len(n) else which(fold == f)
    if (f > 0L) columns <- columns - rep(columns[which(fold != f)[1L], ],
                                         each = n)
    turned <- matrix(0, n, min(ncol(columns), length(rows)))
    turned[rows, ] <- span_axes(take_rows(columns, rows))
    unseen[f + 1L] <<- ncol(columns) - ncol(turned)
    list(x = turned, lost = rep(f, ncol(turned)))
  })
  list(x = do.call(cbind, lapply(parts, `[[`, "x")),
       lost = unlist(lapply(parts, `[[`, "lost")), unseen = unseen)
}

# The rows of a matrix in the axes of their span.
span_axes <- function(x) {
  if (ncol(x) <= nrow(x)) {
    return(x)
  }
  s <- svd(x, nv = 0L)
  s$u * rep(s$d, each = nrow(x))
}

# --- The estimate ------------------------------------------------------------

# The part of points moved to sqrt(1 - h) of their distance to the mean m, with
# the noise hS and the weights c/n. At h = 1 all points are m.
smooth_part <- function(sample, h, c, moments) {
  n <- sample$n
  plain <- new_mean_part(sample, rep(c / n, n))
  if (h == 0 || all(moments$covariance == 0)) {
    return(plain)
  }
  m <- moments$mean
  points <- if (h == 1) matrix(m, 1L) else
    sqrt(1 - h) * unname(sample$x) + rep((1 - sqrt(1 - h)) * m, each = n)
  new_mean_part(points_sample(points, sample$kernel),
                rep(c / nrow(points), nrow(points)), h * moments$covariance)
}

est_parts.est_smooth <- function(estimator, sample) {
  check_noisy(estimator, sample)
  moments <- smooth_moments(sample$x, sample$kernel$bandwidth)
  list(smooth_part(sample, estimator$h, estimator$c, moments))
}

est_fit.est_smooth <- function(estimator, sample) {
  check_shrinkable(estimator, sample,
                   if (is.null(estimator$select)) 1L else 2L)
  check_noisy(estimator, sample)
  d <- ncol(sample$x)
  check_memory(d, d, "use fewer columns", copies = 5,
               what = "a covariance of the columns")
  chosen <- choose_smooth(estimator, sample)
  moments <- smooth_moments(sample$x, sample$kernel$bandwidth)
  part <- smooth_part(sample, chosen$h, chosen$c, moments)
  columns <- colnames(sample$x)
  dimnames(moments$covariance) <- if (!is.null(columns)) list(columns, columns)
  new_estimate(
    rep(chosen$c / sample$n, sample$n),
    parts_at(list(part), sample$kernel, own_points(sample)),
    max(0, norm2_parts(list(part), sample$kernel)), sample_moments(sample),
    more = c(list(parts = list(part), select = estimator$select,
                  covariance = moments$covariance, border = FALSE), chosen)
  )
}

est_choose.est_smooth <- function(estimator, sample) {
  check_noisy(estimator, sample)
  chosen <- choose_smooth(estimator, sample)
  new_settlement(est_smooth(chosen$h, chosen$c), chosen[c("h", "c")])
}

# --- In tests ----------------------------------------------------------------

# h and c are chosen once; the mean and the covariance are those of each group.
est_settle.est_smooth <- function(estimator, sample, where) {
  est_choose(estimator, sort_points(sample))
}

most_smooth_in_tests <- 0.9

# In a test of independence a variable has one mean and one covariance for all
# permutations, so that smoothing gives it another kernel, that of the points m
# + sqrt(1 - h) z_i with the noise hS on both sides. At h = 1 the points would
# all be m. The factor c multiplies all statistics and changes no p-value.
est_settle_variable.est_smooth <- function(estimator, sample, where) {
  if (!takes_noise(sample, FALSE)) {
    stop_input(where, " must be numeric columns with a plain kernel_rbf() ",
               "for estimator \"smooth\" in a test of independence")
  }
  if (isTRUE(estimator$h > most_smooth_in_tests)) {
    stop_input("'h' must be at most ", most_smooth_in_tests, " in a test of ",
               "independence, not ", format_number(estimator$h), ": beyond, ",
               "nothing is left of the points")
  }
  selected <- choose_smooth(estimator, sort_points(sample))
  h <- min(selected$h, most_smooth_in_tests)
  kernel <- sample$kernel
  part <- smooth_part(sample, h, 1,
                      smooth_moments(sample$x, kernel$bandwidth))
  if (is.null(part$noise)) new_settlement(est_kme(), list(h = h)) else
    settle_noisy(part$sample, part$noise, list(h = h))
}

# --- print -------------------------------------------------------------------

est_lines.est_smooth <- function(estimator, fit, digits, plain = "the KME",
                                 target = "the target") {
  c(
    paste0("h = ", format_number(fit$h, digits), ", c = ",
           format_number(fit$c, digits), " (",
           describe_rule(fit), ")"),
    describe_score(fit, digits, plain)
  )
}

estimator_words.est_smooth <- function(estimator) {
  amounts <- unlist(unclass(estimator)[c("h", "c")])
  paste(c("smoothing about the mean",
          paste(names(amounts), "=", format_number(amounts), recycle0 = TRUE),
          if (length(amounts) < 2L) paste("chosen", leaving_out(estimator))),
        collapse = ", ")
}

# "by leaving points out"
leaving_out <- function(estimator) {
  paste0("by leaving points out", if (!is.null(estimator$folds)) {
    if (estimator$folds == Inf) " one by one" else
      paste(" in", estimator$folds, "folds")
  })
}

# The sample with its points in an order that depends on their values alone, so
# that folds do not depend on the labels that a test permutes.
sort_points <- function(sample) {
  sample_take(without_gram(sample), own_order(sample))
}
