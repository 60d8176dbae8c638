# The calls that tools/faults.R disturbs: each door and long method, a name, a
# size at which it lasts some seconds, a small one for the sweeps of memory, the
# data made before, and the call.

points <- function(n, d = 5) matrix(stats::rnorm(n * d), n)

# `n` for time, `small` for memory; `make(n)` gives the data, `run(d)` calls.
case <- function(n, small, make, run) {
  list(n = n, small = small, make = make, run = run)
}

# Points alone, as the data of many.
of_points <- function(n, small, run, d = 5) {
  case(n, small, \(n) list(x = points(n, d)), run)
}

pair <- function(n, d = 5) list(x = points(n, d), y = points(n, d) + 0.1)

related <- function(n, d = 3) {
  x <- points(n, d)
  list(x = x, y = sin(x) + 0.5 * points(n, d))
}

of_pair <- function(n, small, run, d = 5) case(n, small, \(n) pair(n, d), run)

of_related <- function(n, small, run, d = 3) {
  case(n, small, \(n) related(n, d), run)
}

instrument <- function(n) {
  z <- points(n, 2)
  u <- stats::rnorm(n)
  x <- z + u + 0.3 * points(n, 2)
  list(x = x, z = z, y = sin(x[, 1]) + u + 0.1 * stats::rnorm(n))
}

of_instrument <- function(n, small, run) case(n, small, instrument, run)

in_bags <- function(n, size = 20) {
  y <- rep_len(1:2, n)
  list(bags = lapply(seq_len(n), \(i) points(size, 3) + y[i] / 2),
       y = factor(y), target = y + stats::rnorm(n) / 5)
}

of_bags <- function(n, small, run) case(n, small, in_bags, run)

# A fit made before, and new points for its methods.
of_fit <- function(n, small, fit, run, d = 5) {
  case(n, small, \(n) {
    x <- points(n, d)
    list(x = x, fit = fit(x), new = points(n, d))
  }, run)
}

rbf <- kernmean::kernel_rbf
polynomial <- kernmean::kernel_poly
half_groups <- function(n) gl(3, 1, n)

own_kernel <- kernmean::kernel_function(\(x, y) {
  exp(-outer(rowSums(x^2), rowSums(y^2), `+`) + 2 * tcrossprod(x, y))
})

