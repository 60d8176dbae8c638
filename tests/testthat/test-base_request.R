# Bad input: a clear, classed error. Calls and messages are snapshots.

x <- random_points(6, 2)
rbf <- kernel_rbf(1)
normal <- list(weights = 1, means = c(0, 0), covariances = diag(2))

test_that("data that are no numbers are refused with what is wrong", {
  with <- function(...) replace(x, seq_len(...length()), c(...))
  d <- data.frame(a = 1:3)
  d$list <- list(1, 2, 3)
  m <- data.frame(a = 1:3)
  m$matrix <- matrix(1:6, 3)
  surv <- structure(cbind(time = 1:3, status = 1), class = "Surv")
  s <- data.frame(a = 1:3)
  s$surv <- surv
  expect_refusals(expression(
    kme(with(NA, NA, NaN)), kme(with(Inf, -Inf, 1, NA)), gram(with(Inf)),
    kernel_matrix(x, with(NaN), rbf), predict(kme(x, rbf), with(Inf)),
    kme("a"), kme(NULL), kme(d), kme(m),
    mmd_gof(factor(1:3), "normal"),
    kme(surv), kme(s), kme_density(data.frame(f = factor(1:3))),
    kme_density(data.frame(o = factor(1:3, ordered = TRUE))),
    kme(~ surv, s), hsic_test(surv ~ a, s),
    kme(data.frame(a = 1, z = 1i)), kme(~ a:b, data.frame(a = "u", b = 1)),
    kme(numeric()), kme(matrix(0, 3, 0)), kernel_matrix(x, x[0, ], rbf),
    predict(kme(x, rbf), x[0, ]), kme(3, rbf, "skmse"), kme(3, rbf, "fkmse")
  ))
})

test_that("columns of all kinds are read as numbers", {
  days <- as.Date("2026-01-01") + c(0, 3, 10)
  times <- as.POSIXct("2026-01-01", tz = "UTC") + 86400 * c(0, 3, 10)
  frame <- data.frame(days, times, yes = c(TRUE, FALSE, TRUE),
                      hours = as.difftime(24 * 1:3, units = "hours"))
  frame <- frame[c("days", "times", "hours", "yes")]
  first <- 20454
  expect_equal(check_data(frame), cbind(
    days = first + c(0, 3, 10), times = first + c(0, 3, 10), hours = 1:3,
    yes = c(1, 0, 1)
  ))
  for (name in names(frame)) {
    expect_equal(check_data(frame[[name]])[, 1], check_data(frame)[, name])
  }
  expect_identical(check_data(matrix(c(TRUE, FALSE), 1)), matrix(c(1, 0), 1))
  # Matrices with a class keep their shape.
  one <- \(x) structure(matrix(x, 1, dimnames = list(NULL, c("a", "b"))),
                        class = oldClass(x), units = attr(x, "units"))
  for (x in list(days[1:2], times[1:2], frame$hours[1:2])) {
    expect_equal(check_data(one(x)), one(check_data(x)[, 1]))
    frame$both <- rbind(one(x), one(x), one(x))
    expect_equal(unname(kme(~ both, frame, kernel = rbf)$sample$x),
                 unname(check_data(frame$both)))
    frame$both <- NULL
  }
  fit <- kme(~ days + hours + yes, frame, kernel = rbf)
  expect_equal(fit$sample$x, check_data(frame[-2]), ignore_attr = "dimnames")
  # A formula reads new rows alike, in whatever unit they come.
  new <- frame
  units(new$hours) <- "mins"
  expect_identical(predict(fit, new), predict(fit, frame))
  expect_equal(unname(predict(kme(frame[-2], rbf), new[-2])),
               unname(predict(fit)))
  by <- hsic_test(days + hours ~ yes, frame[c(1:3, 1:3), ], filter = "none",
                  B = 19)
  want <- hsic_test(check_data(frame[c(1:3, 1:3), c(1, 3)]),
                    frame$yes[c(1:3, 1:3)], filter = "none", B = 19)
  expect_equal(by$statistic, want$statistic)
})

