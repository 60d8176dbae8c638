# kme_effect(): estimates and errors by their formulas, identities, the door.

set.seed(3)
s <- effect_set()
kernel <- kernel_rbf(1.5)
K <- fold_store(kernel, s$x, s$x)
ridges <- list(lambda = 0.02, mu = 0.05)
frame <- data.frame(y = s$y, treat = s$treat, s$x)
effect <- function(..., x = s$x, y = s$y, treat = s$treat, control = ridges,
                   kernel. = kernel) {
  quietly(kme_effect(x, y, treat, kernel = kernel., ..., control = control))
}
arms <- split(seq_along(s$y), s$treat)
all <- seq_along(s$y)
ones <- rep(1, length(all))

expect_effect <- function(fit, estimate, error) {
  expect_near(unname(coef(fit)), estimate, 1e-7)
  expect_near(sqrt(diag(vcov(fit))), c(error), 1e-6)
}

test_that("an average effect and its error are those of the formulas", {
  for (id in list(NULL, rep(1:20, 3))) {
    w <- rexp(60) + 0.2
    unit <- if (is.null(id)) all else id
    of <- \(arm) arm_R(K, s$y, arms[[arm]], all, 0.02, 0.05, w, unit)
    one <- of("1")
    zero <- of("0")
    fit <- effect(weights = w, clusters = id)
    expect_near(unname(coef(fit)), one$estimate - zero$estimate, 1e-7)
    expect_near(sqrt(vcov(fit)[1]), error_R(one$u - zero$u, id), 1e-6)
    expect_near(fit$fits[["1"]]$effective, one$a, 1e-6)
    both <- effect(weights = w, clusters = id, functional = "means")
    expect_near(unname(coef(both)), c(zero$estimate, one$estimate), 1e-7)
    expect_near(sqrt(diag(vcov(both))), c("0" = error_R(zero$u, id),
                                          "1" = error_R(one$u, id)), 1e-6)
  }
})

test_that("many rows lose of K what no penalty notices", {
  rank_at <- \(lambda) {
    space <- riesz_space(s$x, list(kernel = kernel, lambda = lambda))
    space_map(space, all)$r
  }
  # The least penalty, and those that are chosen; largest seen 0.02 and 8e-6.
  controls <- list(list(mu = 1e-6), list())
  fit_all <- \() lapply(controls, \(control) effect(control = control))
  full <- fit_all()
  with_binding("most_in_full", 10L, {
    short <- fit_all()
    ranks <- vapply(c(1e-6, 1e-9), rank_at, 1L)
  })
  expect_true(ranks[1L] < ranks[2L] && ranks[2L] < rank_at(1e-6))
  Map(\(full, short, most) {
    error <- sqrt(drop(vcov(full)))
    expect_lt(abs(coef(short) - coef(full)) / error, most)
    expect_lt(abs(sqrt(drop(vcov(short))) / error - 1), most)
    expect_near(weights(short), weights(full), most)
  }, full, short, c(0.03, 1e-4))
})

test_that("effects on the treated and on controls are those of the formulas", {
  clusters <- rep(1:20, 3)
  for (case in c("att", "atc")) for (id in list(NULL, clusters)) {
    focal <- if (case == "att") "1" else "0"
    sign <- if (case == "att") 1 else -1
    i <- arms[[focal]]
    unit <- if (is.null(id)) all else id
    other <- arm_R(K, s$y, arms[[setdiff(c("0", "1"), focal)]], i, 0.02, 0.05,
                   ones, unit)
    u <- numeric(60)
    u[i] <- (s$y[i] - mean(s$y[i])) / length(i)
    u <- sign * (u - other$u)
    error <- if (!is.null(id)) error_R(u, id) else
      sqrt(error_R(u[i])^2 + error_R(u[-i])^2)
    fit <- effect(functional = case, clusters = id)
    expect_near(unname(coef(fit)), sign * (mean(s$y[i]) - other$estimate), 1e-7)
    expect_near(sqrt(vcov(fit)[1]), error, 1e-6)
    # The rows of the focal arm have weights 1 among themselves.
    expect_near(weights(fit)[i], rep(sign * 60 / length(i), length(i)), 1e-12)
    expect_identical(names(coef(fit)), "1 - 0")
  }
})

