# What comparisons of groups say of themselves.

#' Comparisons of many groups
#'
#' Two-sample tests of each group against a control, or of all pairs of groups,
#' with adjusted p-values: what [mmd_test()] returns where it is given `control`
#' or `pairwise`.
#'
#' Each comparison is the two-sample test of its two groups, with the estimator,
#' the statistic, the filter and the null distribution that were asked for. What
#' is permuted are the points of the pair (within their `blocks`, by `clusters`,
#' or all labelings of the pair with `permutations = "all"`): labels of all
#' groups would hold the level only where no two groups differ. The bandwidth,
#' the units of the columns and the noise of marginalized estimators come from
#' the points of all groups, once; what shrunk means choose comes from the pair.
#'
#' @section Draws:
#' Comparisons whose groups have the same number of points together share one
#' set of permutations, drawn as the two-sample test draws them, in the order of
#' the levels of the groups: with the same seed the first comparison, and each
#' of its size, has the p-value that [mmd_test()] of the two groups has with the
#' bandwidth as a number; those of the next size go on in the stream. With
#' `blocks`, `clusters`, bins or other nulls each comparison draws by itself,
#' and so do those for which N B is above 2^26. Draws that are shared make
#' p-values depend on each other; each is exact by itself, and the methods of
#' Holm and Bonferroni hold whatever the dependence. `"hochberg"`, `"hommel"`
#' and `"BH"` need p-values that are not negatively dependent.
#'
#' With B draws no p-value is below 1/(B + 1), and of k comparisons no adjusted
#' one below k/(B + 1) by the methods of Holm and Bonferroni; a warning says
#' where that is above 0.05. `B = NULL` is as many as about a second allows for
#' all comparisons, and where half a minute does, and up to 9,999, so many that
#' an adjusted p-value can be 0.05.
#'
#' @section Cost:
#' For averages, kernels of one sign and groups of unequal size the statistics
#' come from the sums of one fold, \eqn{R_{ih} = \sum_{j \in h}
#' K_{ij}}{R_ih = sum of K_ij over j in h}: with \eqn{r_i = R_{ig} +
#' R_{ih}}{r_i = R_ig + R_ih} over the pair, \eqn{t = \sum_i r_i}{t = sum r_i},
#' s the smaller sample as relabeled (m points, the other n), \eqn{q = \sum_{ij
#' \in s} K_{ij}}{q = the sum of K over s and s}, \eqn{\rho = \sum_{i \in s}
#' r_i}{rho = the sum of r over s},
#' \deqn{\mathrm{MMD}^2 = q/m^2 + (t - 2\rho + q)/n^2 - 2(\rho -
#' q)/(mn),}{MMD^2 = q/m^2 + (t - 2 rho + q)/n^2 - 2 (rho - q)/(mn),}
#' and the unbiased statistic likewise: O(N^2 d) time for all groups together
#' (N points), O(B m^2 d) for a pair, N doubles for each group; a draw that lies
#' in the larger group serves all pairs of it. Otherwise, and where the sizes
#' make it cheaper, each pair takes the time of its two-sample test. Of 200
#' groups of 50 against a control of 5,000, d = 20, B = 999, one processor takes
#' 3 s, and 200 calls of [mmd_test()] 206 s; groups of 58 different sizes take
#' 23 s, most of them for the draws of each size.
#'
#' @param x,object Comparisons.
#' @param ... Must be empty; in `update()`, the arguments to change, of which
#'   `control` and `pairwise` take the place of each other.
#' @return [mmd_test()] returns an object of class `mmd_comparisons`, a list of
#' \item{table}{a data frame with a row for each comparison: `group1`, `group2`
#'   (the control, where there is one), their sizes `n1`, `n2`, the `statistic`
#'   of the test (of one statistic \eqn{\mathrm{MMD}^2}{MMD^2}), `distance`, its
#'   root (0 where it is negative; with filters or many bandwidths the distance
#'   of the plain kernel means), `p.value`, `p.adjusted`}
#' \item{method, data.name}{words of `print()`}
#' \item{adjust, control}{as given; `control` is `NULL` for all pairs}
#' \item{B, null, type, estimator, noise, kernel, sample, groups, sizes,
#'   arguments}{as of [mmd_test()]; `B` is `NULL` where there are no random
#'   draws}
#' `print()` shows up to twelve rows, of more the ten with the smallest
#' p-values; `summary()` shows all. `as.data.frame()` gives the table,
#' `as.matrix()` a matrix groups by groups (the diagonal `NA` for p-values),
#' `as.dist()` the distances, of all pairs. `plot()` see
#' [plot.mmd_comparisons()].
#' @seealso [stats::p.adjust()]
#' @family tests
#' @examples
#' set.seed(1)
#' # Each feed against casein
#' feeds <- mmd_test(weight ~ feed, chickwts, control = "casein", B = 199)
#' feeds
#' plot(feeds)
#'
#' # All pairs
#' all <- update(feeds, pairwise = TRUE, B = 299)
#' all
#' as.dist(all)
#' plot(all, "dendrogram")
#' @docType methods
#' @docType methods
#' @name mmd_comparisons
NULL

most_rows_printed <- 12L
fewer_rows <- 10L

#' @export
print.mmd_comparisons <- function(x, digits = digits_shown(), ...) {
  digits <- check_digits(digits)
  check_dots(...)
  print_comparisons(x, digits, most_rows_printed)
}

