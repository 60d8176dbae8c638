# The shelf test_: tests: two samples, many groups, a model, independence.
#
# Offers from test_test.R: draw_permutations.
# Offers from test_statistic.R: permutation_p.
# Offers from test_methods.R: least_words.
# Offers from test_filter.R: distinct_positive, filter_most_columns,
#   filter_most_points.
# Offers from test_mmd_sums.R: null_spectrum.
# Offers from test_mmd_sketch.R: centered_covariance.
#
# All tests share what stands here: the object, the request, and how labels are
# permuted.

# --- Settings for experts ----------------------------------------------------

#' What experts set in a kernel test
#'
#' Settings of [mmd_test()], [hsic_test()] and the other kernel tests that most
#' users leave as they are, as one argument `control`.
#'
#' @param null The null distribution: `"permutation"`, which is exact;
#'   `"spectrum"` (two or more samples, sketches), draws of a weighted sum of
#'   chi-squared variables with the eigenvalues of the centered Gram matrix; or
#'   `"gamma"` (two samples, two variables), a gamma law with the exact mean and
#'   variance of the statistic over all permutations. The last two are
#'   approximations for large samples and the KME. `NULL` is `"permutation"`
#'   where the data allow it.
#' @param statistic `"biased"` or `"unbiased"`, the V- and the U-statistic.
#'   `NULL` is the unbiased one for filters and many bandwidths of
#'   [mmd_test()], else the biased one.
#' @param permutations `NULL` for `B` random permutations, or all labelings if
#'   these are no more than `B` (than 2,000 where `B` is not given); `"all"` for
#'   all labelings (at most 10^5; within `blocks` if these are given); or
#'   permutations of your own: a matrix with a permutation of the N rows of the
#'   data in each column, whose first m entries are the first sample; a set of
#'   package permute, which has them as rows (a row p puts row `p[i]` of the
#'   data in the place of row i); or a design of `permute::how()`, of which `B`
#'   are drawn. If one leaves the labels as they are, the observed statistic is
#'   not counted again. A test that could give no p-value of 0.05, whatever the
#'   labels, warns of it, with the smallest one (class `kernmean_warning_few`).
#' @param bins Two-sample tests: each sample is cut at random into bins of the
#'   same size, so many in the smallest sample, and bins change places: one pass
#'   over the kernel values serves all permutations, and the level stays exact.
#'   `NULL` is 25 above 20,000 points and single points below.
#' @param undersmooth,cells,bank Tests given covariates, `y ~ x | z`: the
#'   penalties of the regressions on z are multiplied by `undersmooth`, 1/4 if
#'   `NULL`, since what they leave of z would look like dependence (1 has .05 to
#'   .15 more power with several columns of z, and up to twice the level where
#'   means vary fast); rows of like z change places within cells of at least
#'   `cells` rows, 8 if `NULL`; `bank` is a list of kernels of z with names, of
#'   which left-out losses choose, on columns in units of their standard
#'   deviations, see [given].
#' @return An object of class `"test_control"`, a list of its arguments.
#' @references
#' Gretton, A., Fukumizu, K., Harchaoui, Z. and Sriperumbudur, B. K. (2009). A
#' fast, consistent kernel two-sample test. *Advances in Neural Information
#' Processing Systems* 22 (spectrum).
#'
#' Domingo-Enrich, C., Dwivedi, R. and Mackey, L. (2023). Compress then test:
#' powerful kernel testing in near-linear time (bins).
#' \doi{10.48550/arXiv.2301.05974}
#' @seealso [glossary]; [test_filter()]
#' @examples
#' test_control(null = "gamma")
#' mmd_test(extra ~ group, sleep, blocks = ID,
#'          control = test_control(permutations = "all"))
#' @export
test_control <- function(null = NULL, statistic = NULL, permutations = NULL,
                         bins = NULL, undersmooth = NULL, cells = NULL,
                         bank = NULL) {
  structure(request(control_arguments)[TRUE], class = "test_control")
}

a_part <- new_kind("a number above 0 and at most 1", \(x) {
  is_number(x) && x > 0 && x <= 1
})

some_kernels <- new_kind("a list of kernels with names", \(x) {
  is.list(x) && length(x) && all(nzchar(names2(x))) &&
    all(vapply(x, inherits, NA, "kernmean_kernel"))
})

control_arguments <- door_table(
  "test_control", null = maybe(choice("permutation", "spectrum", "gamma")),
  statistic = maybe(choice("biased", "unbiased")), permutations = anything,
  bins = maybe(count(2L)), undersmooth = maybe(a_part),
  cells = maybe(count(2L)), bank = maybe(some_kernels)
)

