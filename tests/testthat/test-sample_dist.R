# Distances in place of points.

x <- random_points(30, 3)
d <- dist(x)
g <- rep(c("a", "b", "c"), 10)
# Dissimilarities of Bray and Curtis, which are not Euclidean.
counts <- matrix(stats::rpois(60, 2) + 1, 12)
bray <- as.dist(outer(1:12, 1:12, Vectorize(\(i, j) {
  sum(abs(counts[i, ] - counts[j, ])) / sum(counts[c(i, j), ])
})))

test_that("kme_pca() of distances is cmdscale(), Euclidean or not", {
  for (away in list(d, bray, sqrt(bray), stats::dist(x, "manhattan"))) {
    fit <- kme_pca(away, ncomp = 2)
    expect_near(abs(unname(predict(fit))), abs(unname(stats::cmdscale(away))),
                1e-10)
    expect_identical(fit$n, attr(away, "Size"))
  }
  # Those of points are the components of the points.
  fit <- kme_pca(d)
  expect_equal(fit$values, prcomp(x)$sdev^2 * 29 / 30)
  expect_equal(length(fit$values), 3L)
  expect_equal(update(fit, ncomp = 1)$values, fit$values[1])
  named <- kme_pca(dist(scale(USArrests)), ncomp = 2)
  expect_identical(rownames(predict(named)), rownames(USArrests))
})

test_that("the gram of distances has the positive part of -HDDH/2", {
  n <- 12
  h <- diag(n) - 1 / n
  k <- h %*% (-as.matrix(bray)^2 / 2) %*% h
  e <- eigen(k, TRUE)
  expect_lt(min(e$values), -0.01)
  positive <- e$vectors %*% (pmax(e$values, 0) * t(e$vectors))
  got <- gram(bray)
  expect_near(got$K, positive, 1e-12)
  expect_identical(got$repair$negative, sum(e$values < -1e-12))
  expect_near(got$repair$least, min(e$values), 1e-12)
  expect_match(capture.output(got), "negative eigenvalues, down to",
               all = FALSE)
  expect_match(capture.output(kme_pca(bray)), "negative eigenvalues",
               all = FALSE)
  # Rounding of Euclidean distances is no negative eigenvalue.
  got <- gram(d)
  expect_null(got$repair)
  centered <- scale(x, scale = FALSE)
  expect_near(got$K, tcrossprod(centered), 1e-12)
  expect_match(capture.output(got), "principal coordinates of distances",
               all = FALSE)
  far <- dist(rbind(x, 1e6))
  expect_null(gram(far)$repair)
  expect_identical(nobs(got), 30L)
})

test_that("what takes a gram takes that of distances", {
  set.seed(1)
  of <- mmd_test(gram(d), factor(g), B = 49)
  set.seed(1)
  points <- mmd_test(x ~ factor(g), kernel = kernel_linear(), B = 49,
                     filter = "none")
  expect_equal(of$statistic, points$statistic)
  expect_equal(of$p.value, points$p.value)
  expect_equal(kme_fda(d, g)$scores, kme_fda(gram(d), g)$scores)
  expect_equal(kme_fda(d, g)$left, kme_fda(as_gram(gram(d)$K), g)$left)
  expect_near(kme(gram(d))$norm2, 0, 1e-12)
})

test_that("distances are not read as one column of numbers", {
  y <- stats::rnorm(30)
  of <- kernel_rbf(1)
  fit <- kme(x, of)
  for (call in alist(
    kme(d), kme(d, of), kme(~ d), kme_density(d), mmd_gof(d, "normal"),
    kme_cov(d, y), kme_cov(y, d), kernel_matrix(d), kme_landmarks(d, 5),
    bag_gram(d, id = g), bag_gram(list(d, d)), as_gram(d), rkhs_iv(y, d, y),
    kme_weights(d, treat = y > 0), kme_effect(d, y, y > 0), predict(fit, d),
    predict(kme(y, of), d), gram(d, of), gram(d, scale = TRUE),
    kme_pca(d, of), gram(d - 5), rkhs_iv(y, y, y, controls = d)
  )) {
    expect_error(eval(call), class = "kernmean_error_input",
                 info = deparse1(call))
  }
  expect_error(kme(d), "gram() makes kernel values of distances", fixed = TRUE)
  expect_error(predict(kme_pca(d), as.matrix(d)), "fit on distances")
})

test_that("r.squared of the squared distances is that of adonis2()", {
  group <- rep(1:2, c(5, 7))
  # 1 - sum_g sum_(i<j in g) d_ij^2/n_g / (sum_(i<j) d_ij^2/N)
  square <- as.matrix(bray)^2
  within <- vapply(split(1:12, group), \(i) sum(square[i, i]) / length(i), 1)
  share <- 1 - sum(within) / (sum(square) / 12)
  expect_near(mmd_test(bray^2, group, B = 19)$estimate[["r.squared"]], share,
              1e-12)
  skip_if_not_installed("vegan")
  home <- new.env()
  package <- "vegan"
  utils::data("dune", "dune.env", package = package, envir = home)
  away <- getExportedValue("vegan", "vegdist")(home$dune)
  by <- home$dune.env$Management
  theirs <- of_others(
    getExportedValue("vegan", "adonis2")(away ~ by, permutations = 9)
  )
  expect_near(mmd_test(away^2, by, B = 39)$estimate[["r.squared"]],
              theirs$R2[1], 1e-10)
})

test_that("a matrix of distances given as points is a warning of them", {
  m <- as.matrix(d)
  y <- stats::rnorm(30)
  for (call in alist(
    kme(m), kme_pca(m, ncomp = 2), gram(m), kme_cov(m, y), hsic_test(m, y),
    mmd_pairwise(m, g, B = 99), kme_landmarks(m, 5), kernel_matrix(m),
    bag_gram(m, id = g), kme_fda(m, g), kme(as.data.frame(m)),
    mmd_test(m ~ factor(g))
  )) {
    said <- character()
    withCallingHandlers(eval(call), warning = \(w) {
      said <<- c(said, conditionMessage(w))
      invokeRestart("muffleWarning")
    })
    expect_identical(sum(grepl("as.dist() says that it holds distances", said,
                               fixed = TRUE)), 1L, info = deparse1(call))
  }
  # Of kernel values it is not.
  expect_warning(kme(exp(-m)), "as_gram() takes a matrix of kernel values",
                 fixed = TRUE)
})