test_that("integers of 64 bits are read exactly, or refused", {
  skip_if_not_installed("bit64")
  large <- bit64::as.integer64("9007199254740991") - 0:2
  expect_identical(check_data(data.frame(large))[, 1], 2^53 - 1:3)
  expect_identical(check_data(large)[, 1], 2^53 - 1:3)
  fit <- kme(~ large, data.frame(large), kernel = rbf)
  expect_identical(unname(fit$sample$x[, 1]), 2^53 - 1:3)
  refused(kme(large + 1L), "whole numbers below 2.53")
  refused(kme(bit64::as.integer64(c(1, NA))), "not 1 NA")
})

test_that("sparse matrices are read as dense ones, where these fit", {
  skip_if_not_installed("Matrix")
  dense <- cbind(a = c(1, 0, 0, 2), b = c(0, 3, 0, 0))
  sparse <- Matrix::Matrix(dense, sparse = TRUE)
  expect_identical(check_data(sparse), dense)
  expect_identical(check_data(sparse != 0), (dense != 0) + 0)
  fit <- kme(sparse, rbf)
  expect_identical(predict(fit, sparse[2:3, 2:1]), predict(fit, dense[2:3, ]))
  expect_identical(as_gram(Matrix::crossprod(sparse))$K, crossprod(dense))
  before <- options(kernmean.memory = 10)
  on.exit(options(before))
  expect_error(kme(sparse, rbf), class = "kernmean_error_memory")
})

test_that("kernels refuse unknown choices and parameters", {
  k <- \(f) kernel_function(f)
  expect_refusals(expression(
    kernel_rbf(0), kernel_rbf(NA_real_), kernel_rbf("mean"),
    kernel_laplace(NULL), kernel_matern(5 / 2, -1),
    kme(x, kernel_rbf(c(1, 2, 3))), kme(x, kernel_rbf(\(x) -1)),
    kme(x, kernel_rbf(\(x) 1:3)), kme(x, kernel_rbf(\(x) "median")),
    kernel_laplace(1, "L3"), kernel_laplace(1, NA), kernel_matern(2),
    kernel_poly(1.5), kernel_poly(2, -1), kernel_poly(2, Inf),
    kernel_function(1), kme(x, "rbf"), kme(x, tcrossprod), gram(x, diag(6)),
    kernel_matrix(x, rbf), kme(x, kernel_energy()), kme(gram(x, rbf), rbf),
    kme(x, k(\(x, y) 1)), kme(x, k(\(x, y) NULL)),
    kme(x, k(\(x, y) matrix(NA_real_, nrow(x), nrow(y)))),
    kernel_matrix(x, x[1:2, ], k(\(x, y) tcrossprod(y, x))),
    kme(x, k(\(x, y) -gram_R(rbf, x, y)), "fkmse"),
    gram(x, k(\(x, y) outer(x[, 1], y[, 1], ">") + 0))
  ))
  expect_error(kme(x, kernel_function(\(x, y) stop("mine"))), "mine")
  refused(kme(x, k(\(x, y) matrix("a", nrow(x), nrow(y)))),
          "numeric 6 x 6 matrix, not a character")
  refused(kernel_matrix(x, kernel = k(\(x, y) tcrossprod(x, y) / 0)), "36 Inf")
})

test_that("unknown choices are answered with the valid ones", {
  expect_refusals(expression(
    kme(x, rbf, "skmse", lambda = -1), kme(x, rbf, "fkmse", lambda = NA),
    kme(x, rbf, "mean"), kme(x, rbf, NULL), kme(x, "fkmse"),
    plot(kme(x, rbf), "weight of it"), plot(gram(x, rbf), 1),
    kme(x, rbf, "skmse", target = 0), kme(x, rbf, "skmse", select = "gcv"),
    kme(x, rbf, "fkmse", select = NA), gram_spectrum(gram(x, rbf), "all"),
    gram_spectrum(diag(2))
  ))
})

