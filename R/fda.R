#' Kernel Fisher discriminants
#'
#' Discriminant axes in the feature space of a kernel, with the ridge that
#' shrinkage of the kernel matrix gives, for two classes or more.
#'
#' With \eqn{M_c} the mean of the columns of the Gram matrix K in class c,
#' \eqn{M} their overall mean, and the within-class scatter \deqn{N = \sum_c K_c
#' (I - ee'/n_c) K_c',}{N = sum_c K_c (I - ee'/n_c) K_c',} the axes
#' \eqn{\alpha}{alpha} span \eqn{(N + rI)^{-1}(M_c - M)}{(N + rI)^(-1) (M_c -
#' M)}: with \eqn{D = [\sqrt{n_c}(M_c - M)]_c}{D = [sqrt(n_c) (M_c - M)]_c},
#' \eqn{R'R = N + rI} and the singular value decomposition \eqn{R'^{-1}D =
#' WSZ'}{R'^(-1) D = W S Z'}, \eqn{\alpha = \sqrt{n - C}\,R^{-1}W}{alpha =
#' sqrt(n - C) R^(-1) W}, so that \eqn{\alpha'(N + rI)\alpha = (n - C)I}{alpha'
#' (N + rI) alpha = (n - C) I}. For two classes \eqn{\alpha}{alpha} is
#' proportional to \eqn{(N + rI)^{-1}(M_1 - M_2)}{(N + rI)^(-1) (M_1 - M_2)}. A
#' point z has the scores \eqn{s(z) = \alpha'(k_z - M)}{s(z) = alpha' (k_z -
#' M)}, \eqn{k_z = (k(z, x_i))_i}. With the linear kernel and a ridge near 0
#' these are the linear discriminants of [MASS::lda()]. Unlike those, they
#' depend on the units of the columns: [scale()] them first, or in the formula,
#' `class ~ scale(a) + scale(b)`, which scales new points as the sample was.
#'
#' @section Ridge:
#' `"shrinkage"` takes \eqn{r = \lambda/(1 - \lambda) \cdot (\mathrm{tr}
#' K^c/(n-1))^2}{r = lambda/(1 - lambda) (tr Kc/(n - 1))^2} with
#' \eqn{\lambda}{lambda} the intensity of [shrink_gram()] at p = n - 1, which
#' knows no classes. N has the units of \eqn{K^2}{K^2}, so a multiple of the
#' kernel gives the same classes and posterior probabilities. At \eqn{\lambda =
#' 1}{lambda = 1} the ridge is `Inf`, which stands for the limit of large
#' ridges: \eqn{N + rI} is replaced by I, and the axes are combinations of the
#' \eqn{M_c - M}. As r grows, \eqn{\sqrt{r}\,\alpha}{sqrt(r) alpha} tends to
#' these. Where \eqn{\lambda}{lambda} is 0 or nearly so, and the ridge would be
#' rounding of N, it is \eqn{\sqrt\epsilon \max N_{ii}}{sqrt(eps) max N_ii}. A
#' small number such as 1e-3 (Mika et al.) depends on the scale of the
#' kernel and on n.
#'
#' @section Posterior probabilities:
#' The class scores are \eqn{\log\pi_c - \|s(z) - m_c\|^2/(2\sigma^2)}{log
#' pi_c - |s(z) - m_c|^2/(2 sigma^2)}, \eqn{m_c} the mean score of class c; the
#' posterior is their softmax. For the training points the spread around the
#' class means is at most 1 in each axis (for finite r), and nearly 0 where the
#' ridge is small or the classes are small, whatever it is for new points. So
#' \eqn{\sigma^2}{sigma^2} is the mean over the sample of \eqn{\|s_{-i}(x_i) -
#' m_{-i}\|^2}{|s_-i(x_i) - m_-i|^2} over the number of axes, in the fit without
#' point i and to the mean of its own class there: the spread of a new point,
#' that of the estimated mean and axes included. The ridge stays that of the
#' whole sample, as do prior and \eqn{\sigma^2}{sigma^2} in the posterior
#' probabilities of the points left out. All fits are computed in closed form.
#' In simulations this is the spread of new points on average to within a fifth
#' (a quarter for classes of two points), where 1 is about a third too small at
#' 30 points a class. The probabilities remain those of a normal cloud of one
#' spread for each class: if the scores have heavier tails they are still too
#' close to 0 and 1.
#'
#' @section Cost:
#' O(n^3): about 3 n^3 flops (N, its Cholesky factor and inverse, and one solve
#' with n right-hand sides for the leave-one-out fits) and O(n C^3) for many
#' classes, 48n^2 bytes; O(n C) for each new point in addition to its kernel
#' values. The leave-one-out distances lose digits as r falls to the rounding of
#' N; a ridge below that rounding, \eqn{n\epsilon \max N_{ii}}{n eps max N_ii},
#' is an error.
#'
#' @param x Points in rows: a numeric matrix, a data frame of numeric columns or
#'   a vector; or a [gram()].
#' @param grouping The class of each point, a factor or a vector, none missing;
#'   two classes or more of two points or more. Levels without points are left
#'   out with a warning.
#' @param kernel A kernel, positive definite; not with a `gram`.
#' @param ridge `"shrinkage"`, or r as a positive number, `Inf` allowed.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method by name; in `update()`, arguments to be changed.
#' @param prior Probabilities of the classes, in the order of the levels or with
#'   their names; by default the shares in the sample. They enter the posterior,
#'   not the axes.
#' @param formula `class ~ a + b` with numeric variables on the right.
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default.
#' @return An object of class `kme_fda`, a list with
#' \item{prior, counts, lev}{prior, number of points and names of the classes;
#'   `lev` has the empty ones too}
#' \item{scaling}{\eqn{\alpha}{alpha}, n rows, a column for each axis: C - 1, or
#'   fewer where the class means span less}
#' \item{means}{the mean scores \eqn{m_c}, a row for each class}
#' \item{svd}{\eqn{\sqrt{(n - C)/(C - 1)}\,S}{sqrt((n - C)/(C - 1)) S}: their
#'   squares are ratios of between- to within-class variance (for finite r), as
#'   in [MASS::lda()] with the class shares as prior; here neither they nor the
#'   axes depend on `prior`}
#' \item{scores, center}{the scores of the sample, n rows; \eqn{\alpha'M}{alpha'
#'   M}}
#' \item{ridge, intensity}{r, and \eqn{\lambda}{lambda}, from 0 to 1 (`NULL`
#'   where the ridge was given as a number)}
#' \item{sigma2}{\eqn{\sigma^2}{sigma^2}}
#' \item{loo}{leave-one-out results, a list: `class`, `posterior`, and
#'   `distance`, the squared distances to the class means, n by C}
#' \item{error}{the share of points whose class in `loo` is wrong}
#' \item{n, N}{number of points, `N` as in [MASS::lda()]}
#' \item{sample}{the sample: a list with the points `x` (`NULL` for kernel
#'   values), the `gram` if one was given, and its `kernel`}
#' \item{grouping, kernel, terms, response, arguments}{what was given}
#'
#' @section Methods:
#' `predict()` gives the classes of new points, `coef()` the axes, `plot()` the
#' regions of the classes or the scores (see [plot.kme_fda()]), `summary()` the
#' leave-one-out classes by true ones, and `update()` fits again with other
#' arguments.
#'
#' @references
#' Mika, S., Rätsch, G., Weston, J., Schölkopf, B. and Müller, K.-R. (1999).
#' Fisher discriminant analysis with kernels. *Neural Networks for Signal
#' Processing IX*, 41--48. \doi{10.1109/NNSP.1999.788121}
#'
#' Lancewicki, T. (2017). Regularization of the kernel matrix via covariance
#' matrix shrinkage estimation. Section V. \doi{10.48550/arXiv.1707.06156}
#' @seealso [shrink_gram()]; [mmd_test()] for whether classes differ at all.
#' @family operators
#' @examples
#' fit <- kme_fda(Species ~ Petal.Length + Petal.Width, iris)
#' fit
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
                            ridge = "shrinkage", ..., prior = NULL) {
  check_dots(...)
  if (missing(x)) stop_input("'x' must be given: the sample")
  given <- if (!missing(kernel)) check_kernel(kernel)
  if (missing(grouping)) {
    stop_input("'grouping' must be given: the class of each point")
  }
  arguments <- list(kernel = given, ridge = check_ridge(ridge), prior = prior)
  sample <- read_sample(x, given)
  n <- sample$n
  classes <- check_grouping(grouping, n)
  prior <- check_prior(prior, classes$counts)
  check_memory(n, n, "use fewer rows", copies = 6)
  fit <- fit_fda(sample_gram(sample)$K, classes, arguments$ridge)
  new_kme_fda(fit, sample, classes, prior, arguments)
}

