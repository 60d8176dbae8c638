# Errors of rare mistakes that no other test makes; tools/messages.R lists what
# none provokes.

x <- as.matrix(iris[1:30, 1:2])
rbf <- kernel_rbf(1)

test_that("what a test cannot be asked for is refused", {
  skip_on_cran()
  refused(hsic_test(x[, 1], x[, 2], estimator = est_smooth(0.95)),
          "'h' must be at most 0.9 in a test of independence, not 0.95")
  within <- cbind(c(2, 1, 3, 4), c(1, 2, 4, 3))
  refused(mmd_test(x[1:2, ], x[3:4, ], rbf,
                   control = test_control(permutations = within)),
          "'permutations' must give another sample to some points")
  refused(mmd_pairwise(x, gl(3, 10), rbf, B = 19,
                       estimator = est_mmkme(array(diag(2), c(2, 2, 30)))),
          "'estimator' must have one covariance for all points")
  refused(plot(mmd_test(x[1:15, ], x[16:30, ], bandwidths = "fuse", B = 19),
               "witness"), "must not be \"witness\" for many bandwidths")
  test <- mmd_test(x[1:15, ], x[16:30, ], rbf, B = 19)
  refused(augment.kernmean_fit(test, newdata = x), "which is of its points")
})

test_that("distances, points and names of the wrong shape are refused", {
  skip_on_cran()
  refused(mmd_test(structure(1:4, class = "dist", Size = 3L), 1:3),
          "a distance for each pair of points, not 4 values")
  refused(kme(iris[0, ], kernel_gower()), "at least one row")
  refused(as.data.frame(kme(x), row.names = 1:3), "30 different names")
  refused(hsic_test(factor(character()), factor(character())),
          "at least one value")
  skip_if_not_installed("kernlab")
  refused(kme(kernlab::kernelMatrix(kernlab::rbfdot(1), x)),
          "as_gram\\(\\) takes a matrix of kernel values")
})

test_that("fits of another version, and what they do not have, are refused", {
  skip_on_cran()
  old <- kme(x)
  attr(old, "format") <- 0L
  refused(print(old), "'x' must be a fit of this version")
  refused(tidy.kernmean_fit(kme(x), vcov = diag(2)), "'vcov' must be NULL")
  refused(predict(kme(x), x, method = "bound"), "unless interval = TRUE")
  z <- x[, 1]
  refused(rkhs_iv(z, x[, 2], z, method = "classic",
                  control = iv_control(correct = 1)),
          "'correct' must be NULL for method = \"classic\"")
  refused(formula(rkhs_iv(z, x[, 2], z, penalty = "l2", mu = 1)),
          "'x' must be a fit by formula")
  k <- as_gram(kernel_matrix(x, kernel = rbf))
  on_gram <- rkhs_iv(k, x[, 2], k, penalty = "l2", mu = 1)
  refused(plot(on_gram), "no columns to draw along")
  new <- kernel_matrix(x[1:3, ], x, kernel = rbf)
  refused(score(on_gram, list(x = new, y = x[1:3, 2], z = new)),
          "a fit on points for a score")
  refused(kme_weights(x, kme(x, rbf), kernel = rbf, features = 20),
          "a target that is no sample of rows")
})

test_that("sources and sketches say what goes with what", {
  skip_on_cran()
  refused(kme_landmarks(cbind(a = c(NA, 1), b = c(1, NA)), 2,
                        na.action = na.omit), "rows without missing values")
  refused(kme_landmarks(x, 5, read = read.csv), "unless 'x' names files")
  landmarks <- kme_landmarks(x, 5, rbf)
  sketch <- kme_sketch(x, landmarks)
  refused(update(sketch, x, groups = gl(2, 15)), "'groups' must be NULL")
  binned <- kme_sketch(x, landmarks, bin = 3)
  refused(update(binned, x, weights = rep(1, 30)), "for a sketch with bins")
  same <- x[rep(1:30, 4), ]
  refused(kme_sketch(\() same, landmarks), "a function must return the next")
  pair <- kme_sketch(Sepal.Length ~ Sepal.Width, iris, 9)
  refused(update(pair, as.matrix(iris[1:2])), "data frame")
})
