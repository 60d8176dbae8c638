#' Tests of a sample against a model
#'
#' [mmd_test()] with a model in place of the second sample: a normal
#' distribution with any mean and covariance, a Gaussian mixture, or a function
#' that simulates.
#'
#' The statistic is the squared distance of the kernel mean of the n points from
#' that of the model P,
#' \deqn{T = \|\hat\mu - \mu_P\|^2 = \frac1{n^2}\sum_{ij} k(x_i, x_j) -
#' \frac2n \sum_i \mu_P(x_i) + \|\mu_P\|^2,}{T = |mu - mu_P|^2 = sum_ij k(x_i,
#' x_j)/n^2 - 2 sum_i mu_P(x_i)/n + |mu_P|^2,} `statistic = "unbiased"` with
#' \eqn{\sum_{i \ne j} k(x_i, x_j)/(n(n - 1))}{sum_(i != j) k(x_i, x_j)/(n(n -
#' 1))} as its first term, so that its mean is 0 under a model that is a
#' mixture and a kernel that is given. Other estimators take their
#' \eqn{\tilde\mu}{mu~} in place of \eqn{\hat\mu}{mu}: T is then the risk that
#' [kme_risk()] computes.
#'
#' \describe{
#'   \item{A Gaussian mixture, `list(weights, means, covariances)`, or a fit of
#'     [kme_density()]}{\eqn{\mu_P}{mu_P} is known in closed form for RBF
#'     kernels and polynomial kernels up to degree 3 (see [kme_risk()]); for
#'     other kernels give a function that simulates. An open bandwidth, and the
#'     units of `scale`, come from the sample, and those of each simulated
#'     sample from itself.}
#'   \item{A function `r(n)`}{that returns n independent draws: a matrix or a
#'     data frame of n rows with the columns of `x`, or for one column n
#'     numbers. \eqn{\mu_P}{mu_P} is the kernel mean of 10,000 draws, made once;
#'     its own error enters the observed and the simulated statistics alike. The
#'     bandwidth and the units come from these draws, once.}
#'   \item{`"normal"`}{tests for normality, whatever the mean and the
#'     covariance: the points are standardized by their mean and covariance
#'     (divisor n), and the statistic is \eqn{nT}{n T} against N(0, I) with an
#'     RBF kernel of bandwidth \eqn{\theta = \sqrt2/((2d + 1)n/4)^{1/(d + 4)}}{
#'     theta = sqrt(2)/((2 d + 1) n/4)^(1/(d + 4))}: the statistic BHEP of
#'     Baringhaus, Henze, Epps and Pulley with the bandwidth of Henze and
#'     Zirkler (1990). With \eqn{y_i}{y_i} the standardized points,
#'     \deqn{T = \frac1{n^2}\sum_{ij} e^{-\|y_i - y_j\|^2/(2\theta^2)} - \frac2n
#'     \left(\frac{\theta^2}{1 + \theta^2}\right)^{d/2} \sum_i
#'     e^{-\|y_i\|^2/(2(1 + \theta^2))} + \left(\frac{\theta^2}{2 +
#'     \theta^2}\right)^{d/2}.}{T = sum_ij exp(-|y_i - y_j|^2/(2 theta^2))/n^2 -
#'     2 (theta^2/(1 + theta^2))^(d/2) sum_i exp(-|y_i|^2/(2 (1 + theta^2)))/n +
#'     (theta^2/(2 + theta^2))^(d/2).} No affine map of the points changes it.}
#' }
#'
#' @section The p-value: B samples of n points are drawn from the model, and p
#' is (1 + number of them with a statistic at least as large)/(B + 1). Under a
#' model in which nothing was estimated from these points the observed statistic
#' is one of B + 1 that are exchangeable, given the 10,000 draws where these
#' stand for the model: the level is exact for every n, no asymptotics. That of
#' `"normal"` is exact too, as the statistic does not see the mean and the
#' covariance, whatever they are: standard normal samples have its law.
#'
#' A model that was fitted to the same points is another matter. It lies closer
#' to them than the true one, and p is too large: the test hardly ever rejects.
#' A fit of [kme_density()] to `x` itself is a warning. Split the sample: fit to
#' one part, and test on the other, as below.
#'
#' @section The null distribution of "normal", kept: It depends on n and d
#' alone. With many points its B samples take long: for n = 20,000 and B = 999
#' minutes; a message of class `kernmean_message` says about how long, where
#' that is above 10 seconds, before they start. An earlier test of `"normal"`
#' given as `null` lends its draws to another sample with as many points and
#' columns (and the same `statistic`), also after [saveRDS()] and [readRDS()]: a
#' test keeps the statistics of its draws, not the samples. Tests that share
#' draws are each exact, but their p-values err together.
#'
#' @section Cost: A statistic is one sum over the pairs of points, O(n^2 d); for
#' a mixture with an open bandwidth a median is found over them, for a function
#' there is another sum over 10,000 n pairs. There are B + 1 of them. `B = NULL`
#' is as many as take about a second, in thousands between 999 (which may take
#' longer) and 9,999, by the sizes alone. Other estimators are fitted anew to
#' each simulated sample. Memory O(nd); of a function its 10,000 draws are kept
#' in the test, 80,000 bytes for each column.
#'
#' @section Arguments: Of the arguments of [mmd_test()] tests against a model
#' take `x`, points (no [gram()], no sketch, no formula); `model` (or `y`),
#' `kernel`, `estimator` (without a target), `B`, `statistic` (`"unbiased"` for
#' the KME only), `scale` and `progress`, and as `null` an earlier test, see
#' above. `"normal"` takes no kernel, estimator or scale, and needs at least d +
#' 2 points and a covariance of full rank. There are no labels to permute: what
#' says how (`permutations`, `blocks`, `clusters`, `bins`) is refused, and so
#' are filters and many bandwidths.
#'
#' @section Value: An object of class `c("mmd_model_test", "mmd_test", "htest")`
#' with the fields of [mmd_test()]. `statistic` is `MMD^2`, for `"normal"`
#' `BHEP`, \eqn{n T}{n T}; `parameter` has n, d, `B` and the bandwidth;
#' `estimate` is the distance `MMD`, \eqn{\sqrt T}{sqrt(T)}; `null` is
#' `"simulation"`, `replicates` are the B simulated statistics, `sizes` is n,
#' and `groups` is `NULL`. A last field `model` holds what was read as the
#' model.
#'
#' `plot()` shows the null distribution, and with `"witness"`
#' \eqn{\hat\mu - \mu_P}{mu - mu_P}: where it is positive (blue) there are more
#' points than the model says, where it is negative (red), fewer. `update()`
#' takes `x`, `model` and the arguments above; without a new `model`, the 10,000
#' draws of a function stay as they are.
#'
#' @references
#' Henze, N. and Zirkler, B. (1990). A class of invariant consistent tests for
#' multivariate normality. *Communications in Statistics -- Theory and Methods*
#' 19(10), 3595--3617.
#'
#' Baringhaus, L. and Henze, N. (1988). A consistent test for multivariate
#' normality based on the empirical characteristic function. *Metrika* 35,
#' 339--348.
#' @docType methods
#' @name mmd_model
#' @seealso [mmd_test()] for two samples; [kme_density()], [kme_risk()].
#' @family tests
#' @examples
#' # Waiting times for Old Faithful are not normal ...
#' set.seed(1)
#' waiting <- faithful$waiting
#' test <- mmd_test(waiting, "normal", B = 99)
#' test
#' plot(test, "witness")
#'
#' # ... but may be of this mixture; not of what the function simulates
#' two <- list(weights = c(0.4, 0.6), means = cbind(c(55, 80)),
#'             covariances = c(36, 36))
#' mmd_test(waiting, two, B = 99)
#' mmd_test(waiting, \(n) 43 + 53 * rbeta(n, 2, 1), B = 99)
#'
#' # A model with parameters: fitted to one half, tested on the other
#' half <- sample(length(waiting), 136)
#' fit <- kme_density(waiting[half], m = 2)
#' mmd_test(waiting[-half], fit, B = 99)
#'
#' # The draws of "normal" serve all samples of one size
#' update(test, x = log(waiting), null = test)
NULL

