# The shelf sample_: samples, whether points, Gram matrices or sketches, and
# their verbs.
#
# Offers from sample_sample.R: as_sample, axes_of, brings_kernel,
#   center_blocks, center_linear, check_rows, check_same_space,
#   describe_sample, evenly,
#   fit_request.default, fit_sample, form_sample, given_blocks,
#   gram_sample, has_open_bandwidth, input_word, keep_units, kernel_for,
#   known_rows, knows_points, new_points, new_sample, own_order,
#   own_points, plain_weights, point_labels, points_sample, predict_gaps,
#   read_bandwidth, read_kernel_values, read_sample, same_sample,
#   sample_apply, sample_at, sample_cross, sample_diagonal, sample_gram,
#   sample_input, sample_kernel, sample_kernel_lines, sample_matrix,
#   sample_names, sample_newdata, sample_note, sample_points, sample_raw,
#   sample_rows, sample_source, sample_support, sample_take, stores_gram,
#   tried_kernels, walkable_sample, without_blocks, without_gram.
# Offers from sample_dist.R: dist_sample.
# Offers from sample_embedding.R: by_point, embedding_parts, inner_matrix,
#   inner_pairs, inner_parts, merge_parts, new_mean_part, noisy_sample,
#   norm2_parts, parts_at, scale_parts, target_parts, values_at,
#   weights_of, weights_on.
# Offers from sample_target.R: check_target, check_target_kind, is_mixture.
# Offers from sample_map.R: exact_map, feature_panels, fourier_map,
#   function_at, kept_spectrum, landmark_map, map_features, map_function,
#   map_sums, map_values, new_map, pivoted_factor, pivoted_map, point_features,
#   section_features, small_map.
# Offers from sample_smoother.R: choose_kernel, in_deviations,
#   learn_widths, learning_rows, least_gain, make_smoother, new_response,
#   penalty_grid, principal_features, relevant_words, right_sides,
#   standard_response, weighted_kernel, with_kernel.
# Offers from sample_bank.R: bank_columns, bank_kernels, bank_tolerance,
#   choose_smoother, covariates_at, make_bank, most_freedom, new_covariates,
#   smoother_axes, smoother_df, smoother_fit, smoother_leverages.
#
# A new kind of sample is a constructor on new_sample(), and methods for the
# verbs below. Only the files of a kind know what kind it is. One kind is a
# sketch (sketch_sample.R), which knows only sums over points.

# A sample: points, or other data, from which kernel means are estimated. All
# fields are public.
#   n        number of points
#   kernel   the fitted kernel, NULL if only values are known
#   x        n x d matrix, the points as the kernel takes them; NULL where only
#            values are known
#   gram     the gram, if one was given or formed, else NULL
#   weights  those of the user, NULL for 1/n each
#   raw      the points as they were given, NULL where these are x
#   origin   d numbers, the origin of a linear kernel or of a sum with one, NULL
#            for 0
#   blocks   codes of the points; features are less the means of their blocks
new_sample <- function(kind, n, kernel, x = NULL, gram = NULL, weights = NULL,
                       raw = NULL) {
  sample <- list(n = n, kernel = kernel, x = x, gram = gram, weights = weights,
                 raw = raw, origin = NULL, blocks = NULL)
  class(sample) <- c(paste0(kind, "_sample"), "kernmean_sample")
  sample
}

points_sample <- function(x, kernel, weights = NULL, raw = NULL) {
  new_sample("points", nrow(x), kernel, x, weights = weights, raw = raw)
}

gram_sample <- function(g, weights = NULL) {
  new_sample("gram", nrow(g$K), g$kernel, g$x, g, weights, g$raw)
}

