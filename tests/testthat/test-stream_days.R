# Days as points: units, distances, what columns do.

set.seed(1)
rows <- service_days(20)
landmarks <- kme_landmarks(rows, 60)
sketch <- service_sketch(rows, landmarks)
days <- read_bins(sketch)
points <- new_day_points(days, 20)

test_that("days are the means of features, in units of their rows", {
  x <- as.matrix(rows)
  features <- gram_R(landmarks$kernel, x, landmark_x(landmarks)) %*%
    landmarks$root
  means <- rowsum(features, rep(1:20, each = 150)) / 150
  expect_near(t(days$means), unname(means), 1e-10)
  covariance <- crossprod(sweep(features, 2, colMeans(features))) / 3000
  pairs <- eigen(covariance, symmetric = TRUE)
  x <- sqrt(150) * sweep(means, 2, colMeans(means)) %*%
    pairs$vectors[, 1:20] / rep(sqrt(pairs$values[1:20]), each = 20)
  # Signs of axes are free; small variances amplify rounding.
  expect_near(crossprod(points$x), unname(tcrossprod(x)), 1e-6)
  expect_identical(points$noise, rep(1, 20))
  lost <- mean(1 - rowSums(features^2))
  expect_equal(mean(days$each$lost), lost, tolerance = 1e-6)
})

test_that("independent rows make the identity of a day's covariance", {
  set.seed(2)
  # 400 days: an entry of the covariance has the standard error 0.05, 0.07 on
  # the diagonal.
  iid <- service_sketch(service_days(400, 40, effect = 0), landmarks, 40)
  x <- new_day_points(read_bins(iid), 5)$x
  expect_lt(max(abs(tcrossprod(x) / 400 - diag(5))), 0.3)
})

test_that("distances are those from the days kept, each left out", {
  want <- scores_R(t(points$x))
  got <- .Call(C_r_day_scores, points$x, points$noise)
  expect_identical(which(got$kept > 0), want$kept)
  expect_near(got$distances, want$distances, 1e-10)
  others <- log(distances_R(t(points$x), 1:20))
  expect_equal(got$outlying, (others[20] - mean(others[-20])) /
                 (stats::sd(others[-20]) * sqrt(1 + 1 / 19)),
               tolerance = 1e-9)
})

test_that("the order of days changes no bit of their distances", {
  got <- .Call(C_r_day_scores, points$x, points$noise)
  for (p in list(20:1, sample(20), sample(20))) {
    again <- .Call(C_r_day_scores, points$x[, p], points$noise)
    expect_identical(again$distances, got$distances[p])
    expect_identical(again$kept, got$kept[p])
  }
  moved <- .Call(C_r_day_scores, points$x + 3, points$noise)
  expect_near(moved$distances, got$distances, 1e-10)
})

test_that("days that are not alike do not hide behind each other", {
  set.seed(3)
  x <- cbind(matrix(rnorm(5 * 25), 5), matrix(rnorm(5 * 5), 5) + 6)
  got <- .Call(C_r_day_scores, x, rep(1, 30))
  expect_true(all(got$kept[26:30] == 0))
  expect_gt(min(got$distances[26:30]), 2 * max(got$distances[1:25]))
})

test_that("a day of few rows is as far as its noise explains", {
  set.seed(4)
  # With rows alone, the last half with nine times the noise.
  noise <- rep(c(1, 9), each = 200) / 5
  x <- matrix(rnorm(3 * 400), 3) * rep(sqrt(noise), each = 3)
  got <- .Call(C_r_day_scores, x, noise)$distances
  # chi-squared of 3 in the middle; of the kept metric up to its shrinking.
  middle <- tapply(got, noise, stats::median) / stats::qchisq(0.5, 3)
  expect_lt(max(abs(log(middle[2] / middle[1]))), 0.5)
})

test_that("unequal sizes are in the formula, and equal ones leave it plain", {
  set.seed(6)
  n <- sample(c(100, 150, 300), 40, TRUE)
  noise <- 1 / (n * mean(1 / n))
  x <- matrix(rnorm(3 * 40), 3) * rep(sqrt(noise), each = 3)
  got <- .Call(C_r_day_scores, x, noise)
  want <- scores_R(t(x), noise)
  expect_identical(which(got$kept > 0), want$kept)
  expect_near(got$distances, want$distances, 1e-10)
  plain <- scores_R(t(x))$distances
  expect_gt(max(abs(want$distances / plain - 1)), 0.1)
  # 1/(1/49) is not 49.
  for (size in c(49, 93, 150)) {
    same <- days
    same$each$n <- rep(size, 20)
    units <- new_day_units(same$total, 20)
    centered <- same$means - units$center
    expect_identical(new_day_points(same, 20),
                     list(x = sqrt(size) * cross(units$basis, centered),
                          noise = rep(1, 20)))
  }
  # Rows counted twice change the scale alone.
  sizes <- days
  sizes$each$n <- rep(c(100, 150, 300, 150), 5)
  x <- new_day_points(sizes, 5)
  sizes$each$n <- 2 * sizes$each$n
  expect_identical(new_day_points(sizes, 5)$noise, x$noise)
  harmonic <- 1 / mean(1 / c(100, 150, 300, 150))
  expect_equal(x$noise, harmonic / rep(c(100, 150, 300, 150), 5),
               tolerance = 1e-14)
})