test_that("arguments that do not go together are refused", {
  target <- kme(x + 1, rbf)
  w <- rep(1, 6) / 6
  expect_refusals(expression(
    kme(x, rbf, lambda = 1), kme(x, rbf, select = "loocv"),
    kme(x, rbf, "skmse", weights = w),
    kme(x, rbf, "fkmse", lambda = 1, select = "loocv"),
    kme(x, rbf, "fkmse", select = "gcv", target = target),
    kme(x, rbf, weights = 1), kme(x, rbf, weights = letters[1:6]),
    kme(x, rbf, weights = c(1:5, Inf))
  ))
  refused(kme(x, rbf, weights = rep(TRUE, 6)), "'weights' must be 6 numbers")
  refused(kme(x, rbf, target = target), "'target' must not be given")
})

test_that("unused arguments are named", {
  g <- gram(x, rbf)
  fit <- kme(x, rbf)
  expect_refusals(expression(
    kme(x, rbf, sigma = 1), kme(x, rbf, "kme", 3), kme(x, a = 1, b = 2),
    kme(x, rbf, lamda = 1), gram(x, rbf, 1), gram(x, y = 2),
    predict(fit, x, type = "response"), update(fit, sigma = 2)
  ))
})

test_that("new data must have the columns of the sample", {
  named <- x
  colnames(named) <- c("a", "b")
  fit <- kme(named, rbf)
  formula <- kme(~ log(a^2) + b, as.data.frame(named))
  on_values <- kme(as_gram(gram_R(rbf, x)))
  expect_refusals(expression(
    predict(fit, data.frame(a = 1)), predict(fit, iris), predict(fit, x[, 1]),
    predict(fit, cbind(x, 1)), predict(fit, NULL),
    predict(fit, data.frame(a = "x", b = 1)),
    predict(fit, data.frame(a = factor(1), b = 1)),
    predict(fit, cbind(a = 1, b = 2, a = 3)), predict(kme(1:3, rbf), x),
    predict(formula, data.frame(a = 1)),
    predict(formula, data.frame(a = 1, b = "x")), kernel_matrix(x, x[, 1], rbf),
    kernel_matrix(named, iris[, 1:2], rbf),
    predict(on_values, x), predict(on_values, c(1, NA)),
    kme_risk(on_values, normal), kme_inner(on_values, kme(x, rbf)),
    kme(on_values$sample$gram, estimator = "skmse", target = normal),
    update(on_values, kernel = rbf)
  ))
})

test_that("a matrix that is no Gram matrix is refused with its defect", {
  k <- gram_R(rbf, x)
  expect_refusals(expression(
    as_gram(replace(k, 7, 5)), as_gram(-diag(2)), as_gram(k[, 1:3]),
    as_gram(as.data.frame(k)), as_gram(replace(k, 3, NA)), gram(gram(x, rbf))
  ))
  refused(as_gram(matrix(-1)), "positive semi-definite")
  refused(as_gram(k - 2 * diag(6)), "positive semi-definite")
})

