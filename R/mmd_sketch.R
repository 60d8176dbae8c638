# Tests of samples of which there are sketches: the statistics from their means
# in feature coordinates, permutations of bins, the spectrum of the covariance.

#' @section Sketches:
#' Of samples too large to be kept, the groups of a [kme_sketch()] or two
#' sketches on the same landmarks (a reference that was kept, and new rows) are
#' compared by the means \eqn{\mu_g}{mu_g} of their features, with
#' \eqn{\|\mu_x - \mu_y\|^2}{|mu_x - mu_y|^2} in place of MMD: the distance of
#' the projections on the span of the landmarks. A `y` that is no sketch is
#' sketched as `x` was.
#'
#' `"permutation"`, the default where there are bins, permutes bins of rows
#' (`bin` of [kme_sketch()]), into which they fell at random: the level is exact
#' if rows are exchangeable. Rows in bins that are not full do not count;
#' `summary()` tells how many. The unbiased statistic leaves out the pairs of
#' rows of one bin. Bins are permuted as points are, so that `permutations` and
#' `B` are as for points.
#'
#' `"spectrum"`, the default without bins, needs second moments of all samples
#' (`second` of [kme_sketch()]) and rows that are independent: \eqn{(mn/N)
#' \|\mu_x - \mu_y\|^2}{(mn/N) |mu_x - mu_y|^2} is compared with draws of
#' \eqn{\sum_l \lambda_l Z_l^2}{sum_l lambda_l Z_l^2}, the sum of more groups
#' with draws that have chi-squared variables with groups - 1 degrees of freedom
#' in place of \eqn{Z_l^2}{Z_l^2}; \eqn{\lambda_l}{lambda_l} are the eigenvalues
#' of the pooled covariance of the features, centered within the samples. If
#' rows have weights w, \eqn{(\sum w)^2/\sum w^2}{(sum w)^2/sum w^2} is the
#' size of a sample. At the nominal 0.05 (2,000 data sets of normal points, 50
#' landmarks, `B = 199`) levels were 0.046 to 0.053 for samples of 150 and 150,
#' 30 and 300, 10 and 290 points and three groups, with exponential weights
#' 0.059 and 0.044; those of permutations of bins 0.046 to 0.054.
#'
#' Landmarks must not favor a sample: they are to come from the rows of all, or
#' from other rows. Those that come from one sample lie closer to its rows. That
#' is harmless where they lose little, or are few among many rows (levels of
#' 0.038 to 0.059, references of 60 to 3,000 points at the median bandwidth),
#' but with bandwidths so small that they lose most (ten columns, 60 points, 50
#' of them landmarks, and 300 new ones) the level was 0.063 at a bandwidth of 2
#' and 1.000 at 1; the median is 4.4. `summary()` says what each sample loses.
#'
#' The estimator is the KME: shrinking needs the norms of single rows. The
#' kernel \eqn{R^2}{R^2} has the total of all rows, what is lost by projection
#' included. Time for s bins in all is that of s points in as many columns as
#' the landmarks have rank r, for `"spectrum"` O(r^3 + B r).
#'
#' @examples
#'
#' # A reference kept as a sketch, and the rows of a week
#' reference <- kme_sketch(matrix(rnorm(4000), ncol = 2), 50, bin = 50)
#' week <- cbind(rnorm(500, 0.2), rnorm(500))
#' drift <- mmd_test(reference, week)
#' drift
#' plot(drift, "witness")
#' @rdname mmd_test
#' @export
mmd_test.kme_sketch <- function(x, y, ..., estimator = "kme", B = NULL,
                                null = NULL,
                                statistic = c("biased", "unbiased"),
                                permutations = NULL,
                                progress = interactive()) {
  refuse_rows(...)
  check_dots(...)
  label <- c(x = deparse1(substitute(x)),
             y = if (!missing(y)) deparse1(substitute(y)))
  data <- list(x = x)
  if (!missing(y)) {
    if (is_model(y)) {
      stop_input("'y' must be a sketch or rows, not a model: a test against ",
                 "one takes points")
    }
    data["y"] <- list(y)
  }
  test_sketches(data, label, estimator, B = B, null = null,
                statistic = statistic, permutations = permutations,
                progress = progress)
}

