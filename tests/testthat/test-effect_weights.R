# kme_weights(): the weights by their formulas, identities, the door.

set.seed(5)
s <- effect_set()
kernel <- kernel_rbf(1.5)
K <- fold_store(kernel, s$x, s$x)
frame <- data.frame(treat = s$treat, s$x)
arms <- split(seq_along(s$y), s$treat)
other <- s$x[1:25, ] / 2 + 0.2
make <- function(..., x = s$x, kernel. = kernel) {
  quietly(kme_weights(x, kernel = kernel., ...))
}
plain <- function(...) make(..., means = FALSE, positive = FALSE)
even <- function(w) expect_near(mean(w), 1, 1e-8)

test_that("weights make the means of each arm those of all, and are positive", {
  w <- weights(make(treat = s$treat))
  for (i in arms) {
    even(w[i])
    expect_near(colMeans(s$x[i, ] * w[i]), colMeans(s$x), 1e-8)
  }
  expect_gte(min(w), 0)
  w <- weights(make(treat = s$treat, positive = FALSE, lambda = 0.01))
  for (i in arms) {
    even(w[i])
    expect_near(colMeans(s$x[i, ] * w[i]), colMeans(s$x), 1e-8)
  }
})

test_that("those of an arm are those of its rows for a target population", {
  w <- weights(plain(treat = s$treat, lambda = 0.01))
  for (i in arms) {
    expect_near(unname(w[i]), gram_weights_R(K[i, i], K[i, ], 0.01), 1e-6)
    own <- plain(x = s$x[i, ], target = s$x, lambda = 0.01)
    expect_near(unname(weights(own)), unname(w[i]), 1e-9)
  }
})

test_that("weights for a focal arm leave it as it is", {
  for (case in c("att", "atc")) {
    focal <- if (case == "att") "1" else "0"
    i <- arms[[focal]]
    fit <- plain(treat = s$treat, estimand = case, lambda = 0.01)
    w <- unname(weights(fit))
    expect_identical(w[i], rep(1, length(i)))
    expect_near(w[-i], gram_weights_R(K[-i, -i], K[-i, i], 0.01), 1e-6)
    expect_identical(fit$focal, focal)
  }
  level <- factor(c("p", "q", "r")[1 + s$treat + (s$x[, 2] > 0.6)])
  fit <- plain(treat = level, estimand = "att", focal = "q", lambda = 0.01)
  expect_identical(unique(weights(fit)[level == "q"]), 1)
  i <- which(level == "p")
  expect_near(unname(weights(fit)[i]),
              gram_weights_R(K[i, i], K[i, level == "q"], 0.01), 1e-6)
  refused(plain(treat = level, estimand = "att"), "'focal' must be given")
  refused(plain(treat = level, focal = "q"), "'focal' must not be given")
  refused(plain(treat = s$treat, estimand = "att", focal = 2), "\"0\", \"1\"")
  expect_identical(weights(plain(treat = s$treat, estimand = "att", focal = 0)),
                   weights(plain(treat = s$treat, estimand = "atc")))
})

test_that("positive weights solve the quadratic program, means exact or not", {
  skip_if_not_installed("quadprog")
  n <- nrow(s$x)
  for (means in c(FALSE, TRUE)) for (lambda in c(1e-3, 0.1)) {
    fit <- make(target = other, means = means, lambda = lambda)
    h <- cbind(rep(1, n), if (means) s$x)
    want <- quadprog::solve.QP(
      K / n^2 + lambda * diag(n) / n,
      rowMeans(fold_store(kernel, s$x, other)) / n, cbind(h / n, diag(n)),
      c(1, if (means) colMeans(other), numeric(n)), meq = ncol(h)
    )$solution
    expect_near(unname(weights(fit)), want, 1e-4)
    even(weights(fit))
  }
  expect_true(any(weights(make(target = other, lambda = 1e-3)) == 0))
})

test_that("in cells that share nothing it is post-stratification", {
  cell <- rep(1:3, c(10, 20, 30))
  target <- rep(1:3, c(12, 12, 6))
  want <- (tabulate(target) / 30 / (tabulate(cell) / 60))[cell]
  for (positive in c(TRUE, FALSE)) {
    fit <- make(x = cell, kernel. = kernel_rbf(0.01), target = target,
                means = FALSE, positive = positive, lambda = 1e-9)
    expect_near(unname(weights(fit)), want, 1e-6)
  }
})

