# Marginalized estimators (MKME, MMKME): each point is replaced by a normal
# distribution around it, N(x_i, diag(e)), and the estimate is the mean of their
# embeddings. The sections and inner products stay in closed form: for RBF
# kernels with theta^2 + e in place of theta^2, for polynomial kernels up to
# degree 3 by the moments of the normal distribution.

#' Weights of a kernel mean on its points
#'
#' The estimate as a combination of the kernel's sections at the points of the
#' sample, \eqn{\sum_i \beta_i k(x_i, \cdot)}{sum_i beta_i k(x_i, .)}: exactly
#' for most estimators, as the nearest or as a second-order one for the
#' marginalized ones (`"mkme"`, `"mmkme"`), which are no such combination.
#'
#' With the marginalized embedding \eqn{\tilde\mu}{mu}, the Gram matrix
#' \eqn{K} and its pseudo-inverse \eqn{K^+}{K^+}:
#' \describe{
#'   \item{`"projection"`}{\eqn{\beta = K^+ \tilde\mu(x)}{beta = K^+ mu(x)}: the
#'     orthogonal projection on the span of the sample, the nearest of all
#'     combinations. For any kernel.}
#'   \item{`"taylor"`}{the second-order expansion of the kernel in the noise,
#'     then projected: for noise with variances \eqn{e_l}{e_l} and an RBF
#'     kernel, \eqn{\beta = (1 - \sum_l e_l/(2\theta_l^2)) 1_n + K^+ G 1_n}{
#'     beta = (1 - sum_l e_l/(2 theta_l^2)) 1_n + K^+ G 1_n}, \eqn{G_{ij} =
#'     k(x_i, x_j) \sum_l e_l (x_{il} - x_{jl})^2/(2\theta_l^4)}{G_ij = k(x_i,
#'     x_j) sum_l e_l (x_il - x_jl)^2/(2 theta_l^4)}. Its distance to the
#'     projection falls with the square of the noise. For RBF kernels.}
#' }
#'
#' The pseudo-inverse is that of the spectrum of \eqn{K}, where eigenvalues
#' below \eqn{n \epsilon \gamma_1}{n eps gamma_1} count as 0 (\eqn{\gamma_1}{
#' gamma_1} the largest of them, \eqn{\epsilon}{eps} the machine precision).
#' Where eigenvalues are small but above it, the weights vary much with little
#' change to the embedding.
#'
#' Theorems 1 and 2 of Xia et al. print \eqn{\beta = (\theta^2 +
#' d\sigma^2)/(2\theta^2) 1_n - d\sigma^2/(2\theta^4) K^{-1}K'1_n}{beta =
#' (theta^2 + d sigma^2)/(2 theta^2) 1_n - d sigma^2/(2 theta^4) K^(-1) K' 1_n}
#' (\eqn{K'}{K'} with the squared distance as a factor), which cannot be:
#' without noise it is half the KME. The form above corrects the constant, the
#' signs and a factor d.
#'
#' @param fit A fit of [kme()] without a target.
#' @param type `"projection"` or `"taylor"`; fits that are not marginalized have
#'   weights already, and these are returned.
#' @return The n weights, named by the rows of the sample.
#' @details Stores \eqn{K}{K}: 16n^2 bytes and about 9n^3 flops for its
#' spectrum, once for all fits on one [gram()].
#' @references
#' Xia, X., Shan, S., Gong, M., Wang, N., Gao, F., Wei, H. and Liu, T. (2021).
#' Kernel mean estimation by marginalized corrupted distributions. Theorems 1
#' and 2. \doi{10.48550/arXiv.2107.04855}
#' @family kernel means
#' @examples
#' x <- scale(iris[1:30, 1:4])
#' fit <- kme(x, kernel_rbf(), "mkme")
#' z <- x[1:3, ] + 0.1
#' linear <- kme(x, fit$kernel, weights = as_weights(fit))
#' cbind(marginalized = predict(fit, z), projection = predict(linear, z))
#' kme_distance(fit, linear)
#' @export
as_weights <- function(fit, type = c("projection", "taylor")) {
  check_kme(fit, "fit")
  type <- check_choice(type, c("projection", "taylor"), "type")
  if (!is.null(fit$target)) {
    stop_input(
      "'fit' must have no target, which is not a combination of its points"
    )
  }
  noise <- effective_noise(fit)
  if (type == "taylor" && !is.null(fit$noise) && fit$kernel$family != "rbf") {
    stop_input(
      "'type' must be \"projection\" for polynomial kernels, not \"taylor\""
    )
  }
  weights <- fit$weights
  if (!is.null(noise)) {
    g <- if (is.null(fit$gram)) gram(fit$x, fit$kernel) else fit$gram
    weights <- if (type == "projection") {
      solve_spectrum(g, fit$fitted)
    } else {
      taylor_weights(g, noise)
    }
  }
  stats::setNames(weights, rownames(fit$x))
}

