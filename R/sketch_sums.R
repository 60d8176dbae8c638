# The sums of a sketch: of a set of rows, added up, and merged. A record is
# list(sum, carry), two lists of the same names and shapes: sums over rows, and
# what rounding has taken from them (Neumaier; NULL for nothing so far), so that
# their total depends on how rows were dealt to parts no more than on the order
# of a few numbers.

# A sketch without rows; `options` as of read_sketch_options().
empty_sketch <- function(landmarks, options) {
  structure(
    c(list(landmarks = landmarks, n = 0, groups = NULL, dropped = 0, left = 0,
           parts = 0, weighted = FALSE),
      options[c("second", "fourth", "bin", "omit", "columns")],
      list(sums = list(), bins = NULL)),
    class = "kme_sketch"
  )
}

# --- Rows ------------------------------------------------------------------

# The sketch with the rows of a chunk. `rows`: a matrix, data frame or vector;
# `y`: of two variables the second where it is not among the columns; groups,
# weights: a value for each row, NULL where they are columns or there are none.
add_rows <- function(sketch, rows, y = NULL, groups = NULL, weights = NULL) {
  chunk <- read_chunk(sketch, rows, y, groups, weights)
  sketch$n <- sketch$n + chunk$n
  sketch$dropped <- sketch$dropped + chunk$dropped
  sketch$weighted <- sketch$weighted || !is.null(chunk$weights)
  if (!chunk$n) {
    return(sketch)
  }
  if (is.null(chunk$groups)) {
    return(add_group(sketch, 1L, chunk$points, chunk$weights))
  }
  sketch$groups <- union(sketch$groups, levels(chunk$groups))
  # By number: a group may be called "".
  if (length(sketch$groups) > few_groups) check_group_memory(sketch)
  each <- split(seq_len(chunk$n), chunk$groups)
  at <- match(levels(chunk$groups), sketch$groups)
  for (g in seq_along(each)) {
    some <- each[[g]]
    sketch <- add_group(sketch, at[g], lapply(chunk$points, take_rows, some),
                        chunk$weights[some])
  }
  sketch
}

few_groups <- 50L

# Numbers that were meant as a variable would make a group of each row.
check_group_memory <- function(sketch) {
  m <- vapply(sketch$landmarks, `[[`, 1L, "m")
  each <- if (sketch$second) 2 * sum(m)^2 else 2 * sum(m)
  check_memory(each, length(sketch$groups), "take fewer groups or landmarks",
               what = "the sums of all groups")
}

# list(points: those of each variable, groups: a factor, weights, n, dropped).
read_chunk <- function(sketch, rows, y, groups, weights) {
  landmarks <- sketch$landmarks
  columns <- sketch$columns
  # Of tibbles and data tables the columns only.
  if (is.data.frame(rows)) rows <- plain_frame(rows)
  frame <- list(rows, y)
  total <- NROW(rows)
  pick <- \(given, name) {
    if (is.null(name)) given else chunk_column(rows, name)
  }
  groups <- pick(groups, columns$groups)
  # A level that is NA is a missing value.
  if (is.factor(groups)) groups <- factor(groups)
  weights <- pick(weights, columns$weights)
  used <- used_columns(landmarks, rows, y)
  used <- Filter(anyNA, c(used, list(groups, weights)))
  dropped <- 0
  if (length(used)) {
    kept <- which(Reduce(`&`, lapply(used, stats::complete.cases)))
    dropped <- total - length(kept)
    if (!sketch$omit) refuse_missing(dropped, total)
    frame <- lapply(frame, \(part) if (!is.null(part)) take_frame(part, kept))
    groups <- groups[kept]
    weights <- weights[kept]
  }
  out <- list(n = as.double(total - dropped), dropped = dropped)
  if (out$n == 0) {
    return(out)
  }
  second <- if (is.null(y)) frame[[1L]] else frame[[2L]]
  points <- list(landmark_points(landmarks[[1L]], frame[[1L]]))
  if (length(landmarks) == 2L) {
    points[[2L]] <- landmark_points(landmarks[[2L]], second,
                                    if (is.null(y)) "x" else "y")
    if (nrow(points[[2L]]) != nrow(points[[1L]])) {
      stop_input("'y' must have as many rows as 'x', ", nrow(points[[1L]]),
                 ", not ", nrow(points[[2L]]))
    }
  }
  c(out, list(points = points, groups = check_chunk_groups(groups, out$n),
              weights = check_chunk_weights(weights, out$n)))
}

