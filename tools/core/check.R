# Checks what tools/core/driver printed: every number anew, by plain formulas
# from the same inputs, in base R.
#
#   Rscript tools/core/check.R OUTPUT...
#
# (What statistics.c and streams.c print: check_statistics.R, check_streams.R)
#
# Errors are taken relative to the largest value of a result. Those of sums and
# products are a few eps on the scale of their terms: `close` is 20 times the
# largest that was seen at any level. Other tolerances have their reason beside
# them; that of identities of spectra, 1e-12, is some n eps.

close <- 1e-13

# --- Inputs: Park and Miller's generator, as in driver.c ----------------------

generator <- function(seed) {
  state <- seed
  step <- function() {
    state <<- (state * 16807) %% 2147483647
    state / 2147483647
  }
  for (i in 1:10) step()
  step
}

inputs <- local({
  made <- list()
  function(seed, count) {
    key <- paste(seed)
    if (length(made[[key]]) < count) {
      step <- generator(seed)
      made[[key]] <<- vapply(seq_len(count), \(i) 2 * step() - 1, 0)
    }
    made[[key]][seq_len(count)]
  }
})

input_matrix <- function(seed, n, d) matrix(inputs(seed, n * d), n, d)

drawing <- function(seed) {
  step <- generator(seed)
  \(count) floor(step() * count)
}

# As km_draw_permutations() does it; from 0. Of two groups, the first of `first`
# points, those of the smaller are drawn in each block.
draw_permutation <- function(draw, blocks, first = NULL) {
  permutation <- integer(sum(lengths(blocks)))
  for (members in blocks) {
    size <- length(members)
    leading <- if (is.null(first)) size else sum(members < first)
    turned <- leading > size - leading && !is.null(first)
    pool <- members
    drawn <- vapply(seq_len(if (turned) size - leading else leading), \(i) {
      j <- draw(size - i + 1) + 1
      point <- pool[j]
      pool[j] <<- pool[size - i + 1]
      point
    }, 1)
    all <- c(drawn, rev(pool[seq_len(size - length(drawn))]))
    permutation[members + 1] <- if (turned) rev(all) else all
  }
  permutation
}

scaled <- function(x) {
  l <- seq_len(ncol(x)) - 1
  sweep(sweep(x, 2, 0.125 * l), 2, 1 + 0.5 * l, "*")
}

# --- Kernels ------------------------------------------------------------------

twins <- new.env()
script <- grep("^--file=", commandArgs(), value = TRUE)
script <- gsub("~+~", " ", sub("^--file=", "", script), fixed = TRUE)
root <- file.path(dirname(script), "..", "..")
sys.source(file.path(root, "tests/testthat/helper-kernels.R"), twins)
families <- names(twins$kernel_twins)

kernel_matrix <- function(family, x, y = x) {
  force(y)
  if (family != "poly") {
    x <- scaled(x)
    y <- scaled(y)
  }
  of <- \(family, l) {
    twins$kernel_R(x[, l, drop = FALSE], y[, l, drop = FALSE], 1, family,
                   degree = 3, offset = 0.5)
  }
  if (family == "sum") { # the parts in driver.c
    2 * of("rbf", 1:3) * of("laplace_l1", 2:3) + of("poly", 1:2)
  } else {
    of(family, seq_len(ncol(x)))
  }
}

gram <- function(seed, n, d) kernel_matrix("rbf", input_matrix(seed, n, d))

# --- What was printed ---------------------------------------------------------

state <- new.env()

read_output <- function(file) {
  fields <- scan(file, list("", 0L, ""), quiet = TRUE)
  state$values <- split(as.numeric(fields[[3]]),
                        factor(fields[[1]], unique(fields[[1]])))
  state$unseen <- names(state$values)
  state$failed <- character()
  state$worst <- 0
}

got <- function(name) {
  state$unseen <- setdiff(state$unseen, name)
  value <- state$values[[name]]
  if (is.null(value)) {
    stop("the driver did not print '", name, "'", call. = FALSE)
  }
  value
}

got_matrix <- function(name, n) matrix(got(name), n)

