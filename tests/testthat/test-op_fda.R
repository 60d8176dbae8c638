# kme_fda(): against reference values, slow refits, and MASS::lda().

a <- reference_data("A")
first <- rep(1:2, c(13, 12))
rbf <- kernel_rbf(1.5)

test_that("two classes have the reference direction and projections", {
  fit <- kme_fda(a, first, reference_kernel("A_rbf"), ridge = 1e-3)
  wanted <- reference_value("A_fda", "alpha_ridge1e-3_groups_13_12")
  times <- sum(fit$scaling * wanted) / sum(wanted^2)
  expect_near(drop(fit$scaling), times * wanted, 1e-9)
  projected <- drop(predict(fit, reference_data("newdata"))$x) + fit$center
  expect_near(projected,
              times * reference_value("A_fda", "newdata_projection"), 1e-9)
})

test_that("axes diagonalise the scatter as it is printed", {
  K <- gram_R(rbf, flowers)
  s <- scatter_R(K, species)
  for (ridge in list("shrinkage", 1e-3, 10)) {
    fit <- kme_fda(flowers, species, rbf, ridge = ridge)
    A <- s$N + fit$ridge * diag(24)
    alpha <- fit$scaling
    # The scatter's condition, 1e5, times the precision.
    expect_near(unname(crossprod(alpha, A %*% alpha)),
                (24 - 3) * diag(2), 1e-10)
    # alpha'DD'alpha = (n - C) S^2, and svd^2 = (n - C)/(C - 1) S^2.
    expect_near(unname(crossprod(crossprod(s$D, alpha))),
                2 * diag(fit$svd^2), 1e-10)
    expect_near(unname(fit$means),
                unname(crossprod(s$M - rowMeans(K), alpha)), 1e-10)
    expect_near(predict(fit)$x, predict(fit, flowers)$x, 1e-10)
    expect_near(colMeans(fit$scores), c(LD1 = 0, LD2 = 0), 1e-10)
  }
})

test_that("the ridge of shrinkage follows from that of shrink_gram()", {
  g <- gram(flowers, rbf)
  shrunk <- shrink_gram(g)
  fit <- kme_fda(flowers, species, rbf)
  expect_near(fit$intensity, shrunk$intensity, 1e-13)
  expect_equal(fit$ridge, shrunk$intensity / (1 - shrunk$intensity) *
                 (shrunk$trace / 23)^2, tolerance = 1e-12)
  expect_null(kme_fda(flowers, species, rbf, ridge = 1)$intensity)
})

test_that("leave-one-out distances are those of refits", {
  K <- gram_R(rbf, flowers)
  for (ridge in list("shrinkage", 1e-3, 30, Inf)) {
    fit <- kme_fda(flowers, species, rbf, ridge = ridge)
    slow <- left_out_R(K, species, fit$ridge)
    expect_lt(max(abs(fit$loo$distance / slow - 1)), 1e-8)
    own <- slow[cbind(1:24, as.integer(species))]
    expect_near(fit$sigma2, mean(own) / 2, 1e-8)
    value <- rep(log(fit$prior), each = 24) - slow / (2 * fit$sigma2)
    expect_identical(fit$loo$class,
                     factor(levels(species)[max.col(value)], levels(species)))
    odds <- exp(value / fit$temperature)
    expect_near(unname(fit$loo$posterior), unname(
      (1 - fit$mixing) * odds / rowSums(odds) +
        fit$mixing * rep(fit$prior, each = 24)
    ), 1e-7)
    expect_equal(fit$error, mean(fit$loo$class != species))
  }
  # The distances of large ridges are those of none, times a number.
  far <- lapply(c(1e158, 1e170), \(r) {
    d <- kme_fda(flowers, species, rbf, ridge = r)$loo$distance
    d / max(d)
  })
  expect_near(far[[2L]], far[[1L]], 1e-10)
  # Two classes; classes of two points, one of which is left out.
  for (kept in list(1:17, c(1, 2, 10, 11), c(1, 2, 10:13, 18, 19))) {
    y <- droplevels(species[kept])
    fit <- kme_fda(flowers[kept, ], y, rbf, ridge = 0.1)
    slow <- left_out_R(K[kept, kept], y, 0.1)
    expect_lt(max(abs(fit$loo$distance / slow - 1)), 1e-8)
  }
})

