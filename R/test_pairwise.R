#' Comparisons of many groups
#'
#' Kernel two-sample tests of all pairs of groups, or of each group against one
#' of them, with adjusted p-values.
#'
#' Each comparison is the two-sample test [mmd_test()] of its two groups with
#' the same `filter`. By default that is here, unlike there, the MMD alone,
#' `filter = "none"` (with `blocks` or factors among the columns the few
#' statistics that stand there); `filter = TRUE` takes the several statistics of
#' its joint test. What is permuted are the points of the pair (within their
#' `blocks`, by `clusters`, or all labelings of the pair): labels of all groups
#' would hold the level only where no two groups differ. The bandwidth, the
#' units of the columns and the noise of marginalized estimators come from the
#' points of all groups, once; what shrunk means choose comes from the pair, and
#' so do the means of `blocks` that features are centered by.
#'
#' @section Draws:
#' Comparisons of groups of the same two sizes share one set of permutations,
#' drawn as the two-sample test draws them, in the order of the levels of the
#' groups: with the same seed the first comparison, and each of its sizes, has
#' the p-value that [mmd_test()] of the two groups has with the same `filter`
#' (`"none"` for none) and the bandwidth as a number; those of the next sizes go
#' on in the stream. With `blocks`, `clusters`, bins or other nulls each
#' comparison draws by itself, and so do those for which N B is above 2^26.
#' Draws that are shared make p-values depend on each other; each is exact by
#' itself, and the methods of Holm and Bonferroni hold whatever the dependence.
#' `"hochberg"`, `"hommel"` and `"BH"` need p-values that are not negatively
#' dependent.
#'
#' With B draws no p-value is below 1/(B + 1), and of k comparisons no adjusted
#' one below k/(B + 1) by the methods of Holm and Bonferroni; a warning says
#' where that is above 0.05.
#'
#' @section Cost:
#' Each pair takes the time of its two-sample test. Groups of at most a quarter
#' of a `reference` take less: for averages and kernels of one sign their
#' statistics come from the sums of one fold over all points. With
#' \eqn{r_i}{r_i} the sum of row i of K over the pair, \eqn{t = \sum_i
#' r_i}{t = sum r_i}, s the smaller sample as relabeled (m points, the other n),
#' \eqn{q = \sum_{ij \in s} K_{ij}}{q = the sum of K over s and s} and
#' \eqn{\rho = \sum_{i \in s} r_i}{rho = the sum of r over s},
#' \deqn{\mathrm{MMD}^2 = q/m^2 + (t - 2\rho + q)/n^2 - 2(\rho -
#' q)/(mn),}{MMD^2 = q/m^2 + (t - 2 rho + q)/n^2 - 2 (rho - q)/(mn),}
#' and the unbiased statistic likewise: O(N^2 d) time for all N points together,
#' O(B m^2 d) for a pair, N doubles for each group. A draw that lies in the
#' reference serves all groups of one size.
#'
#' @param x A numeric vector, matrix or data frame (as in [mmd_test()]), the
#'   points of all groups in rows; a [gram()] of them, or their distances
#'   (`dist`); a [kme_sketch()] with groups, which is compared as by
#'   [mmd_test.kme_sketch()].
#' @param groups The group of each point, a factor or a vector.
#' @param formula,data,subset,na.action As in [mmd_test()]: `response ~ group`.
#' @param kernel,estimator,bandwidths,filter,blocks,clusters,scale,progress As
#'   in [mmd_test()].
#' @param ... Must be empty; in the other methods, arguments of the default
#'   method.
#' @param reference `NULL` for all pairs, or the group that all others are
#'   compared with, by name.
#' @param adjust The adjustment of the p-values, one of [p.adjust.methods].
#' @param B Number of permutations of each comparison; `NULL` is 999, or 399 of
#'   several statistics, or all labelings if these are no more than 2,000.
#' @param control [test_control()]; its `permutations` may be `NULL` or `"all"`.
#' @return An object of class `c("mmd_pairwise", "kernmean_fit")`, a list of
#' \item{table}{a data frame with a row for each comparison: `group1`, `group2`
#'   (the reference, where there is one), their sizes `n1`, `n2`, the
#'   `statistic` of the test (of one statistic \eqn{\mathrm{MMD}^2}{MMD^2}),
#'   `distance`, its root (0 where it is negative; with filters or many
#'   bandwidths the distance of the plain kernel means), `p.value`,
#'   `p.adjusted`}
#' \item{method, data.name}{words of `print()`}
#' \item{adjust, reference}{as given; `reference` is `NULL` for all pairs}
#' \item{B, null, type, estimator, noise, kernel, sample, groups, sizes,
#'   arguments}{as of [mmd_test()]; `B` is `NULL` where there are no random
#'   draws}
#' \item{labelings, least}{of each comparison how many labelings there are, 0
#'   unless all were taken, and the least p-value possible}
#' `print()` shows up to twelve rows, of more the ten with the smallest
#' p-values. `as.data.frame()` gives the table, `as.matrix()` a matrix groups by
#' groups (the diagonal `NA` for p-values), `as.dist()` the distances, of all
#' pairs.
#'
#' `plot()` draws the distance of each pair as the color of a tile, for up to
#' twelve groups with the adjusted p-values. A tree of the groups is
#' `hclust(as.dist(x))`.
#' @seealso [glossary]; [stats::p.adjust()]
#' @examples
#' set.seed(1)
#' # Each feed against casein
#' feeds <- mmd_pairwise(weight ~ feed, chickwts, reference = "casein", B = 199)
#' feeds
#'
#' # All pairs
#' all <- update(feeds, reference = NULL, B = 299)
#' all
#' as.dist(all)
#' plot(all)
#' @export
mmd_pairwise <- function(x, ...) {
  UseMethod("mmd_pairwise")
}