small <- function(error, tolerance, name) {
  if (!isTRUE(error <= tolerance)) {
    state$failed <- c(state$failed, sprintf("%s: error %.3g, not below %.3g",
                                            name, error, tolerance))
  }
}

check <- function(name, want, tolerance = close) {
  value <- got(name)
  want <- as.vector(want)
  error <- if (length(value) == length(want)) {
    max(abs(value - want)) / max(abs(want), 1e-300)
  } else {
    Inf
  }
  if (tolerance == close) state$worst <- max(state$worst, error)
  small(error, tolerance, name)
}

same <- function(name, want) check(name, want, 0)

# --- basics.c -----------------------------------------------------------------

check_basics <- function() {
  a <- matrix(inputs(1, 160), 16) # 10 rows of 16, by rows
  v <- matrix(inputs(2, 240), 24)
  check("multiply", matrix(inputs(3, 384), 24) + v %*% t(a))
  x <- inputs(4, 300)
  y <- inputs(5, 300)
  check("total", sum(x), close * sum(abs(x)) / abs(sum(x)))
  check("dot", sum(x * y), close * sum(abs(x * y)) / abs(sum(x * y)))
  check("subtract", y - 0.3 * x)

  q <- input_matrix(6, 320, 8)
  w <- input_matrix(7, 320, 16)
  check("tall_inner", t(crossprod(q, w)))
  check("tall_add", w - 0.01 * q %*% crossprod(q, w))

  x <- input_matrix(8, 111, 5)[5:111, ]
  u2 <- sweep(x, 2, inputs(9, 5))^2
  check("inner", 0.25 + x %*% inputs(9, 5))
  check("distances", rowSums(u2))
  check("squares", u2 %*% inputs(10, 5))
  check("others", u2 %*% inputs(11, 5))

  x <- inputs(12, 203)
  x <- -40 * x * x
  x[201:203] <- c(-Inf, -708.3, 0) # beyond -708.39 the core gives 0
  e <- got("exp")
  # 2 ulp; R's exp() is off by one at most
  small(max(abs(e - exp(x)) / pmax(exp(x), 1e-300)), 3 * .Machine$double.eps,
        "exp")

  means <- input_matrix(13, 3, 2)[c(1, 3), ]
  x <- input_matrix(14, 300, 2)
  density <- 0
  for (j in 1:2) {
    v <- c(0.5, 2)[j]
    s <- rowSums(sweep(x, 2, means[j, ])^2)
    density <- density + 0.5 * exp(-s / (2 * v)) / (2 * pi * v)
  }
  check("log_density", log(density))

  draw <- drawing(15)
  n <- 40
  same("permutation", draw_permutation(draw, list(seq_len(n) - 1)))
  blocks <- split(seq_len(n) - 1, (seq_len(n) - 1) %% 3)
  same("two_groups", vapply(c(16, 24, 32), \(first) {
    draw_permutation(draw, blocks, first)
  }, numeric(n)))
  drawn <- vapply(1:3, \(c) draw_permutation(draw, blocks), numeric(n))
  same("permutations", drawn + 1)
  same("order", drawn)
  same("inverse", apply(drawn, 2, order) - 1)
  # splitmix64 from 1: the published generator's first three numbers, in halves
  same("sequence", strtoi_halves(c("910a2dec89025cc1", "beeb8da1658eec67",
                                   "f893a2eefb32555e")))
  keys <- floor(16 * inputs(78, 202)[c(TRUE, FALSE)])
  codes <- 1 + (0:100)^2 %% 3
  same("sorted_keys", order(keys) - 1)
  same("sorted_codes", order(codes) - 1)
  same("code_ends", cumsum(tabulate(codes, 4)))
  values <- inputs(79, 101)
  same("least", min(values))
  same("of_rank", sort(values)[8])
  same("middle", stats::median(values))
  same("middle_even", stats::median(values[-101]))
  # between two places that lie sqrt(eps) apart the values cannot tell
  check("minimum_at", log(2), 1e-6)
  check("minimum", 2 - 2 * log(2))
}