#' @rdname kme_fda
#' @export
kme_fda.formula <- function(formula, data = NULL, subset, na.action, ...) {
  check_subset(subset)
  if ("grouping" %in% ...names()) {
    stop_input("'grouping' must not be given with a formula, whose left side ",
               "it is")
  }
  check_dot(formula)
  layout <- terms(formula, data = data)
  if (attr(layout, "response") == 0L) {
    stop_input("'formula' must have the classes on its left, as in class ~ a")
  }
  frame <- formula_frame(match.call(expand.dots = FALSE), layout,
                         missing(na.action), parent.frame())
  left <- call("~", attr(layout, "variables")[[2L]])
  left <- terms(stats::as.formula(left, environment(layout)))
  # With what scale() or poly() were fitted to, for new data.
  layout <- stats::delete.response(attr(frame, "terms"))
  points <- structure(frame[-1L], terms = layout)
  fit <- kme_fda.default(formula_matrix(layout, points),
                         grouping = frame[[1L]], ...)
  fit$terms <- keep_constants(layout, data)
  fit$response <- keep_constants(left, data)
  fit
}

new_kme_fda <- function(fit, sample, classes, prior, arguments) {
  lev <- names(classes$counts)
  rows <- rownames(sample$x)
  rownames(fit$scores) <- rows
  rownames(fit$means) <- lev
  q <- ncol(fit$scaling)
  sigma2 <- fda_spread(fit$distance[cbind(seq_along(classes$of), classes$of)],
                       q, fit$means)
  loo <- fda_classes(fit$distance, sigma2, prior, classes$lev, rows)
  loo$distance <- structure(fit$distance, dimnames = list(rows, lev))
  structure(
    c(list(prior = prior, counts = classes$counts),
      fit[c("means", "scaling", "svd", "scores", "center")],
      list(lev = classes$lev, N = sample$n, ridge = fit$ridge,
           intensity = fit$intensity, sigma2 = sigma2,
           error = mean(loo$class != lev[classes$of]), loo = loo,
           grouping = factor(lev[classes$of], classes$lev), n = sample$n,
           sample = sample, kernel = sample$kernel, arguments = arguments)),
    class = "kme_fda"
  )
}

