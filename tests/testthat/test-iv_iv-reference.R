# rkhs_iv() and rkhs_iv_nested(): the values that the authors' code gives, and
# those of the same estimators in 45 digits.

sets <- lapply(1:2, iv_set)
exact_of <- lapply(1:2, \(k) iv_file("ds", k, "_pred_exact.csv"))
repo_of <- lapply(1:2, \(k) iv_file("ds", k, "_pred_repo.csv"))
scores_of <- iv_file("cv_scores.csv")
ids_of <- \(reference) unique(sub("[.][gh]$", "", names(reference)))

# At the default tolerances all these blocks have the ranks of the reference.
test_that("exact fits have the values of 45-digit arithmetic", {
  skip_on_cran()
  for (set in sets) {
    reference <- exact_of[[set$k]]
    ids <- ids_of(reference)
    expect_length(ids, 17)
    for (id in ids) {
      case <- iv_case(set, id)
      fit <- quietly(iv_fit_case(set, case))
      got <- iv_predict(fit, set$new)
      expect_iv_reference(got, reference, id, set$y, 1e-8)
      if (!endsWith(id, "_gen")) {
        expect_iv_reference(got, repo_of[[set$k]], id, set$y, 1e-6)
      }
    }
  }
})

test_that("the twins of these tests have them, too", {
  for (set in sets) {
    for (id in c("rkhsiv_d2", "rkhsivl2", "rkhs2iv_gen", "rkhs2ivl2_gen")) {
      case <- iv_case(set, id)
      problem <- problem_of_case(set, case)
      P <- actions_R(problem, case$lambda_c, case$lambda_d)
      slow <- solve_R(problem, P, case$penalty, case$mu, case$mu_h)
      at <- \(new, x, weights) drop(gram_R(case$kernel, new, x) %*% weights)
      got <- cbind(g = at(set$new$a, set$a, slow$a))
      if (case$nested) {
        got <- cbind(got, h = at(set$new$b, set$b, slow$b))
      }
      # As many digits as are printed.
      expect_iv_reference(got, exact_of[[set$k]], id, set$y, 1e-11)
      expect_lt(conditions_R(problem, P, case$penalty, slow$a, slow$b, case$mu,
                             case$mu_h), 1e-12)
    }
  }
})

test_that("the preset has the penalties of the authors", {
  for (set in sets) {
    for (id in c("rkhsiv", "rkhsiv_d2", "rkhsivl2_d2", "rkhs2iv_w",
                 "rkhs2ivl2_sub")) {
      case <- iv_case(set, id)
      fit <- quietly(iv_fit_case(
        set, case, preset = case[c("delta_scale", "alpha_scale")]
      ))
      got <- iv_predict(fit, set$new)
      expect_iv_reference(got, exact_of[[set$k]], id, set$y, 1e-8)
      expect_near(unname(fit$mu), rep(case$mu, length(fit$mu)), 1e-13)
      expect_equal(
        unname(fit$lambda),
        if (case$nested) c(case$lambda_c, case$lambda_d) else case$lambda_d,
        tolerance = 1e-13
      )
    }
  }
  # Its own numbers: 5 n^-0.4, and 60 for Estimator 1, 1 for the others.
  set <- sets[[2]]
  kernel <- kernel_rbf(set$theta)
  fit <- iv(set$a, set$y, set$d, kernel, preset = "nnpiv")
  expect_iv_reference(cbind(g = predict(fit, set$new$a)), exact_of[[2]],
                      "rkhsiv", set$y, 1e-8)
  fit <- iv_nested(set$a, set$b, set$c, set$d, set$y, kernel = kernel,
                        preset = "nnpiv")
  expect_iv_reference(predict(fit, set$new), exact_of[[2]], "rkhs2iv", set$y,
                      1e-8)
})

# Theirs is 1/(2 gamma) = the median distance, not its square.
test_that("gamma = \"auto\" is the authors' bandwidth", {
  set <- sets[[1]]
  theta <- \(x) sqrt(median(as.matrix(dist(x))))
  fit <- iv(set$a, set$y, set$d, preset = list(gamma = "auto"))
  own <- iv(set$a, set$y, set$d, preset = "nnpiv",
                 kernel = list(x = kernel_rbf(theta(set$a)),
                               z = kernel_rbf(theta(set$d))))
  expect_near(predict(fit, set$new$a), predict(own, set$new$a), 1e-12)
})

test_that("landmarks have the values of the authors' Nystrom classes", {
  for (set in sets) {
    rows <- reference_landmarks(length(set$y))
    reference <- repo_of[[set$k]]
    ids <- grep("_nys", ids_of(reference), value = TRUE)
    expect_gte(length(ids), 6)
    for (id in ids) {
      case <- iv_case(set, id)
      # Their cut of learners in nested fits; that of the others is coarser.
      fit <- quietly(iv_fit_case(set, case, landmarks = rows,
                                 tol_learner = 1e-14))
      expect_iv_reference(iv_predict(fit, set$new), reference, id, set$y, 1e-6)
    }
  }
})

test_that("random features have the values of the authors' classes", {
  for (set in sets) {
    reference <- repo_of[[set$k]]
    ids <- grep("_rff", ids_of(reference), value = TRUE)
    expect_length(ids, 4)
    for (id in ids) {
      fit <- with_draws(reference_draws, {
        quietly(iv_fit_case(set, iv_case(set, id), features = 20))
      })
      expect_iv_reference(iv_predict(fit, set$new), reference, id, set$y, 1e-6)
    }
  }
})

test_that("cross-validation has the authors' scores and choices", {
  skip_on_cran()
  for (set in sets) {
    ids <- grep("^rkhs.*_cv", iv_configs(set$k)$id, value = TRUE)
    expect_length(ids, 6)
    for (id in ids) {
      case <- iv_case(set, id)
      want <- scores_of[scores_of$ds == set$k & scores_of$id == id, ]
      preset <- list(delta_scale = case$delta_scale,
                     alpha_scale = want$alpha_scale)
      fit <- quietly(iv_fit_case(set, case, preset = preset, folds = 6))
      expect_lt(max(abs(fit$cv$score / want$avg_score_repo - 1)), 1e-6,
                label = paste(set$k, id))
      expect_identical(which(fit$cv$chosen), which.min(want$avg_score_repo))
      expect_near(fit$mu[[1]], case$mu, 1e-12)
      if (paste0(id, ".g") %in% names(repo_of[[set$k]])) {
        expect_iv_reference(iv_predict(fit, set$new), repo_of[[set$k]], id,
                            set$y, 1e-6)
      }
    }
  }
})