strtoi_halves <- function(hex) {
  halves <- rbind(substr(hex, 1, 8), substr(hex, 9, 16))
  as.numeric(paste0("0x", halves))
}

# --- grams.c ------------------------------------------------------------------

check_folds <- function(name, k, symmetric) {
  n <- nrow(k)
  m <- ncol(k)
  v <- input_matrix(21, m, 9)
  u <- if (symmetric) v else input_matrix(22, n, 9)
  check(paste0("rows_", name), rowSums(k))
  check(paste0("few_", name), k %*% v[, 1:2])
  check(paste0("many_", name), k %*% v)
  check(paste0("quad_", name), colSums(u * (k %*% v)),
        close * max(colSums(abs(u) * (abs(k) %*% abs(v)))) /
          max(abs(colSums(u * (k %*% v)))))
  if (symmetric) {
    check(paste0("rows_beside_forms_", name), rowSums(k))
    check(paste0("forms_beside_rows_", name), colSums(v * (k %*% v)),
          close * max(colSums(abs(v) * (abs(k) %*% abs(v)))) /
            max(abs(colSums(v * (k %*% v)))))
    check(paste0("diagonal_", name), diag(k))
    check(paste0("column_", name), k[, 66])
  } else {
    check(paste0("store_", name), k)
  }
}

check_grams <- function() {
  n <- 70
  x <- input_matrix(20, n, 3)
  y <- input_matrix(23, 67, 3)
  for (family in c(families, "sum")) {
    check_folds(family, kernel_matrix(family, x), TRUE)
    check_folds(paste0("between_", family), kernel_matrix(family, x, y), FALSE)
    at_zero <- kernel_matrix(family, 0 * x[1:2, ])[1, 1]
    same(paste0("at_zero_", family),
         if (family %in% c("poly", "sum")) 0 else at_zero)
  }
  first <- x[1:32, ]
  check("sum_norms", cbind(rowSums(scaled(first)^2) / 2, 0 * first[, 1:2]))
  check("sum_tile", rbind(kernel_matrix("sum", first), matrix(0, 32, 32)))
  k <- gram(20, n, 3)
  check_folds("stored", k, TRUE)
  # Coordinates of 1000 and bandwidths near 1: the inputs' rounding, eps 1000,
  # moves squared distances by 1e-12.
  far <- kernel_matrix("rbf", input_matrix(24, n, 3) + 1000)
  check("rows_far", rowSums(far), 1e-11)
  large <- gram(25, 740, 3)
  check("streamed", large[seq(1, length(large), 997)])
  check("walk", sum(k))
  check("walk_by_hand", sum(k))
  check("walk_rounds", sum(k))
  same("ranges", apply(x, 2, range))
  check("spreads", log(apply(x, 2, sd)))
  check("means", rowMeans(k))
  check("norm2", mean(k))
  centered <- k - outer(rowMeans(k), rowMeans(k), "+") + mean(k)
  check("square", sum(centered^2))
  check("centered", centered)

  distances <- \(family) kernel_matrix(family, x)[lower.tri(k)]
  for (family in c("sqdist", "l1dist")) {
    check(paste0("median_", family), stats::median(distances(family)))
  }
  draw <- drawing(26)
  pairs <- vapply(1:1001, \(i) {
    first <- draw(n)
    second <- draw(n - 1)
    c(first, second + (second >= first))
  }, numeric(2)) + 1
  check("median_sampled", stats::median(kernel_matrix("sqdist", x)[t(pairs)]))
  same("median_tied", 0)
  same("median_positive", 4)

  x_panel <- input_matrix(28, 40, 3) %*% diag(c(1, 2, 0.5))
  y_panel <- input_matrix(29, 50, 3)
  apart <- outer(1:40, 1:50, Vectorize(\(i, j) {
    sum((x_panel[i, ] - y_panel[j, ])^2)
  }))
  check("panel", inputs(30, 50) + drop(inputs(38, 40) %*% exp(-apart / 2)))

  last <- scaled(input_matrix(28, 40, 3))[33:40, ]
  check("packed", rbind(last, matrix(0, 24, 3)))

  k <- kernel_matrix("poly", x)
  same("rank", 20)
  same("rank_beyond", 6)
  f <- t(matrix(got("lowrank"), 20))
  centered <- k - outer(rowMeans(k), rowMeans(k), "+") + mean(k)
  small(max(abs(tcrossprod(f) - centered)), 1e-12 * max(k), "lowrank")
  beyond <- diag(k) - rowSums(got_matrix("few_columns", nrow(k))^2)
  small(abs(sum(beyond) - got("left_by_few")), sum(diag(k)) * close,
        "left_by_few")
  same("rank_zero", 0)
  n <- 130
  k <- kernel_matrix("laplace_l1", input_matrix(27, n, 3))
  f <- got_matrix("pivoted", n)
  p <- got("pivots") + 1
  small(max(abs(tcrossprod(f) - k)), close, "pivoted")
  small(abs(sum(diag(k)) - sum(f^2) - got("pivoted_left")), n * close,
        "pivoted (left)")
  # At the pivots, exactly: the Cholesky factor of K in their order.
  small(max(abs(f[p, ][upper.tri(k)])), 0, "pivoted (triangle)")
  small(max(abs(f[p, ] - t(chol(k[p, p])))), close, "pivoted (chol)")
  random <- random_pivots(k, 20, 16, generator(39))
  same("random_pivots", random$pivots - 1)
  check("random_left", random$left)
}

