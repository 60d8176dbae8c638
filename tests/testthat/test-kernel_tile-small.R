# Forms of small subsets of the points of a Gram matrix, against the sums of its
# sub-matrices.

small_forms <- function(source, members) {
  .Call(C_r_small_forms, source, members)
}

# m of n points, count times.
some_members <- function(n, m, count) {
  matrix(replicate(count, sample.int(n, m)), m, count)
}

small_forms_R <- function(k, members) {
  apply(members, 2, \(i) sum(k[i, i, drop = FALSE]))
}

test_that("forms of small subsets are sums of sub-matrices", {
  skip_on_cran()
  set.seed(1)
  n <- 170L
  members <- lapply(c(1L, 2L, 31:33, 64L, 65L, 100L, n), some_members, n = n,
                    count = 3)
  on_all <- \(f) unlist(lapply(members, f))
  for (d in c(1, 3, 70)) {
    x <- random_points(n, d)
    for (kernel in native_kernels(d)) {
      k <- gram_R(kernel, x)
      source <- native_source(kernel, x)
      want <- on_all(\(i) small_forms_R(k, i))
      # Terms of both signs: errors on the scale of their absolute values.
      size <- pmax(on_all(\(i) small_forms_R(abs(k), i)), 1e-300)
      errors <- vapply(isa_levels(), \(level) {
        got <- with_isa(level, on_all(\(i) small_forms(source, i)))
        max(abs(got - want) / size)
      }, 0)
      expect_lt(max(errors), 1e-12)
      stored <- on_all(\(i) small_forms(native_source(NULL, k), i))
      expect_lt(max(abs(stored - want) / size), 1e-14)
    }
  }
})

test_that("they are those of the walk over all points", {
  set.seed(2)
  x <- random_points(300, 4)
  members <- some_members(300L, 50L, 40)
  kernel <- kernel_rbf(2)
  source <- native_source(kernel, x)
  # Each subset as a relabeling: its members stand first.
  orders <- apply(members, 2, \(i) c(i, setdiff(1:300, i)))
  subsets <- .Call(C_r_subsets, orders, 40L, c(50L, 250L),
                   matrix(c(TRUE, FALSE), 1), NULL, FALSE)
  forms <- .Call(C_r_subset_forms, source, subsets, 40, NULL)$forms
  expect_near(small_forms(source, members), drop(forms), 1e-13)
})

test_that("a form depends on its own points alone", {
  set.seed(3)
  x <- random_points(2000, 5)
  members <- some_members(2000L, 40L, 500)
  for (kernel in list(kernel_rbf(3), kernel_laplace(2))) {
    source <- native_source(kernel, x)
    all <- small_forms(source, members)
    with_threads(1, expect_identical(small_forms(source, members), all))
    some <- c(1, 77, 500)
    expect_identical(small_forms(source, members[, some]), all[some])
    # The order of members: by rounding.
    turned <- small_forms(source, members[40:1, ])
    expect_near(turned, all, 1e-13)
  }
})

test_that("no subsets, and none of their points", {
  source <- native_source(kernel_rbf(1), random_points(10, 2))
  expect_identical(small_forms(source, matrix(0L, 4, 0)), numeric(0))
  expect_identical(small_forms(source, matrix(0L, 0, 3)), numeric(3))
  expect_error(small_forms(source, matrix(11L, 1, 1)), "internal error")
  expect_error(small_forms(source, 1:3), "internal error")
})
