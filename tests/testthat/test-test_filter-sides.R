# Covariances whitened by one side, against explicit features.

x <- random_points(30, 5, 1)
x[19:30, ] <- sweep(x[19:30, ], 2, c(1, 2, 0.5, 1, 1), "*") + 0.3
draws <- draw_columns(30, 19)
ratios <- c(1, 0.1, 0.001)

# |A^(-1/2) (S_x - S_y) A^(-1/2)|^2 of a linear kernel for both sides.
sides_R <- function(x, first, ratio) {
  z <- sweep(x, 2, colMeans(x))
  moments <- \(i) crossprod(z[i, , drop = FALSE]) / length(i)
  s <- list(moments(which(first)), moments(which(!first)))
  tau <- ratio * eigen(moments(seq_len(nrow(x))), TRUE)$values[1]
  vapply(s, \(side) {
    a <- solve(side + diag(tau, ncol(x)), s[[1]] - s[[2]])
    sum(a * t(a))
  }, 1)
}

test_that("both sides are those of the features, for every labeling", {
  labels <- labels_R(rep(1:2, c(18, 12)), draws)
  test <- mmd_set(x[1:18, ], x[19:30, ], kernel_linear(),
                  filter = test_filter(order = "one-sided", ratio = ratios),
                  permutations = draws)
  values <- do.call(cbind, lapply(1:20, \(b) {
    c(t(sapply(ratios, \(r) sides_R(x, labels[, b] == 1, r))))
  }))
  expect_identical(test$statistics$order,
                   rep(paste("one-sided", c("x", "y")), each = 3))
  expect_near(test$statistics$value, values[, 1], 1e-8)
  # The scale is for ties alone.
  expect_aggregated(test, list(values = values, scale = rep(0, 6)), FALSE, 1e-7)
})

test_that("copies have 0, and exchanged samples exchange the sides", {
  run <- \(a, b) {
    mmd_set(a, b, kernel_rbf(2), permutations = draw_columns(30, 5),
            filter = test_filter(order = "one-sided"))$statistics$value
  }
  expect_near(run(x[1:15, ], x[1:15, ]), c(0, 0), 1e-12)
  exchanged <- run(x[11:30, ], x[1:10, ])
  expect_near(run(x[1:10, ], x[11:30, ]), rev(exchanged), 1e-10)
})

test_that("clusters and blocks change places as a whole and within", {
  id <- rep(1:10, each = 3)
  filter <- test_filter(order = "one-sided", ratio = 0.1)
  whole <- \(permutations, z = x) mmd_set(
    z[1:18, ], z[19:30, ], kernel_linear(), filter = filter,
    permutations = permutations
  )
  set.seed(2)
  moved <- draw_permutations(c(6L, 4L), 19L)
  set.seed(2)
  of_clusters <- mmd_test(x[1:18, ], x[19:30, ], kernel_linear(), B = 19,
                          filter = filter, clusters = id)
  points <- apply(moved, 2, \(p) unlist(split(1:30, id)[p]))
  expect_equal(of_clusters$statistics, whole(points)$statistics,
               tolerance = 1e-10)
  block <- rep(1:3, 10)
  set.seed(2)
  of_blocks <- mmd_test(x[1:18, ], x[19:30, ], kernel_linear(), B = 19,
                        filter = filter, blocks = block)
  set.seed(2)
  within <- draw_permutations(c(18L, 12L), 19L, block)
  expect_equal(of_blocks$statistics$value[1:2],
               whole(within, apply(x[1:30, ], 2, \(v) v - ave(v, block)))$
                 statistics$value, tolerance = 1e-10)
})

test_that("the witness adds up to the statistic", {
  test <- mmd_set(x[1:18, ], x[19:30, ], kernel_rbf(2), permutations = draws,
                  filter = test_filter(order = "one-sided", ratio = 0.1))
  value <- test$statistics$value[test$statistics$maximum]
  w <- rep(c(1 / 18, -1 / 12), c(18, 12))
  # <A^(-1) D A^(-1), D> is the statistic itself.
  expect_near(sum(w * witness_values(test, 1:2)$at_points()), value, 1e-8)
})

test_that("what is not defined is refused with its reason", {
  side <- test_filter(order = c(0, "one-sided"))
  lines <- refusals(expression(
    mmd_test(x[1:9, ], x[10:30, ],
             filter = test_filter(order = "one-sided", ratio = 1e-6)),
    mmd_test(x ~ rep(1:3, 10), filter = side),
    hsic_test(x[, 1], x[, 2], filter = side)
  ))
  expect_snapshot(writeLines(lines))
})
