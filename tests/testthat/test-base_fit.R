# Fits and tests as data frames; the generics may or may not be installed.

flowers <- iris[c(1:12, 51:60, 101:111), ]
columns <- c("Sepal.Length", "Petal.Width")
x <- as.matrix(flowers[, columns])
rownames(x) <- NULL
rbf <- kernel_rbf(1)

test_that("a kernel mean has rows of its points and one row in all", {
  fits <- list(
    kme(x, rbf), kme(x, rbf, "skmse"), kme(x, rbf, "fkmse"),
    kme(x, rbf, "mkme"), kme(x, rbf, "mmkme"),
    kme(x, rbf, weights = seq_len(nrow(x)) / 500)
  )
  for (fit in fits) {
    points <- as.data.frame(fit)
    expect_identical(names(points), c(columns, ".weight", ".fitted"))
    expect_identical(unname(as.matrix(points[1:2])), unname(x))
    if (is.null(fit$noise)) {
      expect_near(sum(points$.weight * points$.fitted), fit$norm2, 1e-12)
      expect_identical(points$.weight, coef(fit))
    } else {
      expect_identical(points$.weight, rep(NA_real_, nrow(x)))
    }
    expect_identical(tidy.kernmean_fit(fit),
                     data.frame(row = seq_len(nrow(x)),
                                weight = points$.weight))
    again <- augment.kernmean_fit(fit, newdata = x)
    expect_near(again$.fitted, points$.fitted, 1e-12)
  }
  # Of all estimators in one table.
  table <- do.call(rbind, lapply(fits, glance.kernmean_fit))
  expect_identical(table$estimator,
                   c("kme", "skmse", "fkmse", "mkme", "mmkme", NA))
  expect_identical(table$lambda, vapply(fits, \(fit) fit$lambda + 0, 1))
})

test_that("an operator has its spectrum, and its weights for the points", {
  skip_if_not_installed("generics")
  fit <- kme_cov(x, kernel_x = rbf, estimator = "fkmse")
  table <- generics::tidy(fit)
  expect_identical(table$value, unname(fit$values))
  expect_near(sum(table$value), fit$trace, 1e-8)
  expect_near(table$cumulative[nrow(table)], 1, 1e-8)
  expect_identical(generics::augment(fit, flowers)$.weight, fit$weights)
  expect_identical(generics::glance(fit)$lambda, fit$lambda)
})

test_that("discriminants have classes with the errors of points left out", {
  skip_if_not_installed("generics")
  classes <- factor(flowers$Species, c("virginica", "none", "setosa",
                                       "versicolor"))
  fit <- suppressWarnings(kme_fda(x, classes))
  table <- generics::tidy(fit)
  expect_identical(table$class, names(fit$counts))
  expect_identical(table$n, c(11L, 12L, 10L))
  expect_equal(sum(table$n * table$error) / sum(table$n), fit$error)
  wrong <- table(classes, fit$loo$class != fit$grouping)[table$class, "TRUE"]
  expect_equal(table$error, as.vector(wrong) / table$n)
  expect_equal(unname(as.matrix(table[5:6])), unname(fit$means))
  points <- as.data.frame(fit)
  expect_identical(points$.class, fit$loo$class)
  expect_equal(rowSums(points[4:6]), rep(1, nrow(x)), ignore_attr = TRUE)
  expect_identical(names(points)[4:8], c(paste0(".posterior_", table$class),
                                         ".LD1", ".LD2"))
})