test_that("effects in another population add the errors of two samples", {
  target <- s$x[1:25, ] / 2 + 0.2
  joint <- rbind(s$x, target)
  L <- fold_store(kernel, joint, joint)
  of <- \(arm) arm_R(L, c(s$y, rep(NA, 25)), arms[[arm]], 61:85, 0.02, 0.05,
                     rep(1, 85), 1:85)
  u <- of("1")$u - of("0")$u
  fit <- effect(target = target)
  expect_near(unname(coef(fit)), of("1")$estimate - of("0")$estimate, 1e-7)
  expect_near(sqrt(vcov(fit)[1]),
              sqrt(error_R(u[1:60])^2 + error_R(u[61:85])^2), 1e-6)
  # An embedding is a population without an error of its own.
  fixed <- effect(target = kme(target, kernel))
  expect_near(coef(fixed), coef(fit), 1e-7)
  expect_near(sqrt(vcov(fixed)[1]), error_R(u[1:60]), 1e-6)
  expect_near(coef(effect(target = s$x)), coef(effect()), 1e-10)
  # update() does not lose it.
  expect_identical(coef(quietly(update(fit))), coef(fit))
})

test_that("cross-fitting takes g and alpha of the other folds", {
  set.seed(8)
  fit <- effect(control = c(ridges, folds = 3))
  set.seed(8)
  fold <- make_folds(60, 3, "drawn", factor(s$treat))
  of <- \(arm) arm_R(K, s$y, arms[[arm]], all, 0.02, 0.05, ones, fold)$folded
  expect_near(unname(coef(fit)), of("1") - of("0"), 1e-7)
  # Clusters stay whole: of as many folds as clusters nothing is drawn.
  clusters <- rep(1:12, 5)
  fit <- effect(control = c(ridges, folds = 12), clusters = clusters)
  of <- \(arm) arm_R(K, s$y, arms[[arm]], all, 0.02, 0.05, ones,
                     clusters)$folded
  expect_near(unname(coef(fit)), of("1") - of("0"), 1e-7)
})

test_that("estimates are means of weighted outcomes", {
  dose <- effect_set(50, dose = TRUE)
  fits <- list(
    effect(), effect(functional = "means"), effect(functional = "att"),
    effect(functional = "atc"), effect(weights = rexp(60) + 0.1),
    effect(functional = "means", target = s$x / 2),
    effect(x = dose$x, y = dose$y, treat = dose$treat),
    effect(x = dose$x, y = dose$y, treat = dose$treat,
           policy = \(data) transform(data, treat = treat + 1))
  )
  masses <- list(0, c(1, 1), 0, 0, 0, c(1, 1), 0, 0)
  for (i in seq_along(fits)) {
    a <- weights(fits[[i]])
    expect_near(unname(colMeans(a * fits[[i]]$y)), unname(coef(fits[[i]])),
                1e-9)
    expect_near(unname(colMeans(a)), masses[[i]], 1e-9)
  }
})

test_that("an effect is the difference of means, each of its arm's weights", {
  both <- effect(functional = "means")
  expect_near(unname(coef(effect())), diff(unname(coef(both))), 1e-12)
  contrast <- c(-1, 1)
  expect_near(vcov(effect())[1], drop(contrast %*% vcov(both) %*% contrast),
              1e-12)
  for (arm in names(arms)) {
    w <- quietly(kme_weights(s$x[arms[[arm]], ], s$x, kernel = kernel,
                             means = FALSE, positive = FALSE, lambda = 0.02))
    expect_near(both$fits[[arm]]$alpha, unname(weights(w)), 1e-9)
  }
})