test_that("mixtures must be mixtures, for a kernel with closed forms", {
  fit <- kme(x, rbf)
  two <- function(...) {
    utils::modifyList(list(weights = c(0.5, 0.5), means = matrix(0, 2, 2),
                           covariances = array(diag(2), c(2, 2, 2))), list(...))
  }
  one <- function(...) utils::modifyList(normal, list(...), keep.null = TRUE)
  expect_refusals(expression(
    kme_risk(fit, 3), kme_risk(fit, list(1, 2)),
    kme_risk(fit, one(weights = 2)), kme_risk(fit, one(weights = "1")),
    kme_risk(fit, one(means = 1)), kme_risk(fit, one(means = NULL)),
    kme_risk(fit, one(means = c(0, NA))),
    kme_risk(fit, two(means = matrix(0, 2, 3))),
    kme_risk(fit, one(covariances = diag(3))),
    kme_risk(fit, one(covariances = NULL)),
    kme_risk(fit, one(covariances = diag(c(1, NA)))),
    kme_risk(fit, one(covariances = diag(c(1, -1)))),
    kme_risk(fit, two(covariances = array(c(diag(2), -diag(2)), c(2, 2, 2)))),
    kme(x, rbf, "skmse", target = one(weights = 2)),
    kme_risk(kme(x, kernel_laplace(1)), normal),
    kme(x, kernel_matern(3 / 2, 1), "fkmse", target = normal)
  ))
  refused(kme_risk(fit, one(covariances = matrix(c(1, 0.5, 0, 1), 2))),
          "must be symmetric")
  refused(kme_risk(fit, one(weights = NA)), "must be non-negative and sum to 1")
  refused(kme_risk(kme(x, kernel_poly(4)), normal), "up to degree 3")
})

test_that("embeddings of different kernels or spaces do not meet", {
  a <- kme(x, rbf)
  expect_refusals(expression(
    kme_inner(a, 3), kme_distance(x, a), kme_inner(a, kme(x, kernel_rbf(2))),
    kme_inner(a, kme(x, kernel_laplace(1))), kme_inner(a, kme(x[, 1], rbf)),
    kme(x, kernel_rbf(2), "skmse", target = a),
    kme(x, "kme", target = a), kme(x, rbf, "fkmse", target = "a")
  ))
})

test_that("formulas have no response", {
  d <- as.data.frame(x)
  expect_refusals(expression(
    kme(V1 ~ V2 | V2, d), kme(d, ~ V1), update(kme(~ V1, d), formula = ~ V2),
    update(kme(x), "skmse")
  ))
})

test_that("values that overflow are an error and not a result", {
  huge <- 1e200 * x
  expect_refusals(expression(
    kme(huge, kernel_poly(2)), kernel_matrix(huge, kernel = kernel_poly(3)),
    predict(kme(x, kernel_poly(3)), huge), kme(c(-1.7e308, 1.7e308))
  ), "kernmean_error_numeric")
})

test_that("matrices that do not fit are refused with their size", {
  old <- options(kernmean.memory = 100)
  on.exit(options(old))
  fit <- kme(x, rbf)
  expect_refusals(expression(
    gram(x, rbf), kernel_matrix(x, x[1:3, ], rbf),
    update(fit, estimator = "fkmse")
  ), "kernmean_error_memory")
})

test_that("numbers of threads are whole and at least 1", {
  before <- kernmean_threads()
  expect_refusals(expression(
    kernmean_threads(0), kernmean_threads(1.5), kernmean_threads("two")
  ))
  expect_identical(kernmean_threads(), before)
})

test_that("a routine that fails is a numeric error with its name", {
  error <- tryCatch(stop_numeric("dsyevr", 2L, 7L), error = identity)
  expect_s3_class(error, c("kernmean_error_numeric", "kernmean_error", "error",
                           "condition"), exact = FALSE)
  expect_match(conditionMessage(error),
               "'dsyevr' did not converge (info = 7)", fixed = TRUE)
  # T - 5 I is not positive definite.
  t <- .Call(C_r_tridiag, diag(3))
  expect_error(
    .Call(C_r_tridiag_solve, t$diagonal, t$off, -5, c(1, 2, 3)),
    "not positive definite", class = "kernmean_error_numeric"
  )
})

test_that("an error names the call that the user typed", {
  f <- function(data) kme(data, rbf, "skmse")
  error <- tryCatch(f("a"), error = identity)
  expect_identical(conditionCall(error), quote(kme(data, rbf, "skmse")))
  error <- tryCatch(lapply("a", kme), error = identity)
  expect_match(deparse1(conditionCall(error)), "FUN(X[[i]], ...)", fixed = TRUE)
})