test_that("neighbors are compared with all permutations", {
  set.seed(5)
  x <- matrix(rnorm(2 * 6), 2)
  d <- as.matrix(stats::dist(t(x)))^2
  steps <- apply(all_orders(6L), 1, \(p) sum(d[cbind(p[-1], p[-6])]))
  seen <- sum(d[cbind(2:6, 1:5)])
  sd <- sqrt(mean((steps - mean(steps))^2))
  expect_equal(neighbors_z(x), (seen - mean(steps)) / sd, tolerance = 1e-10)
  trend <- rbind(1:30, 0) + rnorm(60)
  expect_lt(neighbors_z(trend), unlikely_z)
})

test_that("functionals read the columns of a day from its sketch", {
  f <- new_functionals(landmarks)
  # The same with all rows as landmarks of a linear kernel, exactly; it tells no
  # spread.
  linear <- kme_landmarks(rows[1:60, ], 60, kernel_linear(), method = "uniform")
  whole <- read_bins(kme_sketch(rows[1:60, ], linear, groups = rep("a", 60)))
  g <- new_functionals(linear)
  means <- in_units(g$table, functional_values(g, whole$means))
  expect_identical(g$table$label, names(rows))
  expect_equal(drop(means), unname(colMeans(rows[1:60, ])), tolerance = 1e-8)
  expect_true("sd(size)" %in% g$missing)
  # Of days: within a third of the standard error of a mean.
  got <- apply(functional_values(f, days$means), 2L, in_units,
               each = f$table)
  rownames(got) <- f$table$label
  day <- rep(1:20, each = 150)
  want <- vapply(rows, \(z) tapply(z, day, mean), numeric(20))
  expect_lt(max(abs(t(got[names(rows), ]) - want)), 0.03)
  want <- tapply(rows$size, day, \(z) sqrt(mean(z^2) - mean(z)^2))
  expect_gt(stats::cor(got["sd(size)", ], want), 0.9)
  want <- vapply(split(rows, day), \(d) stats::cov(d$size, d$time), 1)
  expect_gt(stats::cor(got["cov(size, time)", ], want), 0.9)
})

test_that("levels are shares, those of a factor exactly", {
  z <- factor(rep(c("u", "v", "w"), c(20, 30, 50)))
  of_factor <- kme_landmarks(z)
  f <- new_functionals(of_factor)
  share <- read_bins(kme_sketch(z, of_factor, groups = rep("a", 100)))$means
  expect_equal(drop(functional_values(f, share)), c(0.2, 0.3, 0.5),
               tolerance = 1e-8)
  expect_identical(f$table$label, paste("x =", levels(z)))
  mixed <- data.frame(a = rnorm(100), z = z, one = 1)
  f <- new_functionals(kme_landmarks(mixed, 40))
  expect_true(all(c("z = u", "z = w") %in% c(f$table$label, f$missing)))
  expect_false(any(grepl("one", c(f$table$label, f$missing))))
})

test_that("the z of a difference is that of its rows", {
  f <- new_functionals(landmarks)
  apart <- days$means[, 1L] - days$means[, 2L]
  parts <- lapply(1:2, \(g) new_day(sketch, sketch$groups[g]))
  z <- functional_z(f, apart, days$means[, 2L],
                    parts[[1L]]$covariance / 150 + parts[[2L]]$covariance / 150)
  one <- rows[1:150, ]
  two <- rows[151:300, ]
  want <- (mean(one$size) - mean(two$size)) /
    sqrt(mean((one$size - mean(one$size))^2) / 150 +
           mean((two$size - mean(two$size))^2) / 150)
  # Features see a column with an R^2 of 0.99 or more.
  expect_equal(z[f$table$label == "size"], want, tolerance = 0.1)
  # A spread is linear about the second: of twice the distance, twice as much.
  one_off <- \(k) functional_z(f, k * apart, days$means[, 2L],
                               parts[[1L]]$covariance)
  expect_equal(one_off(2), 2 * one_off(1), tolerance = 1e-12)
})

test_that("days are in the order of the numbers in their names", {
  set.seed(8)
  rows <- data.frame(d = rep(1:12, each = 30), u = rnorm(360))
  landmarks <- kme_landmarks(rows["u"], 5)
  fit <- \(names, rows) {
    rows$d <- names[rows$d]
    kme_changes(kme_sketch(rows, landmarks, groups = "d", moments = 2), B = 99)
  }
  set.seed(9)
  want <- fit(1:12, rows)
  for (names in list(paste0("week", 1:12), paste(1:12, "of 2026"),
                     paste0("y", 1 + 1:12 %/% 6, "-", c(1:5, 0:5, 0)))) {
    set.seed(9)
    expect_no_warning(got <- fit(names, rows[sample(360), ]))
    expect_identical(as.character(got$bins$each$day), names)
  }
  set.seed(9)
  got <- fit(paste0("week", 1:12), rows)
  expect_identical(got$p.value, want$p.value)
  # Levels that somebody has sorted, and bins that came later
  expect_warning(fit(factor(paste0("week", 1:12)), rows), "week10, week11",
                 class = "kernmean_warning_order")
  late <- kme_sketch(rows[rows$d > 6, ], landmarks, groups = "d", moments = 2) +
    kme_sketch(rows[rows$d <= 6, ], landmarks, groups = "d", moments = 2)
  expect_warning(kme_changes(late, B = 99), class = "kernmean_warning_order")
  suppressWarnings(expect_warning(kme_monitor(late),
                                  class = "kernmean_warning_order"))
  expect_identical(by_numbers(c("x0.5", "x0.25", "x10", "x9")),
                   c("x0.25", "x0.5", "x9", "x10"))
})
