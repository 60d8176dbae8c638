#' Kernel Fisher discriminants
#'
#' Discriminant axes in the feature space of a kernel, with a ridge.
#'
#' With \eqn{M_c} the mean of the columns of the Gram matrix K in class c,
#' \eqn{M} their overall mean, and the within-class scatter \deqn{N = \sum_c K_c
#' (I - ee'/n_c) K_c',}{N = sum_c K_c (I - ee'/n_c) K_c',} the axes
#' \eqn{\alpha}{alpha} span \eqn{(N + rI)^{-1}(M_c - M)}{(N + rI)^(-1) (M_c -
#' M)}, with \eqn{\alpha'(N + rI)\alpha = (n - C)I}{alpha' (N + rI) alpha = (n -
#' C) I}. A point z has the scores \eqn{s(z) = \alpha'(k_z - M)}{s(z) = alpha'
#' (k_z - M)}. With the linear kernel and a ridge near 0 they are those of
#' [MASS::lda()].
#'
#' The class is that of the largest \eqn{v_c = \log\pi_c - \|s(z) -
#' m_c\|^2/(2\sigma^2)}{v_c = log pi_c - |s(z) - m_c|^2/(2 sigma^2)},
#' \eqn{m_c} the mean score of class c and \eqn{\sigma^2}{sigma^2} the mean of
#' \eqn{\|s_{-i}(x_i) - m_{-i}\|^2}{|s_-i(x_i) - m_-i|^2} over the number of
#' axes, of points left out, in closed form. The posterior is \deqn{(1 -
#' \epsilon)\,\mathrm{softmax}(v/T)_c + \epsilon\,\pi_c,}{(1 - eps)
#' softmax(v/T)_c + eps pi_c,} with the temperature \eqn{T \ge 1}{T >= 1} (Guo
#' et al.) and the share \eqn{\epsilon}{eps} of the prior that make the log
#' posterior probability of the points left out largest (\eqn{\epsilon}{eps} is
#' 1/(n + 2) unless its gain is more than 1): softmax(v) claims too much. The
#' class may have a posterior below another's, where eps is large. With another
#' `prior` in `predict()` the posterior is multiplied by
#' \eqn{\pi'_c/\pi_c}{pi'_c/pi_c} and normalized, and the class is that of the
#' largest.
#' `tidy(fit, "calibration")` has what was claimed beside what was hit.
#'
#' @section Ridge and bandwidth:
#' `ridge = "shrinkage"` takes \eqn{r = \lambda/(1 - \lambda) \cdot (\mathrm{tr}
#' K^c/(n-1))^2}{r = lambda/(1 - lambda) (tr Kc/(n - 1))^2} with
#' \eqn{\lambda}{lambda} the intensity of [shrink_gram()] at p = n - 1; `Inf` is
#' the limit of large ridges. `"loo"` tries 0.03, 0.1, 0.3, 1 and 3 times that,
#' at the bandwidth that was chosen before.
#'
#' Where the kernel leaves it open `bandwidth = "loo"` tries \eqn{2^{-2},
#' 2^{-3/2}, \ldots, 2}{2^(-2), 2^(-3/2), ..., 2} times the median distance,
#' each with the ridge that shrinkage gives there, and takes that of the
#' smallest leave-one-out error, weighted by `prior`; of several that of the
#' largest mean log posterior probability of the true class. The error of the
#' choice is optimistic: `vignette("operators", package = "kernmean")`.
#'
#' @section Sketches:
#' Of a [kme_sketch()] the groups are the classes; `scaling` holds weights on
#' the m landmarks. Nothing is left out: `loo`, `error`, `grouping` and `scores`
#' are `NULL`, and \eqn{\sigma^2}{sigma^2} is too small unless n is large
#' against m. O(m^3) time.
#' @section Cost:
#' One fit takes 8n^3/3 flops and 64n^2 bytes, O(n C^3) for many classes; the
#' choice one for each bandwidth, seven by default, and four more for ridges.
#'
#' @inheritParams kme
#' @param x Points in rows: a numeric matrix, a data frame (factors among its
#'   columns: [kernel_gower()]) or a vector; a [gram()], or distances (`dist`),
#'   of which it makes one; or a [kme_sketch()] with groups.
#' @param grouping The class of each point, a factor or a vector; two classes or
#'   more of two points or more.
#' @param kernel A kernel, positive definite; not with a `gram`.
#' @param ridge `"loo"`, `"shrinkage"`, or r as a positive number, `Inf`
#'   allowed; `NULL` is `"loo"` where the bandwidth is chosen so, else
#'   `"shrinkage"`.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method.
#' @param bandwidth `"loo"`, `"median"` or positive numbers to choose among, for
#'   a kernel whose bandwidth is open.
#' @param prior Probabilities of the classes, in the order of the levels or with
#'   their names; by default the shares in the sample.
#' @param progress Show how far the choice has come, from 800 points on?
#' @param formula `class ~ a + b` with numeric variables on the right, or the
#'   other way round, `cbind(a, b) ~ class` or `. ~ class`, as in [mmd_test()].
#'
#' @return An object of class `kme_fda`, a list with
#' \item{prior, counts, lev}{prior, number of points and names of the classes;
#'   `lev` has the empty ones too}
#' \item{scaling}{\eqn{\alpha}{alpha}, n rows, a column for each axis}
#' \item{means}{the mean scores \eqn{m_c}, a row for each class}
#' \item{svd}{their squares are ratios of between- to within-class variance, as
#'   in [MASS::lda()]}
#' \item{scores, center}{the scores of the sample, n rows; \eqn{\alpha'M}{alpha'
#'   M}}
#' \item{ridge, intensity}{r, and \eqn{\lambda}{lambda}, from 0 to 1 (`NULL`
#'   where the ridge was given as a number)}
#' \item{sigma2, temperature, mixing}{\eqn{\sigma^2}{sigma^2}, T and
#'   \eqn{\epsilon}{eps} (of a sketch `NULL`: 1 and 0)}
#' \item{loo, error}{leave-one-out results, a list of `class`, `posterior`, and
#'   `distance`, the squared distances to the class means; and the share of
#'   points whose class there is wrong; weighted by the prior, where that is
#'   another figure, `print()` has it, and `glance()` as `prior.error`}
#' \item{bandwidths, ridges}{what was tried, data frames of `factor`,
#'   `bandwidth` or `ridge`, `error`, `log_posterior` (of softmax(v)),
#'   `chosen`; else `NULL`}
#' \item{n, N}{number of points, `N` as in [MASS::lda()]}
#' \item{sample, grouping, kernel, layout, arguments}{the sample, as in
#'   [kme()]; what was given}
#'
#' @section Methods:
#' `predict()` of new points, `coef()` (the axes), [plot()][plot.kernmean_fit],
#' `summary()`; `update()` chooses the bandwidth again where that may change.
#'
#' @references
#' Mika, S., Rätsch, G., Weston, J., Schölkopf, B. and Müller, K.-R. (1999).
#' Fisher discriminant analysis with kernels. *Neural Networks for Signal
#' Processing IX*, 41--48. \doi{10.1109/NNSP.1999.788121}
#'
#' Lancewicki, T. (2017). Regularization of the kernel matrix via covariance
#' matrix shrinkage estimation. Section V. \doi{10.48550/arXiv.1707.06156}
#'
#' Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q. (2017). On calibration of
#' modern neural networks. *Proceedings of the 34th International Conference on
#' Machine Learning*, 1321--1330. \doi{10.48550/arXiv.1706.04599}
#' @seealso [glossary]; [shrink_gram()]; [mmd_test()]: do classes differ at all?
#' @examples
#' fit <- kme_fda(Species ~ Petal.Length + Petal.Width, iris)
#' summary(fit)
#' plot(fit)
#' predict(fit, data.frame(Petal.Length = 4.9, Petal.Width = 1.65))$posterior
#'
#' # Two classes that no line separates
#' set.seed(1)
#' angle <- runif(60, 0, 2 * pi)
#' ring <- rep(c(1, 2), 30)
#' x <- ring * cbind(cos(angle), sin(angle)) + rnorm(120, sd = 0.2)
#' plot(kme_fda(x, ring))
#' @export
kme_fda <- function(x, ...) {
  UseMethod("kme_fda")
}

