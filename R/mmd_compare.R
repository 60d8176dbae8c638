# Many groups: two-sample tests of each against a control, or of all pairs, from
# one set of sums where the statistic is an average's.

# The comparisons of the groups of a pooled sample as of read_samples(). asked:
# list(control, pairwise, adjust, B, permutations, blocks, clusters, bins), as
# the user gave them; arguments: what update() takes.
compare_samples <- function(samples, options, asked, arguments) {
  labels <- levels(samples$groups)
  asked <- check_asked(asked, labels, options$null)
  settled <- settle_compared(samples, options)
  pairs <- compared_pairs(labels, asked, settled, options)
  B <- count_draws(pairs, asked)
  warn_coarse(pairs, asked, options$null, B)
  found <- compare_pairs(settled, pairs, asked, B, options)
  new_comparisons(samples, settled, pairs, found, asked, B, options, arguments)
}

new_comparisons <- function(samples, settled, pairs, found, asked, B, options,
                            arguments) {
  check_result(found, "a statistic or its p-value")
  labels <- settled$labels
  swapped <- labels[pairs$first] == c(asked$control, "")[1L] &
    !is.null(asked$control)
  # The control stands second.
  side <- \(a, b) ifelse(swapped, b, a)
  table <- data.frame(
    group1 = labels[side(pairs$first, pairs$second)],
    group2 = labels[side(pairs$second, pairs$first)],
    n1 = side(pairs$m, pairs$n), n2 = side(pairs$n, pairs$m),
    statistic = found$statistic,
    distance = if (is.null(options$filter) && is.null(settled$bandwidths)) {
      sqrt(pmax(0, found$statistic))
    } else {
      plain_distances(settled)[cbind(pairs$first, pairs$second)]
    },
    p.value = found$p,
    p.adjusted = stats::p.adjust(found$p, asked$adjust)
  )
  structure(list(
    table = table, method = compared_title(asked, options),
    data.name = compared_name(arguments$pooled$label, settled$sizes),
    adjust = asked$adjust, control = asked$control,
    B = if (asked$random) B, null = options$null, type = options$statistic,
    estimator = options$estimator, noise = settled$noise,
    kernel = samples$sample$kernel, sample = samples$sample,
    groups = samples$groups,
    sizes = stats::setNames(settled$sizes, labels), arguments = arguments
  ), class = "mmd_comparisons")
}

compared_title <- function(asked, options) {
  scheme <- list(all = identical(asked$permutations, "all"),
                 blocks = asked$blocks, clusters = asked$clusters)
  words <- c(if (is.null(options$bandwidths)) "MMD" else "fused MMD",
             filter_label(options$filter), options$estimator$label,
             options$statistic)
  title <- test_title("two-sample", words, options, scheme, "all labelings")
  of <- if (is.null(asked$control)) {
    "of all pairs of groups"
  } else {
    paste0("of each group against '", asked$control, "'")
  }
  sub(" test (", paste0(" tests ", of, " ("), title, fixed = TRUE)
}

compared_name <- function(label, sizes) {
  ends <- range(sizes)
  paste0(paste(label, collapse = " and "), ": ", length(sizes), " groups of ",
         if (ends[1L] == ends[2L]) ends[1L] else paste(ends, collapse = " to "),
         " points, ", sum(sizes), " in all")
}

# Distances of plain means, groups x groups; of many bandwidths those for their
# average.
plain_distances <- function(settled) {
  each <- by_bandwidth(settled$summed, settled$bandwidths)
  sums <- lapply(each, \(sample) {
    sums <- .Call(C_r_block_sums, sample_source(sample), settled$sizes, NULL,
                  NULL, NULL, FALSE)$sums
    check_overflow(sample$kernel, sums)
  })
  inner <- block_means(Reduce(`+`, sums) / length(sums), settled$sizes)
  own <- diag(inner)
  sqrt(pmax(settled$height * (outer(own, own, `+`) - 2 * inner), 0))
}

