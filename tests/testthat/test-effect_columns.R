# The kernel of an effect that is chosen by left-out losses: identities, guards,
# what is said of it.

set.seed(11)
n <- 150L
x <- data.frame(a = rnorm(n), b = rnorm(n), c = rnorm(n), d = rnorm(n))
treat <- rbinom(n, 1, plogis(1.5 * sin(2 * x$a)))
y <- 2 * sin(2 * x$a) + treat + rnorm(n) / 2
dose <- sin(2 * x$a) + rnorm(n) / 2
z <- dose + 2 * sin(2 * x$a) + rnorm(n) / 2
effect <- \(...) quietly(kme_effect(...))
fit <- effect(x, y, treat)

# Is the fit that with its own kernel, when that is given?
expect_same_kernel <- function(fit, ...) {
  given <- effect(..., kernel = fit$kernel)
  fields <- c("coefficients", "vcov", "effective", "fits")
  expect_equal(given[fields], fit[fields])
  expect_null(given$columns)
}

test_that("the fit is that with the kernel that it chose", {
  expect_identical(fit$columns$kernel, "learned")
  expect_identical(names(which.max(fit$columns$relevance)), "a")
  expect_lt(abs(coef(fit) - 1), 2 * sqrt(vcov(fit)[1]))
  expect_same_kernel(fit, x, y, treat)
  for (of in c("att", "atc", "means")) {
    expect_same_kernel(effect(x, y, treat, functional = of), x, y, treat,
                       functional = of)
  }
  of_dose <- effect(x, z, dose)
  expect_false(of_dose$columns$kernel == "isotropic")
  expect_same_kernel(of_dose, x, z, dose)
  more <- \(data) transform(data, treat = treat + 0.5)
  expect_same_kernel(effect(x, z, dose, policy = more), x, z, dose,
                     policy = more)
})

test_that("without learning it is the isotropic fit, which is kept beside", {
  plain <- effect(x, y, treat, control = list(learn = FALSE))
  expect_null(plain$columns)
  expect_equal(fit$columns$isotropic$coefficients, coef(plain))
  expect_equal(unname(fit$columns$isotropic$errors), sqrt(vcov(plain)[1]))
  expect_equal(plain$kernel$bandwidth, 2 * median(dist(scale(x))),
               tolerance = 1e-6)
  # A given kernel, one column and turned axes leave nothing to choose.
  for (other in list(effect(x, y, treat, kernel_rbf(2)),
                     effect(x["a"], y, treat),
                     effect(x, y, treat, control = list(scale = "whiten")))) {
    expect_null(other$columns)
  }
})

test_that("responses are arms, and indicators of levels and of a target", {
  three <- factor(rep(c("u", "v", "w"), 50))
  r <- effect_responses(y, three)
  expect_length(r, 6L)
  within <- y - ave(y, three)
  expect_equal(r[[2]]$y[, 1], within[three == "v"] / sqrt(mean(within^2)))
  expect_equal(vapply(r, `[[`, 0, "share"), rep(1 / 3, 6))
  expect_equal(vapply(r, `[[`, NA, "outcome"), rep(c(TRUE, FALSE), each = 3))
  expect_equal(mean(r[[6]]$y^2), 1)
  expect_identical(effect_responses(z, dose)[[2]]$columns, -1L)
  # A column that only the target moves is seen.
  target <- transform(x[1:80, ], d = d * 3 + 2)
  seen <- effect(x, y, treat, functional = "means", target = target)
  expect_gt(seen$columns$relevance[["d"]], 2 * fit$columns$relevance[["d"]])
  expect_same_kernel(seen, x, y, treat, functional = "means", target = target)
})

test_that("many rows learn from some, of a rare arm from all", {
  arm <- factor(rep(1:2, c(40, 1960)))
  with_binding("most_learned", 500L, {
    rows <- learning_rows(2000L, arm)
  })
  expect_identical(rows[1:40], 1:40)
  expect_equal(length(rows), 40 + 490, tolerance = 0.01)
  expect_false(is.unsorted(rows, strictly = TRUE))
  expect_identical(learning_rows(30L, rep(1L, 30)), 1:30)
  expect_identical(learning_rows(0L, integer()), integer())
  with_binding("most_learned", 120L, {
    short <- effect(x, y, treat)
  })
  expect_identical(names(which.max(short$columns$relevance)), "a")
  expect_equal(nrow(short$influence), n)
})

