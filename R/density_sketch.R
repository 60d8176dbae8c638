# Densities from sketches: what is matched is the estimate of the mean, weights
# on the landmarks, and the start is that of points which stand for it.

# The estimate that is matched: of the sketch, or a fit to it.
density_mean <- function(sample, estimator) {
  support <- sample_support(sample)
  fitted <- inherits(estimator, "kme")
  own <- if (fitted) estimator$estimator else estimator
  check_density_kernel(support, own, FALSE)
  if (!fitted) {
    return(estimate_mean(sample, estimator))
  }
  if (!same_sample(estimator$sample, support)) {
    stop_input("'estimator' must be a fit of kme() to the sketch, or to ",
               "another on its landmarks")
  }
  estimator
}

sketch_size <- function(m, first) {
  if (!is.null(first)) {
    return(read_sizes(m, is.null(m), first, 0))
  }
  if (!is_number(m)) {
    stop_input("'m' must be a whole number for a sketch, not ", describe(m),
               ": a choice of several takes rows to be held out")
  }
  take(m, count())
}

# --- The start ---------------------------------------------------------------

points_for_start <- 5000

# Landmarks as often as a distribution p on them says that is nearest to the
# mean: p >= 0 and sum p = 1 minimize |mu - sum_j p_j phi(s_j)|^2, with a ridge
# that rounding takes. They are drawn systematically, by one random number.
points_for_mean <- function(mean) {
  x <- mean$sample$x
  m <- nrow(x)
  k <- sample_matrix(mean$sample)
  diag(k) <- diag(k) + 1e-8 * mean(diag(k))
  largest <- max(abs(k))
  p <- if (m == 1L) 1 else program_solution(quadprog::solve.QP(
    k / largest, mean$fitted / largest, cbind(1, diag(m)),
    c(1, numeric(m)), meq = 1L
  ), "the distribution on the landmarks that is nearest to the mean")
  p <- pmax(p, 0)
  ends <- floor(points_for_start * cumsum(p) / sum(p) + stats::runif(1L))
  x[rep(seq_len(m), diff(c(0, ends))), , drop = FALSE]
}