check_asked <- function(asked, labels, null) {
  pairwise <- check_flag(asked$pairwise, "pairwise")
  control <- asked$control
  if (is.null(control) == !pairwise) {
    stop_input("'control' must be NULL when 'pairwise' is TRUE, and the name ",
               "of a group when it is not")
  }
  if (!is.null(control)) {
    found <- if (is.atomic(control) && length(control) == 1L) {
      match(as.character(control), labels)
    } else {
      NA
    }
    if (is.na(found)) {
      stop_input("'control' must be one of the groups, ",
                 shorten(paste0("\"", labels, "\""), 12L), ", not ",
                 describe(if (is.factor(control) && length(control) == 1L) {
                   as.character(control)
                 } else {
                   control
                 }))
    }
    asked$control <- labels[found]
  }
  asked$adjust <- check_choice(asked$adjust, stats::p.adjust.methods, "adjust")
  every <- identical(asked$permutations, "all")
  if (!every && !is.null(asked$permutations)) {
    stop_input("'permutations' must be NULL or \"all\" for comparisons of ",
               "pairs, each of which is permuted by itself, not ",
               describe(asked$permutations))
  }
  if (!is.null(asked$B)) asked$B <- check_replicates(asked$B)
  asked$random <- !every && null != "gamma"
  asked
}

# What an average chooses, noise, comes from the whole sample, as the bandwidth
# does: list(sample, sizes, first: the points before each group, labels, order,
# bandwidths, estimator: with nothing left to choose, noise; and of averages the
# sample whose sums they are, `summed`, and the factor of these, height).
settle_compared <- function(samples, options) {
  sample <- walkable_sample(samples$sample)
  estimator <- options$estimator
  settled <- list(
    sample = sample, sizes = samples$sizes,
    first = cumsum(samples$sizes) - samples$sizes,
    labels = levels(samples$groups), order = samples$order,
    bandwidths = samples$bandwidths
  )
  if (is_unshrunk(estimator)) {
    found <- est_settle(estimator, sample, "the pooled sample")
    settled$noise <- found$chosen$noise
    if (!is.null(settled$noise)) estimator$noise <- settled$noise
    settled$summed <- settled_sample(sample, found)
    settled$height <- found$height
  }
  c(settled, list(estimator = estimator))
}

# --- The pairs ---------------------------------------------------------------

# A data frame with a row for each comparison: first, second (groups, in the
# order of their levels), m, n (their sizes), units: what changes places, see
# sample_units(); bins; cost (seconds of a draw) and fast: is it made of the
# sums?
compared_pairs <- function(labels, asked, settled, options) {
  count <- length(labels)
  each <- if (is.null(asked$control)) {
    check_memory(choose(count, 2), 128, "name a 'control'",
                 what = "a table of all pairs of groups,")
    utils::combn(count, 2L)
  } else {
    h <- match(asked$control, labels)
    others <- setdiff(seq_len(count), h)
    rbind(pmin(others, h), pmax(others, h))
  }
  sizes <- settled$sizes
  pairs <- data.frame(first = each[1L, ], second = each[2L, ],
                      m = sizes[each[1L, ]], n = sizes[each[2L, ]])
  units <- read_units(asked$blocks, asked$clusters, sum(sizes), settled$order)
  free <- is.null(asked$blocks) && is.null(asked$clusters)
  random <- free && is.null(asked$permutations)
  found <- lapply(seq_len(nrow(pairs)), \(p) {
    pair <- list(sizes = c(pairs$m[p], pairs$n[p]))
    units <- if (free) {
      list(sizes = pair$sizes)
    } else {
      rows <- pair_rows(settled, lapply(pairs, `[`, p))
      in_pair(labels[each[, p]], sample_units(
        pair, units$blocks[rows], units$clusters[rows]
      ))
    }
    bins <- in_pair(labels[each[, p]],
                    count_bins(options, pair$sizes, random))
    list(units = units, bins = bins,
         cost = mmd_cost(pair, options, units, bins))
  })
  pairs$units <- lapply(found, `[[`, "units")
  pairs$bins <- lapply(found, `[[`, "bins")
  pairs$cost <- vapply(found, `[[`, 1, "cost")
  pairs$fast <- FALSE
  if (random && has_pooled_sums(settled, options)) {
    small <- small_cost(pairs$m, pairs$n, settled$summed)
    # Half of the other cost is drawing, for both.
    fast <- 2 * small < pairs$cost & lengths(pairs$bins) == 0L
    pairs$cost[fast] <- small[fast] + pairs$cost[fast] / 2
    pairs$fast <- fast
  }
  pairs
}

