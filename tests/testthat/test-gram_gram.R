# Gram objects: what they hold, what is computed when, memory.

test_that("a gram holds the kernel matrix, the kernel and the points", {
  x <- random_points(12, 2)
  g <- gram(x, kernel_rbf())
  expect_s3_class(g, "gram")
  expect_near(as.matrix(g), kernel_matrix(x, kernel = kernel_rbf()), 0)
  expect_near(as.matrix(g), gram_R(g$kernel, x), 1e-13)
  expect_identical(g$x, x)
})

test_that("as_gram() takes integers, names and classes", {
  k <- matrix(c(2L, 1L, 1L, 2L), 2, dimnames = list(c("a", "b"), c("a", "b")))
  g <- as_gram(structure(k, class = "mine"))
  expect_identical(as.matrix(g), k + 0)
  expect_named(predict(kme(g)), c("a", "b"))
  expect_identical(rownames(kme_pca(g)$scores), c("a", "b"))
  expect_type(g$K, "double")
  expect_null(attr(g$K, "class"))
})

test_that("an asymmetry of rounding is evened out, a larger one refused", {
  k <- rbf_gram(8)
  k[1, 2] <- k[1, 2] * (1 + 1e-12)
  g <- as_gram(k)
  expect_true(isSymmetric(g$K, tol = 0))
  expect_near(g$K, k, 1e-11)
  k[1, 2] <- k[1, 2] + 1e-6
  expect_error(as_gram(k), "differ .* by up to 1e-06",
               class = "kernmean_error_input")
})

test_that("a repair makes a gram of a matrix, and says what it changed", {
  k <- -as.matrix(dist(c(0, 1, 3, 7, 8)))
  pairs <- eigen(k)
  expect_error(as_gram(k), "repair = \"clip\" or \"shift\"",
               class = "kernmean_error_input")
  clipped <- as_gram(k, repair = "clip")
  expect_equal(unname(clipped$K),
               pairs$vectors %*% (pmax(pairs$values, 0) * t(pairs$vectors)))
  shifted <- as_gram(k, repair = "shift")
  expect_equal(unname(shifted$K), unname(k) - diag(min(pairs$values), 5))
  for (g in list(clipped, shifted)) {
    expect_identical(g$repair$negative, sum(pairs$values < -1e-12))
    expect_equal(g$repair$least, min(pairs$values))
    expect_equal(g$repair$change, norm(g$K - k, "F") / norm(k, "F"))
    expect_gte(min(gram_spectrum(g)$values), 0)
    expect_identical(as_gram(g$K)$K, g$K)
    expect_output(print(g), "negative eigenvalue", fixed = TRUE)
  }
  for (repair in list(NULL, "clip", "shift")) {
    refused(as_gram(-k, repair = repair), "looks like distances")
  }
  # Nothing is changed, or said, where nothing is wrong.
  fine <- tcrossprod(1:4)
  expect_null(as_gram(fine, repair = "clip")$repair)
  expect_identical(as_gram(fine, repair = "clip")$K, as_gram(fine)$K)
})

test_that("rounding below 0 is accepted, an indefinite matrix refused", {
  x <- random_points(30, 2)
  expect_s3_class(as_gram(tcrossprod(x)), "gram")
  k <- tcrossprod(x) - 1e-13 * diag(30)
  g <- as_gram(k)
  expect_identical(min(gram_spectrum(g)$values), 0)
  expect_error(as_gram(tcrossprod(x) - diag(30)),
               "smallest eigenvalue is -1, its largest",
               class = "kernmean_error_input")
  expect_error(as_gram(-diag(3)), class = "kernmean_error_input")
  expect_error(as_gram(matrix(c(0, 1, 1, 0), 2)),
               class = "kernmean_error_input")
  expect_s3_class(as_gram(matrix(0, 3, 3)), "gram")
})

test_that("matrices of very large and very small values are accepted", {
  k <- rbf_gram(10)
  for (scale in c(1e-140, 1e-100, 1e100, 1e140)) {
    expect_identical(as_gram(k * scale)$K, k * scale)
    expect_error(as_gram((k - 0.9 * diag(10)) * scale),
                 class = "kernmean_error_input")
  }
})