test_that("a kernel with a far larger error is passed over", {
  with_binding("most_error", 0, {
    none <- effect(x, y, treat)
  })
  expect_identical(none$columns$kernel, "isotropic")
  expect_equal(coef(none), none$columns$isotropic$coefficients)
  # The losses are those of the choice all the same.
  expect_equal(none$columns$losses, fit$columns$losses)
})

test_that("clusters and weights are in the losses", {
  id <- rep(1:50, each = 3)
  grouped <- effect(x, y, treat, clusters = id)
  expect_gt(max(abs(grouped$columns$losses$loss - fit$columns$losses$loss)),
            1e-4)
  expect_same_kernel(grouped, x, y, treat, clusters = id)
  # Rows that almost do not count teach nothing.
  w <- rep(c(1, 1e-20), c(110, 40))
  b_alone <- 2 * sin(2 * x$b) + rnorm(n) / 4
  few <- effect(x, replace(b_alone, 111:150, 1e6 * rnorm(40)), rep(0:1, 75),
                weights = w)
  short <- effect(x[1:110, ], b_alone[1:110], rep(0:1, 55))
  expect_identical(names(which.max(few$columns$relevance)), "b")
  # Only the units of the columns are those of all rows.
  expect_near(few$columns$losses$loss, short$columns$losses$loss, 0.25)
})

test_that("slopes of sums are finite differences", {
  kernel <- fit_kernel(
    0.3 * kernel_rbf(2) + kernel_rbf(1, columns = 2) +
      2 * kernel_matern(5 / 2, 1.5, columns = c(1, 3)), as.matrix(x)
  )
  points <- as.matrix(x)[1:6, ]
  others <- as.matrix(x)[7:15, ]
  along <- c(1, 0.5, 0, -1)
  at <- \(h) fold_store(kernel, points + h * rep(along, each = 6), others)
  expect_near(section_slopes(kernel, points, others, along),
              (at(1e-5) - at(-1e-5)) / 2e-5, 1e-7)
  expect_identical(section_slopes(kernel_parts(kernel)[[1]], points, others,
                                  numeric(4)), matrix(0, 6, 9))
  expect_error(effect(x, z, dose, kernel_rbf(1) * kernel_linear()),
               class = "kernmean_error_input")
})

test_that("few rows for a column are said where they move the estimate", {
  set.seed(5)
  wide <- cbind(x, matrix(rnorm(n * 8), n))
  expect_warning(kme_effect(wide, y, treat), class = "kernmean_warning_columns",
                 regexp = "12 rows for each column")
  with_binding("most_error", 0, {
    shown <- capture.output(print(effect(x, y, treat)))
  })
  expect_match(shown, "predict better have standard errors more than 0 times",
               all = FALSE)
  quiet <- \(code) expect_no_warning(code, class = "kernmean_warning_columns")
  quiet(kme_effect(x, y, treat))
  quiet(kme_effect(wide, y, treat, control = list(learn = FALSE)))
  quiet(kme_effect(wide, y - 2 * sin(2 * x$a), rep(0:1, 75)))
})

test_that("warnings are those of the kernel that is taken", {
  set.seed(2)
  far <- rbinom(n, 1, plogis(4 * x$a))
  said_by <- function(code) {
    said <- character()
    withCallingHandlers(code, kernmean_warning_overlap = \(w) {
      said <<- c(said, conditionMessage(w))
      invokeRestart("muffleWarning")
    })
    said
  }
  said <- said_by(strong <- kme_effect(x, y, far))
  expect_gt(length(said), 0L)
  expect_false(strong$columns$kernel == "isotropic")
  expect_identical(said, said_by(kme_effect(x, y, far, strong$kernel)))
})