test_that("internal errors name what came to the border with C", {
  source <- native_source(rbf, x)
  spec <- source[[1L]]
  wrong <- function(spec, x, y, what) {
    expect_error(.Call(C_r_kernel_store, list(spec, x, y)),
                 paste("internal error:", what))
  }
  wrong(spec, 1:3, NULL, "'x'")
  wrong(spec, x, x[, 1, drop = FALSE], "'y'")
  wrong(list(1), x, NULL, "'spec'")
  wrong(replace(spec, 1L, NA), x, NULL, "no such kernel")
  wrong(NULL, x, NULL, "'x'")
  wrong(NULL, diag(3), x, "a matrix and 'y'")
  expect_error(.Call(C_r_kernel_store, x), "internal error: 'source'")
  expect_error(.Call(C_r_kernel_diagonal, native_source(rbf, x, x)),
               "internal error: 'source' is not symmetric")
  expect_error(.Call(C_r_kernel_apply, source, x[1:3, ]),
               "internal error: 'v'")
  expect_error(.Call(C_r_eigen, x, 1L), "internal error: 'k'")
  expect_error(.Call(C_r_exp, 1L), "internal error: 'x'")
})

test_that("coordinates that overflow once scaled are an error", {
  for (call in expression(
    kernel_matrix(c(0, 1), kernel = kernel_rbf(1e-310)),
    kernel_matrix(c(1e200, 0), kernel = kernel_rbf(1e-200)),
    kernel_matrix(c(0, 1e160), kernel = kernel_energy()),
    kernel_matrix(1e160, 0, kernel_energy()), kme(c(0, 1e-310))
  )) {
    expect_error(eval(call), class = "kernmean_error_numeric")
  }
})

test_that("a symmetric matrix of values taken as points is a warning", {
  x <- random_points(6, 2)
  k <- kernel_matrix(x, kernel = kernel_rbf(1))
  expect_warning(kme(k), "as_gram\\(\\) takes a matrix of kernel values",
                 class = "kernmean_warning")
  expect_warning(gram(k), "6 points in 6 columns")
  expect_identical(length(testthat::capture_warnings(
    kme(k, estimator = "fkmse")
  )), 1L)
  expect_no_warning(kme(x))
  expect_no_warning(kme(random_points(6, 6)))
})

test_that("one variable stands on the left of a formula of two samples", {
  expect_error(mmd_test(Sepal.Length + Sepal.Width ~ Species, iris),
               "columns are bound by cbind", class = "kernmean_error_input")
})

test_that("a misspelt argument gets a hint, another does not", {
  x <- random_points(5, 2)
  expect_error(kme_pca(x, centre = "kme"), "did you mean 'center'?")
  expect_error(kme_pca(x, features = 2), "unused argument: 'features'$")
})

# --- What is left out, and what is not there ----------------------------------

test_that("every door says in our words what it must be given", {
  for (name in getNamespaceExports("kernmean")) {
    call <- \() getExportedValue("kernmean", name)()
    fault <- tryCatch({
      call()
      NULL
    }, error = identity)
    expect_true(is.null(fault) || inherits(fault, "kernmean_error"),
                label = paste0(name, "() is answered"))
  }
  expect_error(kme_inner(kme(x, rbf)), "'b' must be given",
               class = "kernmean_error_input")
})

