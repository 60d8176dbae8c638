test_that("the mean that a loss needs is that of the functional's rows", {
  set.seed(4)
  p <- random_problem()
  fixed <- modifyList(p, list(
    m = p$m[1, , drop = FALSE], m_h = p$m_h[1, , drop = FALSE], upsilon = 1,
    fixed = TRUE, pair = rep(1L, 20)
  ))
  for (problem in list(p, fixed)) {
    s <- riesz_system(problem)
    rows <- riesz_values(s, c(0.01, 1))
    loss <- riesz_values(s, c(0.01, 1), loss = TRUE)
    expect_values(loss, rows[c("alpha", "residuals")], 1e-14)
    expect_near(loss$m_alpha, colMeans(s$upsilon * rows$m_alpha), 1e-12)
    expect_null(loss$m_g)
  }
})

test_that("units of more rows than features are left out as those of few", {
  set.seed(5)
  p <- random_problem(n = 30, rows = 30, shared = 30, r = 3)
  unit <- rep(1:2, 15)
  s <- riesz_system(c(p, list(unit = unit, unit_m = unit)))
  want <- riesz_left_out_R(p, 0.2, 0.2, unit, unit)
  expect_values(riesz_values(s, 0.2), want)
})
