# The test of independence from a sketch of two variables, by HSIC of the
# projected features and its limit under independence.

#' @section Sketches:
#' Of a [kme_sketch()] of two variables the statistic is \eqn{\|C_{xy}\|_F^2}{
#' |C_xy|_F^2}, the biased HSIC of the projections on the spans of the
#' landmarks. n HSIC is compared with draws of its limit under independence
#' (`"spectrum"`), \eqn{\sum_{ij} \lambda_i \nu_j Z_{ij}^2}{sum_ij lambda_i nu_j
#' Z_ij^2}, with the eigenvalues of the two covariances: an approximation for
#' large n (of rows with weights w, \eqn{(\sum w)^2/\sum w^2}{(sum w)^2/sum w^2}
#' takes its place) and the KME.
#'
#' @examples
#'
#' # From a sketch
#' hsic_test(kme_sketch(mag ~ depth + stations, quakes, 50))
#' @rdname hsic_test
#' @export
hsic_test.kme_sketch <- function(x, ...) {
  hsic_test.default(test_cross(x, c(x = label_of(substitute(x)))), ...)
}

# The two variables of a sketch, as the door takes them, see test_variables().
test_cross <- function(sketch, label) {
  if (!inherits(sketch, "kme_sketch") || length(sketch$landmarks) != 2L) {
    stop_input("'x' must be a sketch of two variables, as kme_sketch(y ~ a + ",
               "b, data) makes it; mmd_test() compares the groups of one")
  }
  structure(list(sketch = sketch, label = label),
            class = c("test_cross", "test_variables"))
}

# A sketch keeps neither rows that could be permuted nor norms of single rows.
cross_rules <- list(when(
  \(a) TRUE, kernel = NULL, kernel_x = NULL, kernel_y = NULL, scale = NULL,
  bandwidths = NULL, filter = unfiltered, statistic = "biased",
  reason = "for a sketch"
))

test_dependence.test_cross <- function(data, asked) {
  options <- open_control(asked, "spectrum", cross_rules)
  options$operator <- FALSE
  variables <- cross_variables(data$sketch)
  rows <- variables[[1L]]$sample$n
  if (rows < 2) {
    stop_input("'x' must be a sketch of at least 2 rows, not ", rows)
  }
  scheme <- check_permutations(options, list(sizes = rows))
  test <- new_hsic_test(variables, options, scheme,
                        cross_dependence(data$sketch, variables, scheme),
                        stored(asked), data)
  test$data.name <- paste0(paste(names(variables), collapse = " and "), " of ",
                           data$label)
  test
}

# The two variables of a sketch with their samples, named.
cross_variables <- function(sketch) {
  variables <- lapply(1:2, \(v) {
    variable <- sketch$landmarks[[v]]$variable
    variable$sample <- sketch_sample(sketch, v)
    second_moments(variable$sample, "a test of independence")
    variable
  })
  variables <- stats::setNames(variables, variable_labels(sketch))
  warn_lost(lapply(variables, `[[`, "sample"), names(variables))
  variables
}

small_product <- 1e-2

# Returns B draws of n HSIC under independence, sum_l gamma_l Z_l^2, where each
# gamma_l is an eigenvalue of one variable times one of the other. The sum over
# small products is replaced by a Z^2 + b with the same mean and variance.
cross_draws <- function(samples, B) {
  each <- lapply(samples, \(part) {
    covariance_values(centered_covariance(part), covariance_rounding(part))
  })
  products <- sort(as.vector(tcross(each[[1L]], each[[2L]])), decreasing = TRUE)
  large <- products >= small_product * products[1L]
  small <- products[!large]
  root <- sqrt(sum(small^2))
  weights <- c(products[large], root)
  draws <- numeric(B)
  for (weight in weights[weights > 0]) {
    draws <- draws + weight * stats::rchisq(B, 1)
  }
  draws + sum(small) - root
}

# The dependence of projected features.
cross_dependence <- function(sketch, variables, scheme) {
  samples <- lapply(variables, `[[`, "sample")
  draws <- cross_draws(samples, scheme$B) / samples[[1L]]$size
  means <- lapply(samples, \(part) part$moments$mean)
  centered <- sketch_cross(sketch) - tcross(means[[1L]], means[[2L]])
  # A variable that does not vary leaves only rounding.
  observed <- if (any(draws > 0)) sum(centered^2) else 0
  norms <- vapply(samples, \(part) norm(centered_covariance(part), "F"), 1)
  size <- prod(vapply(samples, \(part) part$moments$trace, 1))
  statistic <- new_statistic("HSIC", c(observed, draws), 1e-4 * size)
  new_dependence(statistic, drawn_null(statistic, scheme),
                 share_of(observed, if (observed > 0) prod(norms) else 0))
}

change_variables.test_cross <- function(origin, test, changes, data, label) {
  asked <- change_request(test$arguments, changes[names(changes) != "x"])
  asked$x <- test_cross(if (length(data)) changes$x else origin$sketch, label)
  asked
}