#' @rdname mmd_pairwise
#' @export
mmd_pairwise.default <- function(x, groups, kernel = kernel_rbf(),
                                 estimator = "kme", ..., reference = NULL,
                                 adjust = "holm", bandwidths = NULL,
                                 filter = NULL, B = NULL, blocks = NULL,
                                 clusters = NULL, scale = FALSE,
                                 control = test_control(),
                                 progress = interactive()) {
  check_given(x)
  asked <- request(pairwise_arguments)
  if (!inherits(x, "pooled_samples")) {
    label <- paste(label_of(substitute(x)), "by", label_of(substitute(groups)))
    x <- pool_groups(x, groups, label, "x")
  } else if (!missing(groups)) {
    stop_input("'groups' must not be given; they come with the data")
  }
  compare_pooled(x, asked)
}

# The comparisons of pooled samples or sketches, see pool_samples().
compare_pooled <- function(pooled, asked) UseMethod("compare_pooled")
compare_pooled.pooled_samples <- function(pooled, asked) {
  options <- mmd_options(asked)
  samples <- read_samples(pooled, options)
  options["filter"] <- list(without_factor(options$filter))
  options <- check_reference(options, levels(samples$groups))
  if (!is.null(options$permutations) &&
        !identical(options$permutations, "all")) {
    stop_input("'permutations' must be NULL or \"all\" for comparisons, each ",
               "of which is permuted by itself, not ",
               describe(options$permutations))
  }
  listed <- list_pairs(levels(samples$groups), samples$sizes, options$reference)
  # All pairs have views of the same names; general_pair() makes them for each.
  samples$views <- view_names(samples, options, max(listed$m + listed$n))
  samples <- settle_compared(samples, options)
  pairs <- compared_pairs(samples, options)
  pairs <- least_of_pairs(pairs, options)
  new_pairwise(samples, pairs, compare_pairs(samples, pairs, options), options,
               stored(asked))
}

check_reference <- function(options, labels) {
  if (!is.null(options$reference)) {
    options$reference <- take(as.character(options$reference), choice(labels),
                              "reference")
  }
  options
}

pairwise_arguments <- do.call(door_table, c(
  "mmd_pairwise.default", mmd_arguments$kinds,
  list(reference = anything, adjust = choice(stats::p.adjust.methods),
       rules = mmd_arguments$rules, hints = test_hints)
))

#' @rdname mmd_pairwise
#' @export
mmd_pairwise.formula <- function(formula, data = NULL, subset, na.action, ...,
                                 blocks = NULL, clusters = NULL) {
  test_formula(mmd_pairwise.default, ...)
}

# Adds to the samples what their pairs need: the sample as `walkable`, the
# number of points before each group as `first`, the estimator with nothing left
# to choose, and its noise, which comes from the whole sample as the bandwidth
# does. An average also has the sample whose kernel values are added up,
# `summed`, and the factor of the statistic, `height`.
settle_compared <- function(samples, asked) {
  sample <- walkable_sample(samples$sample)
  samples$walkable <- sample
  samples$first <- cumsum(samples$sizes) - samples$sizes
  samples$estimator <- asked$estimator
  if (is_unshrunk(asked$estimator)) {
    if (is_each(asked$estimator$noise)) {
      stop_input("'estimator' must have one covariance for all points, not ",
                 describe(asked$estimator$noise))
    }
    average <- est_settle(asked$estimator, sample, "the pooled sample")
    samples$noise <- average$chosen$noise
    if (!is.null(samples$noise)) samples$estimator$noise <- samples$noise
    samples$summed <- settled_sample(sample, average)
    samples$height <- average$height
  }
  samples
}

