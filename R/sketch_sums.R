# The functions that form the sums of a sketch over the rows of a chunk, add
# them up, and merge them.

# --- Rows ------------------------------------------------------------------

# The sketch with the rows of a chunk, a matrix, data frame or vector. `y` is
# the second of two variables where it is not among the columns; groups and
# weights have a value for each row, and are NULL where they are columns or
# there are none.
add_rows <- function(sketch, rows, y = NULL, groups = NULL, weights = NULL) {
  chunk <- read_chunk(sketch, rows, y, groups, weights)
  if (chunk$n) sketch <- watch_chunk(sketch, chunk)
  sketch$n <- sketch$n + chunk$n
  sketch$dropped <- sketch$dropped + chunk$dropped
  if (!chunk$n) {
    return(sketch)
  }
  sketch$weighted <- sketch$weighted || !is.null(chunk$weights)
  if (is.null(chunk$groups)) {
    # This case avoids a copy of all rows.
    add_group(sketch, 1L, chunk$points, chunk$weights)
  } else {
    add_groups(sketch, chunk)
  }
}

# The sketch with the rows of a chunk that has groups.
add_groups <- function(sketch, chunk) {
  sketch$kind <- same_kind(sketch, chunk)
  sketch$groups <- union(sketch$groups, levels(chunk$groups))
  # If a numeric variable is given as groups by mistake, almost every row is a
  # group, and the sums would fill the memory.
  m <- sum(vapply(sketch$landmarks, `[[`, 1L, "m"))
  check_memory(2 * if (sketch$moments > 1) m^2 else m, length(sketch$groups),
               "take fewer groups or landmarks",
               what = "the sums of all groups")
  each <- split(seq_len(chunk$n), chunk$groups)
  # Groups are found by number, as a name may be "".
  at <- match(levels(chunk$groups), sketch$groups)
  for (g in seq_along(each)) {
    some <- each[[g]]
    sketch <- add_group(sketch, at[g], lapply(chunk$points, take_rows, some),
                        chunk$weights[some])
  }
  sketch
}

# Labels in the order of the numbers in them, week2 before week10. Decimals of a
# number are compared digit by digit.
by_numbers <- function(labels) {
  padded <- labels
  numbers <- gregexpr("(?<![0-9.])[0-9]+", labels, perl = TRUE)
  regmatches(padded, numbers) <- lapply(regmatches(labels, numbers), sprintf,
                                        fmt = "%20s")
  labels[order(padded, method = "radix")]
}

# A list about the rows of a chunk that are used: n, their number; dropped, the
# number of rows that are left out for missing values; points and frames, the
# points and the columns of each variable; groups, a factor; kind, the type of
# column that the groups came in; weights.
read_chunk <- function(sketch, rows, y, groups, weights) {
  landmarks <- sketch$landmarks
  # Tibbles and data tables have other rules for choosing columns.
  if (is.data.frame(rows)) rows <- plain_frame(rows)
  beside <- read_beside(sketch$columns, rows, groups, weights)
  frames <- if (is.null(y)) rep(list(rows), length(landmarks)) else
    list(rows, y)
  n <- NROW(rows)
  dropped <- 0
  used <- Filter(anyNA, c(Map(used_columns, landmarks, frames), beside))
  if (length(used)) {
    kept <- which(Reduce(`&`, lapply(used, stats::complete.cases)))
    dropped <- n - length(kept)
    if (!sketch$omit) refuse_missing(dropped, n)
    frames <- lapply(frames, take_frame, kept)
    beside <- lapply(beside, `[`, kept)
  }
  out <- list(n = as.double(n - dropped), dropped = dropped)
  if (out$n == 0) {
    return(out)
  }
  labels <- c("x", if (is.null(y)) "x" else "y")[seq_along(landmarks)]
  c(out, list(
    points = Map(landmark_points, landmarks, frames, labels),
    frames = Map(used_columns, landmarks, frames),
    groups = if (!is.null(beside$groups)) check_factor(beside$groups),
    kind = unname(frame_kinds(data.frame(beside$groups))),
    weights = if (!is.null(beside$weights)) {
      take(beside$weights, numbers(0), "weights")
    }
  ))
}