test_that("constructors name the way out", {
  refused(kernel_rbf(sigma = 1), "kernel_rbf\\(1/sqrt\\(2 \\* sigma\\)\\)")
  hint <- \(code, ...) expect_error(code, paste("kernel =", ...), fixed = TRUE)
  hint(kernel_laplace(sigma = 1), "kernel_laplace(1/sigma, \"L2\") for kernlab")
  hint(kernel_laplace(gamma = 1), "kernel_laplace(1/gamma) for scikit-learn's")
  hint(kernel_matern(sigma = 1), "kernel_matern(bandwidth = ); a standard")
  hint(kme(x, kernel_laplace(), gamma = 2), "kernel_laplace(1/gamma)")
  hint(gram(x, kernel_matern(), gamma = 2), "kernel_matern(bandwidth = )")
  hint(kme(x, kernel_poly(), bandwidth = 2), "kernel_rbf(bandwidth = )")
  refused(est_skmse(lamda = 1), "did you mean 'lambda'")
  makers <- grep("^(est|kernel)_", getNamespaceExports("kernmean"),
                 value = TRUE)
  for (name in setdiff(makers, "kernel_matrix")) {
    refused(do.call(name, list(f = \(x, y) x, nosuch = 1)), "unused argument")
  }
})

test_that("names of other packages are answered with ours", {
  bags <- list(x, x + 1, x + 2, x + 3)
  refused(smm(bags, c(1, 1, 2, 2), C = 1), "'C' is called 'cost' here")
  for (door in list(bag_gram, smm)) {
    refused(door(bags, kernel2 = "rbf"), "'kernel2' is called 'level2' here")
  }
})

test_that("what is too much, a kernel and what has no preimages are named", {
  refused(mmd_test(x, x, B = 1e12), "1, not 1e\\+12; at most 2147483647")
  refused(kernel_poly(1e10), "not 1e\\+10; at most 2147483647")
  refused(mmd_test(x, x, kernel_laplace(2), bandwidths = "fuse"),
          "not the L1 Laplace kernel, bandwidth 2")
  for (f in c(preimage, reconstruction_error)) {
    refused(f(kme(x, rbf)), "as of kme_pca\\(\\), not be an object of class")
  }
})

test_that("a data frame whose row names do not fit is refused", {
  d <- structure(list(a = 1:3, b = 4:6), class = "data.frame",
                 row.names = 1:5)
  refused(kme(d), "values in each column for its 5 rows")
})

test_that("a kernel that is not positive semi-definite is refused", {
  apart <- kernel_function(\(x, y) -abs(outer(x[, 1], y[, 1], "-")))
  for (estimator in c("kme", "skmse", "mkme", "stack")) {
    refused(kme(x, apart, estimator))
  }
  far <- kernel_function(\(x, y) gram_R(new_kernel("sqdist", ""), x, y))
  skew <- kernel_function(\(x, y) 9 + outer(x[, 1], y[, 1], ">"))
  for (estimator in c("kme", "skmse")) {
    refused(kme(x, far, estimator), "must be positive semi-definite")
    refused(kme(x, skew, estimator), "must be symmetric")
  }
  refused(kme(x, far, weights = 1:6 / 9), "must be positive semi-definite")
  # On each sample a kernel, but not on both.
  near <- kernel_function(\(x, y) 2 - outer(x[, 1], y[, 1], "=="))
  fits <- list(kme(c(0, 0), near), kme(c(1, 1, 1), near))
  refused(kme_distance(fits[[1]], fits[[2]]),
          "the squared distance of two means is -2")
  refused(kme_distance(fits), "the squared distance of two means is -2")
})

# --- Memory -------------------------------------------------------------------