# --- The pairs ---------------------------------------------------------------

# Returns the pairs, a data frame with a row for each comparison. It has the
# numbers of the two groups (first, second), their sizes (m, n), the units and
# bins that change places, and `fast`, which says whether the statistic comes
# from pooled sums.
compared_pairs <- function(settled, asked) {
  labels <- levels(settled$groups)
  pairs <- list_pairs(labels, settled$sizes, asked$reference)
  units <- read_units(asked$blocks, asked$clusters, settled$order)
  for (p in seq_len(nrow(pairs))) {
    rows <- pair_rows(settled, pairs[p, ])
    tryCatch({
      size <- c(pairs$m[p], pairs$n[p])
      pairs$units[p] <- list(sample_units(size, units$blocks[rows],
                                          units$clusters[rows]))
      pairs$bins[p] <- list(count_bins(asked, size))
    }, kernmean_error_input = \(e) {
      stop_input("in the comparison of '", labels[pairs$first[p]], "' and '",
                 labels[pairs$second[p]], "': ", conditionMessage(e))
    })
  }
  least <- as.double(pmin(pairs$m, pairs$n))
  total <- as.double(pairs$m + pairs$n)
  # Pooled sums are faster if the group is small compared with the reference,
  # and if it has few kernel values compared with a pass over the pair.
  reference <- settled$sizes[match(asked$reference %||% NA, labels)]
  pairs$fast <- draws_among_all(asked) && has_pooled_sums(settled, asked) &
    (4 * least <= reference) %in% TRUE & lengths(pairs$bins) == 0L &
    least^2 <= pmax(16 * total, total^2 / 64) &
    choose(total, least) > max(asked$B, asked$enumerated) + 0.5
  pairs
}

list_pairs <- function(labels, sizes, reference) {
  each <- if (is.null(reference)) {
    utils::combn(length(labels), 2L)
  } else {
    h <- match(reference, labels)
    others <- seq_along(labels)[-h]
    rbind(pmin(others, h), pmax(others, h))
  }
  data.frame(first = each[1L, ], second = each[2L, ],
             m = sizes[each[1L, ]], n = sizes[each[2L, ]])
}

# The points of a pair, those of the first group first.
pair_rows <- function(settled, pair) {
  groups <- c(pair$first, pair$second)
  sequence(settled$sizes[groups], settled$first[groups] + 1L)
}

# Do pooled sums give the statistic and the size of its terms? They do if all
# kernel values have one sign, because the terms are then as large as their sum.
has_pooled_sums <- function(settled, asked) {
  sample <- settled$summed
  if (is.null(sample) || !is.null(c(settled$bandwidths, asked$filter,
                                        settled$views))) {
    return(FALSE)
  }
  if (!stores_gram(sample)) {
    return(kernel_has(sample$kernel, "one sign"))
  }
  ends <- range(sample$gram$K)
  ends[1L] >= 0 || ends[2L] <= 0
}

draws_at_random <- function(asked) {
  asked$null != "gamma" && is.null(asked$permutations)
}

# Returns the pairs with the least possible p-value of each, and the number of
# its labelings if all are taken, else 0. Warns if no data could give an
# adjusted p-value of 0.05, because there are too few labelings or draws.
least_of_pairs <- function(pairs, asked) {
  pairs$labelings <- 0
  pairs$least <- 0
  if (asked$null == "permutation") {
    for (p in seq_len(nrow(pairs))) {
      units <- pairs$units[[p]]
      group <- rep(1:2, units$sizes)
      ways <- count_labelings(group, units$blocks)
      if (takes_all(asked, ways)) pairs$labelings[p] <- round(ways)
      # Exchanging two groups of the same size in each block changes nothing.
      blocks <- units$blocks %||% (0 * group)
      pairs$least[p] <- (1 + all(rowsum(2 * group - 3, blocks) == 0)) / ways
    }
  }
  random <- draws_at_random(asked) & pairs$labelings == 0
  pairs$least <- pmax(pairs$least, ifelse(random, 1 / (asked$B + 1), 0))
  least <- stats::p.adjust(pairs$least, asked$adjust)
  coarse <- least[least > usual_level * (1 + 1e-9)]
  if (length(coarse)) {
    warn_kernmean(
      "adjusted p-values of ", length(coarse), " of ",
      count_of(nrow(pairs), "comparison"), " are at least ",
      format(min(coarse), digits = 2), ", whatever the data",
      if (any(random)) paste(", with B =", asked$B)
    )
  }
  pairs
}