#' @rdname kme_fda
#' @export
kme_fda.default <- function(x, grouping, kernel = kernel_rbf(),
                            ridge = NULL, ..., bandwidth = "loo",
                            scale = FALSE, prior = NULL,
                            progress = interactive()) {
  asked <- request(kme_fda_arguments)
  x <- principal_gram(x)
  bandwidth <- read_bandwidth(asked$bandwidth, x, asked$kernel, "loo")
  sample <- center_linear(read_sample(x, asked$kernel, scale = asked$scale))
  n <- sample$n
  classes <- check_grouping(grouping, n)
  prior <- check_prior(prior, classes$counts)
  check_memory(n, n, "use fewer rows", copies = 8)
  ridge <- asked$ridge
  ridge <- ridge %||% if (identical(bandwidth, "loo")) "loo" else "shrinkage"
  kernels <- tried_kernels(sample$kernel, bandwidth, "loo", bandwidth_factors)
  tuned <- search_fda(sample, kernels, classes, prior, ridge, progress)
  rownames(tuned$fit$scores) <- sample_names(sample)
  new_kme_fda(tuned$fit, tuned$sample, classes, prior, stored(asked),
              fda_left(tuned$fit, classes, prior), tuned)
}

a_ridge <- maybe(number(open = TRUE, finite = FALSE), "loo", "shrinkage")