test_that("components are those of the density, each column by itself", {
  skip_if_not_installed("generics")
  set.seed(1)
  marginal <- \(table, name, z) {
    mean <- table[[paste0("mean", name)]]
    sd <- table[[paste0("sd", name)]]
    colSums(table$weight * stats::dnorm(outer(mean, z, \(m, z) z - m), 0, sd))
  }
  one <- kme_density(x[, 1], m = 3)
  points <- generics::augment(one)
  expect_near(marginal(generics::tidy(one), "", points$x),
              points$.density, 1e-10)
  wide <- x * rep(c(1, 30), each = nrow(x))
  two <- suppressWarnings(kme_density(wide, m = 2))
  table <- generics::tidy(two)
  expect_identical(table$weight, two$weights)
  for (l in 1:2) {
    at <- wide[c(1, 20), l]
    sd <- table[[paste0("sd.", columns[3 - l])]]
    mean <- table[[paste0("mean.", columns[3 - l])]]
    other <- seq(min(mean - 9 * sd), max(mean + 9 * sd), length.out = 1001)
    for (z in at) {
      new <- matrix(other, 1001, 2)
      new[, l] <- z
      colnames(new) <- columns
      found <- generics::augment(two, newdata = new)$.density
      expect_near(sum(found) * diff(other)[1],
                  marginal(table, paste0(".", columns[l]), z), 1e-9)
    }
  }
})

test_that("tests are one row, and their pairs those of the groups", {
  skip_if_not_installed("generics")
  set.seed(1)
  test <- mmd_set(x ~ flowers$Species, kernel = rbf, B = 99)
  row <- generics::tidy(test)
  expect_identical(row$p.value, test$p.value)
  expect_identical(row$statistic, unname(test$statistic))
  apart <- kme_distance(lapply(split(data.frame(x), flowers$Species), kme, rbf))
  expect_near(unname(sqrt(test$pairs)), apart[lower.tri(apart)], 1e-11)
  expect_identical(as.data.frame(test), row)
  pair <- generics::tidy(mmd_set(x[1:15, ], x[16:33, ], rbf, B = 19))
  expect_near(pair$estimate^2, pair$statistic, 1e-12)
})

test_that("the witness lies between the samples by the squared distance", {
  skip_if_not_installed("generics")
  set.seed(3)
  mixed <- sample(nrow(x), 20)
  data <- data.frame(x[mixed, ], group = rep(c("b", "a"), 10))
  for (kernel in list(rbf, kernel_linear(), kernel_energy())) {
    test <- mmd_set(cbind(Sepal.Length, Petal.Width) ~ group, data,
                     kernel = kernel, B = 19)
    for (table in list(generics::augment(test),
                       generics::augment(test, data))) {
      means <- tapply(table$.witness, table$.group, mean)
      expect_near(means[["a"]] - means[["b"]], unname(test$statistic), 1e-10)
    }
    expect_identical(as.character(table$.group), data$group)
  }
})