# Is it a model, where a second sample may stand as well?
is_model <- function(y) {
  fields <- c("weights", "means", "covariances")
  is.function(y) || identical(y, "normal") || inherits(y, "kme_density") ||
    is.list(y) && !is.data.frame(y) && all(fields %in% names(y))
}

# The test of x against a model. NULL for `kernel`, `null`, `statistic` and
# `scale` is the default; label: c(x, model), what they are called; `given`: the
# names of other arguments that were given.
test_model <- function(x, model, label, kernel = NULL,
                       estimator = plain_estimator(), B = NULL, null = NULL,
                       statistic = NULL, scale = NULL,
                       progress = interactive(), given = character()) {
  refuse_given(given)
  options <- read_model_options(kernel, estimator, statistic, scale, progress)
  x <- check_model_sample(x)
  if (!inherits(model, "kernmean_law")) {
    model <- read_law(model, x, label[["model"]])
  }
  x <- law_columns(model, x)
  check_law_options(model, options)
  model <- settle_law(model, options)
  draws <- read_kept(null, model, x, B, options)
  kept <- !is.null(draws)
  if (!is.null(B)) B <- check_replicates(B)
  start <- proc.time()[["elapsed"]]
  observed <- model_statistic(x, model, options)
  if (!kept) {
    draws <- simulate_null(model, options, nrow(x), B,
                           proc.time()[["elapsed"]] - start)
    warn_frozen(model, draws)
  }
  p <- permutation_p(observed$value, draws, observed$scale)
  new_model_test(observed, draws, p, model, options, label, arguments = list(
    label = label, kernel = kernel, estimator = options$estimator, B = B,
    kept = kept, statistic = statistic, scale = scale,
    progress = progress
  ))
}