# The sample with the mean of each block subtracted from the features of its
# points. The Gram matrix becomes HKH, where H subtracts the means. Features of
# new points stay as they are.
given_blocks <- function(sample, blocks) {
  if (is.null(blocks)) {
    return(sample)
  }
  if (stores_gram(sample)) {
    g <- sample$gram
    sample$gram <- new_gram(center_both(g$K, blocks), g$kernel, g$x, g$raw)
  } else if (kernel_has(sample$kernel, "linear form")) {
    x <- center_blocks(sample$x, blocks)
    return(points_sample(x, sample$kernel, sample$weights, sample_raw(sample)))
  }
  sample$blocks <- blocks
  sample
}

# The sample with its features as they were before given_blocks(). A stored gram
# stays as it is, since the matrix before that is not known.
without_blocks <- function(sample) {
  if (!stores_gram(sample)) sample["blocks"] <- list(NULL)
  sample
}

# The sample, with its gram formed if it has blocks, since only a stored matrix
# can be centered in them.
form_given <- function(sample) {
  if (is.null(sample$blocks)) sample else form_sample(sample)
}

# Each row of x less the mean of its block, with 0 for what is only rounding.
center_blocks <- function(x, blocks) {
  blocks <- number_codes(blocks)
  means <- rowsum(x, blocks, reorder = FALSE) / tabulate(blocks)
  r <- x - take_rows(means, blocks)
  r[abs(r) <= 8 * .Machine$double.eps * max(abs(x), 0)] <- 0
  r
}

# HKH, the matrix less the means of blocks in rows and columns.
center_both <- function(k, blocks) {
  unname(center_blocks(t(center_blocks(k, blocks)), blocks))
}

# The sample of points as they were given, with the kernel fitted to them.
fit_sample <- function(x, kernel, scale = NULL, name = "x") {
  units <- fit_units(kernel, x, scale, name)
  points_sample(units$x, units$kernel, raw = units$raw)
}

# The sample that a door was given: a gram, a sketch, or points, to which the
# kernel is fitted (NULL: `default`, or else kernel_rbf()). `scale` is NULL
# where the user did not give it.
read_sample <- function(x, kernel = NULL, weights = NULL, default = NULL,
                        scale = NULL, name = "x") {
  if (brings_kernel(x)) {
    if (!is.null(kernel) || asks_scale(scale)) {
      stop_input("'", if (is.null(kernel)) "scale" else "kernel",
                 "' must not be given when '", name, "' is a ", input_word(x))
    }
    sample <- as_sample(x)
    check_definite(sample$kernel)
  } else {
    x <- read_points(x)
    if (!is.null(kernel)) take(kernel, a_kernel)
    kernel <- kernel_of(x, kernel, default)
    check_definite(kernel)
    sample <- fit_sample(x, kernel, scale)
  }
  if (!is.null(weights)) {
    sample$weights <- check_weights(weights, sample)
  }
  sample
}

# Does the data that a door was given have a kernel of its own?
brings_kernel <- function(x) inherits(x, c("gram", "kme_sketch"))

# The word by which messages call data with a kernel of their own.
input_word <- function(x) if (inherits(x, "gram")) "gram" else "sketch"

as_sample <- function(x) UseMethod("as_sample")
as_sample.default <- \(x) points_sample(read_points(x), NULL)
as_sample.kernmean_sample <- identity
as_sample.gram <- function(x) {
  check_finite(x$K, "K")
  gram_sample(x)
}

# Stops unless the points are known one by one.
check_rows <- function(sample) UseMethod("check_rows")
check_rows.kernmean_sample <- \(sample) NULL

check_weights <- function(weights, sample) {
  n <- sample$n
  if (!is.null(sample$sketch)) {
    stop_input("'weights' must be NULL for a sketch; those of its rows are ",
               "given to kme_sketch()")
  }
  if (inherits(weights, "kme_weights")) {
    weights <- weights$weights * (weights$s.weights %||% 1)
    weights <- weights / sum(weights)
  }
  if (!is.numeric(weights) || length(weights) != n) {
    stop_input(
      "'weights' must be ", n, " numbers, one for each row of 'x', not ",
      describe(weights)
    )
  }
  check_finite(weights, "weights")
  weights <- as.double(weights)
  if (n > 1L && all(weights >= 0 & weights == round(weights)) &&
        sum(weights) > 1) {
    warn_kernmean(
      "'weights' are whole numbers that sum to ", format_number(sum(weights)),
      "; if they count points, give weights/sum(weights)", kind = "weights"
    )
  }
  weights
}

