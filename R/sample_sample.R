# The shelf sample_: samples, whether points, Gram matrices or sketches, and
# their verbs.
#
# Offers from sample_sample.R: as_sample, axes_of, brings_kernel,
#   center_blocks, center_linear, check_rows, describe_sample, evenly,
#   fit_request.default, fit_sample, form_sample, given_blocks,
#   gram_sample, has_open_bandwidth, input_word, keep_units, kernel_for,
#   known_rows, knows_points, new_points, new_sample, new_values,
#   number_codes, own_order, own_points, plain_weights, point_labels,
#   points_sample, predict_gaps, product_source, read_bandwidth,
#   read_kernel_values, read_sample, same_sample, sample_apply, sample_at,
#   sample_cross, sample_diagonal, sample_gram, sample_input,
#   sample_kernel, sample_matrix, sample_names, sample_newdata,
#   sample_note, sample_points, sample_raw, sample_rows, sample_source,
#   sample_support, sample_take, stores_gram, tried_kernels,
#   walkable_sample, without_blocks, without_gram.
# Offers from sample_dist.R: dist_sample.
# Offers from sample_embedding.R: by_point, embedding_parts, inner_matrix,
#   inner_pairs, inner_part, inner_parts, merge_parts, noisy_sample,
#   norm2_part, norm2_parts, part_at, parts_at, scale_parts, target_parts,
#   values_at, weights_of, weights_on.
# Offers from sample_target.R: check_target, check_target_kind, is_mixture.
#
# A sample: what kernel means are estimated from, and the only place that knows
# of what kind one is. Fields, all of them public:
#   n        number of points
#   kernel   the kernel, its bandwidth a number; NULL if only values are known
#   x        the points as the kernel takes them, n x d; NULL where only values
#            are known
#   raw      the points as they were given, NULL where these are x
#   gram     their Gram matrix, if one was given or formed; else NULL
#   weights  the user's, or NULL for 1/n each
#   origin   of a linear kernel, or of a sum with one, where that is not 0
#   blocks   codes of the points, given which its features are centered, or NULL
# A new kind of sample is a constructor, and methods for the verbs below.
# A sketch (sketch_sample.R) is one of which only sums over points are known.
#

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

# The sample given blocks: its features are less the means of their blocks, and
# its Gram matrix is HKH, H = I less the means. Features of new points are not.
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

# The same with its features as they were, where they can be told.
without_blocks <- function(sample) {
  if (!stores_gram(sample)) sample["blocks"] <- list(NULL)
  sample
}

# Its Gram matrix is stored where it is centered, and only there.
form_given <- function(sample) {
  if (is.null(sample$blocks)) sample else form_sample(sample)
}

# Codes 1, 2, ... of the values, in the order in which they come.
number_codes <- function(values) match(values, unique(values))

# Each row less the mean of its block; no rounding where that is all there is.
center_blocks <- function(x, blocks) {
  blocks <- number_codes(blocks)
  means <- rowsum(x, blocks, reorder = FALSE) / tabulate(blocks)
  r <- x - take_rows(means, blocks)
  r[abs(r) <= 8 * .Machine$double.eps * max(abs(x), 0)] <- 0
  r
}

# HKH
center_both <- function(k, blocks) {
  unname(center_blocks(t(center_blocks(k, blocks)), blocks))
}

# Points as they are given, with a kernel to be fitted to them.
fit_sample <- function(x, kernel, scale = NULL, name = "x") {
  units <- fit_units(kernel, x, scale, name)
  points_sample(units$x, units$kernel, raw = units$raw)
}

# The sample that a door was given: points, with a kernel that is fitted to them
# (NULL: `default`, or else kernel_rbf()), or a gram.
# `scale`: the units of the columns, NULL where nothing was said of them.
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
    kernel <- kernel_of(x, if (!is.null(kernel)) check_kernel(kernel), default)
    check_definite(kernel)
    sample <- fit_sample(x, kernel, scale)
  }
  if (!is.null(weights)) {
    sample$weights <- check_weights(weights, sample)
  }
  sample
}

# Has what a door was given a kernel of its own?
brings_kernel <- function(x) inherits(x, c("gram", "kme_sketch"))

# What messages call that.
input_word <- function(x) if (inherits(x, "gram")) "gram" else "sketch"

as_sample <- function(x) UseMethod("as_sample")
as_sample.default <- \(x) points_sample(read_points(x), NULL)
as_sample.kernmean_sample <- identity
as_sample.gram <- function(x) {
  check_finite(x$K, "K")
  gram_sample(x)
}

# Are its points known one by one?
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

# The kernel for a door that is given another sample in place of this one.
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

# What the argument `bandwidth` says, for the sample and the kernel that were
# given: the word of a rule, which is the default where it is open; "median",
# numbers, or NULL.
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

# The kernels that one is chosen of, perhaps a single one: `factors` of the
# median distance for the word of a rule, or numbers.
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