test_that("with no ridge and a linear kernel it is regression", {
  tiny <- list(lambda = 1e-9, mu = 1e-9, scale = TRUE)
  fit <- effect(kernel. = kernel_linear(), control = tiny)
  imputed <- vapply(arms, \(i) {
    mean(predict(lm(y ~ a + b, frame[i, ]), frame))
  }, 0)
  expect_near(unname(coef(fit)), unname(diff(imputed)), 1e-6)
  dose <- effect_set(50, dose = TRUE)
  fit <- effect(x = dose$x, y = dose$y, treat = dose$treat,
                kernel. = kernel_linear(), control = tiny)
  expect_near(unname(coef(fit)),
              unname(coef(lm(dose$y ~ dose$treat + dose$x))[2]), 1e-6)
  both <- effect(x = dose$x, y = dose$y, treat = dose$treat,
                 kernel. = kernel_linear(), control = tiny,
                 policy = \(data) transform(data, treat = treat + 2))
  expect_near(unname(coef(both)), 2 * unname(coef(fit)), 1e-6)
})

test_that("with much ridge it is the plug-in, then the difference of means", {
  fit <- effect(control = list(lambda = 1e9, mu = 0.05))
  expect_near(unname(coef(fit)), unname(fit$plugin), 1e-6)
  means <- tapply(s$y, s$treat, mean)
  fit <- effect(control = list(lambda = 1e9, mu = 1e9))
  expect_near(unname(coef(fit)), unname(diff(c(means))), 1e-6)
  expect_near(unname(fit$naive), unname(diff(c(means))), 1e-12)
  # Of the other level it has the other sign.
  turned <- update(fit, reference = names(means)[2L])
  expect_near(unname(turned$naive), -unname(diff(c(means))), 1e-12)
})

test_that("counts as weights are rows that are repeated", {
  counts <- rep(1:2, 30)
  more <- rep(all, counts)
  for (control in list(ridges, list(mu = 0.05))) {
    functional <- if (length(control) == 2L) "ate" else "att"
    once <- effect(functional = functional, weights = counts, clusters = all,
                   control = control)
    each <- effect(x = s$x[more, ], y = s$y[more], treat = s$treat[more],
                   functional = functional, clusters = more, control = control)
    expect_near(coef(each), coef(once), 1e-8)
    expect_near(vcov(each), vcov(once), 1e-8)
    lambdas <- \(fit) vapply(fit$fits, `[[`, 0, "lambda")
    expect_near(lambdas(each), lambdas(once), 1e-9)
  }
})

test_that("nothing depends on the order of rows, units of y, or labels", {
  fit <- effect(control = list())
  mixed <- sample(60)
  other <- effect(x = s$x[mixed, ], y = s$y[mixed], treat = s$treat[mixed],
                  control = list())
  expect_near(coef(other), coef(fit), 1e-8)
  expect_near(vcov(other), vcov(fit), 1e-8)
  both <- effect(functional = "means", control = list())
  moved <- effect(y = 3 * s$y - 20, functional = "means", control = list())
  expect_near(coef(moved), 3 * coef(both) - 20, 1e-8)
  expect_near(vcov(moved), 9 * vcov(both), 1e-8)
  for (unit in 10^c(-160, 100)) {
    expect_near(unname(coef(effect(y = unit * s$y, control = list()))) / unit,
                unname(coef(fit)), 1e-8)
  }
  swapped <- effect(treat = 1 - s$treat, control = list())
  expect_near(unname(coef(swapped)), -unname(coef(fit)), 1e-8)
  expect_near(unname(vcov(swapped)), unname(vcov(fit)), 1e-8)
  turned <- effect(reference = 1, control = list())
  expect_near(unname(coef(turned)), -unname(coef(fit)), 1e-12)
  expect_identical(names(coef(turned)), "0 - 1")
  # Of the columns, neither, where they are standardized.
  units <- \(x) quietly(kme_effect(x, s$y, s$treat))
  expect_near(coef(units(s$x %*% diag(c(10, 0.1)) + 5)), coef(units(s$x)), 1e-8)
})