test_that("sigma^2 is the spread of new points, that of the sample is less", {
  skip_on_cran()
  set.seed(1)
  draw <- \(m) {
    y <- rep(1:3, each = m)
    list(y = y, x = matrix(rnorm(15 * m), 3 * m) +
           1.5 * outer(y, 1:5, `==`))
  }
  ratios <- replicate(30, {
    old <- draw(10)
    new <- draw(100)
    fit <- kme_fda(old$x, old$y)
    around <- \(scores, y) mean((scores - fit$means[y, ])^2)
    spread <- around(predict(fit, new$x)$x, new$y)
    c(loo = fit$sigma2 / spread, own = around(fit$scores, old$y) / spread)
  })
  # 30 ratios with a standard deviation of about 0.3.
  expect_near(mean(ratios["loo", ]), 1, 0.2)
  expect_lt(mean(ratios["own", ]), 0.7)
})

test_that("large ridges tend to the combinations of class means", {
  limit <- kme_fda(flowers, species, rbf, ridge = Inf)
  M <- scatter_R(gram_R(rbf, flowers), species)$M
  span <- qr(M - rowMeans(gram_R(rbf, flowers)))
  expect_lt(max(abs(qr.resid(span, limit$scaling))), 1e-12)
  expect_near(unname(crossprod(limit$scaling)), 21 * diag(2), 1e-12)
  # The distance to the limit falls as |N|/r.
  gaps <- vapply(c(1e5, 1e7), \(r) {
    fit <- kme_fda(flowers, species, rbf, ridge = r)
    max(abs(sqrt(r) * fit$scaling - limit$scaling))
  }, numeric(1))
  expect_lt(gaps[2], 1e-4)
  expect_near(gaps[2] / gaps[1], 0.01, 0.05)
  expect_near(kme_fda(flowers, species, rbf, ridge = 1e9)$loo$posterior,
              limit$loo$posterior, 1e-6)
  # lambda = 1: orthonormal features.
  two <- kme_fda(as_gram(diag(8)), rep(1:2, each = 4))
  expect_identical(two$intensity, 1)
  expect_identical(two$ridge, Inf)
  expect_near(drop(two$scaling), rep(c(1, -1), each = 4) * sqrt(6 / 8), 1e-14)
})

test_that("a prior moves the posterior by Bayes' rule, the axes not", {
  fit <- kme_fda(flowers, species, rbf, prior = c(0.2, 0.5, 0.3))
  plain <- kme_fda(flowers, species, rbf)
  expect_identical(fit$scaling, plain$scaling)
  expect_equal(plain$prior, c(table(species)) / 24)
  z <- flowers[4:14, ] + 0.2
  bayes <- predict(plain, z)$posterior *
    rep(fit$prior / plain$prior, each = 11)
  named <- c(virginica = 0.3, setosa = 0.2, versicolor = 0.5)
  again <- predict(plain, z, prior = named)
  expect_near(again$posterior, bayes / rowSums(bayes), 1e-14)
  expect_identical(again$x, predict(fit, z)$x)
  expect_identical(as.integer(again$class), max.col(again$posterior, "first"))
  # The type comes third, as of smm().
  expect_identical(predict(plain, z, "probability", prior = named),
                   again$posterior)
})