# Arguments that tests of points have and those of sketches have not.
refuse_rows <- function(...) {
  refuse_paired(...)
  names <- ...names()
  kernels <- intersect(names, c("kernel", "kernel_x", "kernel_y", "bandwidths",
                                "scale"))
  if (length(kernels)) {
    stop_input("'", kernels[1L], "' must not be given when 'x' is a sketch, ",
               "which has the kernel and the units of its landmarks")
  }
  rows <- intersect(names, c("blocks", "clusters"))
  if (length(rows)) {
    stop_input("'", rows[1L], "' must not be given when 'x' is a sketch, ",
               "which keeps sums, not rows that could change places")
  }
  whole <- intersect(names, c("filter", "ratio", "order", "factors", "control",
                              "pairwise", "model"))
  if (length(whole)) {
    stop_input("'", whole[1L], "' must not be given when 'x' is a sketch: it ",
               "takes points")
  }
  if ("bins" %in% names) {
    stop_input("'bins' must not be given when 'x' is a sketch, whose bins ",
               "were filled when it was made, as kme_sketch(bin = 100) does")
  }
}

sketch_nulls <- c("permutation", "spectrum")

sketch_estimator <-
  "for sketches, which do not have the norms of rows that shrinking needs"

# The test of data, list(x: a sketch with groups) or list(x, y), of which one is
# a sketch; `label` names them. NULL for `null`: as the sketches allow.
test_sketches <- function(data, label, estimator = est_kme(), ..., B = NULL,
                          null = NULL, statistic = "biased",
                          permutations = NULL, progress = interactive()) {
  refuse_rows(...)
  check_dots(...)
  sketches <- read_sketches(data)
  estimator <- read_estimator(estimator)
  must_be(is_average(estimator), "estimator", "\"kme\"", sketch_estimator,
          estimator$name)
  given <- if (is.null(null)) usual_null(sketches) else null
  options <- read_options(estimator, given, sketch_nulls, statistic, progress)
  parts <- compared_samples(sketches)
  binned <- options$null == "permutation"
  bins <- if (binned) pooled_bins(sketches, names(parts)) else
    check_spectrum_parts(parts)
  units <- if (binned) {
    list(sizes = bins$sizes, what = "bins")
  } else {
    list(sizes = vapply(parts, `[[`, 1, "n"))
  }
  draws <- if (!is.null(B)) {
    B
  } else if (binned) {
    usual_draws(mmd_cost(bins, options, units, NULL))
  } else {
    usual_draws(5e-8 * ncol(parts[[1L]]$root))
  }
  scheme <- check_permutations(permutations, units, draws, options$null)
  sizes <- vapply(parts, `[[`, 1, "size")
  if (binned) {
    found <- mmd_statistics(bins, options, scheme)
    found$source$bin <- bins$size
    if (length(parts) > 2L) {
      # The weights m_g m_h/N count rows.
      found[c("values", "scale")] <- list(bins$size * found$values,
                                          bins$size * found$scale)
    }
    law <- mmd_null(bins, options, scheme, found)
  } else {
    found <- spectrum_statistics(parts, options)
    law <- mmd_null(list(sample = parts[[1L]], parts = parts, sizes = sizes),
                    options, scheme, found)
  }
  found$share <- parts_share(parts)
  samples <- list(
    sample = parts_support(parts, if (binned) bins$left else 0),
    groups = factor(character(), names(parts)),
    origin = list(label = label),
    sizes = if (binned) as.double(bins$sizes) * bins$size else
      as.double(unname(units$sizes)),
    bins = if (binned) sum(bins$sizes)
  )
  arguments <- list(
    pooled = list(label = label), data = sketches,
    estimator = options$estimator, B = B, null = null, statistic = statistic,
    permutations = permutations, progress = progress
  )
  test <- new_mmd_test(samples, options, scheme, found, arguments, law)
  # There are no points that could be of a group.
  test["groups"] <- list(NULL)
  test
}

# --- What is given -----------------------------------------------------------

# The data as sketches on the same landmarks.
read_sketches <- function(data) {
  made <- vapply(data, inherits, NA, "kme_sketch")
  if (!any(made)) {
    stop_input("'x' must be a sketch, as of kme_sketch(), not ",
               describe(data$x))
  }
  for (name in names(data)[made]) {
    check_one_variable(data[[name]], name)
  }
  if (length(data) == 1L) {
    groups <- length(data$x$groups)
    if (groups < 2L) {
      stop_input("'x' must be a sketch of at least two groups, or 'y' be ",
                 "given, a sketch on the same landmarks; 'x' has ",
                 if (groups) "one group" else "no groups")
    }
    return(data)
  }
  for (name in names(data)[!made]) {
    data[[name]] <- sketch_as(data[[name]], data[[which(made)[1L]]], name)
  }
  check_same_landmarks(data$x, data$y, c("'x'", "'y'"))
  data
}

# Rows, which messages call `name`, in a sketch such as another one.
sketch_as <- function(rows, sketch, name) {
  tryCatch(
    update(unfilled(sketch), rows, progress = FALSE),
    kernmean_error_input = \(e) stop_input(
      "'", name, "' must be a sketch, or rows of which one can be made like ",
      "the other: kme_sketch() says ", conditionMessage(e)
    )
  )
}