test_that("update() is the door with the changed arguments", {
  skip_on_cran()
  x <- random_points(20, 2)
  y <- random_points(20, 1, 2)
  g <- rep(1:2, 10)
  bags <- lapply(1:4, \(i) random_points(4 + i, 2, i))
  f <- gl(4, 5)[20:1]
  parts <- list(a = x, f, c = as_gram(gram_R(rbf, y)))
  gcv <- est_fkmse(select = "gcv")
  half <- est_fkmse(lambda = 0.5)
  # A call and, one by one, what is changed of it; NULL takes it away.
  cases <- list(
    list(quote(kme(x = x)), estimator = "skmse", x = x[1:9, ], kernel = rbf),
    list(quote(kme(x = x, kernel = rbf, estimator = "fkmse")), select = "gcv",
         lambda = 2, target = kme(x + 1, rbf), estimator = "kme"),
    list(quote(kme(x = x, estimator = "fkmse", lambda = 2)), lambda = NULL,
         lambda = 1),
    list(quote(kme(x = x, estimator = "mkme", noise = 0.3)), noise = NULL),
    list(quote(kme_pca(x = x, ncomp = 3, center = "skmse", covariance = half)),
         ncomp = 2, covariance = "kme", x = x[1:12, ], kernel = rbf),
    list(quote(kme_cov(x = x, y = y, estimator = gcv, ncomp = 3)),
         estimator = "skmse", kernel_y = kernel_linear(), ncomp = NULL,
         x = 2 * x),
    list(quote(kme_fda(x = x, grouping = g, kernel = rbf)), ridge = 0.5,
         prior = c(0.3, 0.7), grouping = rep(1:2, each = 10),
         kernel = kernel_laplace(2)),
    list(quote(kme_density(x = x, m = 2)), m = 3, estimator = "skmse"),
    list(quote(mmd_test(x = x[1:8, ], y = x[9:20, ], B = 20)), B = 30,
         control = test_control(statistic = "unbiased"),
         kernel = kernel_energy(), estimator = est_fkmse(0.1)),
    list(quote(hsic_test(x = x, y = y, B = 20)), estimator = "skmse", B = 19),
    list(quote(hsic_test(x = gram(x, rbf), y = f, blocks = rep(1:5, 4),
                         B = 20)), B = 30),
    list(quote(hsic_test(x = parts, B = 20)), x = parts[1:2],
         kernel_x = list(rbf, NULL, NULL)),
    list(quote(bag_gram(bags = bags)), level2 = "rbf", estimator = "skmse",
         kernel = kernel_laplace(), target = "pooled", bags = bags[1:3]),
    list(quote(bag_gram(bags = bags, level2 = "rbf", bandwidth2 = 0.2)),
         estimator = "fkmse"),
    list(quote(smm(bags = bags, y = c(1, 3, 2, 5), type = "ridge")),
         level2 = "rbf", y = 4:1)
  )
  seeded <- function(call) {
    set.seed(1)
    suppressWarnings(eval(call, parent.frame()))
  }
  expect_same <- function(got, want) {
    parts <- \(fit) {
      list(glance.kernmean_fit(fit), as.data.frame(fit), fit[["K"]],
           fit[["values"]], fit[["replicates"]],
           if (inherits(fit, c("kme_fda", "kme_pca"))) coef(fit))
    }
    expect_equal(parts(got), parts(want), tolerance = 1e-9)
    expect_identical(got[["K"]], want[["K"]])
    numbers <- \(fit) list(fit[["values"]], fit[["loo"]])
    expect_equal(numbers(got), numbers(want), tolerance = 1e-12)
  }
  for (case in cases) {
    fit <- seeded(case[[1]])
    expect_same(seeded(quote(update(fit))), fit)
    for (i in seq_along(case)[-1]) {
      changed <- as.list(case[[1]])
      changed[names(case)[i]] <- case[i]
      if (is.null(case[[i]])) changed[names(case)[i]] <- NULL
      expect_same(
        seeded(as.call(c(quote(update), quote(fit), case[i]))),
        seeded(as.call(changed))
      )
    }
  }
})

test_that("new rows may have one name twice", {
  skip_if_not_installed("generics")
  fit <- kme_pca(x, rbf, ncomp = 2)
  new <- x[c(1, 1, 2), ]
  rownames(new) <- c("p", "p", "q")
  expect_identical(generics::augment(fit, newdata = new),
                   generics::augment(fit, newdata = `rownames<-`(new, NULL)))
})

test_that("rows that were dropped are kept, counted and printed", {
  frame <- transform(airquality, late = Month > 7)
  lost <- which(is.na(frame$Ozone))
  rest <- frame[-lost, ]
  doors <- list(
    \(d, ...) kme(~ Ozone + Wind, d, ...),
    \(d, ...) kme_pca(~ Ozone + Wind, d, ...),
    \(d, ...) kme_cov(~ Ozone + Wind, d, ...),
    \(d, ...) kme_density(~ Ozone, d, m = 2, ...),
    \(d, ...) kme_fda(late ~ Ozone, d, ...),
    \(d, ...) smm(~ Ozone + Wind, d, id = Month, nu = 0.2, ...),
    \(d, ...) bag_gram(Month ~ Ozone, d, ...),
    \(d, ...) mmd_set(Ozone ~ late, d, B = 19, ...),
    \(d, ...) mmd_pairwise(Ozone ~ late, d, B = 19, ...),
    \(d, ...) mmd_gof(~ Ozone, d, "normal", B = 19, ...),
    \(d, ...) hsic_test(Ozone ~ Wind, d, B = 19, ...),
    \(d, ...) rkhs_iv(Ozone ~ Wind | Temp, d, lambda = 1, mu = 1, ...)
  )
  for (door in doors) {
    refused(door(frame), "37 NA")
    set.seed(1)
    fit <- quietly(door(frame, na.action = na.omit))
    set.seed(1)
    whole <- quietly(door(rest))
    expect_identical(as.vector(fit$na.action), lost)
    expect_identical(nobs(fit), nobs(whole))
    expect_null(whole$na.action)
    words <- "37 rows with missing values dropped"
    printed <- capture.output(print(fit))
    expect_identical(printed[printed != words], capture.output(print(whole)))
    expect_identical(sum(printed == words), 1L)
  }
  fit <- kme(~ Ozone + Wind, frame, na.action = na.omit)
  expect_identical(update(fit, estimator = "skmse")$na.action, fit$na.action)
  expect_null(update(fit, data = rest)$na.action)
  test <- mmd_set(Ozone ~ late, frame, B = 19, na.action = na.omit)
  expect_identical(update(test, B = 19)$na.action, test$na.action)
})