test_that("points, grams, formulas and R functions give one fit", {
  d <- data.frame(flowers, species)
  fit <- kme_fda(flowers, species, rbf)
  same <- c("scaling", "means", "svd", "sigma2", "error", "ridge", "scores")
  for (other in list(
    kme_fda(gram(flowers, rbf), species),
    kme_fda(as.data.frame(flowers), as.character(species), rbf),
    kme_fda(species ~ ., d, kernel = rbf),
    kme_fda(flowers, species, kernel_function(\(x, y) gram_R(rbf, x, y)))
  )) {
    expect_near(unclass(other)[same], unclass(fit)[same], 1e-9)
    expect_near(predict(other, d[3:6, ][1:4])$posterior,
                predict(fit, flowers[3:6, ])$posterior, 1e-8)
  }
  values <- kme_fda(as_gram(gram_R(rbf, flowers)), species)
  z <- flowers[5:9, ] - 0.1
  expect_near(unname(predict(values, gram_R(rbf, z, flowers))$x),
              unname(predict(fit, z)$x), 1e-9)
})

test_that("levels without points are left out, with a warning", {
  empty <- factor(species, c("none", levels(species)))
  expect_warning(fit <- kme_fda(flowers, empty, rbf), "'none'",
                 class = "kernmean_warning")
  expect_named(fit$counts, levels(species))
  expect_identical(levels(predict(fit)$class), levels(empty))
  expect_identical(dim(fit$loo$posterior), c(24L, 3L))
})

test_that("axes without separation are dropped", {
  # Means on a line: three classes, one axis.
  x <- c(0, 0.1, 0.3, 1, 1.2, 1.1, 5, 5.5, 5.2)
  fit <- kme_fda(x, rep(1:3, each = 3), kernel_linear(), ridge = 1e-4)
  expect_identical(dim(fit$scaling), c(9L, 1L))
  expect_identical(fit$error, 0)
  # Refits have one axis too, and the origin of all points: their mean.
  x <- x - mean(x)
  slow <- t(vapply(1:9, \(i) {
    y <- rep(1:3, each = 3)[-i]
    s <- tapply(x[-i], y, mean)
    w <- sum((x[-i] - s[y])^2)
    # (a'a w + r/|X|^2) a^2 = n - C for the score a x.
    (8 - 3) / (w + 1e-4 / sum(x[-i]^2)) * (x[i] - s)^2
  }, numeric(3)))
  expect_near(unname(fit$loo$distance), unname(slow), 1e-7)
})

test_that("update() fits again with what is changed", {
  skip_on_cran()
  fit <- kme_fda(species ~ ., data.frame(flowers, species), kernel = rbf)
  expect_identical(update(fit, ridge = 0.5)$layout, fit$layout)
  two <- species == "setosa"
  expect_near(coef(update(fit, grouping = two)),
              coef(kme_fda(flowers, two, rbf)), 1e-12)
  g <- kme_fda(gram(flowers, rbf), species)
  expect_identical(update(g)$scaling, g$scaling)
  expect_near(coef(update(g, kernel = kernel_rbf(3))),
              coef(kme_fda(flowers, species, kernel_rbf(3))), 1e-12)
})

test_that("fits print what was found", {
  expect_snapshot({
    kme_fda(flowers, species, rbf)
    kme_fda(as_gram(gram_R(rbf, flowers)), species == "setosa", ridge = 0.01)
    summary(kme_fda(flowers[, 1, drop = FALSE], species, rbf, ridge = 0.5))
  })
})