test_that("with much ridge weights are even", {
  for (positive in c(TRUE, FALSE)) {
    fit <- make(target = other, means = FALSE, positive = positive,
                lambda = 1e8)
    expect_near(unname(weights(fit)), rep(1, 60), 1e-6)
  }
})

test_that("counts as weights are rows that are repeated", {
  counts <- rep(1:3, 20)
  more <- rep(seq_len(60), counts)
  for (positive in c(TRUE, FALSE)) for (estimand in c("ate", "att")) {
    once <- make(treat = s$treat, weights = counts, positive = positive,
                 estimand = estimand, lambda = 0.01)
    each <- make(x = s$x[more, ], treat = s$treat[more], positive = positive,
                 estimand = estimand, lambda = 0.01)
    expect_near(unname(weights(each)), unname(weights(once)[more]), 1e-7)
    expect_near(once$balance$after, each$balance$after, 1e-7)
  }
})

test_that("a target is rows, an embedding of them, or a law", {
  of_rows <- plain(target = other, lambda = 0.01)
  expect_near(unname(weights(of_rows)),
              gram_weights_R(K, fold_store(kernel, s$x, other), 0.01), 1e-6)
  of_kme <- plain(target = kme(other, kernel), lambda = 0.01)
  expect_near(weights(of_kme), weights(of_rows), 1e-7)
  # With the means, too, which those of an embedding are.
  expect_near(weights(make(target = kme(other, kernel), lambda = 0.01)),
              weights(make(target = other, lambda = 0.01)), 1e-6)
  expect_near(make(target = kme(other, kernel))$balance$after, c(0, 0), 1e-7)
  # E k(x, Z), Z ~ N(m, v), by columns.
  m <- c(0.3, -0.2)
  v <- c(0.5, 0.8)
  at <- Reduce(`*`, lapply(1:2, \(j) {
    sqrt(1.5^2 / (1.5^2 + v[j])) *
      exp(-(s$x[, j] - m[j])^2 / (2 * (1.5^2 + v[j])))
  }))
  law <- list(weights = 1, means = t(m), covariances = diag(v))
  expect_near(unname(weights(plain(target = law, lambda = 0.01))),
              gram_weights_R(K, cbind(at), 0.01), 1e-6)
  expect_near(make(target = law)$balance$target, m, 1e-8)
})

test_that("towards itself a sample has even weights", {
  for (target in list(s$x, kme(s$x, kernel))) {
    for (lambda in c(1e-4, 1)) {
      expect_near(unname(weights(make(target = target, lambda = lambda))),
                  rep(1, 60), 1e-6)
    }
  }
})

test_that("a shrunk embedding is divided by its mass, which is said", {
  shrunk <- kme(other, kernel, estimator = "skmse")
  mass <- sum(shrunk$weights)
  expect_message(fit <- plain(target = shrunk, lambda = 0.01), "with the mass")
  expect_near(weights(fit), weights(plain(target = kme(other, kernel),
                                          lambda = 0.01)), 1e-7)
  expect_lt(mass, 1)
})

test_that("weights of doses make them independent of covariates", {
  dose <- effect_set(50, dose = TRUE)
  fit <- plain(x = dose$x, treat = dose$treat, lambda = 0.01)
  z <- cbind(dose$treat, dose$x)
  both <- rowMeans(fold_store(kernel, z[, 1, drop = FALSE])) *
    rowMeans(fold_store(kernel, dose$x))
  expect_near(unname(weights(fit)),
              gram_weights_R(fold_store(kernel, z), cbind(both), 0.01), 1e-6)
  fit <- make(x = dose$x, treat = dose$treat)
  w <- weights(fit)
  even(w)
  correlations <- stats::cov.wt(z, w / sum(w), cor = TRUE)$cor[1, -1]
  expect_near(unname(correlations), c(0, 0), 1e-6)
  expect_near(fit$balance$after, c(0, 0), 1e-6)
  expect_near(fit$balance$before, unname(cor(z)[1, -1]), 1e-10)
  slope <- \(w) unname(coef(lm(dose$treat ~ dose$x[, 1], weights = w))[2])
  expect_near(slope(w), 0, 1e-6)
  refused(plain(x = dose$x, treat = dose$treat, kernel. = kernel_laplace()),
          "'kernel' must be kernel_rbf\\(\\)")
})