test_that("prints say what a guard inside a fit keeps", {
  guarded <- est_skmse(guard = TRUE)
  k <- kernel_rbf(1)
  shares <- function(fit, share) {
    expect_match(paste(capture.output(print(fit)), collapse = " "),
                 paste0("guard +keeps +", format(100 * share, digits = 2), "%"))
  }
  fit <- kme_pca(x, k, ncomp = 2, center = guarded)
  shares(fit, fit$mean$guard$share)
  fit <- kme_cov(x, kernel_x = k, center = guarded)
  shares(fit, fit$variables[[1]]$mean$guard$share)
  fit <- kme_density(x, k, m = 2, estimator = "smooth")
  shares(fit, fit$mean$guard$share)
  test <- mmd_set(x[1:15, ], x[16:33, ], kernel = k, estimator = guarded)
  shares(test, test$smoothing[["guard"]])
})

test_that("what does not fit is refused", {
  skip_if_not_installed("generics")
  fit <- kme(x, rbf)
  test <- hsic_test(x[, 1], x[, 2], B = 19)
  operator <- kme_cov(x, kernel_x = rbf)
  expect_snapshot(writeLines(refusals(expression(
    augment.kernmean_fit(fit, flowers[1:3, ]),
    augment.kernmean_fit(fit, flowers, newdata = flowers),
    tidy.kernmean_fit(fit, conf.int = 1),
    generics::augment(operator, newdata = x), generics::augment(test),
    generics::tidy(kme_pca(x), "w")
  ))))
})

test_that("what a fit does not have is an error of the package", {
  set.seed(4)
  test <- mmd_test(len ~ supp, ToothGrowth, B = 99)
  pca <- kme_pca(mtcars, scale = TRUE, ncomp = 2)
  sketch <- kme_sketch(cars, 10)
  for (none in list(stats::confint, stats::predict, stats::vcov, stats::coef,
                    stats::residuals, stats::fitted, stats::weights,
                    stats::anova, stats::logLik, stats::simulate,
                    stats::biplot)) {
    for (fit in list(test, sketch, pca$sample$kernel, pca)) {
      has <- identical(fit, pca) &&
        (identical(none, stats::coef) || identical(none, stats::predict))
      if (inherits(fit, "kernmean_fit") && !has) refused(none(fit), "must have")
    }
  }
  refused(stats::biplot(pca), "plot\\(\\)")
  # Fields that a fit has, by the name that R looks for
  fit <- kme(cars)
  expect_identical(fitted(fit), fit$fitted)
  expect_identical(weights(fit), fit$weights)
  effect <- suppressWarnings(kme_effect(bwt ~ smoke, ~ age + lwt,
                                        MASS::birthwt))
  expect_identical(residuals(effect), effect$residuals)
  refused(predict(effect, MASS::birthwt), "values at new points")
})