test_that("small policies are derivatives", {
  dose <- effect_set(50, dose = TRUE)
  of <- \(...) effect(x = dose$x, y = dose$y, treat = dose$treat, ...)
  step <- 1e-4
  for (scale in list(FALSE, TRUE, "whiten")) {
    control <- c(ridges, list(scale = scale))
    slope <- of(control = control)
    by <- of(control = control,
             policy = \(data) transform(data, treat = treat + step))
    expect_near(unname(coef(by)) / step, unname(coef(slope)), 1e-3)
    expect_near(unname(vcov(by)) / step^2, unname(vcov(slope)), 1e-3)
  }
  none <- of(policy = identity)
  expect_identical(c(unname(coef(none)), vcov(none)), c(0, 0))
  # A treatment in other units.
  expect_near(coef(effect(x = dose$x, y = dose$y, treat = 100 * dose$treat,
                          control = c(ridges, scale = TRUE))),
              coef(of(control = c(ridges, scale = TRUE))) / 100, 1e-8)
})

test_that("a derivative and its error are those of the formulas", {
  dose <- effect_set(40, dose = TRUE)
  z <- cbind(dose$treat, dose$x)
  L <- fold_store(kernel, z, z)
  p <- arm_problem_R(L, dose$y, 1:40, 1:40, rep(1, 40))
  # k(z, s) (s - z)/theta^2, by the first column, in place of k(z, s).
  slopes <- L * outer(dose$treat, dose$treat, \(z, s) s - z) / 1.5^2
  p$m <- slopes %*% p$f %*% diag(1 / colSums(p$f^2))
  p$m_h <- 0 * p$m_h
  want <- riesz_R(p, 0.02, 0.05)
  fit <- effect(x = dose$x, y = dose$y, treat = dose$treat)
  expect_near(unname(coef(fit)),
              mean(want$of_g) + mean(want$alpha * want$residuals), 1e-6)
  left <- riesz_left_out_R(p, 0.02, 0.05, 1:40, 1:40)
  u <- drop(weights(fit)) * left$residuals / 40 +
    (want$of_g - mean(want$of_g)) / 40
  expect_near(sqrt(vcov(fit)[1]), error_R(u), 1e-6)
})

test_that("all rows as landmarks are none", {
  fit <- effect()
  full <- effect(control = c(ridges, landmarks = 1000))
  expect_near(coef(full), coef(fit), 1e-7)
  expect_near(vcov(full), vcov(fit), 1e-7)
  set.seed(4)
  few <- effect(control = c(ridges, landmarks = 15))
  set.seed(4)
  expect_identical(coef(effect(control = c(ridges, landmarks = 15))), coef(few))
  expect_lt(abs(coef(few) - coef(fit)), sqrt(vcov(fit)[1]))
  waves <- effect(control = c(ridges, features = 400))
  expect_lt(abs(coef(waves) - coef(fit)), sqrt(vcov(fit)[1]))
  expect_near(unname(colMeans(weights(waves) * s$y)), unname(coef(waves)), 1e-9)
})

test_that("contributions sum to what debiasing adds", {
  fit <- effect(functional = "means")
  for (arm in names(arms)) {
    i <- arms[[arm]]
    p <- arm_problem_R(K, s$y, i, all, ones)
    twin <- riesz_R(p, 0.02, 0.05)
    expect_near(unname(coef(fit)[arm] - fit$plugin[arm]),
                mean(twin$alpha * twin$residuals), 1e-7)
    expect_near(sum(fit$fits[[arm]]$functional), 0, 1e-12)
  }
})

test_that("ridges of arms are theirs by name", {
  by_arm <- c("1" = 0.5, "0" = 0.01)
  fit <- effect(control = list(lambda = by_arm, mu = 0.05))
  expect_near(vapply(fit$fits, `[[`, 0, "lambda"), by_arm[c("0", "1")], 1e-12)
  part <- effect(functional = "att", control = list(lambda = by_arm, mu = 0.05))
  expect_near(part$fits[["0"]]$lambda, 0.01, 1e-12)
  refused(effect(control = list(lambda = c(1, 2))), "one for each arm")
  refused(effect(control = list(lambda = c(a = 1, b = 2))), "one for each arm")
})