test_that("neither the order of rows nor units of columns matter", {
  kernel <- quietly(kme_weights(s$x, treat = s$treat))$kernel
  expect_near(kernel$bandwidth, 2 * median(dist(scale(s$x))), 1e-6)
  units <- \(x, treat = s$treat) weights(quietly(kme_weights(x, treat = treat)))
  want <- units(s$x)
  mixed <- sample(60)
  expect_near(units(s$x[mixed, ], s$treat[mixed]), want[mixed], 1e-7)
  expect_near(unname(units(s$x %*% diag(c(10, 0.1)) + 5)), unname(want), 1e-7)
  expect_near(units(s$x, 1 - s$treat), want, 1e-10)
})

test_that("all rows as landmarks are none; fewer match what they see", {
  want <- make(treat = s$treat, lambda = 0.01)
  expect_near(weights(make(treat = s$treat, lambda = 0.01, landmarks = 1000)),
              weights(want), 1e-5)
  for (how in list(list(landmarks = 12), list(features = 60))) {
    set.seed(2)
    fit <- do.call(make, c(list(treat = s$treat), how))
    set.seed(2)
    expect_identical(weights(do.call(make, c(list(treat = s$treat), how))),
                     weights(fit))
    expect_near(fit$balance$after, numeric(4), 1e-7)
    expect_near(unname(predict(fit, frame)), unname(weights(fit)), 1e-8)
  }
  refused(make(treat = s$treat, landmarks = 9, features = 9), "'features' must")
})

test_that("balance is means and variances of columns, weighted and not", {
  fit <- plain(treat = s$treat, lambda = 0.01)
  w <- weights(fit)
  i <- arms[["1"]]
  row <- fit$balance[fit$balance$group == "1" & fit$balance$column == "a", ]
  spread <- \(x, w = rep(1, length(x))) {
    sum(w * (x - sum(w * x) / sum(w))^2) / sum(w)
  }
  a <- s$x[, "a"]
  mean_after <- sum(w[i] * a[i]) / sum(w[i])
  expect_near(unname(unlist(row[-(1:2)])), unname(c(
    mean(a), mean(a[i]), mean_after, (mean(a[i]) - mean(a)) / sqrt(spread(a)),
    (mean_after - mean(a)) / sqrt(spread(a)), spread(a[i]) / spread(a),
    spread(a[i], w[i]) / spread(a)
  )), 1e-10)
  # Columns that do not vary have no units; one row as a target neither.
  same <- make(x = cbind(s$x, 7), treat = s$treat, kernel. = NULL)
  expect_near(same$balance$after, numeric(6), 1e-7)
  expect_true(all(is.na(same$balance$ratio_after[c(3, 6)])))
  one <- plain(target = s$x[3, , drop = FALSE], lambda = 0.01)
  expect_near(one$balance$before,
              unname((colMeans(s$x) - s$x[3, ]) / apply(s$x, 2, \(x) {
                sqrt(spread(x))
              })), 1e-10)
})

test_that("a level of one row does not choose the ridge", {
  rare <- frame
  rare$level <- "usual"
  rare$level[vapply(arms, `[`, 0L, 1L)] <- "rare"
  warned <- capture_warnings(fit <- kme_weights(treat ~ a + level, rare))
  expect_false(any(grepl("smallest", warned)))
  expect_near(fit$balance$after, numeric(4), 1e-7)
  rare$level[arms[["0"]]] <- "usual"
  refused(quietly(kme_weights(treat ~ a + level, rare)),
          "the target's mean of 'levelusual'.* 0.[0-9]+ standard")
})

test_that("weights are a function, of new rows, too", {
  frame$level <- factor(rep(c("u", "v", "w"), 20))
  frame$word <- rep(c("m", "n"), 30)
  expect_predicts <- \(fit, data = frame) {
    expect_near(predict(fit, data), weights(fit), 1e-8)
    expect_near(predict(fit, data[7:3, ]), weights(fit)[7:3], 1e-8)
  }
  expect_predicts(quietly(kme_weights(treat ~ a + level + word, frame)))
  expect_predicts(quietly(kme_weights(treat ~ a + b, frame, estimand = "att")))
  expect_predicts(quietly(kme_weights(a ~ b, frame)))
  expect_predicts(quietly(kme_weights(~ a + level, frame, target = frame[1:9, ],
                                      means = FALSE)))
  fit <- make(target = other)
  expect_near(unname(predict(fit, s$x)), unname(weights(fit)), 1e-8)
  fit <- quietly(kme_weights(treat ~ a + level, frame))
  refused(predict(fit), "'newdata' must be given")
  refused(predict(fit, s$x), "'newdata' must be a data frame with the treat")
  refused(predict(fit, frame["a"]), "missing: 'treat'")
  treated <- frame[frame$treat == frame$treat[1L], ]
  expect_equal(predict(fit, treated), weights(fit)[rownames(treated)])
  refused(predict(fit, transform(frame, treat = 2)), "levels of 'treat'")
  refused(predict(fit, transform(frame, level = "z")), "levels of 'level'")
  refused(predict(fit, transform(frame, a = NA)), "missing or infinite")
  refused(predict(fit, frame[c("treat", "a")]), "level")
  refused(predict(fit, frame, type = "x"), "unused argument")
})