# print() shows what is set: "test_control: null = \"gamma\"".
#' @export
print.test_control <- function(x, ...) {
  words <- vapply(Filter(length, x), \(value) {
    if (is.atomic(value) && length(value) <= 8L) deparse1(value) else
      describe(value)
  }, "")
  say(paste0(class(x)[1L], ": ", if (!length(words)) "all by rule", paste(
    names(words), "=", words, recycle0 = TRUE, collapse = ", "
  )))
  invisible(x)
}

a_control <- is_a("test_control", "test_control(...)")

# An estimator for a test, as its name, object or function.
a_tested <- function(value, name) {
  estimator <- read_estimator(value, argument = name)
  check_no_target(estimator)
  estimator
}

unscaled <- new_kind("FALSE", \(x) !asks_scale(x))

an_average <- new_kind("\"kme\"", \(x) is_average(x))

# These rules say which settings go together, in all tests.
test_rules <- c(
  lapply(c("spectrum", "gamma"), \(null) when(
    c(null = null), estimator = an_average, permutations = NULL, bins = NULL,
    blocks = NULL, clusters = NULL
  )),
  list(
    when(c(null = "gamma"), statistic = "biased"),
    when(\(a) !is_unshrunk(a$estimator), statistic = "biased",
         reason = "for an estimator that shrinks"),
    when("bins", permutations = NULL, blocks = NULL, clusters = NULL),
    when(\(a) TRUE, undersmooth = NULL, cells = NULL, bank = NULL,
         reason = "for a test that is not given numeric covariates")
  )
)

# The options of a test: its request with what its control sets. `nulls` are the
# null distributions that this test knows, the default first; `statistic` is the
# default type of the statistic.
open_control <- function(asked, nulls, rules = NULL, statistic = "biased") {
  control <- unclass(asked$control)
  set <- names(control)[!vapply(control, is.null, NA)]
  # `alone` is TRUE for filter = "none": the plain statistic and no other.
  values <- c(asked, control, alone = isFALSE(asked$filter))
  if (values$alone) values["filter"] <- list(NULL)
  if ("null" %in% set) take(control$null, choice(nulls), "null") else
    values$null <- nulls[1L]
  # All labelings are taken if they are at most this many, or at most B if the
  # user gave it.
  values$enumerated <- if (is.null(values$B)) usual_labelings
  values$B <- values$B %||% if (is.list(values$filter)) 399L else 999L
  values <- apply_rules(values, c(rules, test_rules),
                        c(attr(asked, "given"), set))
  values$statistic <- values$statistic %||% statistic
  structure(values, given = attr(asked, "given"), door = attr(asked, "door"))
}

# Hints for arguments that a test does not have.
test_hints <- c(
  null = "is set by control = test_control(null = )",
  statistic = "is set by control = test_control(statistic = )",
  bins = "is set by control = test_control(bins = )",
  permutations = "is set by control = test_control(permutations = )",
  ratio = "is set by filter = test_filter(ratio = )",
  order = "is set by filter = test_filter(order = )",
  factors = "is set by filter = test_filter(factors = )",
  R = "is called 'B' here", nperm = "is called 'B' here",
  strata = "is called 'blocks' here",
  model = "is for mmd_gof()", pairwise = "is for mmd_pairwise()",
  adjust = "is for mmd_pairwise()",
  paired = "is given by 'blocks', as in blocks = c(id_x, id_y)"
)

# The table of arguments of a test: its own, and those of all tests.
test_table <- function(door, ..., rules, aside = "progress") {
  door_table(
    door, ..., estimator = a_tested, B = maybe(count()), blocks = anything,
    clusters = anything, scale = unless_given(a_scale), control = a_control,
    progress = flag, rules = rules, aside = aside, hints = test_hints
  )
}

# --- The object --------------------------------------------------------------

# A test: an object of class c(class, "kernmean_fit", "htest") with the fields
# of stats::t.test() and further fields that all tests here have; a field that
# does not apply is NULL. `options` is the request, `null` see new_null(), and
# the dots are the other fields.
new_test <- function(class, options, statistic, null, ...) {
  fields <- list(
    statistic = stats::setNames(statistic$values[1L], statistic$name), ...,
    p.value = null$p, gamma = null$gamma, null = options$null,
    replicates = null$draws, type = options$statistic,
    estimator = options$estimator, statistics = statistic$table,
    spectra = statistic$spectra, left = if (statistic$left > 0) statistic$left
  )
  fields <- stats::setNames(fields[test_fields], test_fields)
  check_result(fields[c("statistic", "p.value", "replicates")],
               "the statistic, as observed or drawn,", "the data")
  new_fit(class, fields, also = "htest")
}