# --- The door ----------------------------------------------------------------

test_that("a formula is the default method, whatever the treatment is", {
  want <- coef(quietly(kme_effect(s$x, s$y, s$treat)))
  fit <- quietly(kme_effect(y ~ treat, ~ a + b, frame))
  expect_identical(coef(fit), want)
  for (treat in list(s$treat == 1, factor(s$treat), as.character(s$treat),
                     factor(s$treat, 0:2), ordered(s$treat), s$treat + 0)) {
    frame$treat <- treat
    got <- quietly(kme_effect(y ~ treat, ~ a + b, frame))
    expect_equal(unname(coef(got)), unname(want))
  }
  expect_identical(names(coef(quietly(kme_effect(
    y ~ ifelse(treat == 1, "yes", "no"), ~ a + b, frame
  )))), "yes - no")
  expect_near(coef(quietly(kme_effect(I(10 * y) ~ treat, ~ ., frame))),
              10 * want, 1e-8)
  binary <- quietly(kme_effect(y > 1 ~ treat, ~ a + b, frame))
  expect_identical(coef(binary), coef(quietly(
    kme_effect(as.numeric(y > 1) ~ treat, ~ a + b, frame)
  )))
})

test_that("three arms are each compared with the reference", {
  level <- factor(c("p", "q", "r")[1 + s$treat + (s$x[, 2] > 0.6)])
  fit <- effect(treat = level)
  both <- effect(treat = level, functional = "means")
  expect_near(coef(fit), c("q - p" = 0, "r - p" = 0) + unname(coef(both)[-1] -
                                                            coef(both)[1]),
              1e-12)
  contrast <- rbind(c(-1, 1, 0), c(-1, 0, 1))
  expect_near(unname(vcov(fit)), contrast %*% unname(vcov(both)) %*%
                t(contrast), 1e-12)
  fit <- effect(treat = level, reference = "q")
  expect_identical(names(coef(fit)), c("p - q", "r - q"))
  refused(effect(treat = level, functional = "att"), "not \"att\"")
})

test_that("clusters, weights and subsets come by name, formula or value", {
  frame$id <- rep(1:20, 3)
  frame$w <- rep(1:3, 20)
  want <- vcov(quietly(kme_effect(s$x, s$y, s$treat, clusters = frame$id,
                                  weights = frame$w, control = ridges)))
  for (fit in quietly(list(
    kme_effect(y ~ treat, ~ a + b, frame, clusters = ~ id, weights = ~ w,
               control = ridges),
    kme_effect(y ~ treat, ~ ., frame, clusters = id, weights = w,
               control = ridges),
    kme_effect(y ~ treat, ~ a + b, frame, clusters = "id", weights = frame$w,
               control = ridges)
  ))) {
    expect_identical(vcov(fit), want)
  }
  half <- quietly(kme_effect(y ~ treat, ~ a + b, frame, subset = id < 18))
  expect_identical(coef(half), coef(quietly(
    kme_effect(y ~ treat, ~ a + b, frame[frame$id < 18, ])
  )))
})

test_that("missing values are counted, or their rows dropped", {
  holes <- frame
  holes$a[c(2, 9)] <- NA
  holes$y[5] <- NA
  refused(kme_effect(y ~ treat, ~ a + b, holes), "missing or infinite values")
  want <- quietly(kme_effect(y ~ treat, ~ a + b, na.omit(holes)))
  fit <- quietly(kme_effect(y ~ treat, ~ a + b, holes, na.action = na.omit))
  expect_identical(coef(fit), coef(want))
  expect_identical(nobs(fit), 57L)
  fit <- quietly(kme_effect(y ~ treat, ~ a + b, holes, na.action = na.exclude))
  expect_identical(dim(weights(fit)), c(60L, 1L))
  expect_identical(which(is.na(weights(fit))), c(2L, 5L, 9L))
  frame$treat[3] <- NA
  refused(kme_effect(y ~ treat, ~ a + b, frame), "'treat' must have no missing")
})