# --- What is asked for -------------------------------------------------------

no_labels <- "samples are drawn from the model, no labels are permuted"
one_statistic <- "the statistic is that of one kernel, unfiltered"
one_sample <- "there is one sample"
model_refusals <- c(
  permutations = no_labels, blocks = no_labels, clusters = no_labels,
  bins = no_labels, bandwidths = one_statistic, filter = one_statistic,
  ratio = one_statistic, order = one_statistic, factors = one_statistic,
  control = one_sample, pairwise = one_sample, adjust = one_sample
)

refuse_given <- function(given) {
  wrong <- intersect(names(model_refusals), given)
  if (length(wrong)) {
    stop_input("'", wrong[1L], "' must not be given for a test against a ",
               "model: ", model_refusals[[wrong[1L]]])
  }
}

# list(kernel, estimator, statistic, scale, progress)
read_model_options <- function(kernel, estimator, statistic, scale, progress) {
  if (!is.null(kernel)) {
    check_kernel(kernel, hint = estimator_hint(kernel))
  }
  estimator <- read_estimator(estimator)
  check_no_target(estimator)
  both <- c("biased", "unbiased")
  statistic <- check_choice(if (is.null(statistic)) both else statistic, both,
                            "statistic")
  must_be(is_average(estimator) || statistic == "biased", "statistic",
          "\"biased\"", paste("for estimator", estimator_word(estimator)),
          statistic)
  if (!is.null(kernel) && !is_average(estimator)) {
    check_definite(kernel)
  }
  list(kernel = kernel, estimator = estimator, statistic = statistic,
       scale = check_scale(scale), progress = check_flag(progress, "progress"))
}

check_model_sample <- function(x) {
  if (brings_kernel(x)) {
    stop_input("'x' must hold points for a test against a model, not be a ",
               input_word(x))
  }
  if (is.data.frame(x) && all(dim(x) > 0L)) {
    x <- check_columns(x, "x")
  }
  if (is.numeric(x)) {
    check_finite(x, "x", "; na.omit(x) drops their rows")
  }
  x <- check_data(x)
  if (nrow(x) < 2L) {
    stop_input("'x' must have at least 2 points, not 1")
  }
  warn_symmetric(x)
  x
}

