# Densities from sketches: what is matched is the estimate of the mean, weights
# on the landmarks, and the start is that of points which stand for it.

#' @rdname kme_density
#' @export
kme_density.kme_sketch <- function(x, ..., estimator = "kme", m = NULL,
                                   shape = c("full", "common", "isotropic"),
                                   optimize = c("weights", "all"), nstart = 50,
                                   validate = NULL, start = NULL, floor = NULL,
                                   steps = NULL) {
  refuse_for_sketch(...names(), c("kernel", "scale", "bandwidths"))
  check_dots(...)
  optimize <- check_choice(optimize, c("weights", "all"), "optimize")
  steps <- check_steps(steps, optimize)
  nstart <- check_count(nstart, "nstart")
  if (!is.null(floor)) floor <- check_number(floor, "floor", positive = TRUE)
  shape <- if (!missing(shape)) {
    check_choice(shape, c("full", "common", "isotropic"), "shape")
  }
  if (!is.null(validate) && check_number(validate, "validate") > 0) {
    stop_input("'validate' must be 0 for a sketch, which has no rows to be ",
               "held out, not ", format_number(validate))
  }
  estimator <- read_matched(estimator)
  sample <- as_sample(x)
  support <- sample_support(sample)
  mean <- density_mean(sample, estimator)
  first <- check_start(start, support)
  m <- sketch_size(m, first)
  look <- read_shape(shape, optimize, first, support)
  points <- points_for_mean(mean)
  share_kept <- if (!is.null(floor)) {
    floor
  } else {
    least_variance[[if (is.null(steps)) look else "steps"]]
  }
  lowest <- share_kept * check_spread(points)
  how <- list(shape = look, m = m, nstart = nstart, lowest = lowest, widen = 1)
  if (is.null(first)) {
    first <- cluster_start(points, how, " that stand for the mean")
  }
  plan <- list(
    estimator = mean, kernels = list(support$kernel), optimize = optimize,
    steps = steps, sizes = m, stop_early = FALSE, first = first,
    direct = identical(start, "kmeans") || !is.null(steps), widenings = 1,
    shape = how, toward = 1, weigh = FALSE, lowest = lowest
  )
  new_kme_density(fit_density(support, plan, 0), plan, 0, list(
    m = m, shape = shape, estimator = estimator, optimize = optimize,
    nstart = nstart, validate = validate, start = start, floor = floor,
    steps = steps
  ))
}

# The estimate that is matched: of the sketch, or a fit to it.
density_mean <- function(sample, estimator) {
  support <- sample_support(sample)
  check_directions(support)
  fitted <- inherits(estimator, "kme")
  own <- if (fitted) estimator$estimator else estimator
  check_weights_alone(own)
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
  if (!is.numeric(m) || length(m) != 1L) {
    stop_input("'m' must be a whole number for a sketch, not ", describe(m),
               ": a choice of several takes rows to be held out")
  }
  check_count(m, "m")
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
  p <- if (m == 1L) 1 else tryCatch(
    quadprog::solve.QP(k / largest, mean$fitted / largest, cbind(1, diag(m)),
                       c(1, numeric(m)), meq = 1L)$solution,
    error = \(e) stop_kernmean("numeric", "the distribution on the landmarks ",
                               "that is nearest to the mean was not found: ",
                               conditionMessage(e))
  )
  p <- pmax(p, 0)
  ends <- floor(points_for_start * cumsum(p) / sum(p) + stats::runif(1L))
  x[rep(seq_len(m), diff(c(0, ends))), , drop = FALSE]
}

# --- Methods -----------------------------------------------------------------

density_points.landmark_sample <- \(sample) need_newdata()

describe_density.landmark_sample <- \(sample, object, number) NULL
