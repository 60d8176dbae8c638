#' Tests of a sample against a model
#'
#' Tests whether a sample comes from a model: any normal distribution, a
#' Gaussian mixture, what a function simulates, or a family whose parameters are
#' fitted to the sample.
#'
#' The statistic is the squared distance of the kernel means of n points and of
#' the model P,
#' \deqn{T = \|\hat\mu - \mu_P\|^2 = \frac1{n^2}\sum_{ij} k(x_i, x_j) -
#' \frac2n \sum_i \mu_P(x_i) + \|\mu_P\|^2;}{T = |mu - mu_P|^2 = sum_ij k(x_i,
#' x_j)/n^2 - 2 sum_i mu_P(x_i)/n + |mu_P|^2;} `statistic = "unbiased"` of
#' [test_control()] has \eqn{\sum_{i \ne j} k(x_i, x_j)/(n(n - 1))}{sum_(i != j)
#' k(x_i, x_j)/(n(n - 1))} as its first term (for the KME). Other estimators
#' take their \eqn{\tilde\mu}{mu~} in place of \eqn{\hat\mu}{mu}: T is then the
#' risk that [kme_risk()] computes.
#'
#' \describe{
#'   \item{A Gaussian mixture, `list(weights, means, covariances)`, or a fit of
#'     [kme_density()]}{\eqn{\mu_P}{mu_P} is known in closed form for RBF
#'     kernels and polynomial kernels up to degree 3. An open bandwidth, and the
#'     units of `scale`, come from the sample, and those of each simulated
#'     sample from itself.}
#'   \item{A function `r(n)`}{that returns n independent draws: a matrix or a
#'     data frame of n rows with the columns of `x`, or for one column n
#'     numbers. \eqn{\mu_P}{mu_P} is the kernel mean of 10,000 draws, made once;
#'     its own error enters the observed and the simulated statistics alike. The
#'     bandwidth and the units come from these draws.}
#'   \item{A family with parameters, two functions `fit` and `simulate`}{
#'     `fit(x)` estimates the parameters, in any form, from the points (the
#'     numbers of one column, or a matrix), and `simulate(n, fit)` returns n
#'     draws of the model with these. \eqn{\mu_P}{mu_P} is the kernel mean of
#'     4n draws, at least 500 and at most 10,000, of the model that was fitted.
#'     Each simulated sample comes from that model, and has a fit, draws, a
#'     bandwidth and units of its own.}
#'   \item{`"normal"`}{tests for normality, whatever the mean and the
#'     covariance: the points are standardized by their mean and covariance
#'     (divisor n), and the statistic is \eqn{nT}{n T} against N(0, I) with an
#'     RBF kernel of bandwidth \eqn{\theta = \sqrt2/((2d + 1)n/4)^{1/(d + 4)}}{
#'     theta = sqrt(2)/((2 d + 1) n/4)^(1/(d + 4))}: the statistic BHEP of
#'     Baringhaus, Henze, Epps and Pulley with the bandwidth of Henze and
#'     Zirkler (1990). No affine map of the points changes it.}
#' }
#'
#' @section The p-value: B samples of n points are drawn from the model, and p
#' is (1 + number of them with a statistic at least as large)/(B + 1). The level
#' is exact for every n where nothing in the model was estimated from these
#' points, and for `"normal"`, whose statistic has the law of standard normal
#' samples whatever the mean and the covariance.
#'
#' A model that was fitted to the same points lies closer to them than the true
#' one: the test hardly ever rejects, and the print of a model whose parameters
#' are not known to the test says so. With `fit` and `simulate` the parameters
#' are estimated anew in each draw (the parametric bootstrap): the level is that
#' of the test of Lilliefors, exact for families of location and scale whose fit
#' moves with the points, and right in large samples for others. A fit of
#' [kme_density()] to `x` itself is a warning: fit to one part, and test on the
#' other, as below.
#'
#' @section Draws that are kept: The null distribution of `"normal"` depends on
#' n and d alone. An earlier test of `"normal"`, given as `draws`, lends its
#' simulated statistics to another sample of the same size, also after
#' [saveRDS()] and [readRDS()]. Their
#' p-values err together. Without `draws` nothing is kept from one call to the
#' next: [set.seed()] alone decides.
#'
#' @section Cost: B + 1 sums over the pairs of points, O(n^2 d) each, 999 of 30
#' points in some 5 ms for `"normal"` (for a function 10,000 n pairs more, with
#' `fit` the pairs of 4n draws and its own time); estimators other than the KME
#' are fitted anew to each sample. Memory O(nd).
#'
#' @param x A numeric vector, matrix or data frame of numeric columns, points in
#'   rows: at least two, and d + 2 for `"normal"`.
#' @param formula `~ a + b`, the columns of `data`.
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default.
#' @param model `"normal"`, a Gaussian mixture, a fit of [kme_density()], or a
#'   function that simulates, see Details.
#' @param kernel A kernel; not for `"normal"`.
#' @param estimator The estimator of the mean, as in [mmd_test()]; for
#'   `"normal"` the KME.
#' @param ... Must be empty; of the formula method, arguments of the default
#'   method.
#' @param fit,simulate Functions, in place of `model`: `fit(x)` and `simulate(n,
#'   fit)`, see Details.
#' @param B Number of simulated samples.
#' @param draws An earlier test of `"normal"` in place of `B`.
#' @param scale `FALSE`, `TRUE` or `"whiten"`, see [units]; not for `"normal"`.
#' @param control [test_control()], of which only `statistic` may be set.
#' @param progress Show a progress bar?
#'
#' @return An object of class `c("mmd_gof", "kernmean_fit", "htest")` with the
#' fields of [mmd_test()]: `statistic` is `MMD^2`, for `"normal"` `BHEP`,
#' \eqn{n T}{n T}; `parameter` has n, d, `B` and the bandwidth; `estimate` is
#' the distance \eqn{\sqrt T}{sqrt(T)}, as `MMD`; `null` is `"simulation"`,
#' `replicates` are the simulated statistics, `sizes` is n, and a last field
#' `model` is what was read as the model.
#'
#' `plot()` shows the null distribution. To see where the points differ from the
#' model, draw as many from it and plot the `"witness"` of [mmd_test()].
#'
#' @references
#' Henze, N. and Zirkler, B. (1990). A class of invariant consistent tests for
#' multivariate normality. *Communications in Statistics -- Theory and Methods*
#' 19(10), 3595--3617.
#' @seealso [glossary]; [mmd_test()] for two samples; [kme_density()],
#'   [kme_risk()].
#' @examples
#' # Waiting times for Old Faithful are not normal ...
#' set.seed(1)
#' test <- mmd_gof(~ waiting, faithful, "normal", B = 99)
#' test
#' plot(test)
#'
#' # ... but may be of this mixture; not of what the function simulates
#' waiting <- faithful$waiting
#' two <- list(weights = c(0.4, 0.6), means = cbind(c(55, 80)),
#'             covariances = c(36, 36))
#' mmd_gof(waiting, two, B = 99)
#' mmd_gof(waiting, \(n) 43 + 53 * rbeta(n, 2, 1), B = 99)
#'
#' # A model with parameters: fitted to one half, tested on the other
#' half <- sample(length(waiting), 136)
#' fit <- kme_density(waiting[half], m = 2)
#' mmd_gof(waiting[-half], fit, B = 99)
#'
#' # ... or fitted anew to each simulated sample
#' mmd_gof(rivers, fit = \(x) c(mean(log(x)), sd(log(x))),
#'         simulate = \(n, fit) rlnorm(n, fit[1], fit[2]), B = 99)
#'
#' # The draws of "normal" serve all samples of one size
#' mmd_gof(log(waiting), "normal", draws = test)
#' @export
mmd_gof <- function(x, ...) {
  UseMethod("mmd_gof")
}