# What a door takes to read the sample again; with another kernel to come, its
# points.
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

# Those of the points that may be drawn.
known_rows <- function(sample) {
  x <- sample_raw(sample)
  if (is.null(sample$sketch) && !is.data.frame(x)) x else take_rows(x, 0L)
}

# The number of columns as axes, NULL where points have none.
axes_of <- function(sample) {
  if (knows_points(sample) && !is.data.frame(sample$raw)) ncol(sample$x)
}

# --- Verbs: the sample itself ------------------------------------------------

# A fold of kernel_tile.R over its points or its stored values.
fold_sample <- function(sample, fold, ...) {
  check_rows(sample)
  sample <- form_given(sample)
  if (stores_gram(sample)) fold(NULL, sample$gram$K, ...) else
    fold(sample$kernel, sample$x, ...)
}

# What the core takes; of a kernel that is an R function, the stored values.
sample_source <- function(sample) {
  fold_sample(walkable_sample(sample), native_source, NULL, sample$origin)
}

# K 1, the row sums.
sample_rows <- function(sample) {
  fold_sample(sample, fold_rows, center = sample$origin)
}

sample_diagonal <- function(sample) {
  fold_sample(sample, fold_diagonal, sample$origin)
}

# K v; a vector for one column.
sample_apply <- function(sample, v) {
  fold_sample(sample, fold_apply, NULL, v, sample$origin)
}

# K itself.
sample_matrix <- function(sample) {
  sample <- form_given(sample)
  if (stores_gram(sample)) sample$gram$K else
    fold_sample(sample, fold_store, NULL, sample$origin)
}

#' @export
as.matrix.kernmean_sample <- function(x, ...) sample_matrix(x)

# The gram, formed if there is none.
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

# What the core can walk over: a user's function is called once for each value.
walkable_sample <- function(sample) {
  if (kernel_has(sample$kernel, "function")) form_sample(sample) else sample
}

# The source for many products with K: stored where a look at memory costs less
# than its values.
product_source <- function(sample) {
  if (!stores_gram(sample) && stores_matrix(sample$n, NCOL(sample$x))) {
    native_source(NULL, sample_matrix(sample))
  } else {
    sample_source(sample)
  }
}

# The larger the matrix is, the more columns it takes.
stores_matrix <- function(n, d) {
  bytes <- 8 * n^2
  d > (if (bytes <= 2^28) 16 else 64) && bytes < memory_available() / 2
}

# The sample in another order, or a part of it.
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

own_order <- function(sample) {
  do.call(order, if (knows_points(sample)) {
    unname(as.data.frame(sample_raw(sample)))
  } else {
    list(sample_diagonal(sample), sample_rows(sample))
  })
}

# The sample of points, its values not stored.
without_gram <- function(sample) {
  given_blocks(points_sample(sample$x, sample$kernel, sample$weights,
                             sample$raw), sample$blocks)
}

# A linear kernel whose origin is the mean of the points: tests and centered
# features do not see where the origin is, but their rounding does, and so does
# the ridge of discriminants.
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

# What fits keep of it: points, or values, on which weights and functions stand.
sample_support <- function(sample) sample$support %||% sample

# The weights of the plain kernel mean on these.
plain_weights <- function(sample) UseMethod("plain_weights")
plain_weights.kernmean_sample <- \(sample) rep(1 / sample$n, sample$n)

sample_moments.kernmean_sample <- function(sample) {
  if (kernel_has(sample$kernel, "function") && !stores_gram(sample)) {
    # Is it a kernel on some of the points?
    sample_gram(sample_take(sample, evenly(sample$n, 30L)))
  }
  rows <- sample_rows(sample) / sample$n
  varrho <- mean.default(sample_diagonal(sample))
  rho <- squares(mean.default(rows), max(varrho, abs(rows)), "norm of the mean")
  list(n = sample$n, rows = rows, rho = rho, varrho = varrho)
}

# Squares of norms, whose terms are of this size: not below 0 but by rounding.
squares <- function(values, size, of) {
  if (isTRUE(min(values) < -sqrt(.Machine$double.eps) * size)) {
    stop_input("kernel values must be positive semi-definite; the squared ", of,
               " is ", format(min(values), digits = 3), " (distances are no ",
               "kernel: exp(-distance) may be one)")
  }
  pmax(values, 0)
}

# So many of n numbers, at most.
evenly <- function(n, most) unique(round(seq(1, n, length.out = min(n, most))))

# May the weights of both stand for the same sections? Where points are known
# they decide, else the gram.
same_sample <- function(a, b) {
  if (knows_points(a) && knows_points(b)) {
    identical(unname(a$x), unname(b$x)) &&
      same_kernel(a$kernel, b$kernel, ncol(a$x))
  } else {
    same_gram(a$gram, b$gram)
  }
}

# Are both in the space of one kernel? Else an error that calls them by these
# names.
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
# New points are list(z: points or values: m x n kernel values with the sample;
# names, m); of values, `diagonal` too where it is known: k(z, z).