# Randomly pivoted Cholesky by the matrix of residuals.
random_pivots <- function(k, most, block, uniform) {
  pivots <- integer()
  left <- k
  while (length(pivots) < most) {
    d <- diag(left)
    proposals <- vapply(seq_len(block), \(q) {
      which(cumsum(d) > uniform() * sum(d))[1]
    }, 1L)
    for (q in seq_len(block)) {
      if (length(pivots) == most) break
      s <- proposals[q]
      if (q > 1 && !(uniform() * d[s] < left[s, s])) next
      pivots <- c(pivots, s)
      left <- left - tcrossprod(left[, s]) / left[s, s]
      left[s, ] <- left[, s] <- 0
    }
  }
  list(pivots = pivots, left = sum(diag(left)) / sum(diag(k)))
}

# --- factors.c ----------------------------------------------------------------

# Each unit is taken out of the sums of the normal equations, which are solved
# anew.
check_left_out <- function() {
  z <- input_matrix(91, 34, 6)
  b <- input_matrix(92, 18, 6)
  y <- inputs(93, 34)
  weights <- 1.5 + inputs(94, 34)
  shares <- inputs(95, 18)
  unit <- rep(1:6, c(1, 4, 20, 0, 6, 3))
  other <- rep(1:6, c(3, 4, 5, 2, 0, 4))
  values <- lapply(1:2, \(ridge) {
    out <- list(alpha = y, residuals = y, of_alpha = shares,
                of_regression = shares)
    for (u in 1:6) {
      here <- z[unit == u, , drop = FALSE]
      there <- b[other == u, , drop = FALSE]
      w <- weights[unit == u]
      normal <- diag(60 + 10 * (1:6 + 6 * (ridge - 1) - 1)) -
        crossprod(here * sqrt(w))
      right <- colSums((weights * y * z)[unit != u, ])
      target <- colSums((shares * b)[other != u, ])
      out$alpha[unit == u] <- here %*% solve(normal, target)
      out$residuals[unit == u] <- y[unit == u] - here %*% solve(normal, right)
      out$of_alpha[other == u] <- there %*% solve(normal, target)
      out$of_regression[other == u] <- there %*% solve(normal, right)
    }
    out
  })
  for (name in names(values[[1]])) {
    check(paste0("left_out_", name), sapply(values, `[[`, name))
  }
}