test_that("limits of control groups and of address space are seen", {
  root <- tempfile()
  put <- function(file, ...) {
    dir.create(dirname(file.path(root, file)), FALSE, TRUE)
    writeLines(c(...), file.path(root, file))
  }
  seen <- \() system_memory(root)
  expect_identical(seen(), Inf)
  put("proc/meminfo", "MemTotal: 900 kB", "MemAvailable:   800 kB")
  expect_identical(seen(), 800 * 1024)
  put("proc/self/status", "VmPeak:  9 kB", "VmSize:      300 kB")
  limit <- "Max address space         "
  put("proc/self/limits", paste0(limit, "unlimited     7000       bytes"))
  expect_identical(seen(), 800 * 1024)
  put("proc/self/limits", paste0(limit, "614400        unlimited  bytes"))
  expect_identical(seen(), 300 * 1024)
  # Version 2: a group within another, whose cache can be dropped.
  put("proc/self/cgroup", "0::/a/b")
  put("sys/fs/cgroup/a/b/memory.max", "max")
  put("sys/fs/cgroup/a/memory.max", "200000")
  put("sys/fs/cgroup/a/memory.current", "150000")
  put("sys/fs/cgroup/a/memory.stat", "active_file 7", "inactive_file 30000")
  expect_identical(seen(), 80007)
  put("sys/fs/cgroup/a/memory.current", "250000")
  expect_identical(seen(), 0)
  # Version 1.
  put("proc/self/cgroup", "5:cpu:/c", "4:hugetlb,memory:/c")
  put("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "90000")
  put("sys/fs/cgroup/memory/c/memory.usage_in_bytes", "50000")
  put("sys/fs/cgroup/memory/c/memory.stat", "inactive_file 1",
      "total_inactive_file 2000")
  expect_identical(seen(), 42000)
})

test_that("only a package that is not there is called missing", {
  expect_error(need_package("nosuchpackage", "it ", "takes it"),
               "^it takes it$", class = "kernmean_error_package")
  # A namespace whose loading fails by itself, as for a time limit.
  home <- tempfile()
  dir.create(file.path(home, "broken", "R"), recursive = TRUE)
  writeLines(c("Package: broken", "Version: 1.0"),
             file.path(home, "broken", "DESCRIPTION"))
  paths <- .libPaths()
  on.exit(.libPaths(paths))
  .libPaths(c(home, paths))
  fault <- tryCatch(need_package("broken", "it takes it"), error = identity)
  expect_s3_class(fault, "error")
  expect_false(inherits(fault, "kernmean_error"))
})

test_that("an argument left out is the default of the door, in every call", {
  # R itself counts B as missing in the door.
  passed_on <- function(x, y, B) mmd_test(x, y, B = B)
  for (i in 1:2) {
    expect_identical(passed_on(1:9, 2:10)$parameter[["B"]], 399)
    expect_identical(test_filter()$name, "tikhonov")
    expect_identical(test_filter("none")$name, "none")
  }
})

test_that("the order of characters does not hang on the locale", {
  expect_identical(levels(as_factor(c("b", "B", NA, "a", "A", "_"))),
                   c("A", "B", "_", "a", "b"))
  set.seed(2)
  x <- data.frame(u = rnorm(40), t = rbinom(40, 1, 0.5),
                  f = rep(c("b", "A", "a", "B"), 10))
  answers <- \() {
    set.seed(3)
    sketch <- kme_sketch(x, kme_landmarks(x["u"], 5), groups = "f")
    pairs <- suppressWarnings(as.data.frame(mmd_pairwise(u ~ f, x, B = 99)))
    fda <- kme_fda(f ~ u, x)
    list(sketch$groups, pairs, fda$means, names(fda$counts),
         hsic_test(x$u, kme(~ f, x)$sample$x, B = 19)$p.value,
         colnames(kme(~ f + u, x)$sample$x),
         coef(kme(~ f + u, x, estimator = "skmse")),
         suppressWarnings(kme_weights(t ~ f + u, x)$balance),
         smm(f ~ u + t, x, id = rep(1:20, 2), cost = 1)$levels)
  }
  before <- Sys.getlocale("LC_COLLATE")
  on.exit(Sys.setlocale("LC_COLLATE", before))
  Sys.setlocale("LC_COLLATE", "C")
  want <- answers()
  for (locale in c("C.UTF-8", "en_US.UTF-8")) {
    if (nzchar(suppressWarnings(Sys.setlocale("LC_COLLATE", locale)))) {
      expect_identical(answers(), want)
    }
  }
})