# The draws of an earlier test of the same size, NULL for none.
read_kept <- function(null, model, x, B, options) {
  if (is.null(null) || identical(null, "simulation")) {
    return(NULL)
  }
  if (!inherits(null, "mmd_model_test")) {
    stop_input("'null' must be an earlier test of \"normal\", or not given ",
               "for a test against a model, whose null distribution is ",
               "simulated, not ", describe(null))
  }
  of <- c(is_free(null$model), is_free(model))
  if (!all(of)) {
    stop_input("'null' must not be given: ",
               if (of[2L]) "it is a test of another model than \"normal\"" else
                 "only draws of \"normal\" depend on n and d alone")
  }
  size <- \(n, d) paste0("n = ", n, ", d = ", d)
  theirs <- size(null$parameter[["n"]], null$parameter[["d"]])
  own <- size(nrow(x), ncol(x))
  if (theirs != own) {
    stop_input("'null' must be a test of the same size, ", own, ", not ",
               theirs)
  }
  must_be(null$type == options$statistic, "null", "a test of the same",
          paste0("statistic, \"", options$statistic, "\""), null$type)
  if (!is.null(B) && B != length(null$replicates)) {
    stop_input("'B' must not be given with 'null', which has its own, ",
               length(null$replicates))
  }
  null$replicates
}

# --- The statistic and its draws ---------------------------------------------

# list(value, sample, fit: of an estimator that is not the average, scale: the
# size of its terms, NULL where these have the size of the statistic) of the
# points x.
model_statistic <- function(x, model, options) {
  sample <- law_sample(model, x, options)
  kernel <- sample$kernel
  part <- law_part(model, kernel)
  average <- is_average(options$estimator)
  found <- if (average) {
    average_terms(sample, part, options$statistic)
  } else {
    estimate_terms(sample, part, options$estimator)
  }
  norm2 <- if (is.null(found$norm2)) law_norm2(model, part, kernel) else
    found$norm2
  value <- found$first - 2 * found$cross + norm2
  if (options$statistic == "biased") value <- max(0, value)
  height <- law_height(model, sample$n)
  list(value = height * value, sample = sample, fit = found$fit,
       scale = if (average) height * (found$size + abs(norm2)))
}

# list(first, cross, size, norm2: NULL but where another origin changes it)
average_terms <- function(sample, part, statistic) {
  n <- sample$n
  kernel <- sample$kernel
  new <- own_points(sample)
  norm2 <- NULL
  if (is_linear(kernel) && !is.null(part$mixture)) {
    # A distance of means does not see the origin, but its rounding does.
    q <- part$mixture
    sample$origin <- drop(crossprod(q$weights, q$means))
    part$mixture$means <- q$means - rep(sample$origin, each = nrow(q$means))
    new$z <- new$z - rep(sample$origin, each = n)
    norm2 <- mixture_inner(part$mixture, part$mixture, kernel)
  }
  total <- sum(sample_rows(sample))
  trace <- sum(sample_diagonal(sample))
  list(
    first = if (statistic == "biased") total / n^2 else
      (total - trace) / (n * (n - 1)),
    cross = mean(part_at(part, kernel, new)), size = abs(trace) / n,
    norm2 = norm2
  )
}

# list(first, cross, fit)
estimate_terms <- function(sample, part, estimator) {
  check_estimator(sample, estimator)
  fit <- est_fit(estimator, sample)
  parts <- embedding_parts(c(fit, list(sample = sample,
                                       kernel = sample$kernel)))
  list(first = fit$norm2, fit = fit,
       cross = sum(vapply(parts, inner_part, numeric(1), part,
                          sample$kernel)))
}

most_seconds_unsaid <- 10
few_seconds <- 0.01

# The statistics of B samples of n points, NULL for the usual number. What is
# said of the time goes by the sizes, for estimators that are fitted anew by the
# seconds that the first fit has taken.
simulate_null <- function(model, options, n, B, taken) {
  seconds <- law_cost(model, options, n)
  if (is.null(B)) B <- usual_draws(seconds)
  each <- if (is_average(options$estimator)) seconds else taken
  if (B * each > most_seconds_unsaid) {
    tell_long(B * each, B, n, model)
  }
  # What was said of the observed points is not said of each sample again.
  if (is.null(options$scale)) options$scale <- FALSE
  at_once <- max(1, min(B, round(0.2 / seconds)))
  draw <- \() in_chunks(B, at_once, options$progress, \(start, count) {
    vapply(seq_len(count), \(b) {
      quietly(model_statistic(law_draw(model, n), model, options)$value)
    }, numeric(1))
  })
  unlist(if (seconds < few_seconds) on_one_thread(draw()) else draw())
}