check_factors <- function() {
  some <- \(x) x[seq(1, length(x), 17)]
  sum <- input_matrix(64, 203, 205)
  sum[1:200, ] <- sum[1:200, ] -
    crossprod(input_matrix(62, 400, 200), input_matrix(63, 400, 205)) / 2
  check("product", some(sum))
  same("flops", 2 * 200 * 205 * 400)
  same("flops_lower", 2 * 205 * (200 - 205 / 2) * 400)
  check("long_product", some(tcrossprod(input_matrix(65, 600, 400))))
  b <- input_matrix(66, 150, 7)
  check("narrow", input_matrix(65, 100, 150) %*% b)
  check("narrow_dots", crossprod(b, input_matrix(65, 150, 100)))

  positive <- function(n) tcrossprod(input_matrix(61, n, 40)) + diag(n)
  check("mirrored", some(positive(200)))
  terms <- input_matrix(61, 200, 40) * input_matrix(66, 200, 40)
  check("column_dots", colSums(terms),
        close * max(colSums(abs(terms))) / max(abs(colSums(terms))))

  # the condition number of the matrix is 150, of L 12
  l <- t(chol(positive(400) + 0.5 * diag(400)))
  check("factor", some(l))
  check("triangle_inverse", some(solve(l)), 1e-12)
  check("triangle_gram", some(crossprod(solve(l))), 1e-12)
  check("resolvent", some(3 * diag(400) - 2 * solve(positive(400) +
                                                      0.25 * diag(400))), 1e-12)
  l <- t(chol(positive(200) + 0.5 * diag(200)))[1:197, 1:197]
  for (name in c("solve_few", "solve")) {
    x <- input_matrix(67, 203, if (name == "solve") 60 else 3)
    for (turned in c("", "_turned")) {
      lower <- if (turned == "") l else t(l)
      check(paste0(name, turned), rbind(solve(lower, x[1:197, ]), x[198:203, ]),
            1e-12)
    }
  }
}

# --- spectra.c ----------------------------------------------------------------

# K = U diag(values) U' for some eigenpairs: residual and orthogonality, and
# that each vector is positive at its largest entry.
check_vectors <- function(name, k, values, u, tolerance) {
  small(max(abs(k %*% u - u %*% diag(values))) / max(abs(values)), tolerance,
        paste(name, "(residual)"))
  small(max(abs(crossprod(u) - diag(ncol(u)))), tolerance,
        paste(name, "(orthogonality)"))
  top <- apply(u, 2, \(v) v[which(abs(v) >= (1 - 1e-8) * max(abs(v)))[1]])
  small(-min(top), 0, paste(name, "(signs)"))
}

# The axes of a small matrix, in no order.
check_axes <- function(k, name) {
  values <- got(paste0(name, "axes"))
  u <- got_matrix(paste0(name, "axes_vectors"), nrow(k))
  want <- eigen(k, symmetric = TRUE, only.values = TRUE)$values
  off <- c(sort(values, decreasing = TRUE) - want,
           k %*% u - u %*% diag(values)) / max(want)
  small(max(abs(off)), 1e-13, paste0(name, "axes"))
  small(max(abs(crossprod(u) - diag(nrow(k)))), 1e-13,
        paste0(name, "axes_vectors"))
}

