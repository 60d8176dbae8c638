# Widths of kernels that are learned where x and z share exogenous columns.

set.seed(21)
n <- 90L
u <- rnorm(n)
c1 <- rnorm(n)
c2 <- runif(n)
z <- rnorm(n)
x <- z + u / 2 + rnorm(n) / 2
data <- data.frame(y = 2 * cos(2 * x) + u / 2 + rnorm(n) / 4, x, z, c1, c2,
                   pair = rep(1:45, 2), row = 1:n, two = 2)
instruments <- \(...) quietly(rkhs_iv(...))
fit <- instruments(y ~ x + c1 + c2 | z + c1 + c2, data)

# The losses of ridge regressions of the columns of r on points x, left out, and
# the mean squared slopes, by stored Gram matrices.
look_R <- function(x, w, r) {
  n <- nrow(x)
  theta <- 2 * median(dist(x %*% diag(w))) / w
  scaled <- x %*% diag(1 / theta)
  k <- exp(-as.matrix(dist(scaled))^2 / 2)
  middle <- diag(n) - 1 / n
  e <- eigen(middle %*% k %*% middle, symmetric = TRUE)
  v <- pmax(e$values, 0) / n
  along <- crossprod(e$vectors, r)
  penalties <- 10^seq(-6, 1, length.out = 29)
  squares <- lapply(penalties, \(l) {
    share <- v / (v + l)
    left <- (r - e$vectors %*% (share * along)) /
      (1 - 1 / n - drop(e$vectors^2 %*% share))
    rowSums(left^2)
  })
  best <- which.min(vapply(squares, mean, 0))
  a <- middle %*% e$vectors %*% (along / (n * (v + penalties[best])))
  slopes <- rowSums(vapply(seq_len(ncol(r)), \(j) {
    pairs <- k * rep(a[, j], each = n)
    colMeans((pairs %*% x - x * rowSums(pairs))^2) / theta^4
  }, numeric(ncol(x))))
  list(loss = squares[[best]], slopes = slopes, w = w, theta = theta)
}

# The weights of columns that are learned from several responses, a list of
# matrices; NULL if the losses do not fall by a standard error.
learned_weights_R <- function(x, responses) {
  w <- rep(1, ncol(x))
  last <- Inf
  looks <- list()
  for (step in 0:5) {
    each <- lapply(responses, look_R, x = x, w = w)
    sum_of <- \(name) Reduce(`+`, lapply(each, `[[`, name))
    looks[[step + 1]] <- list(loss = sum_of("loss"), w = w)
    now <- mean(looks[[step + 1]]$loss)
    if (step > 1 && now > 0.99 * last) break
    last <- now
    w <- sqrt(sum_of("slopes") / max(sum_of("slopes")) + 0.05^2)
    w <- w / max(w)
  }
  best <- looks[[which.min(vapply(looks, \(look) mean(look$loss), 0))]]
  gain <- looks[[1]]$loss - best$loss
  if (mean(gain) > sd(gain) / sqrt(nrow(x))) best$w
}

unit_variance <- \(y) (y - mean(y)) / sqrt(mean((y - mean(y))^2))

# The bandwidths of weights are the median distance over the weight.
widths_R <- \(x, w) median(dist(x %*% diag(w))) / w

test_that("learned kernels are those that are made by hand", {
  unit <- \(...) unname(scale(as.matrix(data[c(...)])))
  y <- as.matrix(unit_variance(data$y))
  w <- learned_weights_R(unit("x", "c1", "c2"), list(y))
  # The endogenous column has the largest weight.
  w[1L] <- 1
  width <- widths_R(unit("x", "c1", "c2"), w)
  expect_equal(fit$kernels$x$bandwidth, width, tolerance = 1e-3)
  # Five principal features of x are responses of the instruments.
  scaled <- unit("x", "c1", "c2") %*% diag(1 / width)
  middle <- diag(n) - 1 / n
  e <- eigen(middle %*% exp(-as.matrix(dist(scaled))^2 / 2) %*% middle, TRUE)
  features <- e$vectors[, 1:5] %*% diag(sqrt(n * e$values[1:5] /
                                               sum(e$values)))
  w <- learned_weights_R(unit("z", "c1", "c2"), list(y, features))
  w[1L] <- 1
  expect_equal(fit$kernels$z$bandwidth, widths_R(unit("z", "c1", "c2"), w),
               tolerance = 1e-3)
  expect_identical(fit$columns$x$kernel, "learned")
  expect_identical(fit$columns$z$kernel, "learned")
})