test_that("all kernels have the same random landmarks and features", {
  for (control in list(list(landmarks = 40), list(features = 60))) {
    set.seed(3)
    drawn <- effect(x, y, treat, control = control)
    after <- .Random.seed
    expect_false(drawn$columns$kernel == "isotropic")
    set.seed(3)
    given <- effect(x, y, treat, drawn$kernel, control = control)
    expect_equal(coef(given), coef(drawn))
    expect_identical(.Random.seed, after)
  }
  expect_false(any(grepl("additive", drawn$columns$losses$kernel)))
})

test_that("extreme units, outcomes and weights end in no base error", {
  plain <- effect(x, y, treat, control = list(scale = FALSE))
  for (unit in c(1e-160, 1e-80, 1e80, 1e150)) {
    far <- effect(x * unit, y, treat, control = list(scale = FALSE))
    expect_identical(far$columns$kernel, plain$columns$kernel)
    expect_near(far$columns$relevance, plain$columns$relevance, 1e-6)
  }
  heavy <- effect(x, y, treat, weights = replace(rep(1, n), 3, 1e18))
  expect_true(all(is.finite(heavy$columns$losses$loss)))
  still <- effect(x, rep(1, n), treat)
  expect_identical(still$columns$losses$loss[1], 0)
  expect_equal(unname(coef(still)), 0)
  huge <- effect(x, y * 1e300, treat)
  expect_near(huge$columns$losses$loss, fit$columns$losses$loss, 1e-8)
})

test_that("the print says what was chosen and what moved", {
  data <- cbind(x, y, treat, z, dose)
  expect_snapshot(print(effect(y ~ treat, ~ a + b + c + d, data)))
  expect_snapshot(print(effect(z ~ dose, ~ a + b + c + d, data,
                               reference = NULL)))
  data$line <- with(data, a + b + cos(7 * y))
  data$w <- 1:150
  expect_snapshot(print(quietly(kme_effect(
    line ~ treat, ~ a + b, data, weights = w, target = data[1:20, ]
  ))))
})

test_that("the picture of columns has their relevances", {
  picture <- fit_picture(fit, "columns")
  drawn <- picture$value
  expect_identical(drawn$column[1], "a")
  expect_equal(drawn$relevance, unname(sort(fit$columns$relevance,
                                            decreasing = TRUE)))
  expect_error(plot(effect(x, y, treat, kernel_rbf(2)), "columns"),
               class = "kernmean_error_input")
  by_formula <- effect(z ~ dose, ~ a + b, data.frame(z, dose, x))
  expect_true("dose" %in% fit_picture(by_formula, "columns")$value$column)
})

test_that("update() chooses again", {
  again <- quietly(update(fit, y = y - 2 * sin(2 * x$a)))
  expect_false(identical(again$kernel, fit$kernel))
  expect_equal(coef(quietly(update(again, y = y))), coef(fit))
})

# --- The guard of a ridge ----------------------------------------------------

test_that("of two valleys that losses cannot tell apart the wider is taken", {
  u <- rep(c(-1, 1), 20)
  path <- \(low, noise) rbind(1, low, 0.9, 0.6, 0.8)[, rep(1, 40)] +
    outer(c(0, noise, 0, 0, 0), u)
  pick <- \(low, noise, rule) {
    tune_grid(1:5 / 10, \(all) t(path(low, noise)), rule)$value
  }
  expect_identical(pick(0.5, 2, "valley"), 0.4)
  expect_identical(pick(0.5, 0.1, "valley"), 0.2)
  expect_identical(pick(0.5, 2, "min"), 0.2)
  expect_identical(is_valley(c(1, 2, 1, 1, 3, 0)), rep(FALSE, 6))
  expect_identical(which(is_valley(c(3, 2, 4, 1, 5))), c(2L, 4L))
})

test_that("an arm of a trial has no rough regression", {
  # 97 persons of "Beat the Blues" (Proudfoot and others 2003; BtheB of HSAUR3).
  trial <- read.csv(test_path("fixtures", "trial.csv"), stringsAsFactors = TRUE)
  trial$treatment <- relevel(trial$treatment, "TAU")
  expect_no_warning(
    fit <- kme_effect(bdi.2m ~ treatment, ~ bdi.pre + drug + length, trial)
  )
  expect_gt(coef(fit), -4.2)
  expect_lt(coef(fit), -2.2)
  expect_lt(fit$fits$TAU$edf, 8)
})