check_spectra <- function() {
  n <- 50
  k <- gram(31, n, 3)
  diagonal <- got("tridiag_diag")
  off <- got("tridiag_off")
  t_form <- diag(diagonal)
  t_form[cbind(2:n, 1:(n - 1))] <- t_form[cbind(1:(n - 1), 2:n)] <- off
  q <- got_matrix("tridiag_q", n)
  small(max(abs(q %*% t_form %*% t(q) - k)), 1e-12 * norm(k, "2"), "tridiag")
  small(max(abs(crossprod(q) - diag(n))), 1e-12, "tridiag (axes)")
  small(max(abs(q[, 1] - 1 / sqrt(n))), 1e-14, "tridiag (first axis)")
  check("tridiag_back", q)
  # H is a reflection that takes the first axis to e/sqrt(n)
  e <- rep(1 / sqrt(n), n)
  w <- c(1, numeric(n - 1)) - e
  y <- inputs(32, n)
  check("first_reflector", y - 2 * w * sum(w * y) / sum(w^2))

  v <- inputs(36, n)
  reflect <- diag(n) - 2 * tcrossprod(v) / sum(v^2)
  reflected <- reflect %*% k %*% reflect
  check("reflected", reflected)
  scaled <- got_matrix("scaled", n)
  power <- log2(scaled[1] / reflected[1])
  small(abs(power - round(power)), 1e-12, "scaled (a power of 2)")
  small(max(abs(scaled)), 1, "scaled")
  t_form <- diag(got("plain_diag"))
  t_form[cbind(2:n, 1:(n - 1))] <- t_form[cbind(1:(n - 1), 2:n)] <-
    got("plain_off")
  q <- got_matrix("plain_axes", n)
  small(max(abs(q %*% t_form %*% t(q) - scaled)), 1e-12, "plain_axes")
  small(max(abs(crossprod(q) - diag(n))), 1e-12, "plain_axes (orthogonal)")
  check("plain_applied", q %*% matrix(inputs(35, 2 * n), n))

  check_axes(gram(31, 30, 3), "")
  check_axes(tcrossprod(matrix(inputs(37, 60), 30)), "few_")

  first <- seq_len(n) <= 40
  spectra_of <- function(inside, k) {
    k <- k[inside, inside]
    k <- t(k - rowMeans(k)) - colMeans(k) + mean(k)
    values <- eigen(k / sum(inside), TRUE, only.values = TRUE)$values
    c(values * (values >= 1e-9), numeric(n - sum(inside)))
  }
  features <- tcrossprod(matrix(inputs(38, 3 * n), n))
  check("subset_spectra", c(spectra_of(first, k), spectra_of(!first, k),
                            spectra_of(first, features),
                            spectra_of(!first, features)))

  large <- gram(31, 260, 3)
  spectrum <- eigen(large, symmetric = TRUE)
  check("spectrum", spectrum$values)
  # Eigenvectors of clustered eigenvalues are not determined: the leading ones,
  # |e| = 1 and e'K^2 e for e = (1, ..., 1) / sqrt(n) are.
  first <- got("spectrum_first")
  want <- abs(colMeans(spectrum$vectors)) * sqrt(260)
  small(max(abs(first - want)[1:10]), 1e-10, "spectrum_first")
  small(abs(sum(first^2) - 1), 1e-12, "spectrum_first (sum)")
  square <- mean(rowSums(large)^2)
  small(abs(sum(first^2 * got("spectrum")^2) - square), 1e-12 * square,
        "spectrum_first (square)")
  # The condition number is 140.
  shifted <- large + 0.5 * diag(260)
  check("tridiag_solve", solve(shifted, got("tridiag_applied")), 1e-12)

  for (suffix in c("", "_divide", "_large")) {
    m <- if (suffix == "_large") large else k
    values <- got(paste0("values", suffix))
    check(paste0("values", suffix), eigen(m, symmetric = TRUE)$values)
    check_vectors(paste0("vectors", suffix), m, values,
                  got_matrix(paste0("vectors", suffix), nrow(m)), 1e-12)
  }
  check("leading", spectrum$values[1:5])
  check_vectors("leading_vectors", large, got("leading"),
                got_matrix("leading_vectors", 260), 1e-12)
  same("fix_sign", c(-0.5, 0.9, -0.9))
  line <- gram(31, 260, 1)
  for (name in c("range", "range_all")) {
    values <- got(name)
    check(name, eigen(line, symmetric = TRUE)$values[seq_along(values)])
    check_vectors(paste0(name, "_vectors"), line, values,
                  got_matrix(paste0(name, "_vectors"), 260), 1e-12)
  }

  k_points <- gram(34, 600, 2)
  centered <- k_points - outer(rowMeans(k_points), rowMeans(k_points), "+") +
    mean(k_points)
  spectrum <- eigen(centered, symmetric = TRUE, only.values = TRUE)
  check("krylov", spectrum$values[1:3])
  # the residual that km_krylov() promises
  check_vectors("krylov_vectors", centered, got("krylov"),
                got_matrix("krylov_vectors", 600), 1e-10)

  check_scores(k)
}