test_that("weights of rows are weights of their kernel mean", {
  for (fit in list(make(target = other), make(treat = s$treat),
                   make(target = other, weights = rep(1:3, 20)))) {
    w <- weights(fit) * if (is.null(fit$s.weights)) 1 else fit$s.weights
    want <- unname(w / sum(w))
    expect_near(unname(kme(s$x, kernel, weights = fit)$weights), want, 1e-12)
  }
  # It is then near to the target, as far as its imbalance.
  fit <- plain(target = other, lambda = 1e-3)
  after <- kme_distance(kme(s$x, kernel, weights = fit), kme(other, kernel))
  expect_near(unname(fit$fits$all$imbalance["after"]), after, 1e-5)
  expect_near(unname(fit$fits$all$imbalance["before"]),
              kme_distance(kme(s$x, kernel), kme(other, kernel)), 1e-5)
  refused(kme(other, kernel, weights = fit), "'weights' must be 25 numbers")
})

test_that("a formula is the default method", {
  want <- weights(quietly(kme_weights(s$x, treat = s$treat)))
  for (treat in list(s$treat == 1, factor(s$treat), as.character(s$treat),
                     factor(s$treat, 0:2))) {
    frame$treat <- treat
    got <- quietly(kme_weights(treat ~ ., frame))
    expect_identical(unname(weights(got)), unname(want))
  }
  frame$w <- rep(1:3, 20)
  got <- quietly(kme_weights(treat ~ a + b, frame, weights = w))
  want <- quietly(kme_weights(s$x, treat = s$treat, weights = frame$w))
  expect_identical(unname(weights(got)), unname(weights(want)))
  got <- quietly(kme_weights(treat ~ a, frame, subset = b > 0))
  want <- quietly(kme_weights(treat ~ a, frame[frame$b > 0, ]))
  expect_identical(weights(got), weights(want))
  target <- quietly(kme_weights(~ a + log(b^2), frame, target = frame[1:9, ],
                                means = FALSE))
  z <- cbind(a = frame$a, b = log(frame$b^2))
  expect_near(unname(weights(target)), unname(weights(quietly(
    kme_weights(z, target = z[1:9, ], means = FALSE)
  ))), 1e-9)
})

test_that("missing values are counted, dropped, or keep their places", {
  frame$a[c(2, 9)] <- NA
  refused(kme_weights(treat ~ a + b, frame), "2 NA")
  want <- weights(quietly(kme_weights(treat ~ a + b, na.omit(frame))))
  fit <- quietly(kme_weights(treat ~ a + b, frame, na.action = na.omit))
  expect_identical(weights(fit), want)
  fit <- quietly(kme_weights(treat ~ a + b, frame, na.action = na.exclude))
  expect_identical(which(is.na(unname(weights(fit)))), c(2L, 9L))
  expect_identical(weights(fit)[-c(2, 9)], want)
  expect_output(print(fit), "2 rows with missing values dropped")
})