kme_fda_arguments <- door_table(
  "kme_fda.default", x = anything, grouping = anything,
  kernel = unless_given(a_kernel), ridge = a_ridge,
  bandwidth = unless_given(anything), scale = unless_given(a_scale),
  prior = anything, progress = flag, aside = c("x", "grouping", "progress"),
  units = c("x", "grouping")
)

#' @rdname kme_fda
#' @export
kme_fda.formula <- function(formula, data = NULL, subset, na.action, ...) {
  read <- read_sides(c(grouping = "groups", x = "terms"),
                     example = "class ~ a + b")
  keep_layout(kme_fda.default(read$x, grouping = read$grouping, ...), read)
}

# The fit that kme_fda() returns. `left` holds the leave-one-out results,
# `tuned` the result of the search for bandwidth and ridge; a sketch has
# neither.
new_kme_fda <- function(fit, sample, classes, prior, arguments, left = NULL,
                        tuned = NULL) {
  rownames(fit$means) <- names(classes$counts)
  new_fit("kme_fda", list(
    prior = prior, counts = classes$counts, lev = classes$lev, N = sample$n,
    n = sample$n, sample = sample_support(sample), kernel = sample$kernel,
    arguments = arguments, means = fit$means, scaling = fit$scaling,
    svd = fit$svd, scores = fit$scores, center = fit$center, ridge = fit$ridge,
    intensity = fit$intensity, sigma2 = left$sigma2 %||% fit$sigma2,
    temperature = left$temperature, mixing = left$mixing, error = left$error,
    loo = left$loo, bandwidths = tuned$bandwidths, ridges = tuned$ridges,
    grouping = if (!is.null(left)) {
      factor(names(classes$counts)[classes$of], classes$lev)
    }
  ))
}

# --- Checks ------------------------------------------------------------------

# A list about the classes: `of`, the class number of each point; `counts`, the
# named number of points in each class; `lev`, all levels of the factor, also
# those without points.
check_grouping <- function(grouping, n) {
  check_labels(grouping, n, "grouping")
  grouping <- as_factor(grouping)
  classes <- check_classes(grouping, "grouping", "points")
  list(of = as.integer(classes), counts = c(table(classes)),
       lev = levels(grouping))
}

check_prior <- function(prior, counts) {
  lev <- names(counts)
  if (is.null(prior)) {
    return(counts / sum(counts))
  }
  values <- take(prior, numbers(0, 1, count = length(lev)))
  if (abs(sum(values) - 1) > 1e-6) {
    stop_input("'prior' must sum to 1, not ", format_number(sum(values)))
  }
  prior <- in_order(prior, lev, "prior", "the classes")
  stats::setNames(as.double(prior), lev)
}

# --- Methods -----------------------------------------------------------------