# K^+ b
solve_spectrum <- function(g, b) {
  s <- spectrum(g, "vectors")
  inverse <- ifelse(s$values > 0, 1 / s$values, 0)
  drop(s$vectors %*% (inverse * crossprod(s$vectors, b)))
}

taylor_weights <- function(g, noise) {
  n <- nrow(g$x)
  theta2 <- rep_len(g$kernel$bandwidth, ncol(g$x))^2
  # G 1_n from products with K: (a - b)^2 = a^2 - 2ab + b^2.
  u <- sweep(g$x, 2, colMeans(g$x)) %*%
    diag(sqrt(noise / 2) / theta2, length(noise))
  u2 <- rowSums(u^2)
  k <- g$K %*% cbind(1, u2, u) / n
  moved <- u2 * k[, 1] + k[, 2] - 2 * rowSums(u * k[, -(1:2), drop = FALSE])
  (1 - sum(noise / (2 * theta2))) / n + solve_spectrum(g, moved)
}

# --- Arguments -------------------------------------------------------------

marginal_estimators <- c("mkme", "mmkme")

check_marginal <- function(sample, estimator) {
  if (is.null(sample$x)) {
    stop_input(
      "'x' must hold points for estimator \"", estimator,
      "\", not a matrix of kernel values"
    )
  }
  kernel <- sample$kernel
  if (kernel$family != "rbf" &&
        !(kernel$family == "poly" && kernel$degree <= 3L)) {
    stop_input(
      "'kernel' must be an RBF, linear or polynomial kernel of degree 2 or 3 ",
      "for estimator \"", estimator, "\", not ", format_kernel(kernel)
    )
  }
  # Variances are compared with theta^2, up to exp(8) of it and its square.
  theta2 <- range(1, kernel$bandwidth^2)
  if (theta2[1L] < 1e-150 || theta2[2L] > 1e150) {
    stop_kernmean(
      "numeric", "squared bandwidths overflow; rescale the columns of 'x'"
    )
  }
}

# The d variances, or NULL where they are to be selected. Names are those of
# the columns.
check_noise <- function(noise, estimator, x) {
  if (is.null(noise)) {
    return(NULL)
  }
  d <- ncol(x)
  lengths <- if (estimator == "mkme") 1L else c(1L, d)
  ok <- is.numeric(noise) && length(noise) %in% lengths &&
    all(is.finite(noise)) && all(noise >= 0)
  if (!ok) {
    bad <- if (is.numeric(noise)) {
      noise[!is.finite(noise) | noise < 0]
    }
    stop_input(
      "'noise' must be ",
      if (estimator == "mkme") {
        "one non-negative number, the variance"
      } else {
        paste0("non-negative numbers, one or ", d,
               " (a variance for each column)")
      },
      ", not ", if (length(bad)) format(bad[1L]) else describe(noise)
    )
  }
  if (!is.null(names(noise)) && !is.null(colnames(x)) && length(noise) > 1L) {
    if (!setequal(names(noise), colnames(x))) {
      stop_input(
        "'noise' must have the names of the columns, ",
        paste0("'", colnames(x), "'", collapse = ", "), ", or none"
      )
    }
    noise <- noise[colnames(x)]
  }
  rep_len(as.double(noise), d)
}