# The value, its errors with the names of the two groups.
in_pair <- function(labels, value) {
  tryCatch(value, kernmean_error_input = \(e) {
    stop_input("in the comparison of '", labels[1L], "' and '", labels[2L],
               "': ", conditionMessage(e))
  })
}

# The points of a pair, those of the first group first.
pair_rows <- function(settled, pair) {
  groups <- c(pair$first, pair$second)
  sequence(settled$sizes[groups], settled$first[groups] + 1L)
}

# Do pooled sums give the statistic, and the size of its terms? Kernel values of
# one sign have that of their sum.
has_pooled_sums <- function(settled, options) {
  options$null == "permutation" && !is.null(settled$summed) &&
    is.null(settled$bandwidths) && is.null(options$filter) &&
    keeps_sign(settled$summed)
}

keeps_sign <- function(sample) {
  if (stores_gram(sample)) {
    k <- sample$gram$K
    min(k) >= 0 || max(k) <= 0
  } else {
    has_one_sign(sample$kernel)
  }
}

# Seconds of a draw that sums the kernel values of the smaller of samples of m
# and n points, about, on one processor.
small_cost <- function(m, n, sample) {
  least <- pmin(as.double(m), n)
  d <- if (knows_points(sample)) ncol(sample$x) else 1
  # The share of draws that hold points of the smaller group.
  mixed <- pmin(1, least^2 / (as.double(m) + n))
  4e-8 * least + mixed * (1.3e-9 + 3e-11 * d) * least^2
}

# --- How many draws ----------------------------------------------------------

usual_level <- 0.05
most_draw_seconds <- 30

# B, or as many as about a second allows, and where half a minute does, so many
# that an adjusted p-value can be below 0.05.
count_draws <- function(pairs, asked) {
  if (!is.null(asked$B)) {
    return(asked$B)
  }
  seconds <- sum(pairs$cost)
  needed <- needed_draws(nrow(pairs), asked$adjust)
  usual <- usual_draws(seconds)
  within <- needed <= most_draws && needed * seconds <= most_draw_seconds
  as.integer(if (within) max(usual, needed) else usual)
}

# So many draws that the smallest adjusted p-value of `count` comparisons is not
# above the level.
needed_draws <- function(count, adjust) {
  factor <- min(stats::p.adjust(rep(1e-12, count), adjust)) / 1e-12
  ceiling(factor / usual_level - 1e-6) - 1
}

# Says what no data could change: too few labelings or draws.
warn_coarse <- function(pairs, asked, null, B) {
  if (null == "gamma") {
    return(invisible())
  }
  count <- nrow(pairs)
  least <- if (null == "permutation") {
    1 / vapply(pairs$units, \(u) count_labelings(u$sizes, u$blocks), 1)
  } else {
    numeric(count)
  }
  few <- least > 1 / (few_labelings - 0.5)
  if (any(few)) {
    warn_kernmean(
      "in ", sum(few), " of ", count_of(count, "comparison"), " there are ",
      "fewer than ", few_labelings, " labelings; their p-values are at least ",
      format(min(least[few]), digits = 2)
    )
  }
  of <- \(least) min(stats::p.adjust(least, asked$adjust))
  too_large <- usual_level * (1 + 1e-9)
  more_draws <- asked$random && of(least) <= too_large
  if (asked$random) least <- pmax(least, 1 / (B + 1))
  smallest <- of(least)
  if (smallest > too_large) {
    needed <- needed_draws(count, asked$adjust)
    warn_kernmean(
      "adjusted p-values of ", count_of(count, "comparison"), " are at least ",
      format(smallest, digits = 2),
      if (more_draws && B < needed) {
        paste0(" with B = ", B, "; they can be ", usual_level, " with B = ",
               format(needed, scientific = FALSE))
      } else {
        ", for want of labelings"
      }
    )
  }
}