#' @rdname kme_fda
#' @param object A fit.
#' @param newdata New points, as for [predict.kme()], `NA` for rows with missing
#'   values. Without it, the points of the sample: in the fit, not left out.
#' @param type `"all"`, or the classes or posterior probabilities alone.
#' @return `predict()` returns `list(class, posterior, x)` as for
#'   [MASS::lda()], `x` the scores; or one of the first two.
#' @export
predict.kme_fda <- function(object, newdata,
                            type = c("all", "class", "probability"), ...,
                            prior = object$prior) {
  check_dots(...)
  type <- take(type, choice("all", "class", "probability"))
  prior <- check_prior(prior, object$counts)
  lost <- which(prior > 0 & object$prior == 0)
  if (length(lost)) {
    stop_input("'prior' must be 0 for ", quoted(names(lost), 3L), ", as in ",
               "the fit, whose posteriors it multiplies; update(object, ",
               "prior = ) fits with another")
  }
  if (!missing(newdata)) {
    gaps <- predict_gaps(object, newdata, type = type, prior = prior)
    if (!is.null(gaps)) return(gaps)
  }
  scores <- if (missing(newdata)) {
    sample_scores(object)
  } else {
    fda_scores(object, sample_newdata(object$sample, newdata, object$layout))
  }
  said <- fda_classes(fda_distance(scores, object$means), object, prior,
                      object$lev)
  switch(type, all = c(said, list(x = scores)), class = said$class,
         probability = said$posterior)
}

fda_scores <- function(object, new) {
  alpha <- object$scaling
  raw <- sample_at(object$sample, new, alpha)
  check_result(raw, "a score", "'newdata'")
  lost <- sum(rowSums(raw != 0) == 0)
  if (lost > 0L) {
    warn_kernmean(
      "for ", lost, " of ", new$m, " new points all kernel values are 0: they ",
      "are far from the sample, and their classes say nothing of them"
    )
  }
  dimnames(raw) <- list(new$names, colnames(alpha))
  raw - rep(object$center, each = nrow(raw))
}

#' @export
coef.kme_fda <- function(object, ...) {
  check_dots(...)
  object$scaling
}

# update() keeps a bandwidth that was chosen, unless the points, classes, prior,
# ridge, kernel or scale change: then it is chosen again as `bandwidth` says.
fit_request.kme_fda <- function(x, changes) {
  if ("data" %in% names(changes) && !is.null(x$layout) &&
        !"grouping" %in% names(changes)) {
    changes$grouping <- read_again(x$layout, changes$data, "grouping", "data")
  }
  names <- names(changes)
  same <- !any(c("x", "data") %in% names)
  asked <- fit_request.default(x, changes)
  rechosen <- "bandwidth" %in% names ||
    !is.null(x$bandwidths) && any(c("grouping", "ridge", "prior") %in% names) ||
    !is.null(x$ridges) && !length(setdiff(names, "progress"))
  if (rechosen && same && !"kernel" %in% names) {
    asked$kernel <- x$arguments$kernel
  }
  if (!"bandwidth" %in% names && !has_open_bandwidth(asked$x, asked$kernel)) {
    asked$bandwidth <- NULL
  }
  if (!same) {
    return(structure(asked, kept = NULL))
  }
  if (!"grouping" %in% names) asked$grouping <- x$grouping
  keeps <- !rechosen && !any(c("kernel", "scale") %in% names)
  structure(asked, kept = c(attr(asked, "kept"), if (keeps) "bandwidth"),
            fields = if (keeps) "bandwidths")
}

fit_lines.kme_fda <- function(x, digits) {
  classes <- paste0(
    describe_sample(x$sample), ", ", length(x$counts), " classes: ",
    shorten(paste0(names(x$counts), " (", x$counts, ")"))
  )
  share <- x$svd^2 / sum(x$svd^2)
  tried <- c(bandwidths = nrow(x$bandwidths), ridges = nrow(x$ridges))
  weighted <- prior_error(x)
  c(
    "Kernel Fisher discriminants", strwrap(classes, 80L, exdent = 2L),
    sample_kernel_lines(x$sample),
    paste0("ridge ", format_number(x$ridge, digits), " (", if (
      is.null(x$intensity)) "given" else paste(
        "shrinkage, intensity =", format_number(x$intensity, digits)
      ), ")"),
    paste("shares of between-class variance:",
          shorten(format_number(share, digits), 5L)),
    if (is.null(x$loo)) {
      "no leave-one-out error: a sketch keeps sums, not rows"
    } else {
      strwrap(paste0(
        "leave-one-out error ", format_number(x$error, digits), " (",
        sum(x$loo$class != x$grouping), " of ", x$n, ")",
        if (!isTRUE(all.equal(weighted, x$error))) paste0(
          ", ", format_number(weighted, digits), " weighted by the prior"
        ),
        if (length(tried)) ", optimistic: of ",
        paste(tried, names(tried), collapse = ", ")
      ), 81L, exdent = 2L)
    }
  )
}

# The leave-one-out error in a population whose classes have the prior as their
# shares.
prior_error <- function(object) {
  rows <- fit_rows(object)
  sum(rows$prior * rows$error)
}