# --- The estimators --------------------------------------------------------

fit_marginal <- function(sample, estimator, noise) {
  d <- ncol(sample$x)
  found <- list(noise = noise, score = NULL, minimum = NULL, reference = NULL,
                border = FALSE)
  if (is.null(noise)) {
    found <- marginal_noise(sample$x, sample$kernel, estimator)
  }
  fit <- list(
    weights = rep(1 / sample$n, sample$n), lambda = 0,
    noise = if (estimator == "mkme") {
      found$noise[1L]
    } else {
      stats::setNames(found$noise, colnames(sample$x))
    }
  )
  part <- embedding_parts(
    c(fit, list(x = sample$x, kernel = sample$kernel))
  )[[1L]]
  fit$fitted <- part_at(part, sample$kernel, sample$x)
  fit$norm2 <- max(0, norm2_part(part, sample$kernel))
  c(fit, found[c("score", "minimum", "reference", "border")])
}

# The noise as d variances, or NULL if the embedding does not depend on it.
effective_noise <- function(object) {
  noise <- object$noise
  linear <- object$kernel$family == "poly" && object$kernel$degree == 1L
  if (is.null(noise) || linear || all(noise == 0)) {
    return(NULL)
  }
  rep_len(unname(noise), ncol(object$x))
}

# --- Selection -------------------------------------------------------------

# The variances of smallest leave-one-out score for the points x and a fitted
# kernel: list(noise: d variances, score: the curve for one variance, minimum,
# reference: the score without noise, border).
marginal_noise <- function(x, kernel, estimator) {
  score <- marginal_score(x, kernel)
  shared <- select_shared(score)
  if (estimator == "mkme") shared else select_each(score, shared)
}

# The leave-one-out score as functions of the d variances:
#   rho' - 2 (sum L - tr L)/(n(n-1)) + ((1-2/n) sum Q + tr(Q)/n)/(n-1)^2,
# L_ij = E k(x_i, x~_j), Q_ij = E k(x~_i, x~_j), rho' = mean k(x_i, x_i).
marginal_score <- function(x, kernel) {
  equal <- all(apply(x, 2, \(column) all(column == column[1L])))
  score <- if (kernel$family == "rbf") {
    rbf_score(x, kernel)
  } else {
    poly_score(x, kernel)
  }
  # Equal points have no score to lower; rounding is not to choose for them.
  c(score, list(d = ncol(x), equal = equal))
}