# --- Checks ------------------------------------------------------------------

check_ridge <- function(ridge) {
  if (identical(ridge, "shrinkage")) {
    return(ridge)
  }
  if (!is.numeric(ridge) || length(ridge) != 1L || is.na(ridge) ||
        ridge <= 0) {
    stop_input("'ridge' must be \"shrinkage\" or a positive number, not ",
               describe(ridge))
  }
  as.double(ridge)
}

# list(of: the number of the class of each point; counts, named; lev: all
# levels, the empty ones too).
check_grouping <- function(grouping, n) {
  if (!is.atomic(grouping) || is.null(grouping) || length(grouping) != n) {
    stop_input(
      "'grouping' must be a factor or vector with the class of each of the ", n,
      " points, not ", describe(grouping),
      if (is.factor(grouping)) paste(" of length", length(grouping))
    )
  }
  absent <- is.na(as.character(grouping))
  if (any(absent)) {
    stop_input("'grouping' must have no missing values, not ", sum(absent),
               " NA")
  }
  grouping <- as.factor(grouping)
  lev <- levels(grouping)
  empty <- setdiff(lev, as.character(grouping))
  grouping <- droplevels(grouping)
  counts <- tabulate(grouping, nlevels(grouping))
  names(counts) <- levels(grouping)
  if (length(counts) < 2L) {
    stop_input("'grouping' must have at least 2 classes, not only '",
               names(counts), "'")
  }
  if (min(counts) < 2L) {
    single <- names(counts)[counts < 2L]
    stop_input(
      "'grouping' must have at least 2 points in each class, not 1 in ",
      paste0("'", utils::head(single, 3L), "'", collapse = ", "),
      if (length(single) > 3L) paste(" and", length(single) - 3L, "more")
    )
  }
  if (length(empty)) {
    warn_kernmean("'grouping' has classes without points, which are left out: ",
                  paste0("'", empty, "'", collapse = ", "))
  }
  list(of = as.integer(grouping), counts = counts, lev = lev)
}