# The points, or an error that says who needs them.
sample_points <- function(sample, ...) {
  if (is.null(sample$x)) stop_input(...)
  sample$x
}

knows_points <- function(sample) !is.null(sample$x)

stores_gram <- function(sample) !is.null(sample$gram)

# Did the kernel come with the sample, not with the arguments of the door?
came_with_kernel <- function(sample) {
  stores_gram(sample) || !is.null(sample$sketch)
}

# The kernel that a door is given when another sample takes the place of this
# one: NULL if the kernel came with the sample.
sample_kernel <- function(sample) if (!came_with_kernel(sample)) sample$kernel

# The kernel that a door is given with other data in place of the sample, where
# `kernel` was given before.
kernel_for <- function(x, kernel, sample) {
  if (brings_kernel(x)) {
    return(NULL)
  }
  if (is.null(kernel) && came_with_kernel(sample)) {
    kernel <- sample$kernel
    kernel$rule <- NULL
  }
  kernel
}

# The kernel of a gram before it was fitted, for the same points in other units.
open_kernel <- function(kernel) {
  if (kernel_has(kernel, "parts")) {
    kernel$parts <- lapply(kernel$parts, open_kernel)
  }
  if (!is.null(kernel$rule) && !is.null(kernel$bandwidth)) {
    kernel$bandwidth <- "median"
  }
  kernel$rule <- NULL
  kernel$scaling <- NULL
  kernel
}

# Another kernel for the points of a gram keeps their units, unless it has its
# own.
keep_units <- function(kernel, sample) {
  if (inherits(kernel, "kernmean_kernel") && is.list(kernel) &&
        stores_gram(sample) && !kernel_has(kernel, "scaling") &&
        !kernel_has(kernel, "factors") &&
        !kernel_has(sample$kernel, "factors")) {
    kernel$scaling <- sample$kernel$scaling
  }
  kernel
}

# Is the bandwidth of the kernel still to be chosen?
has_open_bandwidth <- function(x, kernel) {
  !brings_kernel(x) &&
    (is.null(kernel) || is.list(kernel) &&
       identical(kernel$bandwidth, "median"))
}

# The argument `bandwidth` of a door, checked: the word of its rule, which is
# the default where the kernel leaves the bandwidth open; "median", numbers, or
# NULL.
read_bandwidth <- function(bandwidth, x, kernel, word) {
  open <- has_open_bandwidth(x, kernel)
  if (is.null(bandwidth)) {
    return(if (open) word)
  }
  bandwidth <- take(bandwidth, maybe(numbers(open = TRUE), word, "median"))
  if (!open) {
    stop_input("'bandwidth' must not be given with a ", if (brings_kernel(x)) {
      input_word(x)
    } else {
      "kernel that has its own or none; kernel_rbf() leaves it open"
    })
  }
  unique(bandwidth)
}

# The kernels from which a door chooses, as a list: with bandwidths that are
# `factors` times the median distance for the word of a rule, or with those
# given.
tried_kernels <- function(kernel, bandwidth, word, factors) {
  if (is.null(bandwidth) || identical(bandwidth, "median")) {
    return(list(kernel))
  }
  ruled <- identical(bandwidth, word)
  values <- if (ruled) factors * kernel$bandwidth else bandwidth
  kernel$rule <- kernel$rule %||% "that given"
  lapply(seq_along(values), \(i) {
    end <- if (values[i] == min(values)) {
      ", the smallest tried"
    } else if (values[i] == max(values)) {
      ", the largest tried"
    }
    kernel$rule <- if (ruled) {
      sub("^1 times ", "", paste0(format_number(factors[i], 3L), " times ",
                                  kernel$rule, end))
    } else if (length(values) > 1L) {
      paste0("of ", length(values), " given", end)
    }
    kernel$bandwidth <- values[i]
    kernel
  })
}