# value(e), and evaluate(e) = list(value, gradient). Each sum of a kernel with
# bandwidths v = theta^2 + e or theta^2 + 2e is one fold; the gradient takes the
# quadratic forms of the columns besides:
#   d F/d v_l = -F/(2 v_l) + D_l/(2 v_l^2),
#   D_l = sum_ij W_ij (x_il - x_jl)^2 = 2(sum_i x_il^2 (We)_i - x_l'W x_l).
rbf_score <- function(x, kernel) {
  n <- nrow(x)
  theta2 <- rep_len(kernel$bandwidth, ncol(x))^2
  # Noise widens the kernel: what is checked here holds for all bandwidths.
  source <- native_source(kernel, x)
  centred <- sweep(x, 2, colMeans(x))
  squares <- centred^2
  sums <- function(v, gradient) {
    source[[1L]][[5L]] <- 1 / sqrt(v)
    height <- prod(sqrt(theta2 / v))
    rows <- .Call(C_r_kernel_rows, source)
    total <- height * sum(rows)
    trace <- n * height
    slope <- if (gradient) {
      forms <- .Call(C_r_kernel_quad, source, centred, centred)
      spread <- 2 * height * (drop(crossprod(squares, rows)) - forms)
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
  list(
    value = \(e) at(e)$value, evaluate = \(e) at(e, TRUE),
    scale = mean(theta2)
  )
}

# With a polynomial kernel the score is quadratic in each variance apart from
# the others: reference + sum_l (linear_l e_l + square_l e_l^2).
poly_score <- function(x, kernel) {
  n <- nrow(x)
  rho <- mean(fold_rows(kernel, x)) / n
  varrho <- mean(fold_diagonal(kernel, x))
  reference <- skmse_score(0, n, rho, varrho, 0, 0)
  terms <- poly_terms(x, kernel)
  list(
    value = \(e) reference + sum(e * (terms$linear + e * terms$square)),
    evaluate = \(e) list(
      value = reference + sum(e * (terms$linear + e * terms$square)),
      gradient = terms$linear + 2 * e * terms$square
    ),
    scale = mean(colMeans(sweep(x, 2, colMeans(x))^2)) * n / (n - 1),
    terms = terms
  )
}

# From E over x~_i = x_i + noise, with a_ij = x_i'x_j + offset: degree 2 adds
# x_i'Ex_i to L_ij, and x_i'Ex_i + x_j'Ex_j + tr(E^2) to Q_ij; degree 3 three
# times this times a_ij, and 6 x_i'E^2x_j to Q_ij.
poly_terms <- function(x, kernel) {
  n <- nrow(x)
  d <- ncol(x)
  if (kernel$degree < 3L) {
    return(list(linear = numeric(d), square = rep(kernel$degree - 1, d)))
  }
  m <- colMeans(x)
  squares <- x^2
  lengths <- rowSums(squares)
  linear <- 6 * drop(crossprod(squares, lengths - drop(x %*% m))) / (n - 1)^2
  total <- 3 * (sum(m^2) + kernel$offset) + 6 * m^2
  trace <- 3 * (mean(lengths) + kernel$offset) + 6 * colMeans(squares)
  list(linear = linear, square = (n * (n - 2) * total + trace) / (n - 1)^2)
}

# One variance for all columns (MKME).
select_shared <- function(score) {
  d <- score$d
  along <- \(s) vapply(s, \(one) score$value(rep(one, d)), numeric(1))
  reference <- along(0)
  none <- list(noise = numeric(d), score = NULL, minimum = reference,
               reference = reference, border = FALSE)
  if (score$equal || !(score$scale > 0)) {
    return(none)
  }
  grid <- score$scale * exp(-15:8)
  if (is.null(score$terms)) {
    found <- search_log(along, grid)
  } else {
    at <- lowest(sum(score$terms$linear), sum(score$terms$square))
    found <- list(at = at, minimum = along(at), border = FALSE,
                  path = c(grid, at), values = c(along(grid), along(at)))
  }
  if (found$minimum >= reference) {
    found$at <- 0
    found$minimum <- reference
  }
  list(
    noise = rep(found$at, d),
    score = score_curve(found$path, found$values, "noise"),
    minimum = found$minimum, reference = reference, border = found$border
  )
}

# Where linear e + square e^2 is smallest on e >= 0; square >= 0, and where it
# is 0 so is linear.
lowest <- function(linear, square) {
  ifelse(square > 0, pmax(0, -linear / (2 * square)), 0)
}

# One variance for each column (MMKME), from the best single one: in units of
# it, and with the score in units of what it gains, so that the stopping rule
# sees the differences.
select_each <- function(score, shared) {
  shared["score"] <- list(NULL)
  if (!is.null(score$terms)) {
    noise <- lowest(score$terms$linear, score$terms$square)
    minimum <- score$value(noise)
    best <- list(noise = noise, minimum = minimum)
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

descend <- function(score, shared) {
  unit <- shared$noise[1L]
  gain <- shared$reference - shared$minimum
  last <- NULL
  # optim() asks for value and gradient in two calls at one point.
  at <- function(u) {
    if (!identical(u, last$u)) {
      last <<- c(list(u = u), score$evaluate(unit * u))
    }
    last
  }
  found <- stats::optim(
    rep(1, score$d), \(u) (at(u)$value - shared$reference) / gain,
    \(u) at(u)$gradient * unit / gain, method = "L-BFGS-B", lower = 0
  )
  list(noise = unit * found$par,
       minimum = found$value * gain + shared$reference)
}

# --- Embeddings ------------------------------------------------------------

# With noise of variances `noise_total` (of one side, or the sum of both) an RBF
# kernel is `height` times `kernel`, which is wider.
marginal_kernel <- function(kernel, noise_total, d) {
  theta <- rep_len(kernel$bandwidth, d)
  wide <- sqrt(theta^2 + noise_total)
  kernel$bandwidth <- wide
  kernel$rule <- NULL
  list(kernel = kernel, height = prod(theta / wide))
}

# sum_j weights_j E k(z~_i, x~_j) for z~_i from N(z_i, diag(at_z)) and x~_j from
# N(x_j, diag(at_x)), independent; NULL is no noise.
noisy_apply <- function(kernel, z, x, weights, at_z = NULL, at_x = NULL) {
  other <- if (identical(z, x)) NULL else x
  if (is.null(at_z) && is.null(at_x)) {
    return(fold_apply(kernel, z, other, weights))
  }
  if (is.null(at_z)) at_z <- numeric(ncol(z))
  if (is.null(at_x)) at_x <- numeric(ncol(x))
  if (kernel$family == "rbf") {
    wide <- marginal_kernel(kernel, at_z + at_x, ncol(x))
    return(wide$height * fold_apply(wide$kernel, z, other, weights))
  }
  fold_apply(kernel, z, other, weights) +
    poly_noise(kernel, z, x, weights, at_z, at_x)
}

# What the noise adds: with M = z'x + b, V = z'E_x z + x'E_z x + tr(E_z E_x),
# degree 2: V; degree 3: 3 M V + 6 z'E_z E_x x.
poly_noise <- function(kernel, z, x, weights, at_z, at_x) {
  if (kernel$degree == 1L) {
    return(numeric(nrow(z)))
  }
  own <- drop(z^2 %*% at_x) + sum(at_z * at_x)
  theirs <- weights * drop(x^2 %*% at_z)
  if (kernel$degree == 2L) {
    return(sum(weights) * own + sum(theirs))
  }
  mean <- drop(crossprod(x, weights))
  moved <- drop(crossprod(x, theirs)) + 2 * at_z * at_x * mean
  3 * own * (drop(z %*% mean) + kernel$offset * sum(weights)) +
    3 * (drop(z %*% moved) + kernel$offset * sum(theirs))
}

# The squared norm of sum_i weights_i E k(x~_i, .)
noisy_norm2 <- function(kernel, x, weights, noise) {
  if (is.null(noise)) {
    fold_quad(kernel, x, weights)
  } else if (kernel$family == "rbf") {
    wide <- marginal_kernel(kernel, 2 * noise, ncol(x))
    wide$height * fold_quad(wide$kernel, x, weights)
  } else {
    sum(weights * noisy_apply(kernel, x, x, weights, noise, noise))
  }
}

# --- print -----------------------------------------------------------------

describe_noise <- function(object, digits) {
  number <- \(x) format(x, digits = digits)
  how <- if (is.null(object$select)) "given" else select_title[[object$select]]
  noise <- object$noise
  theta <- object$kernel$bandwidth
  c(
    paste0(
      if (object$estimator == "mkme") {
        paste0("noise sigma^2 = ", number(noise),
               if (length(theta) == 1L) {
                 paste0(" = ", number(noise / theta^2), " theta^2")
               })
      } else if (all(noise == noise[1L])) {
        paste0("noise ", number(noise[[1L]]), " in every column")
      } else {
        paste0(
          "noise from ", number(min(noise)), " to ", number(max(noise)), ", ",
          sum(noise == 0), " of ", length(noise), " exactly 0"
        )
      },
      " (", how, ")"
    ),
    if (object$kernel$family == "poly" && object$kernel$degree == 1L) {
      "a linear kernel sees no noise: the estimate is the KME"
    } else if (all(noise == 0)) {
      "without noise the estimate is the KME"
    } else if (object$border) {
      "noise is on the border of the range searched"
    },
    describe_score(object, number)
  )
}
