# Covariance and cross-covariance operators of sketches. In feature coordinates
# they are matrices, C^c of one variable and C_xy^c = W_S'(cross/n)W_T less what
# centering takes of two.

#' @rdname kme_cov
#' @export
kme_cov.kme_sketch <- function(x, y, ..., estimator = "kme", ncomp = NULL,
                               center = "kme") {
  refuse_for_sketch(...names(), c("kernel_x", "kernel_y", "kernel", "scale"))
  if (!missing(y)) {
    stop_input("'y' must be missing when 'x' is a sketch; one of two ",
               "variables is made by kme_sketch(y ~ x) or kme_sketch(x, y = y)")
  }
  asked <- request(kme_cov_sketch_arguments)
  estimator <- asked$estimator
  count <- length(x$landmarks)
  centers <- read_centers(center, count)
  centered <- Map(\(l, center) centered_sample(sketch_sample(x, l), center),
                  seq_len(count), centers)
  warn_lost(lapply(centered, `[[`, "sample"),
            if (count > 1L) variable_labels(x))
  fit <- if (count == 1L) {
    sketch_covariance(centered[[1L]], estimator)
  } else {
    sketch_cross_covariance(x, centered, estimator)
  }
  # There is no weight for each row.
  fit["weights"] <- list(NULL)
  fit$variables <- keep_centered(lapply(x$landmarks, `[[`, "variable"),
                                 centered)
  fit$variables <- name_variables(fit$variables, variable_labels(x))
  fit <- new_kme_cov(fit, estimator, asked$ncomp, stored(asked), FALSE)
  fit$n <- x$n
  fit
}

kme_cov_sketch_arguments <- door_table(
  "kme_cov.kme_sketch", estimator = read_operator, ncomp = maybe(count()),
  center = anything
)

# Arguments that a sketch has settled; `given`: the names of those given.
refuse_for_sketch <- function(given, settled) {
  given <- intersect(settled, given)
  if (length(given)) {
    stop_input("'", given[1L], "' must not be given when 'x' is a sketch")
  }
}

sketch_covariance <- function(centered, estimator) {
  what <- "a covariance operator"
  operator <- centered_moments(centered, what)
  shrinkage <- sketch_shrinkage(centered, operator, estimator, "estimator")
  share <- if (is.null(shrinkage)) 1 else 1 - shrinkage$alpha
  pairs <- sketch_pairs(centered, operator, what)
  colnames(pairs$vectors) <- paste0("PC", seq_len(pairs$rank))
  c(
    list(values = share * pairs$values, rank = pairs$rank,
         vectors = pairs$vectors, trace = share * sum(diag(operator)),
         norm2 = share^2 * sum(operator^2), operator = share * operator),
    if (is.null(shrinkage)) list(lambda = 0) else shrinkage
  )
}

sketch_cross_covariance <- function(sketch, centered, estimator) {
  if (!is_average(estimator)) {
    stop_input("'estimator' must be \"kme\" for a sketch of two variables, ",
               "not ", estimator_word(estimator), ": a sketch does not keep ",
               "the sums of products that shrinkage takes")
  }
  roots <- lapply(centered, \(one) one$sample$root)
  own <- lapply(centered, \(one) one$sample$moments$mean)
  means <- lapply(centered, mean_coordinates)
  whole <- sketch_cross(sketch)
  operator <- whole - outer(own[[1L]], means[[2L]]) -
    outer(means[[1L]], own[[2L]]) + outer(means[[1L]], means[[2L]])
  found <- svd(operator)
  scale <- sqrt(prod(vapply(centered, \(one) {
    max(one$norm2, one$sample$moments$varrho)
  }, 1)))
  least <- max(sketch_rounding(whole, roots[[1L]], roots[[2L]]),
               rounding_of(max(dim(operator)), scale))
  kept <- found$d > least
  sides <- Map(\(root, v) product(root, v[, kept, drop = FALSE]), roots,
               list(found$u, found$v))
  # The sign of a pair is that of the left one.
  left <- fix_signs(sides[[1L]])
  turned <- ifelse(colSums(left * sides[[1L]]) < 0, -1, 1)
  right <- sides[[2L]] * rep(turned, each = nrow(sides[[2L]]))
  colnames(left) <- colnames(right) <- sprintf("SV%d", seq_len(sum(kept)))
  list(values = found$d[kept], rank = sum(kept), left = left, right = right,
       norm2 = sum(operator^2), operator = operator, lambda = 0)
}

# --- Methods -----------------------------------------------------------------

# f(z)'A g(w), f and g the centered features.
sketch_operator_at <- function(object, variables, new) {
  features <- Map(\(variable, z) {
    own <- variable$sample
    root <- own$sketch$landmarks[[own$variable]]$root
    sample_at(own, z, root) -
      rep(drop(cross(root, variable$at)), each = z$m)
  }, variables, new)
  rowSums(product(features[[1L]], object$operator) * features[[2L]])
}

# Landmarks know what they are made from; those of a formula take their columns
# of one data frame.
sketch_values <- function(sample, object, newdata, which) {
  landmarks <- sample$sketch$landmarks
  each <- if (is.data.frame(newdata) && !is.null(landmarks[[1L]]$side)) {
    rep(list(newdata), length(which))
  } else {
    pick_values(object, newdata, which)
  }
  Map(\(z, l) {
    points <- landmark_points(landmarks[[l]], z, "newdata")
    new_points(points, rownames(points))
  }, each, which, USE.NAMES = FALSE)
}