quietly <- function(value) {
  withCallingHandlers(value, kernmean_warning = \(w) {
    invokeRestart("muffleWarning")
  })
}

tell_long <- function(seconds, B, n, model) {
  unit <- if (seconds < 120) "seconds" else "minutes"
  message(structure(
    class = c("kernmean_message_long", "kernmean_message", "message",
              "condition"),
    list(message = paste0(
      "the ", format_count(B), " samples of ", format_count(n), " points for ",
      "the null distribution take about ",
      format_number(if (unit == "minutes") seconds / 60 else seconds, 2L), " ",
      unit, " on one processor", if (is_free(model)) {
        paste("; the test, given as 'null', lends them to other samples of",
              "this size")
      }, "\n"
    ), call = NULL)
  ))
}

warn_frozen <- function(model, draws) {
  if (is_simulator(model) && length(draws) > 1L && all(draws == draws[1L])) {
    warn_kernmean(
      "all samples that 'model' simulates give the same statistic; a function ",
      "that sets a seed draws one sample over and over"
    )
  }
}

# --- The object --------------------------------------------------------------

new_model_test <- function(observed, draws, p, model, options, label,
                           arguments) {
  sample <- observed$sample
  n <- sample$n
  fit <- observed$fit
  bandwidth <- sample$kernel$bandwidth
  bandwidth <- if (length(bandwidth) == 1L) c(bandwidth = bandwidth[[1L]])
  free <- is_free(model)
  words <- c(if (free) "BHEP" else c("MMD", options$estimator$label),
             options$statistic)
  test <- new_test(
    c("mmd_model_test", "mmd_test"),
    statistic = stats::setNames(observed$value,
                                if (free) "BHEP" else "MMD^2"),
    parameter = c(n = n, d = ncol(sample$x), B = length(draws), bandwidth),
    p.value = p,
    estimate = c(MMD = sqrt(max(0, observed$value) / law_height(model, n)),
                 bandwidth),
    alternative = if (free) "the distribution of x is not normal" else
      "the distribution of x is not the model",
    method = test_title(if (free) "normality" else "one-sample", words,
                        list(null = "simulation"), list()),
    data.name = paste0(label[["x"]], " (n = ", n, ") and ",
                       law_words(model, label[["model"]])),
    replicates = draws, null = "simulation", type = options$statistic,
    estimator = options$estimator, lambda = fit$lambda, alpha = fit$alpha,
    noise = fit$noise, smoothing = unlist(fit[c("h", "c")]),
    candidates = fit$candidates, kernel = sample$kernel, sample = sample,
    sizes = c(x = n), arguments = arguments
  )
  test$model <- model
  test
}

#' @export
update.mmd_model_test <- function(object, ...) {
  changes <- list(...)
  check_changes(changes)
  names(changes)[names(changes) == "y"] <- "model"
  arguments <- object$arguments
  known <- setdiff(names(formals(test_model)), c("label", "given"))
  given <- intersect(names(changes), names(model_refusals))
  unknown <- setdiff(names(changes), c(known, given))
  if (length(unknown)) {
    stop_input("unused argument: '", unknown[1L], "'",
               near_name(unknown[1L], known))
  }
  data <- intersect(names(changes), c("x", "model"))
  if (any(lengths(changes[data]) == 0L)) {
    stop_input("'x' and 'model' must not be empty")
  }
  label <- new_label(arguments$label, substitute(list(...)), data)
  own <- list(x = sample_raw(object$sample), model = object$model)
  # Draws that were lent to it are lent on, unless others are asked for.
  if (arguments$kept) own$null <- object
  resized <- "x" %in% data && NROW(changes$x) != object$sizes[["x"]]
  if (resized || any(c("B", "model", "statistic") %in% names(changes))) {
    own["null"] <- NULL
  }
  if (!is.null(changes$null)) arguments["B"] <- NULL
  arguments[c("label", "kept")] <- NULL
  do.call(test_model, c(list(label = label, given = given), merge_changes(
    c(own, arguments), changes[setdiff(names(changes), given)]
  )), quote = TRUE)
}
