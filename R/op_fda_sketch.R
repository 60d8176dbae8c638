# Kernel Fisher discriminants of a sketch with groups. With the features Phi of
# all rows the Gram matrix is K = Phi Phi', and the within-class scatter is N =
# Phi S Phi', where S is the scatter of the features. For any B with BB' =
# Phi'Phi = G, Phi = QB' with orthonormal columns of Q, so that N + rI is Q(B'SB
# + rI)Q' on the range of K: with R'R = B'SB + rI, D = B'[sqrt(n_c) (mu_c -
# mu)]_c and R'^{-1}D = WTZ' the axes Phi'alpha have the coordinates sqrt(n - C)
# B R^{-1}W.

#' @rdname kme_fda
#' @export
kme_fda.kme_sketch <- function(x, grouping, ..., ridge = NULL, prior = NULL) {
  if (!missing(grouping)) {
    stop_input("'grouping' must be missing when 'x' is a sketch: its groups ",
               "are the classes, as in kme_sketch(x, groups = )")
  }
  asked <- request(kme_fda_sketch_arguments)
  classes <- sketch_classes(x)
  prior <- check_prior(prior, classes$size)
  fit <- fit_fda_sketch(classes, asked$ridge)
  new_kme_fda(fit, classes$pooled, classes, prior, stored(asked))
}

# There is no ridge = "loo": a sketch has no rows to leave out.
kme_fda_sketch_arguments <- door_table(
  "kme_fda.kme_sketch", prior = anything,
  ridge = maybe(number(open = TRUE, finite = FALSE), "shrinkage"),
  hints = sketch_hints("kernel", "bandwidth", "scale")
)

# A list about the classes of a sketch: `pooled`, the sample of all rows, and
# for each class its sample (`samples`), its number of rows (`counts`), its name
# (`lev`) and its effective size (`size`). These sizes add up to that of
# `pooled`.
sketch_classes <- function(sketch) {
  if (length(sketch$groups) < 2L) {
    stop_input("'x' must be a sketch with at least 2 groups, its classes, not ",
               length(sketch$groups), "; kme_sketch(x, groups = ) makes one")
  }
  check_one_variable(sketch)
  pooled <- sketch_sample(sketch)
  samples <- group_samples(sketch)
  second_moments(pooled, "discriminants")
  warn_lost(samples, names(samples))
  counts <- vapply(samples, `[[`, numeric(1), "n")
  if (min(counts) < 2) {
    stop_input("'x' must have at least 2 rows in each group, not 1 in ",
               quoted(names(counts)[counts < 2], 3L))
  }
  if (max(counts) <= .Machine$integer.max) storage.mode(counts) <- "integer"
  mass <- group_numbers(sketch, "weight")
  list(pooled = pooled, samples = samples, counts = counts,
       lev = names(counts),
       size = stats::setNames(pooled$size * mass / sum(mass), names(counts)))
}

# The discriminants of the classes of a sketch.
fit_fda_sketch <- function(classes, ridge) {
  pooled <- classes$pooled
  moments <- pooled$moments
  n <- pooled$size
  size <- unname(classes$size)
  # K is divided by `unit` so that its squares stay finite, and features are
  # divided by the root of `unit`.
  unit <- power_below(moments$varrho)
  shrunk <- fda_ridge(pooled, ridge, unit)
  # An infinite ridge is the same in any unit, and K need not be divided.
  if (shrunk$ridge == Inf) unit <- 1
  means <- vapply(classes$samples, \(s) s$moments$mean,
                  numeric(length(moments$mean)))
  means <- matrix(means, ncol = length(size)) / sqrt(unit)
  overall <- drop(means %*% size) / n
  within <- Reduce(`+`, Map(\(s, size) size * s$moments$covariance,
                            classes$samples, size)) / unit -
    tcross(means * rep(sqrt(size), each = nrow(means)))
  root <- moment_root(n * moments$covariance / unit)
  scatter <- cross(root, product(within, root))
  lower <- fda_factor(scatter, shrunk$ridge, unit, is.null(shrunk$intensity),
                      ncol(root))
  apart <- means - overall
  axes <- fda_directions(lower$factor, cross(root, apart),
                         drop(cross(root, overall)), size, n)
  along <- product(root, axes$axes)
  scaling <- product(pooled$root, along) / sqrt(unit)
  signed <- fix_signs(scaling)
  along <- fix_signs(along, scaling)
  colnames(signed) <- colnames(along) <- axes$names
  scores <- crossprod(apart, along)
  spread <- sum(along * product(within, along)) / ((n - length(size)) *
                                                     ncol(along))
  new_discriminants(
    signed, scores, axes$svd, drop(overall %*% along),
    ridge = if (is.null(shrunk$intensity)) ridge else lower$ridge * unit * unit,
    intensity = shrunk$intensity,
    sigma2 = max(spread, .Machine$double.eps * max(rowSums(scores^2)))
  )
}

# A root B of the second moments c = BB', with as many columns as c has rank.
moment_root <- function(c) {
  spectrum <- .Call(C_r_eigen, c, ncol(c))
  kept <- spectrum$values > rounding_of(ncol(c), spectrum$values[1L])
  take_columns(spectrum$vectors, kept) *
    rep(sqrt(spectrum$values[kept]), each = nrow(c))
}

# The `ridge` in units of the square of `unit`, and the `intensity` of
# shrinkage, which is the one that shrink_gram() would find from all rows; NULL
# where the ridge was given.
fda_ridge <- function(pooled, ridge, unit) {
  if (is.numeric(ridge)) {
    return(list(ridge = ridge / unit / unit, intensity = NULL))
  }
  n <- pooled$size
  centered <- centered_sample(pooled, est_kme())
  moment <- fourth_moment(centered,
                          paste0("'ridge' must be a positive number, not ",
                                 "\"shrinkage\",")) / unit^2
  covariance <- centered_moments(centered, "discriminants") / unit
  trace <- sum(diag(covariance))
  intensity <- shrinkage_of(n * trace, n * moment,
                            n * max(0, moment - trace^2),
                            n^2 * sum(covariance^2), n - 1, n)$intensity
  list(ridge = shrinkage_ridge(intensity, n * trace, n), intensity = intensity)
}