test_that("covariates may be factors, words, switches, dates and constants", {
  frame$f <- factor(rep(c("u", "v", "w"), 20))
  frame$l <- rep(c(TRUE, FALSE), 30)
  frame$day <- as.Date("2020-01-01") + all
  frame$same <- 7
  fit <- quietly(kme_effect(y ~ treat, ~ a + f + l + day, frame))
  plain <- data.frame(frame["a"], f = frame$f, l = frame$l + 0, day = all)
  expect_near(coef(fit), coef(quietly(kme_effect(plain, s$y, s$treat))), 1e-8)
  words <- transform(frame, f = as.character(f))
  expect_identical(coef(quietly(kme_effect(y ~ treat, ~ a + f, words))),
                   coef(quietly(kme_effect(y ~ treat, ~ a + f, frame))))
  expect_near(coef(quietly(kme_effect(y ~ treat, ~ a + same, frame))),
              coef(quietly(kme_effect(y ~ treat, ~ a, frame))), 1e-8)
})

test_that("policies change the data frame, and only that", {
  dose <- effect_set(50, dose = TRUE)
  data <- data.frame(y = dose$y, d = dose$treat, dose$x,
                     f = factor(rep(c("u", "v"), 25)))
  of <- \(policy, formula = y ~ d) {
    quietly(kme_effect(formula, ~ a + f, data, policy = policy))
  }
  expect_false(unname(coef(of(\(data) transform(data, d = d + 1)))) == 0)
  expect_identical(
    coef(of(\(data) transform(data, d = 2))),
    coef(of(\(data) within(data, d <- 2)))
  )
  expect_false(unname(coef(of(\(data) transform(data, f = factor("u"))))) == 0)
  refused(of(\(data) data[1:3, ]), "'policy' must return the data frame")
  refused(of(\(data) data$d), "'policy' must return the data frame")
  refused(of(\(data) data[3:1]), "'policy' must return the data frame")
  refused(of(\(data) data[50:1, ]), "columns, in their order")
  refused(of(\(data) transform(data, d = "a")), "'policy\\(data\\)\\$treat'")
  refused(of(\(data) transform(data, d = NA_real_)), "\\$treat' must have no")
  refused(of(\(data) transform(data, f = "w")), "'policy' must have levels of")
  refused(of(3), "'policy' must be")
  refused(of(\(data) data, y ~ f), "'f' must not be a covariate, too")
  refused(effect(policy = identity), "given for a treatment of levels")
})