# The groups and the weights of rows, from the arguments or from columns. Groups
# that are text become a factor.
read_beside <- function(columns, rows, groups, weights) {
  beside <- list(groups = groups, weights = weights)
  for (name in names(columns)) {
    beside[[name]] <- chunk_column(rows, columns[[name]])
  }
  # factor() makes a level that is NA a missing value.
  if (is.factor(beside$groups)) beside$groups <- factor(beside$groups)
  if (is.character(beside$groups)) {
    words <- check_factor(beside$groups)
    beside$groups <- factor(words, by_numbers(levels(words)))
  }
  beside
}

most_watched <- 2000
most_chunks <- 200L

# The sketch with a row for this chunk in its matrix `chunks`. There is a
# warning if the chunk is unlike those before it, but no second one if the last
# chunk was, too.
watch_chunk <- function(sketch, chunk) {
  now <- chunk_facts(sketch, chunk)
  chunks <- sketch$chunks
  before <- take_rows(chunks, chunks[, "changed"] == 0)
  if (NROW(before) && identical(names(now), colnames(before))) {
    change <- chunk_change(now, before)
    now[["changed"]] <- !is.null(change)
    if (now[["changed"]] && !chunks[nrow(chunks), "changed"]) {
      warn_kernmean("from row ", format_count(sketch$n + sketch$dropped + 1),
                    " on ", change, ": did units or levels change? plot() ",
                    "shows all chunks", kind = "chunks")
    }
  }
  sketch["chunks"] <- list(join_chunks(chunks, t(now)))
  sketch
}

# The row of a chunk in `chunks`, from up to 2,000 of its rows.
chunk_facts <- function(sketch, chunk) {
  n <- chunk$n
  some <- evenly(n, most_watched)
  lost <- max(mapply(lost_share, sketch$landmarks,
                     lapply(chunk$points, take_rows, some)))
  columns <- do.call(c, unname(lapply(chunk$frames, \(frame) {
    as.list(as.data.frame(rows_of_vector(take_frame(frame, some))))
  })))
  quartiles <- vapply(Filter(is.numeric, columns), quantile, numeric(3),
                      1:3 / 4, names = FALSE)
  c(rows = n, lost = lost, changed = 0, median = quartiles[2L, ],
    iqr = quartiles[3L, ] - quartiles[1L, ])
}

# Words for how a chunk with the facts `now` is unlike those before: projection
# loses much more of it, or the quartiles of a column are a multiple of those
# before, as happens if its units change. NULL if it is like them.
chunk_change <- function(now, before) {
  usual <- colSums(before * before[, "rows"]) / sum(before[, "rows"])
  n <- now[["rows"]]
  lost <- now[["lost"]]
  columns <- seq_len((length(now) - 3L) / 2L)
  middle <- 3L + columns
  spread <- middle + length(columns)
  times <- now[spread] / usual[spread]
  scaled <- which(n >= 100 & is.finite(times) & abs(log(times)) > log(1.5) &
                    abs(now[middle] - times * usual[middle]) < now[spread] / 4)
  if (length(scaled)) {
    paste0("the column '", sub("^iqr[.]", "", names(times)[scaled[1L]]),
           "' is as if multiplied by ", format_number(times[[scaled[1L]]], 3L))
  } else if (lost - usual[["lost"]] > 0.1 + 4 * sqrt(usual[["lost"]] / n)) {
    paste0("projection loses ", format_number(100 * lost, 2L), "% of mean ",
           "k(x, x), not ", format_number(100 * usual[["lost"]], 2L), "%")
  }
}

# The rows of both matrices; if there are too many, every two neighbors are
# averaged.
join_chunks <- function(a, b) {
  both <- Filter(length, list(a, b))
  shared <- Reduce(intersect, lapply(both, colnames))
  all <- do.call(rbind, lapply(both, \(x) take_columns(x, shared)))
  if (NROW(all) > most_chunks) {
    pair <- (seq_len(nrow(all)) + 1L) %/% 2L
    rows <- rowsum(all[, "rows"], pair)
    all <- rowsum(all * all[, "rows"], pair) / drop(rows)
    all[, "rows"] <- rows
    rownames(all) <- NULL
  }
  all
}