test_fields <- c(
  "statistic", "parameter", "p.value", "estimate", "alternative", "method",
  "data.name", "replicates", "gamma", "null", "type", "estimator", "lambda",
  "alpha", "noise", "smoothing", "candidates", "kernel", "sample", "groups",
  "sizes", "variables", "pairs", "unbiased", "ranks", "arguments",
  "statistics", "spectra", "views", "left", "given", "origin"
)

# --- Estimators and kernels --------------------------------------------------

# Can the statistic of an estimator be computed from sums of kernel values, for
# all labelings at once?
has_sums <- function(estimator) {
  is_unshrunk(estimator) || !is.null(est_share(estimator))
}

# The bandwidth as a parameter of a test, if it is one number.
named_bandwidth <- function(kernel) {
  if (length(kernel$bandwidth) == 1L) c(bandwidth = kernel$bandwidth[[1L]])
}

# The sample whose average a settled estimator takes.
settled_sample <- function(sample, settled) {
  settled$sample %||% sample
}

# --- Permutations ------------------------------------------------------------

# The units, points or whole clusters, that change places:
#   sizes     the number of units in each group
#   blocks    the block of each unit, within which units change places, or NULL
#   clusters  the cluster of each point, or NULL where points are the units
#   given     the block of each point, or NULL
#   words     for print(), as "within blocks"
#   moved     see exchange_units()
new_test_units <- function(sizes, blocks = NULL, clusters = NULL,
                           words = NULL) {
  list(sizes = sizes, blocks = blocks, clusters = clusters, given = blocks,
       words = words)
}

# The units of points from the arguments `blocks` and `clusters`, whose values
# become codes 1, 2, ...; order: the rows of the data that the points come from.
read_units <- function(blocks, clusters, order, sizes = NULL) {
  codes <- list(blocks = blocks, clusters = clusters)
  for (name in names(Filter(length, codes))) {
    codes[[name]] <- number_codes(
      check_each(codes[[name]], length(order), name)[order]
    )
  }
  new_test_units(sizes, codes$blocks, codes$clusters, words = c(
    if (!is.null(clusters)) "of clusters", if (!is.null(blocks)) "within blocks"
  ))
}

# Warns of many blocks of one point, in which nothing can change places. They
# arise if a numeric variable is given as blocks.
warn_alone <- function(blocks, word = "block") {
  alone <- sum(tabulate(as.integer(blocks)) == 1L)
  if (alone > length(blocks) / 4) {
    warn_kernmean(alone, " of ", length(blocks), " points are alone in their ",
                  word, " and tell the test nothing", kind = "alone")
  }
}

# The value of each cluster, if all its points share it; NULL if the points of
# some cluster do not.
by_cluster <- function(values, clusters) {
  each <- values[!duplicated(clusters)]
  if (all(each[clusters] == values)) each
}

# The block of each cluster.
cluster_blocks <- function(units) {
  if (is.null(units$blocks)) {
    return(NULL)
  }
  blocks <- by_cluster(units$blocks, units$clusters)
  if (is.null(blocks)) {
    stop_input("'clusters' must lie in one block each")
  }
  blocks
}

# How labels are permuted, "the scheme": the fields of the units, and
#   B         the number of draws
#   matrix    a permutation in each column; NULL where they are drawn later
#   all       does it have all labelings?
#   complete  is the observed labeling one of its columns?
#   ways      the number of labelings, where that is known
#   bins      how many bins the smallest sample has, or NULL, see count_bins()
new_scheme <- function(units, B, all = FALSE) {
  c(units, list(B = B, all = all, complete = FALSE))
}

# Returns the scheme that the options ask for. `permutations` is NULL, "all", or
# permutations of the rows of the data, see given_permutations(). `order` has
# the row of each point.
check_permutations <- function(options, units,
                               order = seq_len(sum(units$sizes))) {
  permutations <- options$permutations
  B <- options$B
  check_draw_memory(B)
  sizes <- units$sizes
  # With two variables the labelings are counted. With more variables all but
  # one are permuted, and there is no count.
  ways <- if (options$null == "permutation" && !isTRUE(options$several)) {
    count_labelings(rep(seq_along(sizes), sizes), units$blocks)
  }
  if (takes_all(options, ways)) permutations <- "all"
  scheme <- new_scheme(units, B, identical(permutations, "all"))
  if (scheme$all) {
    scheme$matrix <- all_labelings(sizes, units$blocks)
    scheme$complete <- TRUE
  } else if (!is.null(permutations)) {
    fixed <- names(Filter(length, units[c("clusters", "blocks")]))
    if (length(fixed)) {
      stop_input("'", fixed[1L], "' must be NULL when 'permutations' is a ",
                 "matrix or a design")
    }
    scheme[c("matrix", "complete")] <-
      given_permutations(permutations, sizes, B, order)
  }
  if (!is.null(scheme$matrix)) scheme$B <- ncol(scheme$matrix)
  # A design may have fewer permutations than were asked for.
  if (inherits(permutations, "how") && scheme$B < B) {
    ways <- min(ways, scheme$B + 1 - scheme$complete)
  }
  if (!is.null(ways)) scheme$ways <- round(ways)
  scheme
}