# The argument `x` with which a door reads the same sample again. rekernel:
# should it be the points, if they are known, since another kernel is to be
# fitted?
sample_input <- function(sample, rekernel = FALSE) {
  if (!is.null(sample$sketch)) {
    sample$sketch
  } else if (stores_gram(sample) && !(rekernel && knows_points(sample))) {
    sample$gram
  } else {
    sample_raw(sample)
  }
}

# The points in the units of the user.
sample_raw <- function(sample) sample$raw %||% sample$x

# The points in the units of the user, without rows if the sample is a sketch
# (its points are landmarks) or has factors.
known_rows <- function(sample) {
  x <- sample_raw(sample)
  if (is.null(sample$sketch) && !is.data.frame(x)) x else take_rows(x, 0L)
}

# The number of columns of the points; NULL if these are not known or have
# factors.
axes_of <- function(sample) {
  if (knows_points(sample) && !is.data.frame(sample$raw)) ncol(sample$x)
}

# --- Verbs: the sample itself ------------------------------------------------

# Applies a fold of kernel_tile.R to the points of a sample or its stored
# values.
fold_sample <- function(sample, fold, ...) {
  check_rows(sample)
  sample <- form_given(sample)
  if (stores_gram(sample)) fold(NULL, sample$gram$K, ...) else
    fold(sample$kernel, sample$x, ...)
}

# The source of the sample. A kernel that is an R function has its values
# stored.
sample_source <- function(sample) {
  fold_sample(walkable_sample(sample), native_source, NULL, sample$origin)
}

# K 1, the n row sums of the Gram matrix.
sample_rows <- function(sample) {
  fold_sample(sample, fold_rows, center = sample$origin)
}

sample_diagonal <- function(sample) {
  fold_sample(sample, fold_diagonal, sample$origin)
}

# K v, as a vector if v has one column.
sample_apply <- function(sample, v) {
  fold_sample(sample, fold_apply, NULL, v, sample$origin)
}

# K, the n x n Gram matrix.
sample_matrix <- function(sample) {
  sample <- form_given(sample)
  if (stores_gram(sample)) sample$gram$K else
    fold_sample(sample, fold_store, NULL, sample$origin)
}

#' @export
as.matrix.kernmean_sample <- function(x, ...) sample_matrix(x)

# The gram of the sample, formed if it has none.
sample_gram <- function(sample) {
  check_rows(sample)
  if (stores_gram(sample)) {
    return(sample$gram)
  }
  g <- form_gram(sample$x, sample$kernel, sample$raw, sample$origin)
  if (!is.null(sample$blocks)) {
    check_memory(sample$n, sample$n, "use fewer points", copies = 3)
    g$K <- center_both(g$K, sample$blocks)
  }
  g
}

# The same sample with its gram: for work that looks at K more than once. A
# sketch has none.
form_sample <- function(sample) {
  if (stores_gram(sample) || !knows_points(sample)) sample else
    gram_sample(sample_gram(sample), sample$weights)
}

# The sample as the core can walk over it. If its kernel is an R function the
# values are stored, so that the function is called once for each.
walkable_sample <- function(sample) {
  if (kernel_has(sample$kernel, "function")) form_sample(sample) else sample
}

# The sample of the points i, in this order.
sample_take <- function(sample, i) {
  check_rows(sample)
  if (stores_gram(sample)) {
    g <- sample$gram
    return(gram_sample(
      new_gram(g$K[i, i, drop = FALSE], g$kernel, take_rows(g$x, i),
               take_rows(g$raw, i)),
      sample$weights[i]
    ))
  }
  sample$x <- take_rows(sample$x, i)
  sample["raw"] <- list(take_rows(sample$raw, i))
  sample$n <- nrow(sample$x)
  sample["weights"] <- list(sample$weights[i])
  sample["blocks"] <- list(sample$blocks[i])
  sample
}