computed <- function(g) setdiff(ls(g), c("K", "kernel", "x", "id"))

test_that("each estimator computes no more than it needs", {
  fresh <- function(...) {
    g <- gram(random_points(12, 2), kernel_rbf(1))
    kme(g, ...)
    computed(g)
  }
  expect_length(fresh(), 0)
  expect_length(fresh(estimator = "skmse"), 0)
  expect_identical(fresh(estimator = "fkmse", lambda = 1), "cholesky")
  expect_length(fresh(estimator = "fkmse", lambda = 0), 0)
  for (select in c("gcv", "printed")) {
    expect_setequal(fresh(estimator = "fkmse", select = select),
                    c("tridiagonal", "values", "projections"))
  }
  expect_setequal(fresh(estimator = "fkmse"), c("values", "range"))
})

test_that("gram_spectrum() returns what was asked for", {
  k <- rbf_gram(12)
  for (what in c("values", "projections", "vectors")) {
    s <- gram_spectrum(as_gram(k), what)
    expect_named(s, c("values", "projections", "vectors"))
    expect_near(s$values, eigen(k, TRUE, TRUE)$values, 1e-12)
    expect_identical(is.null(s$projections), what == "values")
    expect_identical(is.null(s$vectors), what != "vectors")
  }
  expect_near(s$projections, abs(colMeans(s$vectors)), 1e-14)
  expect_identical(names(gram_spectrum(as_gram(k))$values), NULL)
})

test_that("a gram prints what it is and what has been computed", {
  expect_snapshot({
    g <- gram(cbind(c(0, 1, 3)), kernel_rbf(2))
    g
    invisible(kme(g, estimator = "fkmse", lambda = 1))
    g
    invisible(gram_spectrum(g))
    g
    invisible(gram_spectrum(g, "vectors"))
    g
    as_gram(diag(200))
  })
})

test_that("a matrix that does not fit in memory is refused before it is made", {
  old <- options(kernmean.memory = 1000)
  on.exit(options(old))
  x <- random_points(20, 2)
  k <- kernel_rbf(1)
  for (call in expression(gram(x, k), kernel_matrix(x, kernel = k),
                          kernel_matrix(x, x, k), kme(x, k, "fkmse"))) {
    expect_error(eval(call), "20 x 20 doubles needs 3.2 kB.* 1 kB",
                 class = "kernmean_error_memory")
  }
  # These store no matrix.
  expect_s3_class(kme(x, k), "kme")
  expect_s3_class(kme(x, k, "skmse"), "kme")
  expect_length(predict(kme(x, k), x), 20)
  options(kernmean.memory = 3200)
  g <- gram(x, k)
  expect_error(gram_spectrum(g, "vectors"), class = "kernmean_error_memory")
  expect_length(computed(g), 0)
  options(kernmean.memory = Inf)
  expect_length(gram_spectrum(g, "vectors")$values, 20)
})

test_that("a gram of an asymmetric or indefinite kernel function is refused", {
  x <- random_points(8, 2)
  skew <- kernel_function(\(x, y) outer(x[, 1], 2 * y[, 1], "-"))
  expect_error(gram(x, skew), "the matrix of kernel values must be symmetric",
               class = "kernmean_error_input")
  negative <- kernel_function(\(x, y) -tcrossprod(x, y))
  expect_error(gram(x, negative), "must be positive semi-definite",
               class = "kernmean_error_input")
})

test_that("parts and a summary of a gram are those of its matrix", {
  k <- rbf_gram(12)
  g <- as_gram(k)
  expect_identical(g[1:3, 2], k[1:3, 2])
  expect_identical(g[2, 1:4, drop = FALSE], k[2, 1:4, drop = FALSE])
  expect_identical(g[cbind(1:2, 3:4)], k[cbind(1:2, 3:4)])
  expect_identical(g[k > 0.9], k[k > 0.9])
  found <- summary(g)
  expect_near(found$eigenvalues$value, eigen(k)$values, 1e-10)
  expect_output(print(found), "rank 12, trace 12")
})

test_that("the matrix of a gram cannot be changed", {
  g <- gram(random_points(8, 2), kernel_rbf(1))
  expect_error(g$K <- 2 * g$K, "locked")
})