# What is looked at for missing values, as a list.
used_columns <- function(landmarks, rows, y) {
  frames <- list(rows)
  sets <- list(landmarks)
  if (!is.null(y)) {
    frames[[2L]] <- y
    sets <- list(landmarks[1L], landmarks[2L])
  }
  Map(\(frame, set) {
    names <- lapply(set, landmark_columns)
    known <- !vapply(names, is.null, NA)
    wanted <- intersect(unlist(names), colnames(frame))
    if (all(known) && length(wanted)) frame[, wanted, drop = FALSE] else frame
  }, frames, sets)
}

chunk_column <- function(rows, name) {
  if (is.null(colnames(rows)) || !name %in% colnames(rows)) {
    stop_input("'x' must have the column '", name, "'")
  }
  if (is.data.frame(rows)) rows[[name]] else rows[, name]
}

check_chunk_groups <- function(groups, n) {
  if (is.null(groups)) {
    return(NULL)
  }
  if (!is.atomic(groups) || length(groups) != n) {
    stop_input("'groups' must have one value for each of the ", n, " rows, ",
               "not ", describe(groups))
  }
  check_factor(groups)
}

check_chunk_weights <- function(weights, n) {
  if (is.null(weights)) {
    return(NULL)
  }
  if (!is.numeric(weights) || length(weights) != n) {
    stop_input("'weights' must be ", n, " numbers, one for each row, not ",
               describe(weights))
  }
  check_finite(weights, "weights")
  if (any(weights < 0)) {
    stop_input("'weights' must not be negative, as ",
               format_number(min(weights)), " is")
  }
  squares <- sum(as.double(weights)^2)
  if (!is.finite(squares) || squares == 0 && any(weights > 0)) {
    stop_input("'weights' must have squares that neither over- nor underflow, ",
               "not be ", format_number(max(weights)),
               "; divide all of them by one number")
  }
  as.double(weights)
}

# --- Sums ------------------------------------------------------------------

# The rows of one group, points of each variable.
add_group <- function(sketch, at, points, weights) {
  record <- new_record(sum_rows(sketch, points, weights))
  if (at <= length(sketch$sums)) {
    record <- add_records(sketch$sums[[at]], record)
  }
  sketch$sums[[at]] <- record
  if (!is.null(sketch$bin)) {
    own <- if (at <= length(sketch$bins)) sketch$bins[[at]]
    own <- fill_bins(own, sketch$landmarks[[1L]], points[[1L]], sketch$bin)
    sketch$bins[[at]] <- own
    sketch$left <- count_left(sketch)
  }
  sketch
}

# The sums over rows, a named list of arrays; those of the second variable have
# names that end in _y.
sum_rows <- function(sketch, points, weights) {
  n <- as.double(nrow(points[[1L]]))
  own <- Map(\(landmarks, x, end) {
    sums <- sum_variable(landmarks, x, weights, sketch$second, sketch$fourth)
    stats::setNames(sums, paste0(names(sums), end))
  }, sketch$landmarks, points, c("", "_y")[seq_along(points)])
  plain <- is.null(weights)
  c(list(n = n, weight = if (plain) n else sum(weights),
         weight2 = if (plain) n else sum(weights^2)),
    unlist(unname(own), recursive = FALSE),
    if (length(points) == 2L) list(
      cross = sum_cross(sketch$landmarks, points, weights)
    ))
}