# The exact leave-one-out score, each point's estimate refitted.
loocv <- function(lambda, k, f = numeric(n), norm2 = 0) {
  n <- nrow(k)
  mean(vapply(seq_len(n), \(i) {
    kept <- k[-i, -i]
    b <- solve(kept + lambda * diag(n - 1), rowMeans(kept) - f[-i])
    k[i, i] - 2 * sum(k[i, -i] * b) - 2 * f[i] + sum(b * (kept %*% b)) +
      2 * sum(b * f[-i]) + norm2
  }, 0))
}

# Leave one out, each refitted: see tests/testthat/helper-reference.R.
check_scores <- function(k) {
  n <- nrow(k)
  lambda <- c(1e-3, 0.1, 1, 30)
  f <- inputs(36, n)
  printed <- function(lambda) {
    mean(vapply(seq_len(n), \(i) {
      b <- solve((n - 1) / n * k + lambda * diag(n), rowMeans(k) - k[, i] / n)
      k[i, i] - 2 * sum(k[i, ] * b) + sum(b * (k %*% b))
    }, 0))
  }
  gcv <- function(lambda) {
    a_full <- solve(k + lambda * diag(n))
    s <- rowSums(a_full)
    a <- mean(diag(a_full))
    ka <- mean(diag(k %*% a_full))
    aka <- mean(diag(a_full %*% k %*% a_full))
    g <- drop(k %*% (1 - lambda * s))
    r <- lambda * s / a
    inner <- (g + r * ka - diag(k)) / (n - 1)
    norm2 <- (sum((1 - lambda * s) * g) + r^2 * aka + diag(k) +
                2 * r * drop(a_full %*% g) - 2 * g - 2 * r * ka) / (n - 1)^2
    mean(diag(k) - 2 * inner + norm2)
  }
  # solve() loses the condition number, 5e4 at the smallest lambda
  check("loocv", vapply(lambda, loocv, 0, k), 1e-10)
  check("loocv_target", vapply(lambda, loocv, 0, k, f, 1.5), 1e-10)
  check("loocv_range", vapply(lambda, loocv, 0, gram(31, 260, 1)), 1e-10)
  check("printed", vapply(lambda, printed, 0), 1e-10)
  check("gcv", vapply(lambda, gcv, 0), 1e-10)
}

# --- All of it ----------------------------------------------------------------

# Every public routine is called: what the headers declare, but for the steps of
# km_tridiag() that band.h and chase.h declare for it.
check_complete <- function(root) {
  headers <- list.files(file.path(root, "src", c("core", "apps")), "[.]h$",
                        full.names = TRUE)
  headers <- headers[!basename(headers) %in% c("band.h", "chase.h")]
  names_in <- function(files) {
    text <- unlist(lapply(files, readLines, warn = FALSE))
    text <- gsub("(?s)/[*].*?[*]/", "", paste(text, collapse = "\n"),
                 perl = TRUE) # comments
    calls <- gregexpr("\\bkm_[a-z0-9_]+(?=\\()", text, perl = TRUE)
    unique(regmatches(text, calls)[[1]])
  }
  driver <- list.files(file.path(root, "tools", "core"), "[.]c$",
                       full.names = TRUE)
  setdiff(names_in(headers), names_in(driver))
}

args <- commandArgs(FALSE)
source(file.path(dirname(script), "check_statistics.R"))
source(file.path(dirname(script), "check_streams.R"))
missing <- check_complete(root)
if (length(missing) > 0) cat("never called by the driver:", missing, "\n")
bad <- length(missing) > 0
for (file in commandArgs(TRUE)) {
  read_output(file)
  check_basics()
  check_grams()
  check_factors()
  check_left_out()
  check_spectra()
  check_statistics()
  check_streams()
  lost <- if (length(state$unseen) > 0) paste("not checked:", state$unseen)
  for (line in c(state$failed, lost)) cat(line, "\n")
  if (length(c(state$failed, lost)) > 0) bad <- TRUE
  cat(basename(file), ": ", sum(lengths(state$values)), " numbers of ",
      length(state$values), " results, largest error ", signif(state$worst, 2),
      "\n", sep = "")
}
quit(status = bad || length(commandArgs(TRUE)) == 0)