# `most`: rows that are printed; of more, those of the smallest p-values.
print_comparisons <- function(x, digits, most) {
  table <- x$table
  count <- nrow(table)
  cat("\n")
  cat(strwrap(x$method, prefix = "  "), sep = "\n")
  cat("\n")
  cat(strwrap(paste("data:", x$data.name), 80L, exdent = 7L), sep = "\n")
  say(kernel_lines(x$kernel), strwrap(draws_line(x), 80L, exdent = 2L))
  shown <- seq_len(count)
  if (count > most) {
    shown <- utils::head(order(table$p.value, -table$statistic), fewer_rows)
  }
  print(shown_table(table[shown, ], digits), row.names = FALSE)
  if (count > most) {
    cat("... ", count - length(shown), " more with adjusted p-values of at ",
        "least ", format.pval(min(table$p.adjusted[-shown]), digits = digits),
        "; as.data.frame() has all\n", sep = "")
  }
  cat("\n")
  invisible(x)
}

shown_table <- function(table, digits) {
  short <- max(2L, digits - 2L)
  number <- \(v) vapply(v, format, "", digits = max(1L, digits - 1L))
  p <- \(v) vapply(v, format.pval, "", digits = short)
  data.frame(
    group1 = table$group1, group2 = table$group2, n1 = table$n1, n2 = table$n2,
    statistic = number(table$statistic), distance = number(table$distance),
    p = p(table$p.value), adjusted = p(table$p.adjusted)
  )
}

adjust_words <- c(
  holm = "by Holm's method", hochberg = "by Hochberg's method",
  hommel = "by Hommel's method", bonferroni = "by Bonferroni's method",
  BH = "by Benjamini and Hochberg's method (false discovery rate)",
  BY = "by Benjamini and Yekutieli's method (false discovery rate)",
  fdr = "by Benjamini and Hochberg's method (false discovery rate)",
  none = "not at all"
)

draws_line <- function(x) {
  paste0(if (!is.null(x$B)) paste0("B = ", x$B, ", "), "p-values of ",
         count_of(nrow(x$table), "comparison"), " adjusted ",
         adjust_words[[x$adjust]])
}

#' @export
summary.mmd_comparisons <- function(object, ...) {
  check_dots(...)
  structure(list(test = object), class = "summary.mmd_comparisons")
}

#' @export
print.summary.mmd_comparisons <- function(x, digits = digits_shown(), ...) {
  digits <- check_digits(digits)
  test <- x$test
  print_comparisons(test, digits, Inf)
  number <- \(v) format(v, digits = digits)
  table <- test$table
  ends <- range(table$distance)
  say(
    paste0("distances: ", number(ends[1L]), " to ", number(ends[2L]),
           ", median ", number(stats::median(table$distance))),
    if (!is.null(test$noise)) {
      paste("noise variances:", paste(unique(number(range(test$noise))),
                                      collapse = " to "))
    },
    sample_lines(test$sample),
    if (!is.null(test$B)) {
      least <- 1 / (test$B + 1)
      paste0("smallest p-value possible: ", number(least), ", adjusted ",
             number(min(stats::p.adjust(rep(least, nrow(table)),
                                        test$adjust))))
    }
  )
  invisible(x)
}

#' @rdname mmd_comparisons
#' @param row.names `NULL`, or row names.
#' @param optional Must not be given.
#' @export
as.data.frame.mmd_comparisons <- function(x, row.names = NULL,
                                          optional = FALSE, ...) {
  check_dots(...)
  name_frame(x$table, row.names)
}

#' @rdname mmd_comparisons
#' @param what `"distance"`, `"statistic"`, `"p.value"` or `"p.adjusted"`.
#' @export
as.matrix.mmd_comparisons <- function(x, what = c("distance", "statistic",
                                                  "p.value", "p.adjusted"),
                                      ...) {
  check_dots(...)
  what <- check_choice(what, c("distance", "statistic", "p.value",
                               "p.adjusted"), "what")
  check_all_pairs(x, "'x'")
  labels <- names(x$sizes)
  values <- matrix(if (startsWith(what, "p")) NA_real_ else 0, length(labels),
                   length(labels), dimnames = list(labels, labels))
  at <- cbind(match(x$table$group1, labels), match(x$table$group2, labels))
  values[at] <- values[at[, 2:1, drop = FALSE]] <- x$table[[what]]
  values
}

check_all_pairs <- function(x, name) {
  if (!is.null(x$control)) {
    stop_input(name, " must hold comparisons of all pairs, pairwise = TRUE, ",
               "not against a control")
  }
}

#' @rdname mmd_comparisons
#' @param m Comparisons of all pairs.
#' @param diag,upper As in [stats::as.dist()].
#' @importFrom stats as.dist
#' @export
as.dist.mmd_comparisons <- function(m, diag = FALSE, upper = FALSE) {
  stats::as.dist(as.matrix(m), diag, upper)
}

#' @export
nobs.mmd_comparisons <- function(object, ...) {
  check_dots(...)
  sum(object$sizes)
}

#' @rdname mmd_comparisons
#' @export
update.mmd_comparisons <- function(object, ...) {
  changes <- list(...)
  check_changes(changes)
  # One takes the place of the other.
  if (!is.null(changes$control)) object$arguments$pairwise <- FALSE
  if (isTRUE(changes$pairwise)) object$arguments["control"] <- list(NULL)
  update_samples(object$sample, object, changes, substitute(list(...)))
}