test_that("what cannot be is an error that says what must be", {
  of <- \(...) kme_weights(treat ~ a + b, frame, ...)
  refused(kme_weights(s$x), "'target' and 'treat' must be given, not none")
  refused(kme_weights(s$x, other, treat = s$treat), "not both")
  refused(kme_weights(treat ~ treat + a, frame), "'treat' must not be a cov")
  refused(kme_weights(treat ~ 1, frame), "columns for points, or covariates")
  refused(kme_weights(treat ~ a | b, frame), "must have no '\\|'")
  refused(kme_weights(treat ~ zz, frame), "'formula' must be one")
  refused(kme_weights(s$x, treat = s$treat[-1]), "'treat' must be a factor")
  refused(kme_weights(s$x, treat = rep(1, 60)), "at least 2 levels")
  refused(kme_weights(s$x, treat = rep(0:1, c(52, 8))), "8 in '1'")
  refused(kme_weights(s$x, treat = replace(s$treat, 4, NA)), "1 NA")
  refused(kme_weights(gram(s$x), treat = s$treat), "'x' must be a numeric")
  refused(kme_weights(s$x, target = "white"), "'target' must be")
  refused(kme_weights(s$x, target = c(1, 2)), "'target' must be")
  refused(kme_weights(s$x, target = cbind(other, 1)), "'target' must have")
  refused(kme_weights(s$x, target = replace(other, 1, NA)), "must have no miss")
  refused(kme_weights(s$x, target = kme(other, kernel), kernel = kernel_rbf(2)),
          "'target'")
  refused(kme_weights(~ a, frame, target = frame["b"]), "missing: 'a'")
  refused(of(estimand = "best"), "'estimand' must be one of")
  refused(of(lambda = -1), "'lambda' must be")
  refused(of(lambda = c(1, 2)), "'lambda' must be")
  refused(of(means = NA), "'means' must be TRUE or FALSE")
  refused(of(positive = 1), "'positive' must be TRUE or FALSE")
  refused(of(kernel = "rbf"), "'kernel' must be")
  refused(of(kernel = kernel_energy()), "'kernel' must be positive definite")
  refused(of(weights = -1:58), "'weights' must be positive")
  refused(of(landmarks = 1), "'landmarks' must be")
  refused(of(scale = "units"), "'scale' must be")
  refused(of(lamda = 1), "unused argument: 'lamda'")
  refused(quietly(of(target = frame)), "one of 'target' and 'treat'")
  # Means outside the points of the source.
  refused(quietly(kme_weights(s$x, target = other + c(9, 0))),
          "'means' must be FALSE, or the target's mean of")
})

test_that("little overlap and long tails are told, and only these", {
  far <- capture_warnings(make_far <- kme_weights(
    s$x, target = s$x / 10 + 2.4, means = FALSE, kernel = kernel
  ))
  expect_match(far, "the rows overlap little with the target", all = FALSE)
  expect_no_warning(kme_weights(s$x, target = s$x[1:40, ], kernel = kernel,
                                lambda = 0.01))
  expect_no_warning(kme_weights(rep(1:10, 2), treat = rep(0:1, each = 10)))
  # Balanced by design, where what is left is rounding.
  expect_no_warning(kme_weights(wool ~ tension, warpbreaks))
  expect_warning(quietly_but(kme_weights(exp(3 * s$x), treat = s$treat,
                                         means = FALSE), "skewed"),
                 class = "kernmean_warning_skewed")
})

test_that("methods say what the weights do", {
  fit <- quietly(kme_weights(treat ~ a + b, frame))
  w <- weights(fit)
  sizes <- vapply(arms, \(i) sum(w[i])^2 / sum(w[i]^2), 0)
  expect_near(group_table(fit)$effective, unname(sizes), 1e-10)
  expect_near(glance.kernmean_fit(fit)$effective, sum(sizes), 1e-10)
  expect_identical(tidy.kernmean_fit(fit), fit$balance)
  expect_identical(augment.kernmean_fit(fit)$.weight, unname(w))
  expect_near(augment.kernmean_fit(fit, newdata = frame[4:2, ])$.weight,
              unname(w)[4:2], 1e-8)
  expect_identical(nobs(fit), 60L)
  expect_identical(fit$estimand, "ATE")
  expect_output(print(fit), "treat = 1 +[0-9]+ of [0-9]+ .*[0-9]%")
  expect_output(print(summary(fit)), "Balance:")
  on_device({
    expect_no_error(plot(fit))
    expect_no_error(plot(fit, "weights"))
    expect_no_error(plot(make(target = other), "weights"))
  })
  refused(plot(fit, "best"), "'type' must be")
})

test_that("update() asks again for the same data; saved fits are fits", {
  fit <- quietly(kme_weights(treat ~ a + b, frame, weights = rep(1:3, 20)))
  again <- quietly(update(fit))
  expect_equal(weights(again), weights(fit))
  expect_identical(again$names, "treat")
  expect_output(print(again), "treat = 1")
  other <- quietly(update(fit, estimand = "att", positive = FALSE))
  expect_equal(weights(other), weights(quietly(kme_weights(
    treat ~ a + b, frame, weights = rep(1:3, 20), estimand = "att",
    positive = FALSE
  ))))
  refused(update(fit, data = frame), "'data' must not be given to update")
  refused(update(fit, junk = 1), "unused argument: 'junk'")
  file <- tempfile(fileext = ".rds")
  on.exit(unlink(file))
  saveRDS(fit, file)
  back <- readRDS(file)
  expect_near(predict(back, frame), weights(fit), 1e-8)
  expect_equal(weights(quietly(update(back))), weights(fit))
})