# --- The tests ---------------------------------------------------------------

# A matrix with a column for each pair: the statistic, the p-value and the
# squared distance of plain means. Comparisons of the same two sizes share the
# permutations.
compare_pairs <- function(settled, pairs, asked) {
  bar <- progress_bar(asked$progress)
  on.exit(bar$close())
  asked$progress <- FALSE
  asked$estimator <- settled$estimator
  sums <- if (any(pairs$fast)) pooled_sums(settled)
  results <- matrix(0, 3L, nrow(pairs))
  done <- 0
  least <- pmin(pairs$m, pairs$n)
  sizes <- paste(least, pmax(pairs$m, pairs$n))
  for (same in split(seq_along(sizes), factor(sizes, unique(sizes)))) {
    fast <- pairs$fast[same[1L]]
    drawn <- shared_draws(pairs[same, ], asked)
    at_once <- max(1, most_members %/% (least[same[1L]] * (asked$B + 1)))
    # In all pairs of a panel the reference stands first, or in all it stands
    # second.
    panels <- if (fast) unlist(lapply(
      split(same, pairs$m[same] > pairs$n[same]), row_panels, at_once
    ), FALSE)
    for (i in panels %||% same) {
      results[, i] <- if (fast) sums_pairs(settled, sums, pairs[i, ], drawn,
                                           asked) else
        general_pair(settled, pairs[i, ], drawn, asked)
      done <- done + length(i)
      bar$at(done / nrow(pairs))
    }
  }
  results
}

most_shared <- 2^26
most_members <- 2^22

# Permutations for the comparisons of the same two sizes, drawn as in the
# two-sample test with the smaller sample first. Returns an N x B matrix; for
# pooled sums, only its rows for the smaller sample; or NULL if each comparison
# draws its own.
shared_draws <- function(pairs, asked) {
  sizes <- sort(c(pairs$m[1L], pairs$n[1L]))
  n <- sum(sizes)
  B <- asked$B
  shared <- pairs$fast[1L] || !length(pairs$bins[[1L]]) &&
    as.double(n) * B <= most_shared
  if (!draws_among_all(asked) || !shared) {
    return(NULL)
  }
  kept <- if (pairs$fast[1L]) sizes[1L] else n
  check_memory(kept, B / 2, "use fewer permutations", copies = 4,
               what = "the permutations")
  step <- max(1L, as.integer(most_shared / 16 / n))
  do.call(cbind, in_chunks(B, step, FALSE, \(start, count) {
    take_rows(draw_permutations(sizes, count), seq_len(kept))
  }))
}

# One comparison as a two-sample test.
general_pair <- function(settled, pair, drawn, asked) {
  samples <- list(
    sample = sample_take(settled$walkable, pair_rows(settled, pair)),
    sizes = c(pair$m, pair$n), bandwidths = settled$bandwidths,
    origin = list(blocks = pair$units[[1L]]$given)
  )
  samples$views <- sample_views(samples, settled$views)
  scheme <- check_permutations(asked, pair$units[[1L]])
  n <- pair$m + pair$n
  if (identical(nrow(drawn), n) && is.null(c(pair$bins[[1L]], scheme$matrix)) &&
        !sees_order(asked$estimator)) {
    # The draws have the smaller sample first; if the first sample is the
    # larger, it takes the places from the end.
    scheme$matrix <- if (pair$m <= pair$n) drawn else take_rows(drawn, n:1L)
  }
  scheme["bins"] <- pair$bins
  comparison <- compare_samples(samples, asked, scheme)
  c(comparison$statistic$values[1L],
    without_warning("few", mmd_null(samples, asked, scheme, comparison))$p,
    comparison$plain)
}

# --- From pooled sums --------------------------------------------------------

# The sums of kernel values of each point with each group, a matrix points x
# groups, with the diagonal and the source of the kernel values.
pooled_sums <- function(settled) {
  sample <- settled$summed
  check_memory(sample$n, length(settled$sizes), "use fewer groups",
               what = "the matrix of sums of points over groups,")
  source <- sample_source(sample)
  rows <- .Call(C_r_block_rows, source, settled$sizes)
  list(rows = check_overflow(sample$kernel, rows),
       diagonal = sample_diagonal(sample), source = source)
}