check_prior <- function(prior, counts) {
  lev <- names(counts)
  if (is.null(prior)) {
    return(counts / sum(counts))
  }
  if (!is.numeric(prior) || length(prior) != length(lev)) {
    stop_input("'prior' must be ", length(lev), " probabilities, one for each ",
               "class, not ", describe(prior))
  }
  check_finite(prior, "prior")
  if (any(prior < 0) || abs(sum(prior) - 1) > 1e-6) {
    stop_input("'prior' must be non-negative numbers that sum to 1, not ",
               toString(format_number(unname(prior))))
  }
  if (!is.null(names(prior))) {
    if (!setequal(names(prior), lev)) {
      quoted <- \(names) paste0("'", names, "'", collapse = ", ")
      stop_input("'prior' must have the names of the classes, ",
                 quoted(lev), ", not ", quoted(names(prior)))
    }
    prior <- prior[match(lev, names(prior))]
  }
  stats::setNames(as.double(prior), lev)
}

# --- The fit -----------------------------------------------------------------

# list(scaling, means, svd, scores, center, ridge, intensity, distance) from the
# Gram matrix.
fit_fda <- function(k, classes, ridge) {
  n <- nrow(k)
  # Squares of K must be numbers; alpha is in units of 1/K, r of K^2.
  unit <- power_below(max(abs(k)))
  intensity <- NULL
  given <- ridge
  if (identical(ridge, "shrinkage")) {
    centered <- center_matrix(k)$k / unit
    intensity <- shrinkage_intensity(diag(centered), sum(centered^2), n - 1, n)
    ridge <- intensity / (1 - intensity) * (sum(diag(centered)) / (n - 1))^2
    if (intensity == 1) ridge <- Inf
  } else {
    ridge <- ridge / unit / unit
  }
  k <- k / unit
  counts <- unname(classes$counts)
  own <- outer(classes$of, seq_along(counts), `==`) + 0
  m <- k %*% (own / rep(counts, each = n))
  overall <- drop(m %*% counts) / n
  m <- m - overall
  within <- k - (m + overall)[, classes$of]
  found <- fda_root(within, ridge, unit, is.null(intensity))
  fit <- fda_axes(k, found$root, m, overall, counts)
  fit$scaling <- fit$scaling / unit
  c(fit, list(
    ridge = if (is.null(intensity)) given else found$ridge * unit * unit,
    intensity = intensity,
    distance = fda_left_out(found$root, within, m, classes$of, counts,
                            is.finite(found$ridge))
  ))
}

# list(root: R with R'R = N + rI, that of I for r = Inf; ridge). Where shrinkage
# asks for less than rounding allows, r is that much; a number given must be
# more.
fda_root <- function(within, ridge, unit, given) {
  if (ridge == Inf) {
    return(list(root = diag(nrow(within)), ridge = ridge))
  }
  scatter <- tcrossprod(within)
  rounding <- nrow(within) * .Machine$double.eps * max(diag(scatter))
  if (!given && ridge <= rounding) {
    ridge <- sqrt(.Machine$double.eps) * max(diag(scatter))
  }
  root <- if (ridge > rounding) .Call(C_r_cholesky, scatter, ridge)
  if (is.null(root)) {
    stop_kernmean(
      "numeric", "the within-class scatter with the ridge ",
      format_number(ridge * unit * unit), " is not positive definite to ",
      "rounding; choose 'ridge' well above ",
      format_number(rounding * unit * unit, 2L)
    )
  }
  list(root = root, ridge = ridge)
}

fda_axes <- function(k, root, m, overall, counts) {
  n <- nrow(k)
  d <- m * rep(sqrt(counts), each = n)
  most <- length(counts) - 1L
  s <- svd(backsolve(root, d, transpose = TRUE), nu = most, nv = 0L)
  kept <- which(s$d[seq_len(most)] > sqrt(n * .Machine$double.eps) * s$d[1L])
  # What differences of equal means leave is rounding of the means.
  if (!length(kept) ||
        max(abs(d)) <= n * .Machine$double.eps * max(abs(overall))) {
    stop_input("the classes must differ in their means of the kernel values; ",
               "all are the same to rounding")
  }
  scaling <- fix_signs(
    sqrt(n - length(counts)) * backsolve(root, s$u[, kept, drop = FALSE])
  )
  colnames(scaling) <- paste0("LD", kept)
  center <- drop(overall %*% scaling)
  list(
    scaling = scaling, means = crossprod(m, scaling),
    svd = sqrt((n - length(counts)) / most) * s$d[kept],
    scores = k %*% scaling - rep(center, each = n), center = center
  )
}