test_that("what cannot be is an error that says what must be", {
  of <- \(...) kme_effect(y ~ treat, ~ a + b, frame, ...)
  refused(kme_effect(y ~ treat, data = frame), "then the covariates")
  refused(kme_effect(y ~ treat, frame), "then the covariates")
  refused(kme_effect(y ~ treat + a, ~ b, frame), "one treatment must come")
  refused(kme_effect(y ~ ., ~ b, frame), "one treatment must come")
  refused(kme_effect(~ treat, ~ b, frame), "one treatment must come")
  refused(kme_effect(y ~ treat | a, ~ b, frame), "must have no '\\|'")
  refused(kme_effect(y ~ treat, ~ a | b, frame), "must have no '\\|'")
  refused(kme_effect(y ~ treat, y ~ b, frame), "one treatment must come")
  refused(kme_effect(y ~ treat, ~ treat + b, frame), "'treat' must not be")
  refused(kme_effect(y ~ treat, ~ y + b, frame), "'y' must not be a covariate")
  refused(kme_effect(y ~ treat, ~ zz, frame), "'formula' must be one")
  refused(kme_effect(y ~ treat, ~ 1, frame), "points, or covariates")
  refused(kme_effect(factor(y > 0) ~ treat, ~ a, frame), "give 0/1")
  refused(kme_effect(as.character(y) ~ treat, ~ a, frame), "'y' must be")
  refused(kme_effect(cbind(y, a) ~ treat, ~ b, frame), "'y' must be a numeric")
  refused(kme_effect(y ~ rep(1, 60), ~ b, frame), "'treat' must have at least")
  refused(of(functional = "derivative"), "'functional' must be one of \"ate\"")
  refused(of(functional = "best"), "'functional' must be one of")
  refused(of(target = frame["a"]), "missing: 'b'")
  refused(of(functional = "att", target = frame), "'target' must not be given")
  refused(of(reference = 3), "'reference' must be one of \"0\", \"1\"")
  refused(of(weights = rep(0, 60)), "'weights' must be positive")
  refused(of(weights = 1:3), "'formula' must be one")
  refused(of(clusters = rep(1, 60)), "at least two clusters")
  refused(of(clusters = s$treat), "'clusters' must leave rows of each arm")
  refused(of(clusters = c(NA, 2:60)), "'clusters' must have no missing")
  refused(of(control = list(lamda = 1)), "unused argument: 'lamda'")
  refused(of(control = list(1)), "must be named")
  refused(of(control = list(lambda = -1)), "'lambda' must be")
  refused(of(control = list(folds = 1)), "'folds' must be")
  refused(of(control = 3), "'control' must be a list")
  refused(of(control = list(landmarks = 9, features = 9)), "'features' must")
  refused(of(lambda = 1), "unused argument: 'lambda'")
  refused(of(kernel = kernel_energy()), "'kernel' must be positive definite")
  refused(of(treat = 1), "'treat' must not be given with a formula")
  refused(kme_effect(gram(s$x), s$y, s$treat), "'x' must be a numeric")
  refused(kme_effect(s$x, s$y[-1], s$treat), "'y' must have one number")
  refused(kme_effect(s$x, s$y, s$treat[-1]), "'treat' must be a factor")
  refused(kme_effect(s$x, s$y, rep(0:1, c(51, 9))),
          "10 rows each, not 51 in '0', 9 in '1'")
  dose <- \(...) kme_effect(y ~ a, ~ b, frame, ...)
  refused(dose(functional = "ate"), "\"derivative\" for a numeric treatment")
  refused(dose(kernel = kernel_laplace()), "'kernel' must have derivatives")
  refused(dose(reference = 1), "'reference' must not be given")
  refused(dose(target = frame), "'target' must not be given")
  refused(dose(functional = "derivative", policy = identity), "must not be")
})

test_that("little overlap is told, and enough of it is not", {
  far <- s$x + 3 * s$treat
  warned <- capture_warnings(kme_effect(far, s$y, s$treat, control = ridges))
  expect_match(warned, "overlap little with the target .* is extrapolated$")
  # Arms of ten rows that are all alike.
  x <- rep(1:10, 2)
  expect_no_warning(kme_effect(x, x + rnorm(20), rep(0:1, each = 10),
                               control = ridges))
})

test_that("methods say what the fit does", {
  fit <- quietly(kme_effect(y ~ treat, ~ a + b, frame))
  error <- sqrt(vcov(fit)[1])
  expect_equal(unname(confint(fit, level = 0.9)[1, ]),
               unname(coef(fit)) + qnorm(c(0.05, 0.95)) * error)
  row <- tidy.kernmean_fit(fit, conf.int = TRUE)
  expect_equal(unlist(row[c("estimate", "std.error", "conf.low", "conf.high")],
                      use.names = FALSE),
               unname(c(coef(fit), error, confint(fit))))
  expect_equal(row$p.value, 2 * pnorm(-abs(unname(coef(fit)) / error)))
  facts <- glance.kernmean_fit(fit)
  expect_identical(facts$nobs, 60L)
  expect_gt(facts$effective, 1)
  slope <- quietly(kme_effect(y ~ a, ~ b, frame))
  expect_identical(glance.kernmean_fit(slope)$effective, NA_real_)
  rows <- augment.kernmean_fit(fit)
  expect_identical(rows$.effective, unname(weights(fit)[, 1]))
  expect_identical(rows[c("y", "treat")][[1]], s$y)
  refused(augment.kernmean_fit(fit, newdata = frame), "'newdata' must be NULL")
  expect_output(print(fit), "1 - 0")
  expect_output(print(summary(fit)), "Degrees of freedom of g")
  expect_output(print(fit), "difference of means")
  on_device({
    expect_no_error(plot(fit))
    expect_no_error(plot(fit, "overlap"))
    expect_no_error(plot(slope, "overlap"))
  })
  refused(plot(fit, type = "best"), "'type' must be")
})