# An order of the points that does not depend on how they were sorted.
own_order <- function(sample) {
  do.call(order, if (knows_points(sample)) {
    unname(as.data.frame(sample_raw(sample)))
  } else {
    list(sample_diagonal(sample), sample_rows(sample))
  })
}

# The sample of the points alone, without its stored Gram matrix.
without_gram <- function(sample) {
  given_blocks(points_sample(sample$x, sample$kernel, sample$weights,
                             sample$raw), sample$blocks)
}

# The sample with the origin of a linear kernel at the mean of the points. Tests
# and centered features do not depend on the origin, but their rounding does,
# and so does the ridge of discriminants.
center_linear <- function(sample) {
  parts <- kernel_parts(sample$kernel)
  linear <- vapply(parts, kernel_has, NA, "linear form")
  # A product of kernels has `times` 0 for all factors but the first.
  moves <- any(linear) && all(vapply(parts, \(part) {
    part$times > 0 && (kernel_has(part, "linear form") ||
                         kernel_has(part, "unit diagonal"))
  }, NA))
  if (!stores_gram(sample) && is.null(sample$sketch) && knows_points(sample) &&
        moves) {
    sample$origin <- unname(colMeans(sample$x))
  }
  sample
}

# The sample that fits keep: the points or values to which weights belong.
sample_support <- function(sample) sample$support %||% sample

# The weights of the plain kernel mean on the points of the support.
plain_weights <- function(sample) UseMethod("plain_weights")
plain_weights.kernmean_sample <- \(sample) rep(1 / sample$n, sample$n)

sample_moments.kernmean_sample <- function(sample) {
  if (kernel_has(sample$kernel, "function") && !stores_gram(sample)) {
    # This stops if the values at some of the points are not those of a kernel.
    sample_gram(sample_take(sample, evenly(sample$n, 30L)))
  }
  rows <- sample_rows(sample) / sample$n
  varrho <- mean.default(sample_diagonal(sample))
  rho <- squares(mean.default(rows), max(varrho, abs(rows)), "norm of the mean")
  list(n = sample$n, rows = rows, rho = rho, varrho = varrho)
}

# Squared norms with 0 for those below 0 by rounding; lower values are an error.
# `size` is that of their terms, `of` the words for the message.
squares <- function(values, size, of) {
  if (isTRUE(min(values) < -sqrt(.Machine$double.eps) * size)) {
    stop_input("kernel values must be positive semi-definite; the squared ", of,
               " is ", format(min(values), digits = 3), " (distances are no ",
               "kernel: exp(-distance) may be one)")
  }
  pmax(values, 0)
}

# At most `most` of the numbers 1 to n, evenly spread.
evenly <- function(n, most) unique(round(seq(1, n, length.out = min(n, most))))

# Do two samples have the same points and kernel? Where points are not known the
# gram decides.
same_sample <- function(a, b) {
  if (knows_points(a) && knows_points(b)) {
    identical(unname(a$x), unname(b$x)) &&
      same_kernel(a$kernel, b$kernel, ncol(a$x))
  } else {
    same_gram(a$gram, b$gram)
  }
}

# An error, which calls the samples by these names, unless both are in the space
# of one kernel.
check_same_space <- function(a, b, a_name, b_name) {
  both <- paste(a_name, "and", b_name, "must")
  if (!knows_points(a) || !knows_points(b)) {
    if (!same_gram(a$gram, b$gram)) {
      stop_input(both, " share one gram where points are not known")
    }
    return(invisible())
  }
  if (ncol(a$x) != ncol(b$x)) {
    stop_input(both, " have the same number of columns, not ", ncol(a$x),
               " and ", ncol(b$x))
  }
  if (differ_in_names(colnames(a$x), colnames(b$x))) {
    stop_input(both, " have the same columns in the same order")
  }
  if (!same_kernel(a$kernel, b$kernel, ncol(a$x))) {
    stop_input(
      both, " have the same kernel, not the ", format_kernel(a$kernel),
      " and the ", format_kernel(b$kernel), "; fit ", b_name,
      " with the kernel of ", a_name, ", kernel = ", gsub("'", "", a_name),
      "$kernel"
    )
  }
}