# Squared distances of each point to the class means in the fit without it, n x
# C, at the same ridge. With A = N + rI, P its inverse and d = k_i - M_c for the
# point's own class c (n_c points), the scatter without point i is that of the
# other rows and columns less n_c/(n_c - 1) dd', and M_c becomes M_c - d/(n_c -
# 1). All vectors are combinations of the columns of X = [M_1 - M, ..., M_C - M,
# d]; without row and column i the products are
#   G = X'PX - (X'Pe_i)(e_i'PX)/P_ii,
# and Sherman-Morrison gives those with the scatter left out. With T the
# coefficients of D and w those of k_i - M_c, u = T'Gw and E = T'GT, the squared
# distance on the axes is (n - 1 - C) u'E^+ u, whatever their rotation.
# `scatter` says whether A has N in it.
fda_left_out <- function(root, within, m, of, counts, scatter) {
  n <- nrow(within)
  classes <- length(counts)
  p <- chol2inv(root)
  pm <- p %*% m
  means <- crossprod(m, pm)
  cross <- crossprod(within, pm)
  square <- colSums(backsolve(root, within, transpose = TRUE)^2)
  at <- cbind(pm, colSums(p * within))
  pivot <- diag(p)
  last <- classes + 1L
  t(vapply(seq_len(n), \(i) {
    g <- rbind(cbind(means, cross[i, ]), c(cross[i, ], square[i]))
    g <- g - tcrossprod(at[i, ]) / pivot[i]
    own <- of[i]
    if (scatter) {
      times <- counts[own] / (counts[own] - 1)
      g <- g + tcrossprod(g[, last]) * times / (1 - times * g[last, last])
    }
    centers <- diag(1, last, classes)
    centers[last, own] <- -1 / (counts[own] - 1)
    left <- counts - (seq_len(classes) == own)
    spread <- (centers - drop(centers %*% left) / (n - 1)) *
      rep(sqrt(left), each = last)
    point <- numeric(last)
    point[c(own, last)] <- 1
    e <- eigen(crossprod(spread, g %*% spread), symmetric = TRUE)
    size <- crossprod(abs(spread), abs(g) %*% abs(spread))
    kept <- which(e$values[-classes] >
                    n * .Machine$double.eps * max(e$values[1L], size))
    u <- crossprod(spread, g %*% (point - centers))
    u <- crossprod(e$vectors[, kept, drop = FALSE], u) / sqrt(e$values[kept])
    (n - 1 - classes) * colSums(u^2)
  }, numeric(classes)))
}

# sigma^2 from the squared distances to the own class on q axes; not 0, so that
# the nearest mean is what is left where nothing varies.
fda_spread <- function(distance, q, means) {
  max(mean(distance) / q, .Machine$double.eps * max(rowSums(means^2)))
}

# log pi_c - |s - m_c|^2 / (2 sigma^2).
fda_values <- function(distance, sigma2, prior) {
  rep(log(prior), each = nrow(distance)) - distance / (2 * sigma2)
}

# list(class, posterior).
fda_classes <- function(distance, sigma2, prior, lev, rows) {
  value <- fda_values(distance, sigma2, prior)
  value <- exp(value - apply(value, 1L, max))
  posterior <- value / rowSums(value)
  dimnames(posterior) <- list(rows, names(prior))
  best <- max.col(posterior, "first")
  list(class = factor(names(prior)[best], lev), posterior = posterior)
}

# Squared distances of scores to the class means, m x C.
fda_distance <- function(scores, means) {
  rows <- lapply(seq_len(nrow(means)), \(c) {
    rowSums((scores - rep(means[c, ], each = nrow(scores)))^2)
  })
  matrix(unlist(rows), nrow(scores))
}

# --- Methods -----------------------------------------------------------------

