# Products, Cholesky factors and triangular solves against base R and by their
# identities, in sizes around every edge of a block.

edges <- c(1:3, 7:9, 23:25, 31:33, 47:49, 63:65, 95:97, 191:193, 385)

# n eps/2 / (1 - n eps/2), which bounds the relative error of n roundings.
gamma_of <- function(n) {
  u <- n * .Machine$double.eps / 2
  u / (1 - u)
}

random <- function(n, m) matrix(stats::rnorm(n * m), n)

# All of them for the widest vectors, fewer for the others.
edges_for <- function(level) {
  if (level == max(isa_levels())) edges else c(1:3, 8, 23:25, 48, 49, 95, 97)
}

# A matrix with LL' = A, whose factor has a diagonal near 1.
positive <- function(n) tcrossprod(random(n, n)) / n + diag(n)

test_that("products are those of base R, at each level of instructions", {
  skip_on_cran()
  set.seed(1)
  sizes <- rbind(
    cbind(edges, rev(edges), edges[c(5:25, 1:4)][seq_along(edges)]),
    c(1, 300, 500), c(300, 1, 500), c(2, 2, 1200), c(210, 400, 1),
    # Narrow, with more than a million numbers in the other factor.
    c(1100, 7, 1000), c(3, 1025, 1100)
  )
  sizes[is.na(sizes)] <- 5
  for (level in isa_levels()) {
    step <- if (level == max(isa_levels())) 1 else 2
    with_isa(level, for (i in seq(1, nrow(sizes), step)) {
      m <- sizes[i, 1L]
      n <- sizes[i, 2L]
      depth <- sizes[i, 3L]
      a <- random(m, depth)
      b <- random(depth, n)
      # Two sums of `depth` products differ by at most 2 gamma |A||B|.
      bound <- 2 * gamma_of(depth + 2) * (abs(a) %*% abs(b))
      want <- a %*% b
      label <- paste(level, m, n, depth)
      expect_true(all(abs(product(a, b) - want) <= bound), label = label)
      expect_true(all(abs(cross(t(a), b) - want) <= bound), label = label)
      expect_true(all(abs(tcross(a, t(b)) - want) <= bound), label = label)
    })
  }
})

test_that("symmetric products are exactly symmetric, in either form", {
  set.seed(2)
  for (n in c(edges, 500)) {
    a <- random(n, 40)
    whole <- tcross(a)
    bound <- 2 * gamma_of(42) * tcrossprod(abs(a))
    expect_true(all(abs(whole - tcrossprod(a)) <= bound), label = n)
    expect_identical(whole, t(whole))
    # Narrow ones are inner products, in another order.
    other <- cross(t(a))
    expect_true(all(abs(other - whole) <= bound), label = n)
    expect_identical(other, t(other))
  }
})

test_that("products have the dimnames of %*%, and may be empty", {
  a <- matrix(1:6 + 0, 2, dimnames = list(c("p", "q"), letters[1:3]))
  b <- matrix(1:12 + 0, 3, dimnames = list(letters[1:3], LETTERS[1:4]))
  expect_identical(product(a, b), a %*% b)
  expect_identical(product(unname(a), b), unname(a) %*% b)
  expect_identical(cross(a, a), crossprod(a))
  expect_identical(cross(a), crossprod(a))
  expect_identical(tcross(a), tcrossprod(a))
  expect_identical(tcross(a, t(b)), a %*% b)
  expect_identical(product(a, c(1, 2, 3)), a %*% c(1, 2, 3))
  expect_identical(product(unname(a[, 0]), matrix(0, 0, 4)), matrix(0, 2, 4))
  expect_identical(product(matrix(0, 0, 3), unname(b)), matrix(0, 0, 4))
  expect_identical(product(unname(a), matrix(0, 3, 0)), matrix(0, 2, 0))
  expect_identical(cross(matrix(0, 3, 0)), matrix(0, 0, 0))
  expect_identical(tcross(matrix(0, 3, 0)), matrix(0, 3, 3))
  expect_error(product(a, a), "do not fit")
  expect_error(product(a, 1:3), "internal error: 'b'")
})

test_that("column_dots() are the sums of products of columns", {
  set.seed(3)
  a <- random(70, 30)
  b <- random(70, 30)
  expect_near(column_dots(a, b), colSums(a * b), 1e-13)
  expect_near(column_dots(a), colSums(a^2), 1e-14)
})