#' @rdname mmd_gof
#' @export
mmd_gof.default <- function(x, model = NULL, kernel = kernel_rbf(),
                            estimator = "kme", ..., fit = NULL, simulate = NULL,
                            B = 999, draws = NULL, scale = FALSE,
                            control = test_control(),
                            progress = interactive()) {
  asked <- open_control(request(gof_arguments), "simulation", gof_rules)
  label <- c(x = label_of(substitute(x)), model = label_of(substitute(model)))
  if (inherits(x, "labeled_points")) label <- x$label
  if (!is.null(asked$kernel) && !is_average(asked$estimator)) {
    check_definite(asked$kernel)
  }
  law <- if (is.null(asked$fit)) read_law(asked$model, asked$x, asked) else
    refit_law(asked$x, asked)
  x <- law_columns(law, asked$x)
  observed <- model_statistic(x, law, asked)
  draws <- if (is.null(asked$draws)) simulate_null(law, asked, nrow(x)) else
    lent_draws(asked$draws, law, x, asked$statistic)
  new_gof(observed, draws, law, asked, label)
}

# The kind of an argument that is a sample of at least two points.
some_points <- function(value, name) {
  if (inherits(value, "labeled_points")) value <- value$x
  if (brings_kernel(value)) {
    stop_input("'", name, "' must hold points, not be a ", input_word(value))
  }
  value <- check_data(value, name)
  if (nrow(value) < 2L) {
    stop_input("'", name, "' must have at least 2 points, not 1")
  }
  value
}

