# Stacking: the combination sum_a w_a mu_a of several estimates whose score,
# with the points left out, is smallest.

#' @rdname estimators
#' @export
est_stack <- function(candidates = NULL, shares = NULL, folds = NULL, ...,
                      guard = TRUE) {
  check_dots(...)
  candidates <- check_stack_candidates(candidates)
  shares <- check_stack_shares(shares, candidates)
  new_estimator(
    "stack", "stack", "stacked estimators", "stacked COSE",
    arguments = list(candidates = candidates, shares = shares,
                     folds = check_smooth_folds(folds),
                     select = if (is.null(shares)) "loocv",
                     guard = take(guard, flag)),
    traits = "gram"
  )
}
register_estimator("stack", est_stack)

# The candidates as a list of estimators, each with a name of its own.
check_stack_candidates <- function(candidates) {
  if (is.null(candidates)) {
    return(NULL)
  }
  if (inherits(candidates, "kernmean_estimator") || !is.list(candidates) ||
        !length(candidates)) {
    stop_input("'candidates' must be NULL or a list of estimators, as in ",
               "list(est_kme(), est_smooth(0.4, 1)), not ",
               describe(candidates))
  }
  names <- names2(candidates)
  candidates <- lapply(seq_along(candidates), \(i) {
    label <- element_label(names, i, "candidates")
    check_candidate(read_estimator(candidates[[i]], argument = label), label)
  })
  labels <- ifelse(is.na(names) | !nzchar(names),
                   vapply(candidates, candidate_label, ""), names)
  again <- stats::ave(seq_along(labels), labels, FUN = seq_along)
  labels <- paste0(labels, ifelse(again > 1L, paste0(" (", again, ")"), ""))
  stats::setNames(candidates, labels)
}

check_candidate <- function(estimator, label) {
  refuse <- \(...) stop_input("'", label, "' must ", ...)
  if (inherits(estimator, "est_stack")) refuse("not be a stack itself")
  if (!is.null(estimator$target)) {
    refuse("have no target: a stack is shrunk towards 0")
  }
  if (is_each(estimator$noise)) {
    refuse("have one covariance for all points, not ",
           describe(estimator$noise), ": a stack leaves points out")
  }
  if (!is.null(estimator$select)) {
    amounts <- intersect(c("lambda", "noise", "h", "c"),
                         estimator_arguments(estimator$name))
    amounts <- amounts[lengths(unclass(estimator)[amounts]) == 0L]
    refuse("have all it needs given, nothing to choose: ",
           quoted(amounts), " of est_", estimator$name, "()")
  }
  estimator
}

# "S-KMSE 0.1"
candidate_label <- function(estimator) {
  amounts <- unlist(unclass(estimator)[c("lambda", "noise", "h")])
  if (has_covariance(estimator)) amounts <- NULL
  if (isTRUE(estimator$c < 1)) amounts <- c(amounts, estimator$c)
  if (length(amounts) > 4L) amounts <- NULL
  paste(c(estimator$label, format_number(amounts, 3L)), collapse = " ")
}

check_stack_shares <- function(shares, candidates) {
  if (is.null(shares)) {
    return(NULL)
  }
  if (is.null(candidates)) {
    stop_input("'shares' must be NULL unless 'candidates' is given")
  }
  shares <- in_order(shares, names(candidates), "shares", "'candidates'")
  take(shares, numbers(0, count = length(candidates)))
}

# --- Candidates --------------------------------------------------------------

# The estimator with the candidates that the sample allows.
resolve_stack <- function(estimator, sample) {
  candidates <- allowed_candidates(estimator, sample)
  estimator$candidates <- if (is.null(candidates)) {
    unlist(unname(lapply(registered$candidates, \(make) make(sample))),
           recursive = FALSE)
  } else {
    candidates
  }
  estimator
}

# The candidates, of those that were given, that the sample allows; NULL where
# none were given. The others are left out with a warning. It is an error if
# none is left, or if shares were given. The field `plain` of the estimator says
# that the warning has been given before.
allowed_candidates <- function(estimator, sample) {
  candidates <- estimator$candidates
  open <- is.null(candidates)
  allowed <- vapply(candidates, allows_sample, NA, sample)
  if (if (open) knows_points(sample) else all(allowed)) {
    return(candidates)
  }
  what <- words_of_sample(sample)
  if (!open && (!any(allowed) || !is.null(estimator$shares))) {
    stop_input("'candidates' must ", if (any(allowed)) {
      "with given 'shares' all be for "
    } else {
      "hold an estimator for "
    }, what)
  }
  if (is.null(estimator$plain)) {
    left <- if (open) "smoothing" else
      shorten(names(candidates)[!allowed], 8L)
    warn_kernmean("the stack is without ", left, ", which cannot be had with ",
                  what, kind = "candidates")
  }
  candidates[allowed]
}