# Are there so few labelings that all are taken?
takes_all <- function(options, ways) {
  most <- min(max(options$B, options$enumerated), most_labelings)
  identical(options$permutations, "all") ||
    is.null(c(options$permutations, options$bins)) &&
      isTRUE(ways < most + 0.5) && !sees_order(options$estimator)
}

# Stops if the memory has no room for B draws of a statistic.
check_draw_memory <- function(B) {
  check_memory(B + 1, 1, "take fewer draws", copies = 16,
               what = "a table of the statistics of all draws,")
}

# Returns the permutations that the user gave as a matrix with one in each
# column, whose first entries are the first group, and says whether the observed
# labeling is one of them. A column p says that the points p[1], p[2], ... of
# the data come first; a row p, as package permute has them, says that point
# p[i] takes the place of point i.
given_permutations <- function(permutations, sizes, B, order) {
  n <- sum(sizes)
  rows <- inherits(permutations, c("how", "permutationMatrix")) ||
    is.matrix(permutations) && ncol(permutations) == n &&
      nrow(permutations) != n
  columns <- permutations
  if (inherits(columns, "how")) columns <- shuffled(columns, n, B)
  if (rows) columns <- t(unclass_matrix(columns))
  if (!is.numeric(columns) || !is.matrix(columns) || nrow(columns) != n ||
        ncol(columns) < 1L || !all(columns %in% seq_len(n)) ||
        any(apply(columns, 2L, anyDuplicated))) {
    stop_input("'permutations' must be NULL, \"all\", a design of ",
               "permute::how() or a matrix with a permutation of 1, ..., ", n,
               " in each column, or in each row, not ", describe(permutations))
  }
  if (rows) columns <- take_rows(columns, order)
  columns <- matrix(match(columns, order), n)
  # The number of units that each permutation moves to another group.
  group <- rep(seq_along(sizes), sizes)
  moved <- colSums(matrix(group[columns], n) != group)
  if (length(moved) > 1L && all(moved == 0)) {
    stop_input("'permutations' must give another sample to some points; these ",
               "change places within their samples only")
  }
  if (rows) moved <- colSums(columns != seq_len(n))
  list(columns, any(moved == 0))
}

# B permutations of a design, one in each row, or all if there are fewer.
shuffled <- function(design, n, B) {
  need_package("permute",
               "'permutations' must be a matrix where the package permute is ",
               "not installed, which draws from an object of class 'how'")
  tryCatch(
    permute::shuffleSet(n, nset = B, control = design, quietly = TRUE),
    error = \(e) {
      stop_input("'permutations' must be a design for ", n, " points; permute ",
                 "says: ", conditionMessage(e))
    }
  )
}

most_labelings <- 1e5
usual_labelings <- 2000L

# The number of labelings, which are the ways to put the units into groups so
# that these keep their sizes in each block.
count_labelings <- function(groups, blocks = NULL) {
  ways <- \(units) {
    lfactorial(length(units)) - sum(lfactorial(tabulate(groups[units])))
  }
  exp(sum(vapply(in_blocks(length(groups), blocks), ways, numeric(1))))
}

in_blocks <- function(n, blocks) {
  if (is.null(blocks)) list(seq_len(n)) else split(seq_len(n), blocks)
}

# A matrix with a permutation for each labeling, the observed one first.
all_labelings <- function(sizes, blocks = NULL) {
  groups <- rep(seq_along(sizes), sizes)
  count <- count_labelings(groups, blocks)
  if (count > 1.001 * most_labelings) {
    stop_input(
      "'permutations' must not be \"all\" for ", format(count, digits = 3),
      " labelings; at most 100000 are enumerated"
    )
  }
  check_memory(length(groups), count, "draw permutations at random",
               copies = 3, what = "a table of all labelings,")
  labels <- matrix(groups)
  for (units in in_blocks(length(groups), blocks)) {
    some <- arrangements(groups[units])
    each <- rep(seq_len(ncol(some)), each = ncol(labels))
    labels <- take_columns(labels, rep(seq_len(ncol(labels)), ncol(some)))
    labels[units, ] <- some[, each]
  }
  apply(labels, 2L, order)
}