simulator <- is_a("function", "a function of n and of a fit")

gof_arguments <- door_table(
  "mmd_gof.default", x = some_points, model = anything,
  kernel = unless_given(a_kernel), estimator = a_tested,
  fit = maybe(is_a("function", "a function of the points")),
  simulate = maybe(simulator), B = maybe(count()),
  draws = maybe(is_a("mmd_gof", "an earlier test of \"normal\"")),
  scale = unless_given(a_scale), control = a_control, progress = flag,
  rules = list(
    when("draws", B = NULL),
    when("fit", model = NULL, draws = NULL), when("simulate", model = NULL),
    when(\(a) identical(a$model, "normal"), kernel = NULL,
         scale = unscaled, estimator = an_average,
         reason = "for the model \"normal\", whose points are standardized")
  ),
  aside = c("x", "draws", "progress")
)

gof_rules <- list(
  when(\(a) TRUE, permutations = NULL, bins = NULL,
       reason = "where samples are drawn from a model"),
  when(\(a) !is_average(a$estimator), statistic = "biased",
       reason = "for an estimator other than the KME")
)

#' @rdname mmd_gof
#' @export
mmd_gof.formula <- function(formula, data = NULL, model = NULL, ..., subset,
                            na.action) {
  read <- read_sides(c(x = "numbers"))
  label <- c(x = paste(colnames(read$x), collapse = ", "),
             model = label_of(substitute(model)))
  keep_layout(mmd_gof.default(labeled_points(read$x, label), model, ...), read)
}

# The points together with what they and the model are called, for data.name.
labeled_points <- function(x, label) {
  structure(list(x = x, label = label), class = "labeled_points")
}

# Returns the draws of an earlier test of normality. They fit if n, d and the
# statistic are the same, because the null distribution of that test depends on
# nothing else.
lent_draws <- function(test, law, x, statistic) {
  words <- sprintf(
    "\"%s\", n = %.0f, d = %.0f, %s", c(law$kind, test$model$kind),
    c(nrow(x), test$sizes), c(ncol(x), ncol(test$sample$x)),
    c(statistic, test$type)
  )
  if (words[1L] != words[2L] || law$kind != "normal") {
    stop_input("'draws' must be of a test of the same size, as of \"normal\": ",
               words[1L], ", not ", words[2L])
  }
  test$replicates
}

# --- The statistic and its draws ---------------------------------------------

# Returns the statistic of points against a model: its `value`, the `sample`,
# the `fit` of an estimator other than the average, the `height` by which the
# squared distance is multiplied, and the `size` of its terms, see
# new_statistic().
model_statistic <- function(x, law, asked) {
  sample <- law_sample(law, x, asked)
  n <- sample$n
  kernel <- sample$kernel
  part <- law_part(law, kernel)
  average <- is_average(asked$estimator)
  points <- sample
  if (average && kernel_has(kernel, "linear form") && !is.null(part$mixture)) {
    # The distance of means does not depend on the origin, but its rounding
    # does.
    q <- part$mixture
    origin <- drop(crossprod(q$weights, q$means))
    part$mixture$means <- q$means - rep(origin, each = nrow(q$means))
    points$x <- sample$x - rep(origin, each = n)
  }
  if (average) {
    fit <- list(norm2 = mean(sample_rows(points)) / n,
                varrho = mean(sample_diagonal(points)))
    inner <- mean(parts_at(list(part), kernel, own_points(points)))
  } else {
    check_estimator(points, asked$estimator)
    fit <- est_fit(asked$estimator, points)
    fitted <- embedding_parts(c(fit, list(sample = points, kernel = kernel)))
    inner <- inner_parts(fitted, list(part), kernel)
  }
  norm2 <- law$norm2 %||% inner_parts(list(part), list(part), kernel)
  height <- if (law$kind == "normal") n else 1
  value <- model_distance(norm2, inner, fit$norm2, fit$varrho, n,
                          asked$statistic)
  list(value = height * value, sample = sample, fit = if (!average) fit,
       height = height,
       size = if (average) height * (abs(fit$varrho) + abs(norm2)))
}