fit_summary.kme_fda <- function(x) {
  Filter(length, list(
    posterior = if (!is.null(x$temperature)) paste0(
      "posterior: temperature ", format_number(x$temperature),
      ", share of the prior ", format_number(x$mixing)
    ),
    bandwidths = x$bandwidths, ridges = x$ridges,
    table = if (!is.null(x$loo)) structure(
      table(true = droplevels(x$grouping),
            predicted = factor(x$loo$class, names(x$counts))),
      title = "Leave-one-out classes"
    ),
    means = structure(x$means, title = paste0(
      "Mean scores of the classes (spread of ",
      if (is.null(x$loo)) "the rows themselves: " else "a new point: ",
      format_number(sqrt(x$sigma2)), ")"
    ))
  ))
}

fit_rows.kme_fda <- function(x, matrix = c("classes", "d", "calibration"),
                             ...) {
  check_dots(...)
  matrix <- take(matrix, choice("classes", "d", "calibration"))
  if (matrix == "d") {
    return(share_frame(c("LD", "svd"), x$svd, x$svd^2 / sum(x$svd^2)))
  }
  if (matrix == "calibration") {
    if (is.null(x$loo)) {
      stop_input("'matrix' must not be \"calibration\" for a sketch, which ",
                 "leaves no points out")
    }
    return(calibration_table(x$loo$posterior, x$grouping))
  }
  classes <- names(x$counts)
  wrong <- as.character(x$loo$class) != as.character(x$grouping)
  data.frame(
    class = classes, n = as.vector(x$counts), prior = as.vector(x$prior),
    error = if (is.null(x$loo)) NA_real_ else
      as.vector(tapply(wrong, factor(x$grouping, classes), mean)),
    x$means, row.names = NULL
  )
}

fit_facts.kme_fda <- function(x) {
  c(list(nobs = x$n, classes = length(x$counts), axes = ncol(x$scaling),
         ridge = x$ridge, intensity = x$intensity, sigma2 = x$sigma2,
         temperature = x$temperature, mixing = x$mixing, error = x$error,
         prior.error = prior_error(x)),
    kernel_columns(x$kernel))
}

fit_values.kme_fda <- function(x, newdata = NULL) {
  said <- if (!is.null(newdata)) predict(x, newdata) else
    c(list(x = sample_scores(x)), x$loo)
  data.frame(.class = said$class, prefixed(said$posterior, ".posterior_"),
             prefixed(said$x, "."), check.names = FALSE)
}

fit_picture.kme_fda <- function(object, type = NULL, n = 100, newdata = NULL) {
  plane <- identical(axes_of(object$sample), 2L)
  type <- check_type(type, c("regions", "scores"),
                     if (plane) "regions" else "scores")
  if (type == "regions" && !plane) {
    stop_input("'type' must not be \"regions\" unless the fit has two columns")
  }
  if (type == "regions") {
    picture_regions(object, take(n, count(2L)), newdata)
  } else {
    picture_discriminants(object, newdata)
  }
}

fda_title <- function(object) {
  paste0("Kernel Fisher discriminants", if (!is.null(object$error)) {
    paste0(" (leave-one-out error ", format(object$error, digits = 2), ")")
  })
}

picture_regions <- function(object, n, newdata) {
  points <- if (is.null(newdata)) known_rows(object$sample) else
    unscale_points(object$kernel, sample_newdata(object$sample, newdata,
                                                 object$layout)$z)
  x <- rbind(unname(sample_raw(object$sample)), unname(points))
  values_at <- \(z) {
    scores <- fda_scores(object, raw_points(object$sample, z))
    fda_values(fda_distance(scores, object$means), object$sigma2, object$prior)
  }
  surface <- surface_of(values_at, x, n)
  value <- matrix(surface$z, n^2)
  best <- max.col(value, "first")
  surface$z <- matrix(best, n)
  labels <- names(object$counts)
  # A class without points keeps its color, and its place in the legend.
  group <- if (is.null(newdata) && nrow(points)) {
    factor(object$grouping, labels)
  }
  classes <- length(labels)
  names <- axis_names(sample_raw(object$sample))
  borders <- lapply(utils::combn(classes, 2L, simplify = FALSE), \(pair) {
    border_layer(surface, value, pair, values_at)
  })
  new_picture(
    fda_title(object), names[1L], names[2L],
    c(list(do.call(new_layer, c("image", surface, list(
      zlim = c(0.5, classes + 0.5), col = tint(level_colors(classes)),
      level = factor(labels[best], labels)
    )))), borders, if (nrow(points)) list(points_layer(
      points, group, color = "grey20", main = TRUE
    ))), surface, flush = TRUE, key = level_entries(labels)
  )
}