# --- Other packages ----------------------------------------------------------

test_that("lm(weights =) of positive weights is the weighted difference", {
  w <- weights(quietly(kme_weights(treat ~ a + b, frame)))
  slope <- coef(lm(s$y ~ treat, frame, weights = w))[[2]]
  means <- vapply(arms, \(i) sum(w[i] * s$y[i]) / sum(w[i]), 0)
  expect_near(slope, diff(unname(means)), 1e-10)
})

test_that("cobalt takes the weights as they are", {
  skip_if_not_installed("cobalt")
  for (estimand in c("ate", "att")) {
    fit <- quietly(kme_weights(treat ~ a + b, frame, estimand = estimand))
    table <- cobalt::bal.tab(fit, un = TRUE)$Balance
    expect_near(table[c("a", "b"), "Diff.Adj"], c(0, 0), 1e-6)
    expect_gt(max(abs(table[c("a", "b"), "Diff.Un"])), 0.2)
    expect_s3_class(cobalt::love.plot(fit), "ggplot")
  }
})

test_that("WeightIt takes the fields as they are", {
  skip_if_not_installed("WeightIt")
  fit <- quietly(kme_weights(treat ~ a + b, frame))
  got <- WeightIt::as.weightit(weights(fit), treat = fit$treat,
                               covs = fit$covs, estimand = fit$estimand)
  expect_s3_class(got, "weightit")
  expect_near(summary(got)$effective.sample.size["Weighted", "Treated"],
              group_table(fit)["1", "effective"], 1e-6)
})

test_that("rows of the source are a target in any units, from any origin", {
  set.seed(1)
  x <- data.frame(a = rnorm(200), b = rnorm(200))
  fit <- \(x, kernel, n = 40, ...) {
    suppressWarnings(kme_weights(x, x[seq_len(n), ], kernel = kernel, ...))
  }
  for (kernel in list(kernel_rbf(1), kernel_matern(3 / 2, 1))) {
    want <- fit(x, kernel)
    for (origin in 10^c(4, 8, 10)) {
      far <- transform(x, b = b + origin)
      got <- fit(far, kernel)
      expect_near(weights(got), weights(want), 1e-15 * origin + 1e-10)
      expect_near(unname(predict(got, far[5:1, ])), unname(weights(got)[5:1]),
                  1e-14 * origin + 1e-10)
      expect_near(mean(weights(got) * (far$b - origin)),
                  mean(far$b[1:40] - origin), 1e-14 * origin + 1e-8)
    }
  }
  # In raw units, against the quadratic program in standardized axes.
  for (data in list(mtcars[c("mpg", "disp", "hp")], MASS::birthwt[2:3],
                    attitude)) {
    for (kernel in list(kernel_poly(), kernel_poly(3))) {
      n <- nrow(data) %/% 2
      w <- weights(fit(data, kernel, n))
      expect_true(all(w >= 0))
      target <- colMeans(data[seq_len(n), ])
      expect_near(colMeans(w * data) / target, 1 + 0 * target, 1e-7)
      # The order of magnitude of the units is none of the weights'.
      hundred <- kernel_poly(kernel$degree, kernel$offset * 1e4)
      expect_near(weights(fit(100 * data, hundred, n)), w, 1e-6)
    }
  }
})

test_that("one value far from all others is no base error", {
  set.seed(1)
  for (far in c(7, 77)) {
    for (size in 10^c(4, 6, 9)) {
      x <- data.frame(a = rnorm(200), b = rnorm(200))
      x$a[far] <- size
      for (kernel in list(kernel_rbf(1), kernel_poly(), NULL)) {
        w <- suppressWarnings(weights(kme_weights(x, x[1:40, ],
                                                  kernel = kernel)))
        # That row stands for its share of the target.
        expect_near(w[[far]], if (far == 7) 5 else 0, 0.01)
        expect_near(mean(w * x$b), mean(x$b[1:40]), 1e-6)
      }
    }
  }
})