calls <- local({
  library(kernmean)
  list(
    # The matrix
    `kernel_matrix` = of_points(14000, 1500, \(d) {
      kernel_matrix(d$x, kernel = rbf(2))
    }, 400),
    `kernel_matrix, own function` = of_points(6000, 1200, \(d) {
      kernel_matrix(d$x, kernel = own_kernel)
    }, 400),
    `kernel_matrix, laplace` = of_points(16000, 1500, \(d) {
      kernel_matrix(d$x, kernel = kernel_laplace(2))
    }, 100),
    `kernel_matrix, energy` = of_points(16000, 1200, \(d) {
      kernel_matrix(d$x, kernel = kernel_energy())
    }, 100),
    `gram` = of_points(10000, 1500, \(d) gram(d$x, rbf()), 200),
    `as_gram` = case(8000, 1500, \(n) list(k = tcrossprod(points(n, 20))),
                     \(d) as_gram(d$k)),
    `gram_spectrum` = of_points(5000, 1000, \(d) {
      gram_spectrum(gram(d$x, rbf()))
    }),
    `gram_spectrum, vectors` = of_points(3000, 800, \(d) {
      gram_spectrum(gram(d$x, rbf()), "vectors")
    }),
    `gram_spectrum, projections` = of_points(4500, 800, \(d) {
      gram_spectrum(gram(d$x, rbf()), "projections")
    }),
    `summary of a gram` = case(5000, 1000, \(n) {
      list(g = gram(points(n), rbf()))
    }, \(d) summary(d$g)),
    `shrink_gram` = case(7000, 1500, \(n) list(g = gram(points(n), rbf())),
                         \(d) shrink_gram(d$g)),
    `shrink_gram, p` = case(4000, 1200, \(n) list(k = tcrossprod(points(n))),
                            \(d) shrink_gram(d$k, p = 5)),
    # The mean
    `kme` = of_points(80000, 2000, \(d) kme(d$x), 10),
    `kme, skmse` = of_points(80000, 2000, \(d) kme(d$x, estimator = "skmse")),
    `kme, fkmse` = of_points(3500, 1000, \(d) kme(d$x, estimator = "fkmse")),
    `kme, fkmse gcv` = of_points(5000, 1000, \(d) {
      kme(d$x, estimator = est_fkmse(select = "gcv"))
    }),
    `kme, mkme` = of_points(8000, 1000, \(d) kme(d$x, estimator = "mkme"), 20),
    `kme, mmkme` = of_points(5000, 600, \(d) kme(d$x, estimator = "mmkme"), 6),
    `kme, mkme polynomial` = of_points(20000, 800, \(d) {
      kme(d$x, polynomial(3), estimator = "mkme")
    }, 50),
    `kme, smooth` = of_points(8000, 600, \(d) kme(d$x, estimator = "smooth")),
    `kme, stack` = of_points(3000, 600, \(d) kme(d$x, estimator = "stack")),
    `kme of a gram` = case(3000, 1000, \(n) list(g = gram(points(n), rbf())),
                           \(d) kme(d$g, estimator = "fkmse")),
    `kme, linear in many columns` = of_points(8000, 400, \(d) {
      kme(d$x, kernel_linear(), estimator = "skmse")
    }, 3000),
    `predict of a kme` = of_fit(60000, 2000, \(x) kme(x, rbf(2)),
                                \(d) predict(d$fit, d$new), 20),
    `predict of a kme, intervals` = of_fit(20000, 1000, \(x) kme(x, rbf(2)),
      \(d) predict(d$fit, d$new, interval = TRUE)),
    `confint of a kme` = of_fit(20000, 800, \(x) kme(x, rbf(2)),
                                \(d) confint(d$fit)),
    `summary of a kme` = of_fit(50000, 1000, \(x) kme(x, rbf(2)),
                                \(d) summary(d$fit)),
    `kme_inner` = of_fit(70000, 1000, \(x) kme(x, rbf(2)), \(d) {
      kme_inner(d$fit, kme(d$new, rbf(2)))
    }),
    `kme_distance` = of_fit(60000, 1000, \(x) kme(x, rbf(2)), \(d) {
      kme_distance(d$fit, kme(d$new, rbf(2)))
    }),
    `as_weights` = of_fit(3000, 800, \(x) {
      kme(x, rbf(2), estimator = "mkme")
    }, \(d) as_weights(d$fit)),
    # Components, operators, discriminants
    `kme_pca` = of_points(3000, 800, \(d) kme_pca(d$x, rbf(1))),
    `kme_pca, 5 components` = of_points(16000, 1000, \(d) {
      kme_pca(d$x, rbf(1), ncomp = 5)
    }),
    `kme_pca, covariance` = of_points(2000, 600, \(d) {
      kme_pca(d$x, rbf(1), covariance = "fkmse")
    }),
    `kme_pca, center` = of_points(3000, 600, \(d) {
      kme_pca(d$x, rbf(1), center = "skmse")
    }),
    `predict of a kme_pca` = of_fit(20000, 600, \(x) {
      kme_pca(x, rbf(1), ncomp = 20)
    }, \(d) predict(d$fit, d$new)),
    `preimage` = of_fit(5000, 300, \(x) kme_pca(x, rbf(2), ncomp = 5),
                        \(d) preimage(d$fit, d$new)),
    `reconstruction_error` = of_fit(20000, 600, \(x) {
      kme_pca(x, rbf(1), ncomp = 20)
    }, \(d) reconstruction_error(d$fit, d$new)),
    `kme_cov` = of_related(2800, 600, \(d) kme_cov(d$x, d$y)),
    `kme_cov, fkmse` = of_related(2200, 500, \(d) {
      kme_cov(d$x, d$y, estimator = "fkmse")
    }),
    `kme_cov of one` = of_points(2800, 500, \(d) kme_cov(d$x, ncomp = 10)),
    `kme_fda` = case(1500, 600, \(n) list(x = points(n), g = half_groups(n)),
                     \(d) kme_fda(d$x, d$g, progress = FALSE)),
    `kme_fda, given` = case(3500, 600, \(n) {
      list(x = points(n), g = half_groups(n))
    }, \(d) {
      kme_fda(d$x, d$g, rbf(1), ridge = 0.1, progress = FALSE)
    }),
    `predict of a kme_fda` = case(8000, 600, \(n) {
      x <- points(n)
      list(fit = kme_fda(x, half_groups(n), rbf(1), ridge = 0.1,
                         progress = FALSE), new = points(n))
    }, \(d) predict(d$fit, d$new)),
    `kme_density` = of_points(12000, 500, \(d) kme_density(d$x), 3),
    `kme_density, m = 20` = of_points(8000, 500, \(d) {
      kme_density(d$x, m = 20)
    }, 3),
    `kme_density, all` = of_points(10000, 400, \(d) {
      kme_density(d$x, m = 10, optimize = "all", nstart = 5)
    }, 3),
    `kme_density, isotropic` = of_points(20000, 500, \(d) {
      kme_density(d$x, m = 30, shape = "isotropic")
    }, 3),
    `predict of a kme_density` = case(2000000, 2000, \(n) {
      list(fit = kme_density(points(500, 3), m = 30), new = points(n, 3))
    }, \(d) predict(d$fit, d$new)),
    `simulate from a kme_density` = case(6000000, 20000, \(n) {
      list(fit = kme_density(points(300, 3), m = 5), n = n)
    }, \(d) simulate(d$fit, nsim = d$n)),
    # Tests
    `mmd_test` = of_pair(9000, 600, \(d) {
      mmd_test(d$x, d$y, B = 1999, progress = FALSE)
    }),
    `mmd_test, bandwidths` = of_pair(7000, 500, \(d) {
      mmd_test(d$x, d$y, bandwidths = c(0.5, 1, 2), B = 999, progress = FALSE)
    }),
    `mmd_test, clusters` = case(9000, 400, \(n) {
      c(pair(n), list(unit = rep(seq_len(n / 5), each = 5)))
    }, \(d) {
      mmd_test(d$x, d$y, clusters = c(d$unit, max(d$unit) + d$unit), B = 999,
               progress = FALSE)
    }),
    `mmd_test, spectrum` = of_pair(2000, 400, \(d) {
      mmd_test(d$x, d$y, control = test_control(null = "spectrum"), B = 2000,
               progress = FALSE)
    }),
    `mmd_test, gamma` = of_pair(20000, 600, \(d) {
      mmd_test(d$x, d$y, control = test_control(null = "gamma"),
               progress = FALSE)
    }),
    `mmd_test, skmse` = of_pair(7000, 500, \(d) {
      mmd_test(d$x, d$y, estimator = "skmse", B = 999, progress = FALSE)
    }),
    `mmd_test, fkmse` = of_pair(600, 300, \(d) {
      mmd_test(d$x, d$y, estimator = "fkmse", B = 99, progress = FALSE)
    }),
    `mmd_test, filter tikhonov` = of_pair(1500, 300, \(d) {
      mmd_test(d$x, d$y, filter = "tikhonov", B = 99, progress = FALSE)
    }),
    `mmd_test, filter` = of_pair(1500, 300, \(d) {
      mmd_test(d$x, d$y, filter = "showalter", B = 199, progress = FALSE)
    }),
    `mmd_gof` = of_points(6000, 300, \(d) {
      mmd_gof(d$x, model = "normal", B = 99, progress = FALSE)
    }, 2),
    `mmd_test, blocks` = case(5000, 400, \(n) {
      list(x = points(n), y = points(n), g = rep_len(1:3, 2 * n))
    }, \(d) {
      mmd_test(d$x, d$y, blocks = d$g, B = 999, progress = FALSE)
    }),
    `mmd_test, pairwise` = case(9000, 500, \(n) {
      list(table = data.frame(points(n), g = gl(5, 1, n)))
    }, \(d) {
      mmd_pairwise(cbind(X1, X2, X3) ~ g, d$table, B = 999,
                   progress = FALSE)
    }),
    `mmd_test, distances` = case(8000, 500, \(n) {
      list(k = stats::dist(points(n)), g = gl(2, 1, n))
    }, \(d) mmd_test(d$k, d$g, B = 999, progress = FALSE)),
    `mmd_test, linear in many columns` = of_pair(4000, 200, \(d) {
      mmd_test(d$x, d$y, kernel_linear(), B = 999, progress = FALSE)
    }, 2000),
    `hsic_test` = of_related(4000, 500, \(d) {
      hsic_test(d$x, d$y, B = 999, progress = FALSE)
    }),
    `hsic_test, gamma` = of_related(8000, 800, \(d) {
      hsic_test(d$x, d$y, control = test_control(null = "gamma"),
                progress = FALSE)
    }),
    `hsic_test, bandwidths` = of_related(2000, 400, \(d) {
      hsic_test(d$x, d$y, bandwidths = c(0.5, 1), B = 499, progress = FALSE)
    }),
    `hsic_test, several` = of_related(2000, 400, \(d) {
      hsic_test(list(d$x, d$y, d$x[, 1]), B = 499, progress = FALSE)
    }),
    `hsic_test, skmse` = of_related(3000, 400, \(d) {
      hsic_test(d$x, d$y, estimator = "skmse", B = 499, progress = FALSE)
    }),
    `hsic_test, filter` = of_related(1500, 300, \(d) {
      hsic_test(d$x, d$y, filter = "showalter", B = 99, progress = FALSE)
    }),
    `hsic_test, clusters` = case(3000, 400, \(n) {
      c(related(n), list(unit = rep(seq_len(n / 5), each = 5)))
    }, \(d) {
      hsic_test(d$x, d$y, clusters = d$unit, B = 499, progress = FALSE)
    }),
    # Regressions, bags
    `rkhs_iv` = of_instrument(2200, 400, \(d) {
      rkhs_iv(d$x, d$y, d$z)
    }),
    `rkhs_iv, given` = of_instrument(5000, 400, \(d) {
      rkhs_iv(d$x, d$y, d$z, lambda = 0.01, mu = 0.01)
    }),
    `rkhs_iv, l2` = of_instrument(1300, 300, \(d) {
      rkhs_iv(d$x, d$y, d$z, penalty = "l2")
    }),
    `rkhs_iv, landmarks` = of_instrument(50000, 2000, \(d) {
      rkhs_iv(d$x, d$y, d$z, control = iv_control(landmarks = 400))
    }),
    `predict of a rkhs_iv` = case(40000, 500, \(n) {
      d <- instrument(n / 4)
      list(fit = rkhs_iv(d$x, d$y, d$z, lambda = 0.01, mu = 0.01),
           new = points(8 * n, 2))
    }, \(d) predict(d$fit, d$new)),
    `rkhs_iv_nested` = case(2000, 250, \(n) {
      i <- instrument(n)
      c(i, list(c = i$z + points(n, 2) / 5, d = points(n, 2)))
    }, \(d) {
      rkhs_iv_nested(d$x, d$z, d$c, d$d, d$y)
    }),
    `bag_gram` = of_bags(5000, 150, \(d) bag_gram(d$bags)),
    `bag_gram, skmse` = of_bags(3000, 100, \(d) {
      bag_gram(d$bags, estimator = "skmse", level2 = "rbf")
    }),
    `bag_gram, target` = of_bags(2000, 60, \(d) {
      bag_gram(d$bags, estimator = "skmse", target = "pooled")
    }),
    `predict of a bag_gram` = case(3000, 100, \(n) {
      d <- in_bags(n)
      list(fit = bag_gram(d$bags), new = in_bags(n)$bags)
    }, \(d) predict(d$fit, d$new)),
    `smm` = of_bags(800, 60, \(d) smm(d$bags, d$y, progress = FALSE)),
    `smm, regression` = of_bags(700, 60, \(d) {
      smm(d$bags, d$target, type = "ridge", progress = FALSE)
    }),
    # Landmarks, sketches
    `kme_landmarks` = of_points(2000000, 20000, \(d) {
      kme_landmarks(d$x, 1000, rbf(1), pilot = 20000)
    }),
    `kme_sketch` = of_points(800000, 5000, \(d) {
      kme_sketch(d$x, 300, rbf(1), progress = FALSE)
    }),
    `kme_sketch of two` = case(500000, 3000, \(n) related(n, 3), \(d) {
      kme_sketch(d$x, list(kme_landmarks(d$x, 100, rbf(1)),
                           kme_landmarks(d$y, 100, rbf(1))), y = d$y,
                 progress = FALSE)
    }),
    `mmd_test of sketches` = case(50000, 4000, \(n) {
      mark <- kme_landmarks(points(n), 2500, rbf(1))
      draw <- \() kme_sketch(points(n), mark, progress = FALSE)
      list(a = draw(), b = draw())
    }, \(d) mmd_test(d$a, d$b, B = 2000, progress = FALSE)),
    `kme_pca of a sketch` = case(20000, 4000, \(n) {
      list(s = kme_sketch(points(n), 2500, rbf(0.5), progress = FALSE))
    }, \(d) kme_pca(d$s)),
    `kme of a sketch` = case(50000, 4000, \(n) {
      list(s = kme_sketch(points(n), 2500, rbf(0.5), progress = FALSE))
    }, \(d) kme(d$s, estimator = est_fkmse(select = "gcv")))
  )
})