# --- Verbs: new points -------------------------------------------------------

# New points for a fit on a sample.
#   z         m x d matrix, the points as the kernel takes them; or instead
#   values    m x n matrix of their kernel values with the points of the sample
#   names     of the m rows, or NULL
#   m         number of points
#   diagonal  k(z, z), where it is known with the values
new_points <- function(z, names = rownames(z %||% values), values = NULL,
                       diagonal = NULL) {
  list(z = z, values = values, names = names, m = nrow(z %||% values),
       diagonal = diagonal)
}

# The names of the points, NULL where they have none.
sample_names <- function(sample) {
  rownames(if (knows_points(sample)) sample$x else sample$gram$K)
}

# The new points that are given by their kernel values with the points of a
# gram.
read_kernel_values <- function(g, newdata) UseMethod("read_kernel_values")
read_kernel_values.gram <- function(g, newdata) {
  new_points(NULL, values = check_kernel_values(newdata, g))
}

# The new points for a fit on the sample; `layout` is that of a fit by formula.
sample_newdata <- function(sample, newdata, layout = NULL) {
  UseMethod("sample_newdata")
}
sample_newdata.kernmean_sample <- function(sample, newdata, layout = NULL) {
  if (!knows_points(sample)) {
    return(read_kernel_values(sample$gram, newdata))
  }
  if (!is.null(layout) && is.data.frame(newdata)) {
    newdata <- read_again(layout, newdata, "x")
  }
  z <- check_newdata(newdata, sample_raw(sample))
  new_points(scale_points(sample$kernel, z))
}

# The value of predict() for new rows, some of which have missing values, with
# NA for these rows; NULL if no value is missing.
predict_gaps <- function(object, newdata, ...) {
  if (!knows_points(object$sample) ||
        !(is.data.frame(newdata) || is.numeric(newdata)) ||
        !anyNA(newdata, recursive = TRUE)) {
    return(NULL)
  }
  used <- colnames(newdata) %in% (object$layout$x$columns %||%
                                    colnames(sample_raw(object$sample)))
  gaps <- which(rowSums(as.matrix(is.na(
    if (any(used)) take_columns(newdata, used) else newdata
  ))) > 0)
  if (!length(gaps)) {
    return(NULL)
  }
  omit <- structure(gaps, names = rownames(newdata)[gaps], class = "exclude")
  every <- length(gaps) == NROW(newdata)
  # If every row has gaps, the prediction at a point of the sample shows which
  # shape the result has.
  known <- if (every) take_rows(sample_raw(object$sample), 1L) else
    take_frame(newdata, -gaps)
  rapply(list(predict(object, known, ...)), \(x) {
    if (!every) {
      return(stats::napredict(omit, x))
    }
    x <- take_frame(x, rep(NA_integer_, length(gaps)))
    if (is.matrix(x)) rownames(x) <- names(omit) else
      if (!is.null(names(x))) names(x) <- names(omit)
    x
  }, how = "replace")[[1L]]
}

# The points of the sample as new ones.
own_points <- function(sample) {
  if (knows_points(sample)) {
    new_points(sample$x)
  } else {
    new_points(NULL, NULL, unname(sample_matrix(sample)))
  }
}

# L v, where L is the m x n matrix of kernel values of new points and the
# sample.
sample_at <- function(sample, new, v) {
  v <- as.matrix(v)
  if (!is.null(new$values)) {
    return(product(new$values, v))
  }
  other <- if (identical(new$z, sample$x)) NULL else sample$x
  matrix(fold_apply(sample$kernel, new$z, other, v, sample$origin),
         ncol = ncol(v))
}