test_that("update() asks again for the same data", {
  frame$id <- rep(1:20, 3)
  frame$w <- rep(1:3, 20)
  fit <- quietly(kme_effect(y ~ treat, ~ a + b, frame, clusters = id,
                            weights = w, target = frame[1:20, ],
                            control = ridges))
  again <- quietly(update(fit))
  expect_equal(again[c("coefficients", "vcov", "cluster", "names")],
               fit[c("coefficients", "vcov", "cluster", "names")])
  other <- quietly(update(fit, target = NULL, control = list(
    lambda = 0.1, mu = 0.1
  )))
  expect_equal(vcov(other), vcov(quietly(kme_effect(
    y ~ treat, ~ a + b, frame, clusters = id, weights = w,
    control = list(lambda = 0.1, mu = 0.1)
  ))))
  refused(update(fit, data = frame), "'data' must not be given to update")
  refused(update(fit, junk = 1), "unused argument: 'junk'")
  file <- tempfile(fileext = ".rds")
  on.exit(unlink(file))
  saveRDS(fit, file)
  expect_identical(coef(quietly(update(readRDS(file)))), coef(again))
})

# --- Other packages ----------------------------------------------------------

test_that("car takes coefficients and their covariance", {
  level <- factor(c("p", "q", "r")[1 + s$treat + (s$x[, 2] > 0.6)])
  fit <- effect(treat = level, functional = "means")
  expect_identical(dimnames(vcov(fit)), rep(list(names(coef(fit))), 2))
  skip_if_not_installed("car")
  contrast <- c(-1, 1, 0)
  gap <- sum(contrast * coef(fit))
  error <- sqrt(drop(contrast %*% vcov(fit) %*% contrast))
  delta <- car::deltaMethod(fit, "q - p")
  expect_near(unlist(delta[1, 1:2], use.names = FALSE), c(gap, error), 1e-8)
  test <- car::linearHypothesis(fit, "q = p")
  expect_near(test$Chisq[2], (gap / error)^2, 1e-8)
})

test_that("modelsummary takes the rows of tidy()", {
  skip_if_not_installed("broom")
  skip_if_not_installed("modelsummary")
  fit <- effect(functional = "means")
  table <- modelsummary::modelsummary(list(fit), output = "data.frame")
  expect_true(all(c("0", "1") %in% table$term))
  shown <- as.numeric(gsub("[()]", "", table[table$term == "1", ncol(table)]))
  expect_near(shown, c(coef(fit)[["1"]], sqrt(vcov(fit)["1", "1"])), 1e-2)
})

test_that("an error that underflows is no p-value of 0", {
  set.seed(7)
  x <- rnorm(80)
  t <- rbinom(80, 1, 0.5)
  y <- x + t + rnorm(80)
  fit <- \(y) as.data.frame(generics::tidy(kme_effect(x, y, t)))
  want <- fit(y)
  for (unit in 10^c(-145, 145)) {
    got <- fit(y * unit)
    expect_near(got$p.value, want$p.value, 1e-9)
    expect_near(got$estimate / unit, want$estimate, 1e-9)
  }
  for (unit in 10^c(-170, 170)) {
    expect_warning(got <- fit(y * unit), "rescale 'y'",
                   class = "kernmean_warning")
    expect_identical(got$p.value, NA_real_)
    expect_near(got$estimate / unit, want$estimate, 1e-9)
  }
  # Without any noise it is 0.
  expect_identical(unname(vcov(suppressWarnings(
    kme_effect(x, 0 * y, t)
  ))[1]), 0)
})