test_that("the table of a summary is its data frame", {
  rows <- data.frame(d = rep(1:21, each = 30), u = sin(1:630))
  sketch <- kme_sketch(rows, kme_landmarks(rows["u"], 10), groups = "d",
                       moments = 2)
  monitor <- suppressWarnings(kme_monitor(sketch[paste(1:20)]))
  monitor <- update(monitor, sketch["21"])
  found <- summary(monitor)
  expect_equal(as.data.frame(found), found$columns, ignore_attr = "title")
  fit <- kme_pca(cars)
  expect_identical(as.data.frame(summary(kme(cars))),
                   as.data.frame(kme(cars)))
  expect_s3_class(as.data.frame(summary(fit)), "data.frame")
})

test_that("new rows with missing values have NA, and others their values", {
  new <- iris[c(3, 60, 110, 20), ]
  rownames(new) <- letters[1:4]
  gaps <- new
  gaps$Petal.Width[2] <- NA
  gaps$Sepal.Width[3] <- NA
  gaps$Sepal.Length[1] <- NA
  blank <- \(x) if (is.matrix(x)) replace(x, cbind(rep(2:3, ncol(x)),
                                                   rep(seq_len(ncol(x)),
                                                       each = 2)), NA) else
    replace(x, 2:3, NA)
  columns <- c("Sepal.Width", "Petal.Width")
  fits <- list(
    kme_fda(Species ~ Sepal.Width + Petal.Width, iris),
    kme_fda(iris[columns], iris$Species),
    kme_pca(~ Sepal.Width + Petal.Width, iris, ncomp = 2),
    kme(~ Sepal.Width + Petal.Width, iris), kme(iris[columns]),
    kme_density(~ Sepal.Width + Petal.Width, iris)
  )
  for (fit in fits) {
    at <- if (is.null(fit$layout)) columns else names(new)
    want <- predict(fit, new[at])
    expect_identical(predict(fit, gaps[at]),
                     if (is.list(want)) lapply(want, blank) else blank(want))
    alone <- unlist(predict(fit, gaps[2, at]))
    expect_true(all(is.na(alone)))
    expect_length(alone, length(unlist(want)) / nrow(new))
    expect_identical(predict(fit, gaps[c(1, 4), at]), predict(
      fit, new[c(1, 4), at]
    ))
  }
  expect_identical(predict(fits[[4]], gaps, interval = TRUE),
                   blank(predict(fits[[4]], new, interval = TRUE)))
  expect_identical(predict(fits[[1]], gaps, "class")[2], factor(
    NA, levels(iris$Species)
  ))
  one <- kme(iris$Petal.Width)
  expect_identical(unname(predict(one, c(1, NA, 2))),
                   c(unname(predict(one, 1:2))[1], NA, predict(one, 2)))
  # As lm() does
  line <- lm(Sepal.Length ~ Sepal.Width + Petal.Width, iris)
  expect_identical(is.na(predict(fits[[4]], gaps)), is.na(predict(line, gaps)))
})

test_that("update() of a fit without a sample has its data, or names them", {
  gap <- function(x, y, ..., power = 2) {
    asked <- request(gap_table)
    new_fit("gap", list(gap = mean(asked$x - asked$y)^asked$power,
                        arguments = stored(asked)))
  }
  table_of <- \(aside) {
    door_table("some_gap", x = anything, y = anything,
               power = number(open = TRUE), aside = aside)
  }
  some_gap <<- gap
  environment(some_gap) <<- environment()
  on.exit({
    rm(some_gap, envir = globalenv())
    rm("some_gap", envir = doors)
  })
  gap_table <- table_of("progress")
  fit <- some_gap(4:6, 1:3)
  expect_identical(update(fit, power = 1)$gap, 3)
  expect_identical(update(fit, y = 2:4)$gap, 4)
  expect_output(print(fit), "an object of class 'gap'")
  gap_table <- table_of(c("x", "y"))
  fit <- some_gap(4:6, 1:3)
  refused(update(fit, power = 1), "'x' must be given to update()")
  expect_identical(update(fit, x = 4:6, y = 1:3, power = 1)$gap, 3)
})