test_that("bad input is refused", {
  skip_on_cran()
  x <- flowers
  y <- species
  d <- data.frame(x, y)
  fit <- kme_fda(x, y, rbf)
  values <- kme_fda(as_gram(gram_R(rbf, x)), y)
  expect_snapshot(writeLines(refusals(expression(
    kme_fda(x), kme_fda(x, y[1:3]), kme_fda(x, replace(y, 2, NA)),
    kme_fda(x, rep(1, 24)), kme_fda(x, c(1, 1, 2:23)),
    kme_fda(replace(x, 5, NA), y), kme_fda(x, y, "rbf"),
    kme_fda(x, y, kernel_energy()), kme_fda(gram(x, rbf), y, rbf),
    kme_fda(x, y, rbf, ridge = 0), kme_fda(x, y, prior = c(0.5, 0.5)),
    kme_fda(x, y, prior = c(0.5, 0.5, 0.5)),
    kme_fda(x, y, prior = c(a = 0.5, b = 0.2, c = 0.3)),
    kme_fda(x, y, CV = TRUE), kme_fda(matrix(1, 6, 2), rep(1:2, 3)),
    kme_fda(~ Sepal.Length, d), kme_fda(y ~ Sepal.Length, d, rbf),
    kme_fda(Sepal.Length ~ Sepal.Width, d), predict(fit, x[, 1:2]),
    predict(fit, x, prior = c(1, 2)),
    predict(fit, x, type = "odds"), predict(values, x), update(fit, 3),
    update(fit, penalty = 3), update(fit, lambda = 1), coef(fit, 2),
    summary(fit, digits = 3), plot(fit, 1), plot(fit, type = "regions")
  ))))
  expect_snapshot(writeLines(refusals(expression(
    kme_fda(x, y, rbf, ridge = 1e-18)
  ), "kernmean_error_numeric")))
  old <- options(kernmean.memory = 100)
  on.exit(options(old))
  expect_error(kme_fda(x, y, rbf), class = "kernmean_error_memory")
})

test_that("a left-out point that alone tells the classes apart adds no noise", {
  # Without row 1 the class means are equal: no axis is left, whatever r.
  x <- c(1, rep(0, 29))
  y <- rep(1:2, c(10, 20))
  spread <- vapply(c(1e-3, 1e-6, 1e-8), \(r) {
    fit <- kme_fda(x, y, kernel_rbf(1), ridge = r)
    expect_identical(unname(fit$loo$distance[1L, ]), c(0, 0))
    fit$sigma2
  }, numeric(1))
  expect_near(spread, rep(spread[1L], 3), 1e-2)
})

test_that("posteriors of new points are spread by sigma2", {
  fit <- kme_fda(iris[1:4], iris$Species, kernel_rbf(3))
  z <- iris[c(55, 107, 120), 1:4] + 0.2
  scores <- predict(fit, z)$x
  distance <- vapply(1:3, \(c) rowSums(sweep(scores, 2, fit$means[c, ])^2),
                     numeric(3))
  weight <- (exp(-distance / (2 * fit$sigma2)) / 3)^(1 / fit$temperature)
  p <- (1 - fit$mixing) * weight / rowSums(weight) + fit$mixing / 3
  expect_near(unname(predict(fit, z)$posterior), unname(p), 1e-10)
  expect_gt(abs(fit$sigma2 - 1), 0.1)
})

test_that("temperature and share of the prior are the best of refits", {
  skip_on_cran()
  set.seed(8)
  y <- rep(1:3, c(20, 15, 10))
  far <- c(1, 1.5, 0)[y]
  x <- cbind(far, far^2) + stats::rnorm(90)
  x[c(3, 25, 41), ] <- x[c(30, 40, 2), ]
  for (prior in list(NULL, c(0.2, 0.3, 0.5))) {
    fit <- kme_fda(x, y, kernel_rbf(0.7), ridge = 0.05, prior = prior)
    slow <- left_out_R(gram_R(kernel_rbf(0.7), x), factor(y), fit$ridge)
    value <- rep(log(fit$prior), each = 45) - slow / (2 * fit$sigma2)
    weight <- (fit$prior / fit$counts)[y]
    weight <- 45 * weight / sum(weight)
    posterior <- \(t, eps) {
      p <- exp(value / t)
      (1 - eps) * p / rowSums(p) + eps * rep(fit$prior, each = 45)
    }
    score <- \(at) {
      sum(weight * log(posterior(exp(at[1]), at[2])[cbind(1:45, y)]))
    }
    starts <- expand.grid(t = c(0.1, 1, 3), eps = c(0.01, 0.3, 0.9))
    least <- 1 / 47
    both <- max(apply(starts, 1, \(start) {
      stats::optim(start, score, method = "L-BFGS-B", lower = c(0, least),
                   upper = c(log(1024), 1 - 1e-9),
                   control = list(fnscale = -1))$value
    }))
    alone <- stats::optimize(\(t) score(c(t, least)), c(0, log(1024)),
                             maximum = TRUE)$objective
    got <- score(c(log(fit$temperature), fit$mixing))
    expect_near(got, if (both > alone + 1) both else alone, 1e-4)
    expect_identical(fit$mixing > least, both > alone + 1)
    expect_near(unname(fit$loo$posterior),
                unname(posterior(fit$temperature, fit$mixing)), 1e-8)
    # Classes are those without.
    expect_identical(as.integer(fit$loo$class), max.col(value, "first"))
  }
})