# Returns a matrix of all different orders of the labels, one in each column;
# the first column has the order in which they are given.
arrangements <- function(labels) {
  if (length(unique(labels)) == 1L) {
    return(matrix(labels))
  }
  first <- labels == labels[1L]
  places <- utils::combn(length(labels), sum(first))
  rest <- arrangements(labels[!first])
  do.call(cbind, lapply(seq_len(ncol(places)), \(c) {
    out <- matrix(labels[1L], length(labels), ncol(rest))
    out[-places[, c], ] <- rest
    out
  }))
}

# Returns a matrix of B permutations of groups of these sizes (within blocks),
# one in each column. For two groups only the members of the smaller one are
# drawn, and the order of the others says nothing.
draw_permutations <- function(sizes, B, blocks = NULL) {
  .Call(C_r_permutations, as.integer(sizes), as.integer(B), blocks)
}

# A list of the results of draw(start, count) for chunks of B draws.
in_chunks <- function(B, size, progress, draw) {
  starts <- seq(0L, by = size, length.out = max(1, ceiling(B / size)))
  bar <- progress_bar(progress && B > 0L)
  on.exit(bar$close())
  lapply(starts, \(start) {
    count <- min(size, B - start)
    part <- draw(start, count)
    bar$at((start + count) / B)
    part
  })
}

# Returns the values of statistic(permutations) over the draws of the scheme.
# The argument of statistic() is a matrix with a permutation in each column;
# each draw takes `moved` of them.
permuted_draws <- function(statistic, scheme, size, progress, moved = 1L) {
  unlist(in_chunks(scheme$B, size, progress, \(start, count) {
    statistic(if (is.null(scheme$matrix)) {
      draw_permutations(scheme$sizes, count * moved, scheme$blocks)
    } else {
      take_columns(scheme$matrix, start * moved + seq_len(count * moved))
    })
  }))
}

# --- Estimators under relabeling --------------------------------------------

most_flops <- 1e11
fits_at_once <- 8L

# Returns the values of statistic(order) for the observed labeling and for each
# permutation. The estimator is fitted each time. `flops` is the cost of one fit
# if it solves linear systems.
refitted_draws <- function(statistic, scheme, estimator, flops, progress) {
  n <- sum(scheme$sizes)
  # An estimator that sees the order of points needs all places drawn, not only
  # the members of the smaller group.
  if (sees_order(estimator)) scheme$sizes <- rep(1L, n)
  if (scheme$B * flops > most_flops) {
    warn_kernmean(
      "estimator ", estimator_word(estimator), " is fitted anew for each of ",
      scheme$B, " permutations, about ", format(scheme$B * flops, digits = 2),
      " flops in all"
    )
  }
  c(statistic(seq_len(n)), permuted_draws(
    \(orders) apply(orders, 2L, statistic), scheme, fits_at_once, progress
  ))
}

# --- Words -------------------------------------------------------------------

# "Kernel two-sample test (MMD, KME, biased), permutations"
test_title <- function(what, words, options, scheme) {
  null <- if (options$null == "permutation") {
    c(if (scheme$all) "all" else if (!is.null(scheme$matrix)) "given",
      "permutations", scheme$words)
  } else {
    c(options$null, "null")
  }
  paste0("Kernel ", what, " test (", paste(words, collapse = ", "), "), ",
         paste(null, collapse = " "))
}

# --- Update ------------------------------------------------------------------

# Returns the names of the data among the changes of update(). Only data that
# `label` names may change; tests by formula or of a gram have no such names.
changed_data <- function(changes, label) {
  data <- intersect(names(changes), c("x", "y", "groups", "data", "subset",
                                      "na.action"))
  wrong <- setdiff(data, names(label))
  if (length(wrong)) {
    stop_input("'", wrong[1L], "' must not be given: other data than those of ",
               "this test take a new call")
  }
  data
}

# The label with the names of new data, from their unevaluated expressions.
new_label <- function(label, call, data) {
  label[data] <- vapply(as.list(call)[data], label_of, "")
  label
}

# Stops if an estimator has a target, because a test shrinks all means towards
# 0.
check_no_target <- function(estimator) {
  if (!is.null(estimator$target)) {
    stop_input("'estimator' must have no target: a test compares means that ",
               "are shrunk towards 0")
  }
}