# Some rows of L, the matrix of kernel values of new points and the sample.
sample_cross <- function(sample, new, rows = seq_len(new$m)) {
  if (!is.null(new$values)) {
    return(take_rows(new$values, rows))
  }
  fold_store(sample$kernel, take_rows(new$z, rows), sample$x, sample$origin)
}

# --- print -------------------------------------------------------------------

# Lines of print() on the kernel of a sample, and on what it was made of.
sample_kernel_lines <- function(sample) {
  c(kernel_lines(sample$kernel), sample_note(sample))
}

sample_note <- function(sample) UseMethod("sample_note")
sample_note.kernmean_sample <- \(sample) NULL
sample_note.gram_sample <- \(sample) gram_note(sample$gram)

# "50 points in 4 columns"
describe_sample <- function(sample) UseMethod("describe_sample")
describe_sample.kernmean_sample <- function(sample) {
  paste0(
    count_of(sample$n, if (inherits(sample$gram, "bag_gram")) {
      "distribution"
    } else {
      "point"
    }),
    if (knows_points(sample)) {
      paste0(" in ", count_of(ncol(sample_raw(sample)), "column"))
    } else {
      " (Gram matrix)"
    }
  )
}

#' @export
print.kernmean_sample <- function(x, ...) {
  say(describe_sample(x), kernel_lines(x$kernel))
  invisible(x)
}

# --- Fits on one sample ------------------------------------------------------

# The values of a fit at its points or at new ones, beside these points or
# `data`.
#' @exportS3Method generics::augment
augment.kernmean_fit <- function(x, data = NULL, ..., newdata = NULL) {
  check_dots(...)
  if (!is.null(newdata) && !is.null(data)) {
    stop_input("'data' must be NULL where 'newdata' is given")
  }
  added <- fit_values(same_version(x, "x"), newdata)
  if (is.null(added)) {
    has_none(x, "values of its points")
  }
  frame <- if (is.null(data)) fit_columns(x, newdata, added) else
    check_sample_rows(data, nrow(added))
  add_columns(frame, added)
}

fit_columns.default <- function(x, newdata, added) {
  sample <- fit_sample_of(x)
  if (knows_points(sample)) {
    named_frame(newdata %||% sample_raw(sample))
  } else {
    blank_frame(nrow(added), if (is.null(newdata)) sample_names(sample) else
      value_names(newdata, added))
  }
}

#' @export
as.data.frame.kernmean_fit <- function(x, row.names = NULL, optional = FALSE,
                                       ...) {
  check_dots(...)
  frame <- fit_frame(x)
  if (".rownames" %in% names(frame)) {
    rownames(frame) <- frame$.rownames
    frame$.rownames <- NULL
  }
  name_frame(frame, row.names)
}

fit_frame.default <- function(x) {
  if (is.null(fit_values(x))) fit_rows(x) else augment.kernmean_fit(x)
}