# The layer of the line where two classes meet. Where a third class has a larger
# value than both, the line is not drawn.
border_layer <- function(surface, value, pair, values_at) {
  ahead <- value[, pair[1L]] - value[, pair[2L]]
  if (!all(is.finite(ahead)) || all(ahead == ahead[1L])) {
    return(NULL)
  }
  lines <- grDevices::contourLines(surface$x, surface$y,
                                   matrix(ahead, length(surface$x)),
                                   levels = 0)
  line <- do.call(rbind, lapply(lines, \(line) {
    there <- values_at(cbind(line$x, line$y))
    line$x[!max.col(there, "first") %in% pair] <- NA
    # The NA separates this line from the next one.
    cbind(c(line$x, NA), c(line$y, NA))
  }))
  if (length(line)) {
    new_layer("line", x = line[, 1L], y = line[, 2L], col = "grey20")
  }
}

# The scores on two axes, or a histogram of one axis. A sketch knows the mean
# scores of the classes only.
picture_discriminants <- function(object, newdata) {
  labels <- names(object$counts)
  bare <- is.null(newdata) && is.null(object$scores)
  said <- if (!is.null(newdata)) {
    predict(object, newdata)
  } else if (bare) {
    list(x = object$means, class = labels)
  } else {
    list(x = object$scores, class = object$grouping)
  }
  class <- factor(said$class, labels)
  value <- data.frame(said$x, class)
  plane <- ncol(said$x) > 1L
  if (!plane && !bare) {
    return(picture_axis(object, value))
  }
  xy <- cbind(said$x, class = class)[, 1:2]
  groups_picture(fda_title(object), xy, class, colnames(xy), value,
                 zero = c("v", if (plane) "h"), asp = if (plane) 1,
                 whole = if (!plane) "y")
}

# The histogram of scores on the only axis: the bars of the classes stand one
# above the other, and lines show where the class changes.
picture_axis <- function(object, value) {
  labels <- names(object$counts)
  colors <- level_colors(length(labels))
  score <- value$LD1
  breaks <- pretty(score, max(10, min(40, 2 * sqrt(length(score)))))
  counts <- unname(table(cut(score, breaks, include.lowest = TRUE),
                         value$class))
  above <- t(apply(counts, 1L, cumsum))
  bars <- lapply(seq_along(labels), \(class) {
    new_layer("bars", x0 = breaks[-length(breaks)], x1 = breaks[-1L],
              y0 = above[, class] - counts[, class], y1 = above[, class],
              col = colors[class], border = "white", level = labels[class])
  })
  at <- seq(breaks[1L], max(breaks), length.out = 2001L)
  best <- max.col(fda_values(fda_distance(matrix(at), object$means),
                             object$sigma2, object$prior), "first")
  step <- which(diff(best) != 0)
  new_picture(
    fda_title(object), "LD1", "points",
    c(bars, list(across_layer(h = 0, col = "black", lty = 1),
                 if (length(step)) across_layer(v = at[step], col = "black"))),
    value, whole = "y", key = level_entries(labels, "box")
  )
}

# A table of how often the class of the largest probability is the true one, in
# ten bins of equal counts (ties stay in one bin), with the exact interval of
# Clopper and Pearson. probability: n x classes, each row by a fit without its
# point; truth: the class of each point, by name.
calibration_table <- function(probability, truth) {
  n <- nrow(probability)
  best <- max.col(probability, "first")
  claimed <- probability[cbind(seq_len(n), best)]
  right <- best == match(truth, colnames(probability))
  # Probabilities that differ by rounding only are ties.
  bin <- ceiling(10 * rank(signif(claimed, 10L)) / n)
  counts <- as.vector(table(bin))
  hits <- as.vector(tapply(right, bin, sum))
  data.frame(
    claimed = as.vector(tapply(claimed, bin, mean)), hit = hits / counts,
    lower = stats::qbeta(0.025, hits, counts - hits + 1),
    upper = stats::qbeta(0.975, hits + 1, counts - hits), n = counts
  )
}