sum_variable <- function(landmarks, x, weights, second, fourth) {
  sums <- landmark_sums(landmarks, x, weights, second)
  sums$trace <- if (!has_unit_diagonal(landmarks$kernel)) {
    weighted_sum(fold_diagonal(landmarks$kernel, x), weights)
  } else if (is.null(weights)) {
    as.double(nrow(x))
  } else {
    sum(weights)
  }
  c(Filter(Negate(is.null), sums),
    if (fourth) sum_fourth(landmarks, x, weights))
}

weighted_sum <- function(v, weights) {
  if (is.null(weights)) sum(v) else sum(weights * v)
}

# list(square: sum w u^2, along: sum w u phi), u = |phi|^2.
sum_fourth <- function(landmarks, x, weights) {
  square <- 0
  along <- numeric(landmarks$rank)
  for (rows in row_panels(seq_len(nrow(x)), max(1, 2^20 %/% landmarks$m))) {
    features <- row_features(landmarks, x[rows, , drop = FALSE])
    u <- column_dots(features)
    square <- square + weighted_sum(u^2, weights[rows])
    along <- along + drop(product(
      features, if (is.null(weights)) u else weights[rows] * u
    ))
  }
  list(square = square, along = along)
}

# phi(x) of each row, r x n.
row_features <- function(landmarks, x) {
  k <- fold_store(landmarks$kernel, landmarks$variable$sample$x, x)
  cross(landmarks$root, k)
}

# sum w k(S, x) l(T, y)'.
sum_cross <- function(landmarks, points, weights) {
  sources <- Map(\(l, x) {
    if (!is_function_kernel(l$kernel)) landmark_source(l, x)
  }, landmarks, points)
  if (!any(vapply(sources, is.null, NA))) {
    return(.Call(C_r_sketch_cross, sources[[1L]], sources[[2L]], weights))
  }
  total <- 0
  size <- max(1, 2^20 %/% max(vapply(landmarks, `[[`, 1L, "m")))
  for (rows in row_panels(seq_len(nrow(points[[1L]])), size)) {
    k <- Map(\(l, x) {
      fold_store(l$kernel, l$variable$sample$x, x[rows, , drop = FALSE])
    }, landmarks, points)
    w <- if (is.null(weights)) 1 else rep(weights[rows], each = nrow(k[[1L]]))
    total <- total + tcross(k[[1L]] * w, k[[2L]])
  }
  total
}

# --- Records ---------------------------------------------------------------

new_record <- function(sums) {
  list(sum = sums, carry = NULL)
}

add_records <- function(a, b) {
  total <- Map(`+`, a$sum, b$sum)
  lost <- Map(rounding_error, a$sum, b$sum, total)
  for (carry in list(a$carry, b$carry)) {
    if (!is.null(carry)) lost <- Map(`+`, lost, carry)
  }
  list(sum = total, carry = lost)
}

# a + b - total, exactly.
rounding_error <- function(a, b, total) {
  from_b <- total - a
  (a - (total - from_b)) + (b - from_b)
}

total_sums <- function(record) {
  if (is.null(record$carry)) record$sum else
    Map(`+`, record$sum, record$carry)
}

# One of the numbers that are kept, of each group.
group_numbers <- function(sketch, name) {
  vapply(sketch$sums, \(record) {
    sum(record$sum[[name]], record$carry[[name]])
  }, numeric(1))
}

# What the sums of a group are, or of all groups together.
sketch_sums <- function(sketch, group = NULL) {
  records <- if (is.null(group)) sketch$sums else sketch$sums[group]
  record <- Reduce(add_records, records)
  total_sums(record)
}

# --- Bins ------------------------------------------------------------------

# list(first: m x bins, sums of k(S, x) over the rows of each full bin; open:
# list(count, first) of the one that is being filled), with rows that fall into
# them in random order.
fill_bins <- function(bins, landmarks, x, size) {
  m <- landmarks$m
  if (is.null(bins)) {
    bins <- list(first = matrix(0, m, 0L), open = empty_bin(m))
  }
  n <- nrow(x)
  x <- x[sample.int(n), , drop = FALSE]
  begun <- bins$open$count
  ends <- unique(c(seq(min(size - begun, n), n, by = size), n))
  sizes <- diff(c(0, ends))
  sums <- bin_sums(landmarks, x, sizes)
  sums[, 1L] <- sums[, 1L] + bins$open$first
  counts <- sizes + c(begun, numeric(length(sizes) - 1L))
  full <- counts == size
  bins$first <- cbind(bins$first, sums[, full, drop = FALSE])
  bins$open <- if (all(full)) empty_bin(m) else
    list(count = counts[!full], first = sums[, !full])
  bins
}