# The kind that the groups of a sketch and of more rows came as, NULL if that is
# not known.
same_kind <- function(sketch, more) {
  kinds <- unique(c(sketch$kind, more$kind))
  if (length(kinds) > 1L) {
    column <- sketch$columns$groups
    stop_input("'groups' must be ", kinds[1L], " as in the rows before, not ",
               kinds[2L], if (!is.null(column)) read_alike(column))
  }
  kinds
}

# The columns that the landmarks use: a row with a missing value in these is
# left out. If none of them is found, all columns are returned.
used_columns <- function(landmarks, frame) {
  wanted <- colnames(frame) %in% landmark_columns(landmarks)
  if (any(wanted)) take_columns(frame, wanted) else frame
}

chunk_column <- function(rows, name) {
  if (!name %in% colnames(rows)) {
    stop_input("'x' must have the column '", name, "'")
  }
  if (is.data.frame(rows)) rows[[name]] else rows[, name]
}

# --- Sums ------------------------------------------------------------------

# The sketch with more rows in the group of number `at`; `points` has an entry
# for each variable.
add_group <- function(sketch, at, points, weights) {
  sketch$sums[[at]] <- join_sums(sketch$sums[at][[1L]],
                                 new_sums(sum_rows(sketch, points, weights)))
  if (!is.null(sketch$bin)) {
    sketch$bins[[at]] <- fill_bins(sketch$bins[at][[1L]],
                                   sketch$landmarks[[1L]], points[[1L]],
                                   sketch$bin)
    sketch$left <- count_left(sketch)
  }
  sketch
}

# The sums over rows, a named list of arrays; those of the second variable have
# names that end in _y.
sum_rows <- function(sketch, points, weights) {
  n <- as.double(nrow(points[[1L]]))
  plain <- is.null(weights)
  out <- list(n = n, weight = if (plain) n else sum(weights),
              weight2 = if (plain) n else sum(weights^2))
  for (l in seq_along(points)) {
    landmarks <- sketch$landmarks[[l]]
    x <- points[[l]]
    sums <- landmark_sums(landmarks, x, weights, sketch$moments > 1)
    each <- if (plain) 1 else weights
    sums$trace <- if (kernel_has(landmarks$kernel, "unit diagonal")) {
      out$weight
    } else {
      sum(each * fold_diagonal(landmarks$kernel, x))
    }
    sums <- c(Filter(length, sums), if (sketch$moments == 4) {
      sum_fourth(landmarks, x, rep_len(each, n))
    })
    names(sums) <- paste0(names(sums), c("", "_y")[l])
    out <- c(out, sums)
  }
  if (length(points) == 2L) {
    sources <- Map(landmark_source, sketch$landmarks, points)
    # This is sum w k(S, x) l(T, y)'.
    out$cross <- .Call(C_r_sketch_cross, sources[[1L]], sources[[2L]], weights)
  }
  out
}

# The sums square = sum w u^2 and along = sum w u phi, where u = |phi|^2.
sum_fourth <- function(landmarks, x, w) {
  square <- 0
  along <- numeric(landmarks$rank)
  for (rows in row_panels(seq_len(nrow(x)), max(1, 2^20 %/% landmarks$m))) {
    values <- fold_store(landmarks$kernel, landmarks$variable$sample$x,
                         take_rows(x, rows))
    features <- cross(landmarks$root, values)
    u <- column_dots(features)
    square <- square + sum(w[rows] * u^2)
    along <- along + drop(product(features, w[rows] * u))
  }
  list(square = square, along = along)
}

# --- Compensated sums --------------------------------------------------------

# Compensated sums over rows (Neumaier). How the rows were split into parts
# changes their total no more than the order of a few numbers does:
#   sum     the sums, a named list of arrays
#   carry   what rounding has taken from each; NULL for nothing so far
new_sums <- function(sums) list(sum = sums, carry = NULL)

# The sums over the rows of both; NULL stands for no rows.
join_sums <- function(a, b) {
  if (is.null(a) || is.null(b)) {
    return(c(a, b))
  }
  total <- Map(`+`, a$sum, b$sum)
  lost <- Map(rounding_error, a$sum, b$sum, total)
  for (carry in list(a$carry, b$carry)) {
    if (!is.null(carry)) lost <- Map(`+`, lost, carry)
  }
  list(sum = total, carry = lost)
}