test_that("probabilities and classes come alone, too", {
  fit <- kme_fda(iris[1:4], iris$Species, kernel_rbf(1))
  z <- iris[c(1, 71, 135), 1:4]
  all <- predict(fit, z)
  expect_identical(predict(fit, z, type = "probability"), all$posterior)
  expect_identical(predict(fit, z, type = "class"), all$class)
  none <- kme_fda(iris[1:4], iris$Species, kernel_rbf(1),
                  prior = c(0.5, 0.5, 0))
  expect_identical(unname(predict(none, z)$posterior[, 3]), numeric(3))
  # Far from all, where only logarithms tell classes apart.
  far <- rbind(c(50, 1, 1, 1), c(4, 4, 30, 10))
  line <- kme_fda(iris[1:4], iris$Species, kernel_linear(), ridge = 1e-3)
  expect_identical(unname(predict(line, far, prior = c(1, 0, 0))$posterior),
                   cbind(c(1, 1), 0, 0))
  refused(predict(none, z, prior = c(0.3, 0.3, 0.4)),
          "must be 0 for 'virginica', as in the fit")
  shown <- generics::tidy(fit, "calibration")
  expect_equal(sum(shown$n), 150)
  expect_equal(sum(shown$n * shown$hit),
               sum(max.col(fit$loo$posterior, "first") ==
                     as.integer(iris$Species)))
})

test_that("the scale of the kernel changes no class and no posterior", {
  k <- gram_R(kernel_linear(), flowers)
  y <- species
  plain <- kme_fda(as_gram(k), y)
  for (unit in c(2^-500, 1e-100, 1e100, 2^500)) {
    scaled <- kme_fda(as_gram(unit * k), y)
    expect_near(scaled$loo$posterior, plain$loo$posterior, 1e-9)
    expect_near(scaled$intensity, plain$intensity, 1e-12)
    expect_near(scaled$scaling * unit, plain$scaling, 1e-9)
  }
  expect_identical(kme_fda(as_gram(1e-200 * k), y, ridge = 1e-3)$ridge, 1e-3)
})

test_that("update() with data reads the formula's left side as it was", {
  make <- function() {
    at <- 5.5
    kme_fda((Sepal.Length > at) ~ Petal.Width + Petal.Length, iris)
  }
  fit <- make()
  expect_identical(update(fit, data = iris)$counts, fit$counts)
  expect_error(update(fit, data = iris[3:4]), "missing: 'Sepal.Length'",
               class = "kernmean_error_input")
  expect_error(update(fit, data = as.matrix(iris[1:4])), "'data' must be",
               class = "kernmean_error_input")
})

test_that("with a prior the error is weighted by it, too", {
  skip_if_not_installed("generics")
  frame <- stats::na.omit(MASS::Pima.tr2)
  fit <- kme_fda(type ~ ., frame, prior = c(0.9, 0.1), scale = TRUE)
  wrong <- fit$loo$class != frame$type
  want <- sum(c(0.9, 0.1) * tapply(wrong, frame$type, mean))
  facts <- generics::glance(fit)
  expect_near(facts$prior.error, want, 1e-12)
  # By it bandwidth and ridge were chosen.
  expect_near(want, fit$ridges$error[fit$ridges$chosen], 1e-12)
  expect_match(paste(capture.output(fit), collapse = " "),
               paste(format(want, digits = 4), "weighted by the prior"),
               fixed = TRUE)
  plain <- generics::glance(kme_fda(type ~ ., frame, scale = TRUE))
  expect_equal(plain$prior.error, plain$error)
})