# --- Selection ---------------------------------------------------------------

# The shares w >= 0 with w'mass <= 1 that minimize w'Gw - 2w'g, where G is
# `inner` and g is `at`.
stack_shares <- function(inner, at, mass) {
  unit <- max(abs(inner))
  if (!is.finite(unit) || !all(is.finite(at))) {
    stop_kernmean("numeric", "kernel values overflow; rescale the columns of ",
                  "'x'")
  }
  q <- length(at)
  if (unit == 0) {
    return(numeric(q))
  }
  solution <- program_solution(quadprog::solve.QP(
    inner / unit + diag(1e-9, q), at / unit, cbind(-mass, diag(q)),
    c(-1, numeric(q))
  ), "the shares of the candidates")
  # Smaller shares are rounding of 0.
  ifelse(solution < 1e-8, 0, solution)
}

# The stack of an estimator whose candidates are known for the sample: `parts`,
# those of the estimate; `candidates`, the table of candidates and shares;
# `settled`, the estimator with nothing left to choose; and the fields of an
# estimate that say how shares were chosen.
choose_stack <- function(estimator, sample) {
  candidates <- estimator$candidates
  parts <- all_parts(candidates, sample)
  mass <- vapply(parts, \(one) sum(unlist(weights_of(one))), 0)
  if (!is.null(estimator$shares)) {
    table <- candidate_table(candidates, estimator$shares, NA, mass)
    return(new_stack(estimator, candidates, parts, table, sample))
  }
  fold <- fold_codes(sample$n, estimator$folds)
  # The average comes last: its score is the reference.
  products <- left_out_products(c(candidates, list(est_kme())), sample, fold)
  q <- length(candidates) + 1L
  inner <- mean_inner(products$inner, fold)
  at <- rowMeans(products$at)
  shares <- stack_shares(inner[-q, -q, drop = FALSE], at[-q], mass)
  varrho <- mean(sample_diagonal(sample))
  scores <- varrho - 2 * at + diag(inner)
  chosen <- list(
    minimum = varrho - 2 * sum(shares * at[-q]) +
      sum(shares * (inner[-q, -q] %*% shares)),
    reference = scores[q], folds = max(fold)
  )
  table <- candidate_table(candidates, shares, scores[-q], mass)
  if (estimator$guard) {
    chosen$guard <- left_out_guard(products, fold, c(shares, 0),
                                   as.double(seq_len(q) == q))
    average <- which(vapply(candidates, inherits, NA, "est_kme"))[1L]
    if (is.na(average)) {
      average <- q
      candidates <- c(candidates, list(KME = est_kme()))
      names(candidates) <- make.unique(names(candidates), " ")
      parts <- c(parts, list(est_parts(est_kme(), sample)))
      table <- candidate_table(candidates, c(shares, 0), scores, c(mass, 1))
    }
    # The average gets what the guard takes from the candidates.
    table$share <- chosen$guard$share * table$share
    table$share[average] <- table$share[average] + 1 - chosen$guard$share
  }
  new_stack(estimator, candidates, parts, table, sample, chosen)
}

# The table of candidates. `unguarded` are their shares before the guard, which
# may change `share`.
candidate_table <- function(candidates, shares, scores, mass) {
  data.frame(candidate = names(candidates), share = shares, unguarded = shares,
             score = scores, mass = mass, row.names = NULL)
}

new_stack <- function(estimator, candidates, parts, table, sample,
                      chosen = NULL) {
  # The candidates have been checked, and their shares are given now.
  estimator$candidates <- candidates
  estimator[c("shares", "folds", "select")] <- list(table$share, NULL, NULL)
  estimator$plain <- NULL
  c(list(parts = combine_parts(parts, table$share, sample), candidates = table,
         settled = estimator), chosen)
}

# --- The estimate ------------------------------------------------------------

# A stack with given shares has the parts of the candidates with a share.
est_parts.est_stack <- function(estimator, sample) {
  used <- estimator$shares > 0
  combine_parts(all_parts(estimator$candidates[used], sample),
                estimator$shares[used], sample)
}

# The parts of all candidates in one, times their shares. Where none has a share
# it is the average times 0.
combine_parts <- function(parts, shares, sample) {
  used <- shares > 0
  if (!any(used)) {
    parts <- list(est_parts(est_kme(), sample))
    shares <- 0
    used <- TRUE
  }
  merge_parts(unlist(Map(scale_parts, parts[used], shares[used]),
                     recursive = FALSE, use.names = FALSE))
}