test_that("LL' = K + shift I, and L is the factor of chol()", {
  skip_on_cran()
  set.seed(4)
  for (level in isa_levels()) {
    with_isa(level, for (n in edges_for(level)) {
      k <- positive(n)
      l <- cholesky(k, 0.5)
      label <- paste(level, n)
      expect_true(all(l[upper.tri(l)] == 0), label = label)
      # |LL' - A| <= gamma |L||L'| (Higham 2002, 10.3), and one for the check.
      bound <- (gamma_of(n + 1) + gamma_of(n)) * tcrossprod(abs(l))
      expect_true(all(abs(tcrossprod(l) - k - diag(0.5, n)) <= bound),
                  label = label)
      expect_equal(l, t(chol(k + diag(0.5, n))), tolerance = 1e-12,
                   label = label)
      # The upper half is not read.
      k[upper.tri(k)] <- NaN
      expect_identical(cholesky(k, 0.5), l, label = label)
    })
  }
})

test_that("a pivot that is no positive number is found wherever it is", {
  set.seed(5)
  for (n in c(1, 2, 30, 97, 230)) {
    k <- positive(n)
    for (at in unique(c(1, 2, 24, 25, 60, 96, 97, n - 1, n))) {
      if (at < 1 || at > n) next
      bad <- k
      l <- t(chol(k))
      # The pivot becomes -1, 0 or no number.
      bad[at, at] <- sum(l[at, seq_len(at - 1L)]^2) - 1
      expect_null(cholesky(bad), label = paste(n, at))
      bad[at, at] <- Inf
      expect_null(cholesky(bad), label = paste(n, at))
      bad[at, at] <- NaN
      expect_null(cholesky(bad), label = paste(n, at))
    }
  }
  expect_null(cholesky(matrix(0, 3, 3)))
  expect_null(cholesky(matrix(1, 2, 2)))
  expect_null(cholesky(matrix(-1), 0.5))
})

test_that("triangular solves leave residuals of rounding", {
  skip_on_cran()
  set.seed(6)
  for (level in isa_levels()) {
    with_isa(level, for (n in edges_for(level)) {
      l <- t(chol(positive(n)))
      full <- l
      full[upper.tri(full)] <- NaN
      # 6 are solved one by one, 48 by one strip.
      for (p in if (n > 2) c(6, 7, 49) else 7) {
        b <- random(n, p)
        label <- paste(level, n, p)
        close <- vapply(c(FALSE, TRUE), \(transpose) {
          a <- if (transpose) t(l) else l
          x <- solve_lower(full, b, transpose)
          # |Lx - b| <= gamma |L||x| (Higham 2002, 8.5); one for the check, one
          # for reciprocals of the diagonal.
          bound <- 3 * gamma_of(n + 1) * (abs(a) %*% abs(x))
          all(abs(a %*% x - b) <= bound)
        }, NA)
        expect_true(all(close), label = label)
        expect_identical(solve_factored(l, b),
                         solve_lower(l, solve_lower(l, b), TRUE))
      }
      inverse <- inverse_lower(full)
      expect_true(all(inverse[upper.tri(inverse)] == 0), label = n)
      bound <- 3 * gamma_of(n + 1) * (abs(l) %*% abs(inverse))
      expect_true(all(abs(l %*% inverse - diag(n)) <= bound), label = n)
      # The condition number times a rounding is what an inverse may be off.
      k <- tcrossprod(l)
      shifted <- k + diag(n)
      of <- resolvent(k, 1, -2, 3)
      expect_identical(of, t(of))
      expect_equal(of, 3 * diag(n) - 2 * solve(shifted),
                   tolerance = 10 * n * .Machine$double.eps * kappa(shifted),
                   label = n)
    })
  }
  expect_identical(solve_lower(matrix(2), 3), 1.5)
  expect_identical(solve_lower(diag(3), matrix(0, 3, 0)), matrix(0, 3, 0))
})

test_that("results are the same for 1, 2 and 4 threads", {
  set.seed(7)
  n <- 500
  a <- random(n, n)
  k <- positive(n)
  long <- random(4000, n)
  v <- random(n, 3)
  all <- \() {
    l <- cholesky(k)
    list(product(a, k), cross(a), tcross(a), l, solve_lower(l, a),
         solve_lower(l, a, TRUE), inverse_lower(l), resolvent(k, 1, 2, 3),
         solve_factored(l, a[, 1]), column_dots(a, k),
         # Two million numbers, of which each counts as a flop.
         product(long, v), cross(long, long[, 1:3]), tcross(long, t(v)))
  }
  one <- with_threads(1, all())
  expect_identical(with_threads(2, all()), one)
  expect_identical(with_threads(4, all()), one)
})

test_that("long products, factors and solves can be interrupted", {
  skip_on_cran()
  k <- diag(1, 2600)
  in_time <- \(code) {
    setTimeLimit(elapsed = 0.02, transient = TRUE)
    on.exit(setTimeLimit(elapsed = Inf))
    force(code)
  }
  expect_error(in_time(product(k, k)), "time limit")
  expect_error(in_time(cholesky(k)), "time limit")
  expect_error(in_time(solve_lower(k, k)), "time limit")
  expect_error(in_time(inverse_lower(k)), "time limit")
})