# The part of a + b that rounding has taken from their total, exactly.
rounding_error <- function(a, b, total) {
  from_b <- total - a
  (a - (total - from_b)) + (b - from_b)
}

total_sums <- function(sums) {
  if (is.null(sums$carry)) sums$sum else Map(`+`, sums$sum, sums$carry)
}

# One of the sums that are numbers, for each group.
group_numbers <- function(sketch, name) {
  vapply(sketch$sums, \(sums) sum(sums$sum[[name]], sums$carry[[name]]), 1)
}

# --- Bins ------------------------------------------------------------------

# The bins of a group:
#   first   sums of k(S, x) over the rows of each full bin, m x bins matrix
#   open    the bin that is being filled: the count of its rows and their sums
#           `first`
new_bins <- function(m) {
  list(first = matrix(0, m, 0L), open = list(count = 0, first = numeric(m)))
}

# The bins with more rows x, which fall into them in random order.
fill_bins <- function(bins, landmarks, x, size) {
  empty <- new_bins(landmarks$m)
  bins <- bins %||% empty
  n <- nrow(x)
  x <- take_rows(x, sample.int(n))
  begun <- bins$open$count
  ends <- unique(c(seq(min(size - begun, n), n, by = size), n))
  sizes <- diff(c(0, ends))
  sums <- .Call(C_r_sketch_bins, landmark_source(landmarks, x),
                as.integer(sizes))
  sums[, 1L] <- sums[, 1L] + bins$open$first
  counts <- sizes + c(begun, numeric(length(sizes) - 1L))
  full <- counts == size
  bins$first <- cbind(bins$first, take_columns(sums, full))
  bins$open <- if (all(full)) empty$open else
    list(count = counts[!full], first = sums[, !full])
  bins
}

# The full bins of both, and the fuller one of the two bins that are being
# filled; the rows in the other are lost.
join_bins <- function(a, b) {
  if (is.null(a) || is.null(b)) {
    return(c(a, b))
  }
  a$first <- cbind(a$first, b$first)
  if (b$open$count > a$open$count) a$open <- b$open
  a
}

# The number of rows that are in no full bin, also those that join_bins() lost.
count_left <- function(sketch) {
  sketch$n - as.double(sketch$bin) * sum(full_bins(sketch))
}

# The number of full bins of each group.
full_bins <- function(sketch) {
  vapply(sketch$bins, \(bins) ncol(bins$first), 1L)
}

# --- Two sketches ----------------------------------------------------------

# The sketch of the rows of both, on the same landmarks.
merge_sketches <- function(a, b) {
  groups <- union(a$groups, b$groups)
  join <- function(field, by) {
    each <- lapply(list(a, b), \(sketch) {
      if (is.null(groups)) sketch[[field]] else
        sketch[[field]][match(groups, sketch$groups)]
    })
    most <- seq_len(max(lengths(each)))
    Map(by, each[[1L]][most], each[[2L]][most], USE.NAMES = FALSE)
  }
  out <- a
  out["groups"] <- list(groups)
  out["kind"] <- list(same_kind(a, b))
  for (field in c("n", "dropped", "parts")) {
    out[[field]] <- a[[field]] + b[[field]]
  }
  out$weighted <- a$weighted || b$weighted
  out["chunks"] <- list(join_chunks(a$chunks, b$chunks))
  out$sums <- join("sums", join_sums)
  if (!is.null(out$bin)) {
    out$bins <- join("bins", join_bins)
    out$left <- count_left(out)
  }
  out
}

# Stops unless two sketches have the same landmarks; the error names them by
# their `labels`.
check_same_landmarks <- function(a, b, labels = c("the first", "the second")) {
  if (length(a$landmarks) != length(b$landmarks) ||
        !all(mapply(same_landmarks, a$landmarks, b$landmarks))) {
    stop_input(
      labels[1L], " and ", labels[2L], " must be sketches on the same ",
      "landmarks with the same kernel; make the landmarks once, by ",
      "kme_landmarks(), and give them to each"
    )
  }
}