# The request of update() for a fit on one sample: the same points with the
# kernel as it was fitted, or other points with the kernel that was asked for.
# Its attribute "kept" has the names of the arguments that the new fit stores as
# the old one did, NULL for other points; "fields" names fields that the new fit
# takes over.
fit_request.default <- function(x, changes) {
  sample <- x$sample
  arguments <- x$arguments
  if ("data" %in% names(changes) && !is.null(x$layout)) {
    changes$x <- read_again(x$layout, changes$data, "x", "data")
    changes$data <- NULL
  }
  if (is.null(sample)) {
    return(change_request(arguments, changes))
  }
  same <- !"x" %in% names(changes)
  units <- intersect(c("kernel", "scale"), names(changes))
  if (!same) {
    arguments["kernel"] <- list(
      kernel_for(changes$x, arguments$kernel, sample)
    )
  } else {
    arguments$x <- sample_input(sample, length(units) > 0L)
    # In other units the points need another bandwidth.
    if (!"scale" %in% units) {
      arguments["kernel"] <- list(sample_kernel(sample))
    } else if (stores_gram(sample)) {
      arguments$kernel <- open_kernel(sample$kernel)
    }
    if (identical(units, "kernel")) {
      changes["kernel"] <- list(keep_units(changes$kernel, sample))
    }
  }
  if (brings_kernel(if (same) arguments$x else changes$x) ||
        kernel_has(changes$kernel, "scaling")) {
    arguments["scale"] <- NULL
  }
  asked <- change_request(arguments, changes)
  kept <- if (!"kernel" %in% units) setdiff(c("kernel", "scale"), units)
  structure(asked, kept = if (same) c(kept, character()))
}

# The names of points where they have some, else their numbers.
point_labels <- function(sample) {
  sample_names(sample) %||% seq_len(sample$n)
}

# The names of new points that are given by kernel values. A new bag may have
# several rows in a data frame; then the names are those of the fitted values.
value_names <- function(newdata, added) {
  if (is_plain_list(newdata)) {
    names(newdata)
  } else if (nrow(newdata) == nrow(added)) {
    rownames(newdata)
  } else {
    given_rows(added)
  }
}

# Are two grams one object, or is one of them a saved copy of the other?
same_gram <- function(a, b) {
  !is.null(a) && (identical(a, b) ||
    !is.null(a$id) && identical(a$id, b$id))
}

# The m x n matrix of kernel values of new points and the sample, checked, and
# centered and shrunk if the gram of the fit is.
check_kernel_values <- function(newdata, g) {
  n <- nrow(g$K)
  if (!is.null(g$coordinates)) {
    stop_input("'newdata' must be missing for a fit on distances: where new ",
               "points are among the principal coordinates is not known; ",
               "cmdscale() makes points, which have new ones")
  }
  values <- check_data(newdata, "newdata")
  if (ncol(values) != n) {
    stop_input(
      "'newdata' must hold the kernel values of new points and the ", n,
      " points of the sample, one column for each, not ",
      count_of(ncol(values), "column")
    )
  }
  if (is.null(g$intensity)) {
    return(values)
  }
  if (length(g$at) > 1L) {
    values <- values - outer(rowMeans(values), g$at, `+`) + g$norm2
  }
  (1 - g$intensity) * values
}

# A frame with the columns that a fit adds to its rows.
add_columns <- function(frame, added) {
  has_names <- .row_names_info(frame) > 0L
  labels <- rownames(frame)
  rownames(frame) <- NULL
  if (has_names) {
    frame <- cbind(data.frame(.rownames = labels), frame)
  }
  rownames(added) <- NULL
  cbind(frame, added)
}

check_sample_rows <- function(data, n) {
  if (!is.data.frame(data) && !is.matrix(data) || nrow(data) != n) {
    stop_input(
      "'data' must be a data frame with a row for each of the ",
      count_of(n, "point"), " of the fit, not ", describe(data),
      if (is.data.frame(data)) paste(" of", count_of(nrow(data), "row"))
    )
  }
  named_frame(data)
}

# A data frame of n rows without columns.
blank_frame <- function(n, names = NULL) {
  named_frame(matrix(0, n, 0L, dimnames = list(names, NULL)))
}

# The frame with new names of its rows; NULL keeps those that it has.
name_frame <- function(frame, row.names) {
  if (is.null(row.names)) {
    return(frame)
  }
  n <- nrow(frame)
  if (!is.character(row.names) && !is.numeric(row.names) ||
        length(row.names) != n || anyNA(row.names) ||
        anyDuplicated(row.names)) {
    stop_input("'row.names' must be NULL or ", count_of(n, "different name"),
               ", not ", describe(row.names))
  }
  rownames(frame) <- row.names
  frame
}