# The results of groups of one size against the reference. With r_i the sum of
# row i over the pair and t = sum_i r_i, a labeling that gives the points s to
# the group has the sums q = s'Ks within the group, s'r - q between the two, and
# t - 2 s'r + q within the reference. If all of s lies in the reference, q is
# the same for all pairs.
sums_pairs <- function(settled, sums, pairs, drawn, asked) {
  n <- pairs$m[1L] + pairs$n[1L]
  m <- min(pairs$m[1L], pairs$n[1L])
  # `places` are those of the smaller sample in the pair: in the first column as
  # observed, then as drawn.
  observed <- seq_len(m) + if (pairs$m[1L] == m) 0L else n - m
  places <- cbind(observed, take_rows(drawn, seq_len(m)))
  rows <- lapply(seq_len(nrow(pairs)), \(i) pair_rows(settled, pairs[i, ]))
  mixed <- colSums(matrix(places %in% places[, 1L], m)) > 0
  members <- c(lapply(rows, `[`, places[, mixed]),
               list(rows[[1L]][places[, !mixed]]))
  forms <- .Call(C_r_small_forms, sums$source, matrix(unlist(members), m))
  own <- seq_len(sum(mixed) * nrow(pairs))
  within <- matrix(0, ncol(places), nrow(pairs))
  within[mixed, ] <- forms[own]
  within[!mixed, ] <- forms[-own]
  sums_over <- \(v) matrix(colSums(matrix(v[places], m)))
  vapply(seq_along(rows), \(i) {
    r <- rowSums(sums$rows[rows[[i]], c(pairs$first[i], pairs$second[i])])
    diagonal <- sums$diagonal[rows[[i]]]
    blocks <- block_sums(take_columns(within, i), sums_over(r),
                         sums_over(diagonal), sum(r), sum(diagonal), 2L)
    blocks$sizes <- matrix(as.double(c(m, n - m)), ncol(places), 2L,
                           byrow = TRUE)
    values <- mmd_values(blocks, asked$statistic)
    value <- settled$height * values[1L]
    c(value, permutation_p(values[1L], values[-1L], abs(sum(r)) / n^2), value)
  }, numeric(3))
}

# --- The object --------------------------------------------------------------

new_pairwise <- function(settled, pairs, results, asked, arguments) {
  check_result(results, "a statistic or its p-value")
  labels <- levels(settled$groups)
  sizes <- stats::setNames(settled$sizes, labels)
  # The table has the reference as group2.
  turned <- labels[pairs$first] %in% asked$reference
  first <- ifelse(turned, pairs$second, pairs$first)
  second <- ifelse(turned, pairs$first, pairs$second)
  table <- data.frame(
    group1 = labels[first], group2 = labels[second],
    n1 = settled$sizes[first], n2 = settled$sizes[second],
    statistic = results[1L, ], distance = sqrt(pmax(0, results[3L, ])),
    p.value = results[2L, ],
    p.adjusted = stats::p.adjust(results[2L, ], asked$adjust)
  )
  scheme <- list(all = !is.null(asked$permutations),
                 words = pairs$units[[1L]]$words)
  new_fit("mmd_pairwise", list(
    table = table,
    method = test_title(if (is.null(asked$reference)) "pairwise two-sample" else
      "two-sample", mmd_words(asked, settled$views), asked, scheme),
    data.name = name_samples(settled$origin$label, sizes),
    adjust = asked$adjust, reference = asked$reference,
    B = if (draws_at_random(asked)) asked$B, labelings = pairs$labelings,
    least = pairs$least, null = asked$null,
    type = asked$statistic, estimator = asked$estimator, noise = settled$noise,
    kernel = settled$sample$kernel, sample = settled$sample,
    groups = settled$groups, sizes = sizes, arguments = arguments,
    origin = settled$origin
  ))
}