# Returns the squared distance |mu - mu_P|^2 for many samples at once. `law2` is
# |mu_P|^2, `inner` has the inner products of mu and mu_P, `norm2` is |mu|^2,
# and `varrho` is the mean of k(x, x) over the points.
model_distance <- function(law2, inner, norm2, varrho, n, statistic) {
  biased <- statistic == "biased"
  value <- law2 - 2 * inner + if (biased) norm2 else
    (n * norm2 - varrho) / (n - 1)
  if (biased) pmax(0, value) else value
}

most_alone <- 4000L

# The statistics of `count` normal samples, see model_statistic().
normal_statistics <- function(n, d, count, statistic) {
  theta <- bhep_bandwidth(n, d)
  means <- .Call(C_r_normal_means, n, d, theta, count)
  share <- \(more) (theta^2 / (theta^2 + more))^(d / 2)
  n * model_distance(share(2), share(1) * means[2L, ], means[1L, ], 1, n,
                     statistic)
}

# The statistics of B samples of n points, drawn from the model.
simulate_null <- function(law, asked, n) {
  B <- asked$B
  check_draw_memory(B)
  one <- \(b) {
    x <- law_draw(law, n)
    if (law$kind == "refit") law <- refit_law(x, asked)
    model_statistic(x, law, asked)$value
  }
  # C takes eight samples at a time, and a few milliseconds a chunk.
  in_c <- law$kind == "normal" && n < most_alone
  size <- if (in_c) 8 * max(1, 1e6 %/% n^2) else max(1L, B %/% 100L)
  # With small samples, starting threads again and again costs more than it
  # saves.
  work <- if (n < most_alone) on_one_thread else identity
  # Warnings about the observed points are not repeated for each sample.
  draws <- withCallingHandlers(
    work(in_chunks(B, size, asked$progress, \(start, count) {
      if (in_c) {
        normal_statistics(n, law$d, count, asked$statistic)
      } else {
        vapply(seq_len(count), one, numeric(1))
      }
    })),
    kernmean_warning = \(w) invokeRestart("muffleWarning")
  )
  draws <- unlist(draws)
  if (law$kind == "draws" && B > 1L && all(draws == draws[1L])) {
    warn_kernmean(
      "all samples that 'model' simulates give the same statistic; a function ",
      "that sets a seed draws one sample over and over"
    )
  }
  draws
}

new_gof <- function(observed, draws, law, asked, label) {
  sample <- observed$sample
  fit <- observed$fit
  n <- sample$n
  bandwidth <- named_bandwidth(sample$kernel)
  free <- law$kind == "normal"
  statistic <- new_statistic(if (free) "BHEP" else "MMD^2",
                             c(observed$value, draws), observed$size)
  null <- drawn_null(statistic, list(B = length(draws), complete = FALSE))
  test <- new_test(
    "mmd_gof", asked, statistic, null,
    parameter = c(n = n, d = ncol(sample$x), B = length(draws), bandwidth),
    estimate = c(MMD = sqrt(max(0, observed$value) / observed$height),
                 bandwidth),
    alternative = paste("the distribution of x is not",
                        if (free) "normal" else "the model"),
    method = test_title(
      if (free) "normality" else "one-sample",
      c(if (free) "BHEP" else c("MMD", asked$estimator$label), asked$statistic),
      asked, list()
    ),
    data.name = paste0(
      label[["x"]], " (n = ", n, ") and ",
      if (free) "all normal distributions" else
        if (law$kind == "refit") "a family fitted anew to each sample" else
          if (nchar(label[["model"]]) <= 60L) label[["model"]] else "the model"
    ),
    lambda = fit$lambda, alpha = fit$alpha,
    noise = fit$noise,
    smoothing = unlist(c(fit[c("h", "c")], guard = fit$guard$share)),
    candidates = fit$candidates, kernel = sample$kernel, sample = sample,
    sizes = c(x = n), arguments = stored(asked), origin = list(label = label)
  )
  test$model <- law
  test
}

