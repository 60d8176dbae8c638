# Bags and machines as data frames.

two <- kinds_of_bags(20, 6)
three <- kinds_of_bags(30, 6, 3)
rbf <- kernel_rbf(1.5)
value <- value_of(two$kind)
ridge <- smm(two$bags, value, type = "ridge")
new <- kinds_of_bags(5, 6, seed = 72)$bags

test_that("a Gram matrix of bags has a row for each of them", {
  skip_if_not_installed("generics")
  g <- bag_gram(some_bags(), rbf, "skmse", "rbf")
  table <- generics::tidy(g)
  expect_identical(table$bag, names(g$sizes))
  expect_identical(table[-1], `row.names<-`(g$shrinkage, NULL))
  expect_identical(as.data.frame(g), table)
  row <- generics::glance(g)
  expect_identical(row, data.frame(
    nobs = 6L, points = 37L, estimator = "skmse", target = NA_character_,
    level2 = "rbf", bandwidth2 = g$level2$bandwidth, kernel = rbf$title,
    bandwidth = 1.5, scale = "FALSE"
  ))
})

test_that("machines have their intercept and the support bags", {
  skip_if_not_installed("generics")
  skip_if_not_installed("kernlab")
  fit <- smm(three$bags, class_of(three$kind), kernel = rbf, cost = 1)
  table <- generics::tidy(fit)
  expect_identical(unique(table$machine), c("y/x", "z/x", "z/y"))
  for (p in 1:3) {
    own <- table[table$machine == colnames(coef(fit))[p], ]
    expect_identical(own$term[1], "(Intercept)")
    # Decision values are made of them.
    value <- own$estimate[1] +
      drop(fit$gram$K[, own$term[-1]] %*% own$estimate[-1])
    expect_near(value, fit$decision[, p], 1e-12)
  }
  novel <- smm(two$bags, kernel = rbf, nu = 0.2)
  table <- generics::tidy(novel)
  expect_identical(table$machine[1], NA_character_)
  expect_identical(table$term[-1], novel$support)
  expect_error(generics::tidy(novel, "cv"), "several values",
               class = "kernmean_error_input")
  expect_identical(generics::tidy(ridge, "cv"), ridge$cv)
})

test_that("all fits have one row in one table", {
  skip_if_not_installed("generics")
  skip_if_not_installed("kernlab")
  fits <- list(
    smm(two$bags, class_of(two$kind), cost = c(1, 10), folds = rep(1:4, 5)),
    smm(two$bags, value, kernel = rbf, cost = 2),
    smm(two$bags, kernel = rbf, nu = 0.2, level2 = "rbf", bandwidth2 = 0.3),
    ridge
  )
  table <- do.call(rbind, lapply(fits, generics::glance))
  expect_identical(table$nobs, rep(20L, 4))
  expect_identical(table$type, vapply(fits, `[[`, "", "type"))
  expect_identical(table$classes, c(2L, NA, NA, NA))
  expect_identical(table$cost, c(fits[[1]]$cost, 2, NA, NA))
  expect_identical(table$nu, c(NA, NA, 0.2, NA))
  expect_identical(table$epsilon, c(NA, 0.1, NA, NA))
  expect_identical(table$ridge, c(NA, NA, NA, ridge$ridge))
  expect_identical(table$error, c(
    mean(fits[[1]]$fitted != fits[[1]]$y),
    sqrt(mean(residuals(fits[[2]])^2)), mean(fits[[3]]$fitted == "novel"),
    sqrt(mean(residuals(ridge)^2))
  ))
  expect_identical(table$score, c(min(fits[[1]]$cv$score), NA, NA,
                                  min(ridge$cv$score)))
  expect_identical(table$folds, c(4L, NA, 10L, NA))
  expect_identical(table$bandwidth2, c(NA, NA, 0.3, NA))
  expect_identical(table$support, lengths(lapply(fits, `[[`, "support")))
  expect_identical(table$points, rep(120L, 4))
})

test_that("bags have what the fit says of them", {
  skip_if_not_installed("generics")
  skip_if_not_installed("kernlab")
  fit <- smm(three$bags, class_of(three$kind), kernel = rbf, cost = 1)
  table <- generics::augment(fit)

  expect_identical(names(table), c("bag", "n", "y", ".class",
                                   ".decision_y/x", ".decision_z/x",
                                   ".decision_z/y", ".support"))
  expect_identical(table$bag, names(three$bags))
  expect_identical(table$.class, unname(fitted(fit)))
  expect_identical(table$`.decision_z/x`, unname(fit$decision[, 2]))
  expect_identical(table$.support, table$bag %in% fit$support)
  expect_identical(as.data.frame(fit), table)
  mine <- data.frame(name = names(three$bags), weight = 1:30)
  expect_identical(generics::augment(fit, mine)[1:2], mine)
  regression <- generics::augment(ridge)
  expect_identical(names(regression),
                   c("bag", "n", "y", ".fitted", ".resid", ".loo", ".support"))
  expect_equal(regression$.fitted + regression$.resid, value)
  expect_identical(regression$.loo, unname(ridge$loo))
  novel <- generics::augment(smm(two$bags, kernel = rbf, nu = 0.2))
  expect_identical(names(novel), c("bag", "n", ".class", ".decision",
                                   ".support"))
})

test_that("new bags have it, too, whatever they come as", {
  skip_if_not_installed("generics")
  found <- generics::augment(ridge, newdata = new)
  expect_identical(found, data.frame(bag = names(new),
                                     .fitted = unname(predict(ridge, new))))

  values <- unname(predict(ridge$gram, new))
  expect_identical(generics::augment(ridge, newdata = values)$bag,
                   as.character(1:5))
  skip_if_not_installed("kernlab")
  fit <- smm(two$bags, class_of(two$kind), kernel = rbf, cost = 1)
  found <- generics::augment(fit, newdata = new)
  expect_identical(found$.class, unname(predict(fit, new)))
  expect_identical(found$.decision, unname(predict(fit, new, "decision")))
})

test_that("what does not fit is refused", {
  skip_if_not_installed("generics")
  expect_snapshot(writeLines(refusals(expression(
    generics::tidy(ridge, "weights"), generics::augment(ridge, data.frame(1:3)),
    generics::augment(ridge, data.frame(1:20), newdata = new),
    generics::glance(ridge, 1),
    as.data.frame(ridge, 1, 2, 3)
  ))))
})