# --- The tests ---------------------------------------------------------------

# list(statistic, p), a number for each comparison. Those of one size in all
# share the permutations.
compare_pairs <- function(settled, pairs, asked, B, options) {
  bar <- progress_bar(options$progress)
  on.exit(bar$close())
  options$progress <- FALSE
  options$estimator <- settled$estimator
  sums <- if (any(pairs$fast)) pooled_sums(settled)
  statistic <- p <- numeric(nrow(pairs))
  done <- 0
  keep <- function(i, found) {
    statistic[i] <<- found$statistic
    p[i] <<- found$p
    done <<- done + length(i)
    bar$at(done / nrow(pairs))
  }
  total <- pairs$m + pairs$n
  for (size in unique(total)) {
    those <- which(total == size)
    drawn <- shared_draws(pairs[those, ], asked, B, options)
    fast <- those[pairs$fast[those]]
    for (i in alike(pairs, fast, B)) {
      keep(i, sums_pairs(settled, sums, pairs[i, ], drawn, options))
    }
    for (i in setdiff(those, fast)) {
      pair <- lapply(pairs, `[`, i)
      keep(i, general_pair(settled, pair, drawn, asked, B, options))
    }
  }
  list(statistic = statistic, p = p)
}

most_shared <- 2^26

# Permutations for the comparisons of one size N in all, drawn as in the
# two-sample test: list(matrix: N x B, or the first and the last `ends` rows of
# it alone), NULL where each comparison draws by itself.
shared_draws <- function(pairs, asked, B, options) {
  n <- pairs$m[1L] + pairs$n[1L]
  plain <- options$null == "permutation" && asked$random &&
    is.null(asked$blocks) && is.null(asked$clusters)
  whole <- !pairs$fast & lengths(pairs$bins) == 0L
  if (!plain || !any(pairs$fast | whole)) {
    return(NULL)
  }
  ends <- max(0L, pmin(pairs$m, pairs$n)[pairs$fast])
  if (any(pairs$fast)) {
    check_memory(2 * ends, B / 2, "use fewer permutations", copies = 4,
                 what = "the permutations")
  }
  all <- any(whole) && as.double(n) * B <= most_shared || 2 * ends >= n
  if (!all && !ends) {
    return(NULL)
  }
  kept <- if (all) seq_len(n) else c(seq_len(ends), n - ends + seq_len(ends))
  step <- max(1L, as.integer(most_shared / 16 / n))
  parts <- in_chunks(B, step, FALSE, \(start, count) {
    draw_permutations(n, count)[kept, , drop = FALSE]
  })
  list(matrix = do.call(cbind, parts), whole = all)
}

# One comparison as a two-sample test: list(statistic, p).
general_pair <- function(settled, pair, drawn, asked, B, options) {
  rows <- pair_rows(settled, pair)
  samples <- list(
    sample = sample_take(settled$sample, rows),
    groups = factor(rep(1:2, c(pair$m, pair$n)), 1:2,
                    settled$labels[c(pair$first, pair$second)]),
    sizes = c(pair$m, pair$n), bandwidths = settled$bandwidths
  )
  units <- pair$units[[1L]]
  scheme <- without_warning("few", check_permutations(
    asked$permutations, units, B, options$null
  ))
  if (isTRUE(drawn$whole) && is.null(pair$bins[[1L]])) {
    scheme$matrix <- drawn$matrix
  }
  scheme["bins"] <- pair$bins
  found <- mmd_statistics(samples, options, scheme)
  list(statistic = found$height * found$values[1L],
       p = mmd_null(samples, options, scheme, found)$p)
}