fit_lines.mmd_pairwise <- function(x, digits) {
  table <- x$table
  lowest <- sum(table$p.value <= x$least * (1 + 1e-9))
  all <- unique(x$labelings)
  draws <- if (any(all == 0)) {
    if (!is.null(x$B)) paste0("B = ", x$B, if (length(all) > 1L)
      " or all labelings", ", ")
  } else {
    paste0("all ", format_several(all), " labelings, ")
  }
  count <- nrow(table)
  shown <- if (count <= 12L) seq_len(count) else
    order(table$p.value, -table$statistic)[1:10]
  c(
    "", strwrap(x$method, prefix = "  "), "",
    strwrap(paste("data:", x$data.name), exdent = 7L), kernel_lines(x$kernel),
    paste0(draws, "p-values of ", count_of(count, "comparison"),
           if (!is.null(x$reference)) paste0(" with '", x$reference, "'"),
           " adjusted by \"", x$adjust, "\""),
    if (lowest > 0L) paste(lowest, "of", count, "p-values", if (lowest > 1L)
      "are" else "is", "the least possible"),
    utils::capture.output(print(table[shown, ], digits = digits,
                                row.names = FALSE)),
    if (count > length(shown)) paste("and", count - length(shown), "more"),
    ""
  )
}

fit_summary.mmd_pairwise <- function(x) {
  list(lines = if (!is.null(x$noise)) noise_line(x$noise),
       Distances = stats::quantile(x$table$distance))
}

fit_facts.mmd_pairwise <- function(x) {
  c(list(
    groups = length(x$sizes), comparisons = nrow(x$table), nobs = sum(x$sizes),
    B = x$B, null = x$null, type = x$type, estimator = x$estimator$name,
    adjust = x$adjust, reference = one_word(x$reference),
    smallest = min(x$table$p.adjusted)
  ), kernel_columns(x$kernel))
}

# The columns have the names of package broom.
fit_rows.mmd_pairwise <- function(x, ...) {
  check_dots(...)
  stats::setNames(x$table[c(1:4, 6:5, 7:8)],
                  c("group1", "group2", "n1", "n2", "estimate", "statistic",
                    "p.value", "adj.p.value"))
}

#' @rdname mmd_pairwise
#' @param what `"distance"`, `"statistic"`, `"p.value"` or `"p.adjusted"`.
#' @export
as.matrix.mmd_pairwise <- function(x, what = "distance", ...) {
  check_dots(...)
  what <- take(what, choice("distance", "statistic", "p.value", "p.adjusted"),
               "what")
  if (!is.null(x$reference)) {
    stop_input("'x' must hold comparisons of all pairs, not against a ",
               "reference; update(x, reference = NULL) makes them")
  }
  labels <- names(x$sizes)
  values <- matrix(if (startsWith(what, "p")) NA_real_ else 0, length(labels),
                   length(labels), dimnames = list(labels, labels))
  at <- cbind(match(x$table$group1, labels), match(x$table$group2, labels))
  values[at] <- values[take_columns(at, 2:1)] <- x$table[[what]]
  values
}

fit_frame.mmd_pairwise <- \(x) x$table

fit_request.mmd_pairwise <- fit_request.mmd_test

# --- Pictures ----------------------------------------------------------------

# With at most this many groups the tiles show adjusted p-values.
most_numbers <- 12L

fit_picture.mmd_pairwise <- function(object, type = NULL) {
  check_type(type, "matrix")
  distance <- as.matrix(object)
  count <- nrow(distance)
  shown <- distance
  diag(shown) <- NA
  fill <- measured_fill(c(0, if (any(distance > 0)) max(distance) else 1),
                        "distance")
  fill$colors <- hcl.colors(64, "Blues 3", rev = TRUE)
  # The first group is on top.
  at <- seq_len(count)
  cells <- which(!is.na(shown), arr.ind = TRUE)
  numbers <- count <= most_numbers
  new_picture(
    "Distances of groups", "", "",
    list(
      new_layer("image", x = at, y = at, z = take_columns(shown, rev(at)),
                zlim = fill$limits, col = fill$colors, main = TRUE),
      if (numbers) new_layer(
        "text", x = cells[, 1L], y = count + 1L - cells[, 2L],
        labels = short_p(as.matrix(object, "p.adjusted")[cells]),
        col = ifelse(shown[cells] > 0.55 * fill$limits[2L], "white", "black"),
        width = 0.9
      )
    ),
    distance, xlim = c(0.5, count + 0.5), ylim = c(0.5, count + 0.5),
    flush = TRUE, ticks_x = list(at = at, labels = rownames(distance)),
    ticks_y = list(at = at, labels = rev(rownames(distance))),
    note = if (numbers) list(
      text = paste("p-values, adjustment:", object$adjust), color = "grey30"
    ), fill = fill, bar = TRUE
  )
}

# ".049" or "<.001"
short_p <- function(p) {
  ifelse(p < 0.001, "<.001", sub("^0[.]", ".", formatC(p, 3L, format = "f")))
}