test_that("a fit with its own kernels given is the same", {
  given <- instruments(y ~ x + c1 + c2 | z + c1 + c2, data,
                       kernel = fit$kernels)
  fields <- c("fitted.values", "coefficients", "vcov", "mu", "lambda",
              "strength")
  expect_equal(given[fields], fit[fields])
  expect_null(given$columns)
  of_effect <- \(fit) quietly(kme_effect(fit, of = "x"))
  expect_equal(coef(of_effect(given)), coef(of_effect(fit)))
  expect_equal(quietly(predict(given, data[1:3, ], interval = TRUE)),
               quietly(predict(fit, data[1:3, ], interval = TRUE)))
})

test_that("kernels that are given stay as they are", {
  one <- instruments(y ~ x + c1 + c2 | z + c1 + c2, data,
                     kernel = list(x = kernel_laplace(2)))
  expect_identical(one$kernels$x$bandwidth, 2)
  expect_named(one$columns, "z")
  other <- instruments(y ~ x + c1 + c2 | z + c1 + c2, data,
                       kernel = list(z = kernel_rbf(2)))
  expect_identical(other$kernels$z$bandwidth, 2)
  expect_equal(other$kernels$x, fit$kernels$x)
})

test_that("one bandwidth stays where there is nothing to learn", {
  plain <- instruments(y ~ x + c1 + c2 | z + c1 + c2, data,
                       control = iv_control(learn = FALSE))
  expect_null(plain$columns)
  expect_equal(plain$kernels$x$bandwidth,
               median(dist(scale(data[c("x", "c1", "c2")]))),
               tolerance = 1e-6)
  changed <- \(fit, learn) fitted(quietly(update(fit, learn = learn)))
  expect_equal(changed(fit, FALSE), fitted(plain))
  expect_equal(changed(plain, TRUE), fitted(fit))
  model <- y ~ x + c1 | z + c1
  for (other in list(
    instruments(y ~ x | z + c1, data), instruments(y ~ x + c1 | z + c2, data),
    instruments(model, data, method = "classic"),
    instruments(model, data, control = iv_control(scale = "whiten")),
    instruments(model, data[1:49, ]),
    quietly(rkhs_iv(model, data, clusters = ~pair)),
    instruments(y ~ x + cut(c1, 3) | z + cut(c1, 3), data)
  )) expect_null(other$columns)
})

test_that("units of y, the order of columns and controls change no kernel", {
  widths <- lapply(fit$kernels, `[[`, "bandwidth")
  widths_of <- \(...) lapply(instruments(...)$kernels, `[[`, "bandwidth")
  more <- transform(data, y = 3 - 1e4 * y)
  expect_equal(widths_of(y ~ x + c1 + c2 | z + c1 + c2, more), widths,
               tolerance = 1e-5)
  turned <- widths_of(y ~ c2 + x + c1 | c2 + z + c1, data)
  expect_equal(turned, lapply(widths, `[`, c(3, 1, 2)), tolerance = 1e-5)
  d <- cos(1:n)
  controlled <- \(data) widths_of(y ~ x + c1 + c2 | z + c1 + c2, data,
                                  controls = ~d)
  expect_equal(controlled(cbind(transform(data, y = y + 9 * d), d)),
               controlled(cbind(data, d)), tolerance = 1e-5)
  single <- quietly(rkhs_iv(y ~ x + c1 + c2 | z + c1 + c2, data,
                            clusters = ~row, weights = ~two))
  expect_equal(single$kernels, fit$kernels)
})

test_that("errors of y do not hide an endogenous column", {
  set.seed(22)
  v <- rnorm(300)
  w <- rnorm(300)
  a <- rnorm(300)
  # The regression of y on b, given a, is flat.
  b <- w + v
  hidden <- data.frame(y = b / 2 - v + 2 * sin(2 * a) + rnorm(300) / 4, a, b, w)
  found <- instruments(y ~ a + b | a + w, hidden)
  expect_identical(names(which.min(found$columns$x$relevance)), "b")
  expect_identical(found$columns$x$kernel, "learned")
  expect_equal(found$kernels$x$bandwidth[2L], min(found$kernels$x$bandwidth))
})

test_that("print names the columns that matter", {
  shown <- capture.output(print(fit))
  expect_match(shown, "learned, columns standardized|  learned", all = FALSE)
  expect_match(shown, "columns by relevance: x 1, others at most", all = FALSE)
  plain <- quietly(update(fit, learn = FALSE))
  expect_no_match(capture.output(print(plain)), "relevance")
})

test_that("landmarks and random features have learned widths, too", {
  for (control in list(iv_control(landmarks = 30), iv_control(features = 40))) {
    other <- instruments(y ~ x + c1 + c2 | z + c1 + c2, data, control = control)
    expect_equal(other$kernels, fit$kernels)
    expect_true(all(is.finite(fitted(other))))
  }
})