# --- From pooled sums --------------------------------------------------------

# list(rows: sums of kernel values of each point with each group, points x
# groups; diagonal; source)
pooled_sums <- function(settled) {
  sample <- settled$summed
  check_memory(sample$n, length(settled$sizes), "use fewer groups",
               what = "the matrix of sums of points over groups,")
  source <- sample_source(sample)
  rows <- .Call(C_r_block_rows, source, settled$sizes)
  list(rows = check_overflow(sample$kernel, rows),
       diagonal = sample_diagonal(sample), source = source)
}

most_members <- 2^22

# Comparisons of the same larger group with groups of one size, so many at a
# time, as lists of their numbers.
alike <- function(pairs, those, B) {
  larger <- ifelse(pairs$m <= pairs$n, pairs$second, -pairs$first)[those]
  groups <- split(those, larger)
  unlist(lapply(groups, \(i) {
    most <- max(1, most_members %/% (min(pairs$m[i], pairs$n[i]) * (B + 1)))
    row_panels(i, most)
  }), recursive = FALSE, use.names = FALSE)
}

# With r_i the sum of row i over the pair, t = sum_i r_i, a labeling that gives
# s to the smaller sample has the sums q = s'Ks within it, s'r - q between the
# two, and t - 2 s'r + q within the other. Where s lies in the larger group, q
# is that of all pairs.
sums_pairs <- function(settled, sums, pairs, drawn, options) {
  sizes <- c(pairs$m[1L], pairs$n[1L])
  n <- sum(sizes)
  small <- if (sizes[1L] <= sizes[2L]) 1L else 2L
  m <- sizes[small]
  # Places in the pair: those of the smaller sample as observed, then as drawn.
  own <- if (small == 1L) seq_len(m) else n - m + seq_len(m)
  kept <- if (small == 1L) seq_len(m) else nrow(drawn$matrix) - m + seq_len(m)
  places <- cbind(own, drawn$matrix[kept, , drop = FALSE], deparse.level = 0)
  rows <- lapply(seq_len(nrow(pairs)), \(i) {
    pair_rows(settled, lapply(pairs, `[`, i))
  })
  mixed <- colSums(matrix(places %in% own, m)) > 0
  members <- c(
    list(rows[[1L]][places[, !mixed]]),
    lapply(rows, \(of) of[places[, mixed]])
  )
  forms <- .Call(C_r_small_forms, sums$source, matrix(unlist(members), m))
  shared <- seq_len(sum(!mixed))
  single <- matrix(forms[length(shared) + seq_len(sum(mixed) * nrow(pairs))],
                   ncol = nrow(pairs))
  unbiased <- options$statistic == "unbiased"
  of <- if (unbiased) unbiased_statistic else biased_statistic
  found <- vapply(seq_len(nrow(pairs)), \(i) {
    over <- \(v) matrix(colSums(matrix(v[places], m)))
    q <- numeric(ncol(places))
    q[mixed] <- single[, i]
    q[!mixed] <- forms[shared]
    r <- rowSums(sums$rows[rows[[i]], c(pairs$first[i], pairs$second[i])])
    diagonal <- sums$diagonal[rows[[i]]]
    trace <- if (unbiased) over(diagonal) else matrix(0, length(q))
    blocks <- block_sums(matrix(q), over(r), trace, sum(r), sum(diagonal), 2L)
    blocks$sizes <- matrix(as.double(sizes[c(small, 3L - small)]), length(q),
                           2L, byrow = TRUE)
    values <- of(blocks)
    c(settled$height * values[1L],
      permutation_p(values[1L], values[-1L], abs(sum(r)) / n^2))
  }, numeric(2))
  list(statistic = found[1L, ], p = found[2L, ])
}