#' @rdname kme_fda
#' @param object A fit.
#' @param newdata New points, as for [predict.kme()]: with the columns of `x`,
#'   or a data frame for a fit by formula; for a fit on [as_gram()] their m by n
#'   kernel values. Without it, the points of the sample: in the fit, not left
#'   out.
#' @param dimen Number of axes to be used, all by default.
#' @return `predict()` returns `list(class, posterior, x)` as for
#'   [MASS::lda()], `x` the scores.
#' @export
predict.kme_fda <- function(object, newdata, prior = object$prior, dimen,
                            ...) {
  check_dots(...)
  prior <- check_prior(prior, object$counts)
  axes <- ncol(object$scaling)
  if (!missing(dimen)) axes <- min(axes, check_count(dimen, "dimen"))
  scores <- if (missing(newdata)) {
    object$scores
  } else {
    fda_scores(object, sample_newdata(object$sample, newdata, object$terms))
  }
  scores <- scores[, seq_len(axes), drop = FALSE]
  distance <- fda_distance(scores,
                           object$means[, seq_len(axes), drop = FALSE])
  c(fda_classes(distance, object$sigma2, prior, object$lev, rownames(scores)),
    list(x = scores))
}

fda_scores <- function(object, new) {
  alpha <- object$scaling
  raw <- sample_at(object$sample, new, alpha)
  if (!all(is.finite(raw))) {
    stop_kernmean("numeric",
                  "scores overflow; rescale the columns of 'newdata'")
  }
  dimnames(raw) <- list(new$names, colnames(alpha))
  raw - rep(object$center, each = nrow(raw))
}

#' @export
coef.kme_fda <- function(object, ...) {
  check_dots(...)
  object$scaling
}

#' @rdname kme_fda
#' @export
update.kme_fda <- function(object, ...) {
  changes <- list(...)
  if ("data" %in% names(changes) && !is.null(object$terms) &&
        !"grouping" %in% names(changes)) {
    changes$grouping <- read_response(object$response, changes$data)
  }
  found <- change_arguments(object, changes)
  if (found$same_columns) {
    found$arguments$grouping <- object$grouping
  }
  # Classes without points were named when the fit was made.
  quiet <- !"grouping" %in% names(found$changes) &&
    length(object$lev) > length(object$counts)
  fit <- withCallingHandlers(
    refit(kme_fda.default, object, found),
    kernmean_warning = \(w) {
      if (quiet && grepl("classes without points", conditionMessage(w))) {
        invokeRestart("muffleWarning")
      }
    }
  )
  if (found$same_columns) {
    fit$response <- object$response
  }
  fit
}

#' @rdname kme_fda
#' @param digits Significant digits.
#' @export
print.kme_fda <- function(x, digits = digits_shown(), ...) {
  number <- \(value) format(value, digits = digits)
  # A class stays with its number where the line breaks (\r has no width).
  classes <- strwrap(paste0(
    describe_sample(x$sample), ", ", length(x$counts), " classes: ",
    shorten(paste0(names(x$counts), "\r(", x$counts, ")"))
  ), 76, exdent = 2)
  share <- x$svd^2 / sum(x$svd^2)
  say(
    "Kernel Fisher discriminants", gsub("\r", " ", classes, fixed = TRUE),
    kernel_lines(x$kernel),
    paste0("ridge ", number(x$ridge), if (is.null(x$intensity)) {
      " (given)"
    } else {
      paste0(" (shrinkage, intensity = ", number(x$intensity), ")")
    }),
    if (length(share) == 1L) "1 axis" else paste0(
      length(share), " axes, shares of the trace ",
      shorten(format_number(share, digits), 5L)
    ),
    paste0("leave-one-out error ", number(x$error), " (",
           sum(x$loo$class != x$grouping), " of ", x$n, ")")
  )
  invisible(x)
}

#' @rdname kme_fda
#' @export
summary.kme_fda <- function(object, ...) {
  check_dots(...)
  table <- table(true = droplevels(object$grouping),
                 predicted = factor(object$loo$class, names(object$counts)))
  structure(list(fit = object, table = table), class = "summary.kme_fda")
}

#' @export
print.summary.kme_fda <- function(x, digits = digits_shown(), ...) {
  print(x$fit, digits = digits)
  cat("\nLeave-one-out classes:\n")
  print(x$table)
  cat("\nMean scores of the classes (spread of a new point: ",
      format(sqrt(x$fit$sigma2), digits = digits), "):\n", sep = "")
  print(x$fit$means, digits = digits)
  invisible(x)
}