fit_request.mmd_gof <- function(x, changes) {
  label <- new_label(x$origin$label, attr(changes, "call"),
                     intersect(names(changes), c("x", "model")))
  if (!is.null(changes$data) && !is.null(x$layout)) {
    changes$x <- read_again(x$layout, changes$data, "x", "data")
    changes$data <- NULL
  }
  points <- changes$x %||% sample_raw(x$sample)
  changes$x <- labeled_points(points, label)
  change_request(x$arguments, changes)
}

# print() warns if parameters of the model may come from the points.
fit_lines.mmd_gof <- function(x, digits) {
  lines <- fit_lines.htest(x, digits)
  append(lines, if (x$model$kind == "draws") strwrap(paste(
    "no parameter of the model may come from these points: p would be too",
    "large; fit = and simulate = refit it in each draw"
  )), length(lines) - 1L)
}

# --- Models ------------------------------------------------------------------
# The model that a sample is tested against, "the law", of one of four kinds:
#   mixture   mixture: the weights, means and covariances in the units of the
#             user; columns: the names of the means; roots: of the covariances
#   draws     draw: a function that simulates; sample: its first draws, with the
#             kernel and the units of the test; norm2: of their embedding
#   refit     the same for a family, with the parameters for these points
#   normal    d; a normal law whose mean and covariance are free

new_law <- function(kind, ...) list(kind = kind, ...)

# The law that `model` asks for, for the points x.
read_law <- function(model, x, asked, draws = most_model_draws) {
  if (is.null(model)) {
    stop_input("'model' must be given, or 'fit' and 'simulate'")
  }
  if (identical(model, "normal")) {
    return(new_law("normal", d = ncol(x)))
  }
  if (is.function(model)) {
    kernel <- asked$kernel %||% kernel_rbf()
    sample <- fit_sample(draw_from(model, draws, x), kernel,
                         asked$scale, "model")
    return(new_law("draws", draw = model, sample = sample,
                   norm2 = mean(sample_rows(sample)) / sample$n))
  }
  if (inherits(model, "kme_density")) {
    warn_same_points(model, x)
    model <- marginal_mixture(model)
  }
  if (!is.list(model) || is.object(model)) {
    stop_input(
      "'model' must be \"normal\", a Gaussian mixture (a list with weights, ",
      "means and covariances, or a fit of kme_density()) or a function that ",
      "simulates, not ", describe(model)
    )
  }
  mixture_law(model, x, asked$kernel)
}

# The law of a Gaussian mixture, for a kernel whose embedding of it is known.
mixture_law <- function(model, x, kernel) {
  mixture <- check_mixture(model, ncol(x), "model")
  if (!is.null(kernel) && !kernel_has(kernel, "closed form")) {
    stop_input(
      "'kernel' must be an RBF kernel or a polynomial kernel up to degree 3, ",
      "or a sum of such, for a model that is a mixture, not the ",
      format_kernel(kernel), "; for others give a function of n that returns ",
      "n draws of the model"
    )
  }
  # A covariance may be singular, so that its root comes from the eigenvalues.
  roots <- lapply(components_of(mixture), \(component) {
    e <- eigen(component$cov, symmetric = TRUE)
    sqrt(pmax(e$values, 0)) * t(e$vectors)
  })
  new_law("mixture", mixture = mixture, columns = colnames(model$means),
          roots = roots)
}

# The law of a family with its parameters fitted to the points x.
refit_law <- function(x, asked) {
  fit <- tryCatch(asked$fit(if (ncol(x) == 1L) drop(x) else x), error = \(e) {
    stop_input("'fit' must be a function of the points; it stopped: ",
               conditionMessage(e))
  })
  simulate <- take(asked$simulate, simulator, "simulate")
  law <- read_law(structure(\(n) simulate(n, fit), name = "simulate"), x, asked,
                  min(most_model_draws, max(500L, 4L * nrow(x))))
  law$kind <- "refit"
  law
}

# Warns if the model was fitted to these points, or to some of them, because p
# is then too large. Independent points would equal the fitted ones only as
# often as points of one sample equal each other.
warn_same_points <- function(fit, x) {
  keys <- lapply(list(known_rows(fit$sample), x), \(z) {
    do.call(paste, as.data.frame(unname(z)))
  })
  tied <- \(z) mean(duplicated(z) | duplicated(z, fromLast = TRUE))
  usual <- length(keys[[2L]]) * max(vapply(keys, tied, 1))
  known <- sum(keys[[2L]] %in% keys[[1L]])
  if (isTRUE(known > 1 + usual + 3 * sqrt(usual)) ||
        identical(sort(keys[[1L]]), sort(keys[[2L]]))) {
    warn_kernmean(
      "'model' was fitted to ", known, " of the ", nrow(x), " points of 'x', ",
      "and the p-value is too large; fit it to one part of the points and ",
      "test the other", kind = "refit"
    )
  }
}