est_choose.est_stack <- function(estimator, sample) {
  sample <- form_sample(sample)
  stack <- choose_stack(resolve_stack(estimator, sample), sample)
  new_settlement(stack$settled, stack["candidates"])
}

est_weights.est_stack <- function(estimator, sample) {
  if (!is.null(estimator$select)) {
    return(NextMethod())
  }
  part_weights(est_parts(estimator, sample), sample$n)
}

# The weight of each of n points in all parts together. A part with a single
# point, the mean, counts as all points with equal weights.
part_weights <- function(parts, n) {
  Reduce(`+`, lapply(weights_of(parts), \(weights) {
    if (length(weights) == n) weights else rep(sum(weights) / n, n)
  }))
}

est_fit.est_stack <- function(estimator, sample) {
  check_shrinkable(estimator, sample,
                   if (is.null(estimator$select)) 1L else 2L)
  sample <- form_sample(sample)
  stack <- choose_stack(resolve_stack(estimator, sample), sample)
  moments <- sample_moments(sample)
  fitted <- parts_at(stack$parts, sample$kernel, own_points(sample))
  promised(new_estimate(
    part_weights(stack$parts, sample$n), fitted,
    max(0, norm2_parts(stack$parts, sample$kernel)), moments,
    more = c(list(select = estimator$select, border = FALSE), stack)
  ), fold_codes(sample$n, estimator$folds))
}

# An operator is a mean of products of features, which are no points to be
# moved: only candidates that are weights remain.
est_operator.est_stack <- function(estimator, argument) {
  estimator$plain <- TRUE
  candidates <- estimator$candidates
  kept <- vapply(candidates, has_weights, NA)
  if (all(kept)) {
    return(estimator)
  }
  left <- names(candidates)[!kept]
  if (!any(kept) || !is.null(estimator$shares)) {
    stop_input("'", argument, "' must be a stack of candidates that are ",
               "weights on the points; ", left[1L], " is not")
  }
  warn_kernmean("the stack is without ", shorten(left, 8L), ": an operator is ",
                "shrunk by weights on the points", kind = "candidates")
  estimator$candidates <- candidates[kept]
  estimator
}

# The warning of candidates that are left out is given once, not for each bag.
est_bags.est_stack <- function(estimator, sample, sizes) {
  allowed_candidates(estimator, sample)
  estimator$plain <- TRUE
  bags_of_parts(estimator, sample, sizes)
}

# --- In tests ----------------------------------------------------------------

# Candidates and shares are chosen once for all relabelings.
est_settle.est_stack <- function(estimator, sample, where) {
  settle_chosen(estimator, sample)
}

# The settlement of an estimator that leaves points out, which must not depend
# on their order. Kernel values alone have no order of their own, so that each
# point is a fold.
settle_chosen <- function(estimator, sample) {
  if (knows_points(sample)) {
    sample <- sort_points(sample)
  } else {
    estimator["folds"] <- list(Inf)
  }
  est_choose(estimator, sample)
}

# No pairing of x and y is looked at, so that permutations stay exact.
est_between.est_stack <- function(a, b) {
  est_stack(Map(\(one, other) est_between(one, other), a$candidates,
                b$candidates),
            (a$shares + b$shares) / 2)
}

# --- print -------------------------------------------------------------------

est_lines.est_stack <- function(estimator, fit, digits, plain = "the KME",
                                target = "the target") {
  table <- fit$candidates
  columns <- cbind(
    c("", format(table$candidate)), c("share", format(round(table$share, 3))),
    if (!anyNA(table$score)) {
      c("score alone", format(table$score, digits = digits))
    }
  )
  columns <- apply(columns, 2L, format, justify = "right")
  c(
    paste0("shares (", describe_rule(fit), "):"),
    paste0("  ", apply(columns, 1L, paste, collapse = "  ")),
    if (all(table$share == 0)) "no candidate has a share: the estimate is 0",
    describe_score(fit, digits, plain)
  )
}

estimator_words.est_stack <- function(estimator) {
  names <- names(estimator$candidates)
  if (!is.null(estimator$shares)) {
    shares <- paste(format_number(estimator$shares, 2L), names)
    return(paste("stack:", shorten(shares[estimator$shares > 0], 3L)))
  }
  whose <- if (is.null(names)) "KME, smoothing, F-KMSE" else shorten(names, 3L)
  paste0("stack: shares of ", whose, " ", leaving_out(estimator))
}