empty_bin <- function(m) list(count = 0, first = numeric(m))

# Sums of k(S, x) over consecutive rows, so many at a time.
bin_sums <- function(landmarks, x, sizes) {
  if (!is_function_kernel(landmarks$kernel)) {
    return(.Call(C_r_sketch_bins, landmark_source(landmarks, x),
                 as.integer(sizes)))
  }
  last <- cumsum(sizes)
  vapply(seq_along(sizes), \(b) {
    rows <- seq(last[b] - sizes[b] + 1, last[b])
    rowSums(call_kernel(landmarks$kernel, landmarks$variable$sample$x,
                        x[rows, , drop = FALSE]))
  }, numeric(landmarks$m))
}

# Of two bins that are being filled the fuller one stays.
merge_bins <- function(a, b) {
  if (is.null(a) || is.null(b)) {
    return(if (is.null(a)) b else a)
  }
  list(first = cbind(a$first, b$first),
       open = if (a$open$count >= b$open$count) a$open else b$open)
}

# Rows that are in no full bin.
count_left <- function(sketch) {
  full <- vapply(sketch$bins, \(bins) ncol(bins$first), 1L)
  sketch$n - as.double(sketch$bin) * sum(full)
}

# --- Two sketches ----------------------------------------------------------

# Sums of both; classed errors where they cannot be added.
merge_sketches <- function(a, b) {
  check_same_landmarks(a, b)
  check_same_sums(a, b)
  groups <- union(a$groups, b$groups)
  entry <- \(sketch, of, i) {
    at <- if (is.null(groups)) 1L else match(groups[i], sketch$groups)
    if (!is.na(at) && at <= length(sketch[[of]])) sketch[[of]][[at]]
  }
  both <- \(of, join) {
    lapply(seq_len(max(length(groups), length(a[[of]]), length(b[[of]]))),
           \(i) join(entry(a, of, i), entry(b, of, i)))
  }
  out <- a
  out$n <- a$n + b$n
  out["groups"] <- list(groups)
  out$dropped <- a$dropped + b$dropped
  out$parts <- a$parts + b$parts
  out$weighted <- a$weighted || b$weighted
  out$sums <- both("sums", \(p, q) {
    if (is.null(p) || is.null(q)) c(p, q) else add_records(p, q)
  })
  if (!is.null(out$bin)) {
    out$bins <- both("bins", merge_bins)
    out$left <- count_left(out)
  }
  out
}

# Do two sketches stand on the same landmarks? `names`: what they are called.
check_same_landmarks <- function(a, b, names = c("the first", "the second")) {
  same <- length(a$landmarks) == length(b$landmarks) &&
    all(mapply(same_landmarks, a$landmarks, b$landmarks))
  if (!same) {
    stop_input(
      names[1L], " and ", names[2L], " must be sketches on the same landmarks ",
      "with the same kernel; make the landmarks once, by kme_landmarks(), and ",
      "give them to each"
    )
  }
}

check_same_sums <- function(a, b) {
  for (option in c("second", "fourth", "bin")) {
    if (!identical(a[[option]], b[[option]])) {
      stop_input("'", option, "' must be the same for sketches that are added,",
                 " not ", describe(a[[option]]), " and ",
                 describe(b[[option]]))
    }
  }
  if (length(a$sums) && length(b$sums) &&
        is.null(a$groups) != is.null(b$groups)) {
    stop_input("both sketches must have groups, or none, to be added")
  }
  if (!is.null(a$bin) && (a$weighted || b$weighted)) {
    stop_input("'weights' must not be given to a sketch with bins")
  }
}