new_points <- function(z, names = rownames(z)) {
  list(z = z, names = names, m = nrow(z))
}

new_values <- function(values, names = rownames(values)) {
  list(values = values, names = names, m = nrow(values))
}

# The names of its points, NULL for none.
sample_names <- function(sample) {
  rownames(if (knows_points(sample)) sample$x else sample$gram$K)
}

# Kernel values of new points with those of a gram.
read_kernel_values <- function(g, newdata) UseMethod("read_kernel_values")
read_kernel_values.gram <- function(g, newdata) {
  new_values(check_kernel_values(newdata, g))
}

# newdata for a fit on the sample; `layout` is that of a fit by formula.
sample_newdata <- function(sample, newdata, layout = NULL) {
  UseMethod("sample_newdata")
}
sample_newdata.kernmean_sample <- function(sample, newdata, layout = NULL) {
  if (!knows_points(sample)) {
    return(read_kernel_values(sample$gram, newdata))
  }
  if (!is.null(layout) && is.data.frame(newdata)) {
    newdata <- read_terms(layout, newdata)
  }
  z <- check_newdata(newdata, sample_raw(sample))
  new_points(scale_points(sample$kernel, z))
}

# What predict() says of new rows of which some have missing values, NA for
# these; NULL where none have any.
predict_gaps <- function(object, newdata, ...) {
  if (!knows_points(object$sample) ||
        !(is.data.frame(newdata) || is.numeric(newdata)) ||
        !anyNA(newdata, recursive = TRUE)) {
    return(NULL)
  }
  used <- colnames(newdata) %in% (attr(object$terms, "columns") %||%
                                    colnames(sample_raw(object$sample)))
  gaps <- which(rowSums(as.matrix(is.na(
    if (any(used)) take_columns(newdata, used) else newdata
  ))) > 0)
  if (!length(gaps)) {
    return(NULL)
  }
  omit <- structure(gaps, names = rownames(newdata)[gaps], class = "exclude")
  every <- length(gaps) == NROW(newdata)
  # The shape of what is said of a row is that of any point.
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
    new_values(unname(sample_matrix(sample)), NULL)
  }
}

# L v for the kernel values L of new points and the sample: m x columns.
sample_at <- function(sample, new, v) {
  v <- as.matrix(v)
  if (!is.null(new$values)) {
    return(product(new$values, v))
  }
  other <- if (identical(new$z, sample$x)) NULL else sample$x
  matrix(fold_apply(sample$kernel, new$z, other, v, sample$origin),
         ncol = ncol(v))
}

# L itself, of some of the new points.
sample_cross <- function(sample, new, rows = seq_len(new$m)) {
  if (!is.null(new$values)) {
    return(take_rows(new$values, rows))
  }
  fold_store(sample$kernel, take_rows(new$z, rows), sample$x, sample$origin)
}

# --- print -------------------------------------------------------------------

# What else print() says of it: a line, or NULL.
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

# The points of the fit, as they are or as `data`, or new points, and what the
# fit says of them.
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

# Of a fit on one sample: its points with the kernel as it was fitted, or others
# with the kernel that was asked for. attr "kept": the arguments whose stored
# form is that of the fit; NULL for other points. attr "fields": fields that are
# taken over as they are.
fit_request.default <- function(x, changes) {
  sample <- x$sample
  arguments <- x$arguments
  if ("data" %in% names(changes) && !is.null(x$terms)) {
    changes$x <- read_terms(x$terms, changes$data, "data")
    changes$data <- NULL
  }
  same <- !"x" %in% names(changes)
  units <- intersect(c("kernel", "scale"), names(changes))
  if (!same) {
    arguments["kernel"] <- list(
      kernel_for(changes$x, arguments$kernel, sample)
    )
  } else {
    arguments$x <- sample_input(sample, length(units) > 0L)
    # In other units the bandwidth is another.
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

# The names of kernel values of new points; of new bags, of which a data frame
# has several rows each, those of what a fit says of them.
value_names <- function(newdata, added) {
  if (is_plain_list(newdata)) {
    names(newdata)
  } else if (nrow(newdata) == nrow(added)) {
    rownames(newdata)
  } else {
    given_rows(added)
  }
}

# The same object, or it and what was saved of it.
same_gram <- function(a, b) {
  !is.null(a) && (identical(a, b) ||
    !is.null(a[["id"]]) && identical(a[["id"]], b[["id"]]))
}

# For an object fitted on a gram of kernel values: those of m new points and the
# n points of the sample, m x n, made as those off the diagonal of the matrix.
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

# A frame and what a fit says of its rows.
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

# Rows without columns.
blank_frame <- function(n, names = NULL) {
  named_frame(matrix(0, n, 0L, dimnames = list(names, NULL)))
}

# A frame with these names of its rows, NULL for those that it has.
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