# The samples that are compared.
compared_samples <- function(sketches) {
  parts <- if (length(sketches) == 1L) group_samples(sketches$x) else
    lapply(sketches, sketch_sample)
  few <- which(vapply(parts, `[[`, 1, "n") < 2)
  if (length(few)) {
    stop_input("each sample must have at least 2 rows; '",
               names(parts)[few[1L]], "' has ", parts[[few[1L]]]$n)
  }
  warn_lost(parts, names(parts))
  parts
}

# "permutation" where all have bins of one size, else "spectrum" where all have
# second moments.
usual_null <- function(sketches) {
  if (is.null(bins_lacking(sketches))) {
    return("permutation")
  }
  if (!all(vapply(sketches, \(sketch) sketch$moments > 1, NA))) {
    stop_input("'x' must be a sketch with bins, by kme_sketch(bin = 100), or ",
               "with second moments, by kme_sketch(moments = 2): ",
               bins_lacking(sketches))
  }
  "spectrum"
}

# Why bins cannot be permuted, or NULL.
bins_lacking <- function(sketches) {
  without <- which(vapply(sketches, \(sketch) is.null(sketch$bin), NA))
  if (length(without)) {
    return(paste0("'", names(sketches)[without[1L]], "' has no bins"))
  }
  sizes <- vapply(sketches, \(sketch) as.double(sketch$bin), 1)
  if (any(sizes != sizes[1L])) {
    paste("the bins have", sizes[1L], "and", sizes[2L], "rows")
  }
}

# --- Permutations of bins ----------------------------------------------------

# Bins as points of a sample, in the order of the groups, whose linear kernel is
# the inner product of their means: list(sample, groups, sizes: bins of each,
# size: rows of a bin, left: rows in no full bin).
pooled_bins <- function(sketches, labels) {
  lacking <- bins_lacking(sketches)
  if (!is.null(lacking)) {
    stop_input("'null' must be \"spectrum\", not \"permutation\", which takes ",
               "bins of one size, as kme_sketch(bin = 100) makes them: ",
               lacking)
  }
  each <- lapply(sketches, sketch_bins)
  features <- do.call(cbind, lapply(each, `[[`, "features"))
  groups <- if (length(each) == 1L) {
    factor(each$x$group, labels)
  } else {
    counts <- vapply(each, \(bins) ncol(bins$features), 1L)
    factor(rep(labels, counts), labels)
  }
  sizes <- tabulate(groups, length(labels))
  size <- each$x$size
  few <- which(sizes < 2L)
  if (length(few)) {
    stop_input("each sample must have at least 2 full bins of ", size,
               " rows for null = \"permutation\"; '", labels[few[1L]],
               "' has ", sizes[few[1L]])
  }
  list(sample = points_sample(t(features), kernel_linear()), groups = groups,
       sizes = sizes, size = size,
       left = sum(vapply(each, \(bins) as.double(bins$left), 1)))
}

# --- The spectrum ------------------------------------------------------------

check_spectrum_parts <- function(parts) {
  for (name in names(parts)) {
    if (is.null(parts[[name]]$moments$covariance)) {
      stop_input("'null' must be \"permutation\", not \"spectrum\", which ",
                 "takes second moments, as kme_sketch(moments = 2) keeps ",
                 "them: '", name, "' has none")
    }
  }
}

# The means of the samples in feature coordinates, r x samples.
part_means <- function(parts) {
  do.call(cbind, lapply(parts, \(part) part$moments$mean))
}

# list(means: those about the mean of all, at: that mean, sizes).
centered_means <- function(parts) {
  means <- part_means(parts)
  sizes <- vapply(parts, `[[`, 1, "size")
  at <- drop(means %*% sizes) / sum(sizes)
  list(means = means - at, at = at, sizes = sizes)
}

# What mmd_statistics() finds, but for the share, of projected features.
spectrum_statistics <- function(parts, options) {
  sums <- parts_sums(parts)
  of <- if (options$statistic == "unbiased") unbiased_statistic else
    biased_statistic
  list(
    values = of(sums), scale = moments_scale(parts), height = 1,
    settled = list(estimator = options$estimator),
    pairs = if (length(parts) > 2L) pair_statistics(sums, of)
  )
}

# Sums of kernel values within and between the samples, and on the diagonal, as
# of labeled_sums(), of features less the mean of all.
parts_sums <- function(parts) {
  own <- centered_means(parts)
  n <- own$sizes
  inner <- cross(own$means) * tcross(n)
  varrho <- vapply(seq_along(parts), \(g) {
    moments <- parts[[g]]$moments
    sum(diag(moments$covariance)) -
      2 * sum(moments$mean * own$at) + sum(own$at^2)
  }, 1)
  row <- \(v) matrix(v, 1L)
  list(own = row(diag(inner)), cross = row(t(inner)[lower.tri(inner)]),
       trace = row(n * varrho), sizes = row(n))
}