most_model_draws <- 10000L

# A matrix of n draws of the function `model`, with the columns of x.
draw_from <- function(model, n, x) {
  name <- attr(model, "name") %||% "model"
  call <- paste0(name, "(", n, ")")
  z <- tryCatch(model(n), error = \(e) {
    stop_input("'", name, "' must be a function of the number of draws; ", call,
               " stopped: ", conditionMessage(e))
  })
  d <- ncol(x)
  if (!is.data.frame(z) && !is.numeric(z) || NROW(z) != n || NCOL(z) != d) {
    stop_input("'", name, "' must return n draws, a numeric matrix or a data ",
               "frame of n rows and ", count_of(d, "column"), "; ", call,
               " returned ", describe(z))
  }
  wanted <- if (d == 1L) unname(x) else x
  matrix(check_newdata(z, wanted, call, "'x'"), n,
         dimnames = list(NULL, colnames(x)))
}

# The points x with their columns in the order of the model.
law_columns <- function(law, x) {
  if (is.null(law$columns) || ncol(x) == 1L) {
    return(x)
  }
  means <- law$mixture$means
  colnames(means) <- law$columns
  check_newdata(x, means, "x", "the model")
}

# A matrix of n draws of the law, in the units of the user.
law_draw <- function(law, n) {
  if (!is.null(law$draw)) {
    return(draw_from(law$draw, n, sample_raw(law$sample)))
  }
  if (law$kind == "normal") {
    return(matrix(stats::rnorm(as.double(n) * law$d), n))
  }
  draw_mixture(law$mixture, n, law$roots)
}

# The points x as a sample with the kernel and the units of the law.
law_sample <- function(law, x, asked) {
  if (law$kind == "normal") {
    return(standardized_sample(x))
  }
  if (law$kind == "mixture") {
    kernel <- asked$kernel %||% kernel_rbf()
    return(fit_sample(x, kernel, asked$scale))
  }
  kernel <- law$sample$kernel
  points_sample(scale_points(kernel, x), kernel,
                raw = if (kernel_has(kernel, "scaling")) x)
}

# The embedding of the law for a kernel and in its units, see embedding_parts().
law_part <- function(law, kernel) {
  if (!is.null(law$draw)) {
    return(new_mean_part(law$sample, plain_weights(law$sample)))
  }
  mixture <- if (law$kind == "mixture") {
    scale_mixture(kernel, law$mixture)
  } else {
    list(weights = 1, means = matrix(0, 1L, law$d),
         covariances = array(diag(law$d), c(law$d, law$d, 1L)))
  }
  new_mean_part(NULL, 1, mixture = mixture)
}

bhep_bandwidth <- \(n, d) sqrt(2) / ((2 * d + 1) * n / 4)^(1 / (d + 4))

# Returns the points as a sample of mean 0 and covariance I (divisor n), with
# the kernel of Henze and Zirkler. The kernel keeps the scaling that makes them
# so.
standardized_sample <- function(x) {
  n <- nrow(x)
  d <- ncol(x)
  if (n < d + 2L) {
    stop_input("'x' must have at least ", d + 2L, " points for the model ",
               "\"normal\" in ", count_of(d, "column"), ", not ", n)
  }
  kernel <- kernel_rbf(bhep_bandwidth(n, d))
  sample <- fit_sample(x, kernel, "whiten")
  kernel <- sample$kernel
  if (kernel$scaling$rank < d) {
    stop_input("'x' must have no constant or linearly dependent columns for ",
               "the model \"normal\", not rank ", kernel$scaling$rank, " of ",
               d)
  }
  kernel$rule <- "that of Henze and Zirkler"
  # fit_sample() divides variances by n - 1.
  root <- sqrt(n / (n - 1))
  kernel$scaling$factor <- root * kernel$scaling$factor
  kernel$scaling$back <- kernel$scaling$back / root
  points_sample(root * sample$x, kernel, raw = x)
}

# --- Picture -----------------------------------------------------------------

fit_picture.mmd_gof <- function(x, type = NULL) {
  check_type(type, "null")
  picture_null(x)
}
