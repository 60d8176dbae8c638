# Values computed apart from the package, by direct evaluation of the formulas.

cases <- outer(c("A", "D"), c("rbf", "lin", "poly2", "poly3"), paste, sep = "_")

test_that("median bandwidths are the reference values", {
  A <- reference_data("A")
  both <- rbind(A, reference_data("B"))
  theta <- \(x, kernel = kernel_rbf()) kme(x, kernel)$kernel$bandwidth
  expect_near(
    c(theta(A)^2, theta(reference_data("D"))^2, theta(A, kernel_laplace()),
      theta(both)^2),
    c(reference_value("A", "theta2_median"),
      reference_value("D", "theta2_median"),
      reference_value("A", "theta_median_laplace_L1"),
      reference_value("AB", "theta2_median_pooled")), 1e-12
  )
})

test_that("kernel values are the reference values", {
  A <- reference_data("A")
  z <- reference_data("newdata")
  kernels <- list(
    laplace_L1 = kernel_laplace(2), laplace_L2 = kernel_laplace(2, "L2"),
    matern_3_2 = kernel_matern(3 / 2, 2), matern_5_2 = kernel_matern(5 / 2, 2),
    rbf_per_coordinate_1_2_05 = kernel_rbf(c(1, 2, 0.5))
  )
  for (name in names(kernels)) {
    expect_equal(
      as.vector(kernel_matrix(z, A, kernels[[name]])),
      reference_value("kernels_theta2", name),
      tolerance = 1e-12, info = name
    )
  }
})

test_that("estimates and their scores are the reference values", {
  z <- reference_data("newdata")
  for (case in cases) {
    g <- gram(reference_data(sub("_.*", "", case)), reference_kernel(case))
    plain <- kme(g)
    lambda <- reference_value(case, "lambda")
    flexible <- kme(g, estimator = "fkmse", lambda = lambda[2])
    values <- list(
      rho = plain$rho, varrho = plain$varrho, kme_predict = predict(plain, z),
      skmse_alpha_loocv = kme(g, estimator = "skmse")$alpha,
      skmse_alpha_plugin = kme(g, estimator = "skmse", select = "plugin")$alpha,
      fkmse_weights_lambda2 = flexible$weights,
      fkmse_predict_lambda2 = predict(flexible, z)
    )
    for (select in c("loocv", "gcv", "printed")) {
      name <- paste0("fkmse_", select)
      values[[name]] <- score_function(g, select, NULL)(lambda)
      if (case %in% c("A_rbf", "A_poly3")) {
        fit <- kme(g, estimator = "fkmse", select = select)
        values[[paste0(name, "_min")]] <- fit$minimum
        chosen <- reference_value(case, paste0(name, "_min_loglambda"))
        expect_lt(abs(log(fit$lambda) - chosen), 1e-4)
      }
    }
    for (name in names(values)) {
      expect_equal(values[[name]], reference_value(case, name),
                   tolerance = 1e-9, info = paste(case, name))
    }
  }
})

test_that("shrinkage towards another embedding has the reference values", {
  A <- reference_data("A")
  z <- reference_data("newdata")
  kernel <- reference_kernel("A_rbf")
  target <- kme(z, kernel, weights = reference_value("A_target", "weights"))
  expect_near(kme(A, kernel, "skmse", target = target)$alpha,
              reference_value("A_target", "skmse_alpha_loocv"), 1e-9)
  lambda <- reference_value("A_target", "fkmse_lambda")
  fit <- kme(A, kernel, "fkmse", lambda = lambda, target = target)
  expect_near(fit$weights, reference_value("A_target", "fkmse_weights"), 1e-9)
  expect_near(predict(fit, z),
              reference_value("A_target", "fkmse_predict_newdata"), 1e-9)
  g <- gram(A, kernel)
  f <- list(at = predict(target, A), norm2 = target$norm2)
  expect_near(score_function(g, "loocv", f)(lambda),
              reference_value("A_target", "fkmse_loocv"), 1e-9)
})

test_that("the exact risk has the reference values", {
  A <- reference_data("A")
  mixture <- list(
    weights = reference_value("mixture", "pi"),
    means = matrix(reference_value("mixture", "means"), 2, 3, byrow = TRUE),
    covariances = array(reference_value("mixture", "covs"), c(3, 3, 2))
  )
  for (case in c("A_rbf", "A_lin", "A_poly2", "A_poly3")) {
    expect_equal(kme_risk(kme(A, reference_kernel(case)), mixture),
                 reference_value(case, "risk_kme"), tolerance = 1e-9,
                 info = case)
  }
})