# Of a size that differences of means as large as the kernel values cannot tell
# from 0, see permutation_p(): rounding, where no row differs from another.
moments_scale <- function(parts) {
  1e-4 * max(vapply(parts, \(part) part$moments$trace, 1))
}

# N times the eigenvalues of the covariance of features, centered within the
# samples.
null_spectrum.sketch_sample <- function(sample, samples) {
  sizes <- samples$sizes
  pooled <- 0
  for (g in seq_along(sizes)) {
    pooled <- pooled + sizes[[g]] * centered_covariance(samples$parts[[g]])
  }
  pooled <- pooled / sum(sizes)
  rounding <- max(vapply(samples$parts, covariance_rounding, 1))
  sum(sizes) * covariance_values(pooled, rounding)
}

# C - mu mu', in feature coordinates.
centered_covariance <- function(part) {
  part$moments$covariance - tcross(part$moments$mean)
}

# What rounding may make of the trace of a covariance that is 0: W'S2W has the
# condition of K_SS, of which 1e10 is allowed.
covariance_rounding <- function(part) {
  values <- part$sketch$landmarks[[part$variable]]$values
  64 * .Machine$double.eps * part$moments$trace * max(values) / min(values)
}

# The eigenvalues of a covariance, 0 where it is no more than rounding.
covariance_values <- function(covariance, rounding) {
  if (sum(diag(covariance)) <= rounding) {
    return(numeric(nrow(covariance)))
  }
  pmax(spectrum_values(covariance), 0)
}

# --- The object --------------------------------------------------------------

# The share of the total that lies between the samples; the total includes what
# is lost by projection.
parts_share <- function(parts) {
  own <- centered_means(parts)
  n <- own$sizes
  between <- sum(n * colSums(own$means^2))
  all <- sum(n * vapply(parts, \(part) part$moments$trace, 1)) -
    sum(n) * sum(own$at^2)
  if (all <= tie_slack * sum(n) * moments_scale(parts)) {
    return(0)
  }
  min(1, max(0, between / all))
}

# The landmarks, as the sample of a test: `parts` is list(weights: those of each
# sample's mean, m x samples; sizes; weighted: are sizes other than numbers of
# rows?; lost: the share of the trace that each loses, NA where that is not
# known; left: rows that do not count).
parts_support <- function(parts, left) {
  support <- sample_support(parts[[1L]])
  support["group"] <- list(NULL)
  sizes <- vapply(parts, `[[`, 1, "size")
  support$parts <- list(
    weights = product(parts[[1L]]$root, part_means(parts)), sizes = sizes,
    weighted = any(sizes != vapply(parts, `[[`, 1, "n")),
    lost = vapply(parts, \(part) part$moments$lost / part$moments$trace, 1),
    left = left
  )
  support
}

sample_lines.landmark_sample <- function(sample) {
  parts <- sample$parts
  c(paste("sketches of", count_of(sample$n, "landmark")),
    if (!anyNA(parts$lost)) {
      shares <- format_number(100 * parts$lost, 2L)
      paste0("lost by projection: ", shorten(paste0(
        shares, "% (", names(parts$lost), ")"
      )), " of mean k(x, x)")
    },
    if (isTRUE(parts$weighted)) {
      paste("sizes by weights:", paste(format_number(parts$sizes),
                                       collapse = ", "))
    },
    if (isTRUE(parts$left > 0)) {
      paste(count_of(parts$left, "row"), "in bins that are not full, left out")
    })
}

# The means of the two sides have the weights of their rows.
witness_weights.landmark_sample <- function(sample, test, side) {
  sizes <- sample$parts$sizes
  share <- \(s) ifelse(side == s, sizes, 0) / sum(sizes[side == s])
  variable <- sample$sketch$landmarks[[sample$variable]]$variable
  list(weights = drop(product(sample$parts$weights, share(1L) - share(2L))),
       shown = seq_len(sample$n), side = NULL,
       grid = !is_factor_variable(variable) && !is_mixed_variable(variable))
}

update_samples.landmark_sample <- function(sample, object, changes, call) {
  arguments <- object$arguments
  label <- arguments$pooled$label
  arguments$pooled <- NULL
  data <- changed_data(changes, label)
  arguments$data[data] <- changes[data]
  arguments$label <- new_label(label, call, data)
  do.call(test_sketches,
          merge_changes(arguments, changes[!names(changes) %in% data]))
}
