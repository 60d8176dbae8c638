# Landmarks: which points they are, what they lose, and how they read new rows.

x <- random_points(60, 2, 1)
rbf <- kernel_rbf(0.8)
gram <- \(x, y = x) gram_R(rbf, x, y)

# The share of the trace that the points S lose on x.
lost_R <- function(x, S, k) {
  phi <- k(x, S) %*% root_R(k(S, S))
  own <- vapply(seq_len(nrow(x)), \(i) {
    k(x[i, , drop = FALSE], x[i, , drop = FALSE])[1L]
  }, 1)
  1 - sum(phi^2) / sum(own)
}

rows_of <- function(S, x) {
  vapply(seq_len(nrow(S)), \(i) {
    match(TRUE, rowSums(x == rep(S[i, ], each = nrow(x))) == ncol(x))
  }, 1L)
}

test_that("landmarks are different rows, and their loss is what is left", {
  for (method in c("rpcholesky", "uniform")) {
    for (m in c(1, 2, 7, 20)) {
      set.seed(m)
      own <- kme_landmarks(x, m, rbf, method = method)
      S <- landmark_x(own)
      expect_identical(nrow(S), as.integer(m))
      rows <- rows_of(S, x)
      expect_false(anyNA(rows))
      expect_identical(anyDuplicated(rows), 0L)
      expect_near(own$lost, lost_R(x, S, gram), 1e-7)
      expect_equal(own$pilot, 60)
    }
  }
})

test_that("the root makes features whose inner products are projections", {
  set.seed(2)
  own <- kme_landmarks(x, 12, rbf)
  S <- landmark_x(own)
  kss <- gram(S)
  expect_identical(dim(own$root), c(12L, as.integer(own$rank)))
  expect_near(crossprod(own$root, kss %*% own$root), diag(own$rank), 1e-9)
  # sum of phi phi' over the landmarks themselves gives K_SS back.
  expect_near(tcrossprod(kss %*% own$root), kss, 1e-9)
  values <- eigen(kss, TRUE, TRUE)$values
  expect_near(sort(own$values), sort(values[values > 1e-10 * values[1L]]), 1e-9)
})

test_that("directions of less than 1e-10 of the largest are not features", {
  # Two landmarks a hair apart, and one twice.
  S <- rbind(x[1:4, ], x[1, ] + 1e-7, x[2, ])
  own <- kme_sketch(x, S, rbf)$landmarks[[1L]]
  expect_equal(own$rank, 4)
  expect_identical(dim(own$root), c(6L, 4L))
})

test_that("pivots follow the law of randomly pivoted Cholesky", {
  skip_on_cran()
  # Landmarks are these pivots.
  few <- rbind(c(3, 0), c(2.9, 0.3), c(0, 2), c(1, 1), c(0.2, 0.1))
  set.seed(4)
  own <- kme_landmarks(few, 2, kernel_linear())
  set.seed(4)
  source <- native_source(kernel_linear(), few)
  expect_identical(landmark_x(own),
                   few[.Call(C_r_random_pivots, source, 2L, 16L)$pivots, ])
  # Norms that differ, and points that lie near one another: proposals of one
  # block are often no longer good when their turn comes.
  draws <- 3000L
  for (m in 1:2) {
    law <- pivot_law_R(tcrossprod(few), m)
    expect_equal(sum(law$chance), 1)
    names <- vapply(law$pivots, paste, "", collapse = " ")
    set.seed(4 + m)
    got <- replicate(draws, {
      paste(.Call(C_r_random_pivots, source, m, 16L)$pivots, collapse = " ")
    })
    expect_true(all(got %in% names))
    counts <- table(factor(got, names))
    # Rare sets together, so that chi^2 is near its law.
    rare <- law$chance * draws < 5
    seen <- c(counts[!rare], sum(counts[rare]))
    chance <- c(law$chance[!rare], sum(law$chance[rare]))
    keep <- chance > 0
    statistic <- sum((seen - draws * chance)[keep]^2 / (draws * chance[keep]))
    expect_lt(statistic, qchisq(1 - 1e-4, sum(keep) - 1))
  }
})

test_that("on clusters pivots lose what they lose one at a time", {
  # Many points in one place, few in others: uniform rows miss these.
  set.seed(5)
  centers <- matrix(runif(60, -30, 30), 30)
  from <- sample(30, 500, TRUE, prob = 2^-(1:30 / 3))
  x <- centers[from, ] + rnorm(1000, sd = 0.3)
  K <- gram_R(kernel_rbf(1), x)
  loss <- \(s) sum(residual_R(K, s)) / 500
  mean_of <- \(f) mean(replicate(12, f()))
  plain <- mean_of(\() loss(rpcholesky_R(K, 25)))
  of <- \(method) mean_of(\() {
    kme_landmarks(x, 25, kernel_rbf(1), method = method)$lost
  })
  blocks <- of("rpcholesky")
  # Without acceptance blocks of 16 lose about twice as much.
  expect_lt(blocks, 1.35 * plain)
  expect_gt(blocks, plain / 1.35)
  expect_lt(blocks, 0.7 * of("uniform"))
})

test_that("there are no more landmarks than the rows have rank", {
  few <- x[rep(1:5, 8), ]
  for (m in c(5, 6, 40, 100)) {
    own <- kme_landmarks(few, m, rbf)
    expect_equal(own$rank, 5)
    expect_equal(own$m, 5)
    expect_near(own$lost, 0, 1e-10)
    own <- kme_landmarks(few, m, rbf, method = "uniform")
    expect_lte(own$rank, 5)
    expect_lte(own$m, 40)
  }
  linear <- kme_landmarks(random_points(30, 3), 20, kernel_linear())
  expect_equal(linear$rank, 3)
  expect_near(linear$lost, 0, 1e-10)
})

test_that("a seed gives the same landmarks, on any number of threads", {
  big <- random_points(3000, 3, 8)
  of <- \(method) {
    set.seed(1)
    own <- kme_landmarks(big, 60, kernel_rbf(), method = method)
    list(landmark_x(own), own$root, own$lost, runif(1))
  }
  for (method in c("rpcholesky", "uniform")) {
    one <- with_threads(1, of(method))
    expect_identical(with_threads(2, of(method)), one)
  }
})

test_that("landmarks of many rows come from a pilot of them", {
  big <- random_points(500, 2, 9)
  set.seed(1)
  own <- kme_landmarks(big, 10, rbf, pilot = 100)
  expect_equal(own$pilot, 100)
  expect_false(anyNA(rows_of(landmark_x(own), big)))
  expect_equal(kme_landmarks(big, 10, rbf, pilot = 500)$pilot, 500)
})

test_that("a stream is read once", {
  next_chunk <- stream_of(runs_of(as.data.frame(x), c(10, 0, 50)))
  read <- 0L
  own <- kme_landmarks(\() {
    read <<- read + 1L
    next_chunk()
  }, 5, rbf, pilot = 20)
  expect_identical(c(read, own$pilot), c(4L, 20L))
  expect_false(anyNA(rows_of(landmark_x(own), x)))
})

test_that("the kernel is fitted to the pilot, and keeps what it found", {
  expect_equal(kme_landmarks(x, 5, kernel_rbf())$kernel$bandwidth,
               kme(x)$kernel$bandwidth)
  for (scale in list(TRUE, "whiten")) {
    wide <- x * rep(c(1, 1000), each = 60)
    set.seed(3)
    own <- kme_landmarks(wide, 6, kernel_rbf(1), scale = scale)
    z <- if (isTRUE(scale)) scale(x) else scale(x) %*% root_R(cor(x))
    S <- landmark_x(own)
    chosen <- rows_of(own$variable$sample$raw, wide)
    expect_equal(own$lost, lost_R(z, z[chosen, ],
                                  \(x, y) gram_R(kernel_rbf(1), x, y)),
                 tolerance = 1e-7)
    # New rows are measured alike, alone or not.
    expect_equal(landmark_points(own, wide[4, , drop = FALSE]),
                 landmark_points(own, wide)[4, , drop = FALSE])
  }
})

test_that("frames are read by name, formulas by their terms", {
  set.seed(1)
  d <- data.frame(a = exp(rnorm(40)), b = rnorm(40), other = letters[1:20])
  own <- kme_landmarks(d[c("a", "b")], 6, rbf)
  points <- unname(as.matrix(d[c("a", "b")]))
  read <- \(frame) unname(as.matrix(landmark_points(own, frame)))
  expect_identical(read(d), points)
  expect_identical(read(d[3:1]), points)
  set.seed(1)
  of <- kme_landmarks(~ log(a) + b, d, m = 6, kernel = rbf)
  expect_equal(unname(as.matrix(landmark_points(of, d))),
               cbind(log(d$a), d$b))
  # A basis of polynomials is the one of the pilot, not of the new rows.
  curve <- kme_landmarks(~ poly(b, 2), d, m = 6, kernel = rbf)
  basis <- poly(d$b, 2)
  expect_equal(unname(as.matrix(landmark_points(curve, d[3:5, ]))),
               unclass(basis)[3:5, ], ignore_attr = TRUE)
})

test_that("factors of a formula are those of a data frame", {
  frame <- data.frame(a = x[, 1], g = factor(rep_len(c("u", "v"), nrow(x))),
                      l = x[, 2] > 0)
  for (columns in list(c("a", "g", "l"), c("a", "l"), "g")) {
    formula <- stats::reformulate(columns)
    set.seed(1)
    own <- kme_landmarks(frame[columns], 8)
    set.seed(1)
    of <- kme_landmarks(formula, frame, 8)
    text <- transform(frame, g = as.character(g))
    expect_equal(landmark_points(of, text), landmark_points(own, text),
                 ignore_attr = TRUE)
    set.seed(1)
    expect_equal(kme_sketch(formula, frame, 8)$sums,
                 kme_sketch(frame, own)$sums)
  }
  set.seed(1)
  twice <- kme_landmarks(~ I(2 * a) + g, frame, 8)
  gini <- sum(abs(outer(2 * frame$a, 2 * frame$a, `-`))) /
    (nrow(x) * (nrow(x) - 1))
  expect_equal(landmark_points(twice, frame)[, 1], 2 * frame$a / gini,
               ignore_attr = TRUE)
  refused(kme_landmarks(~ a * g, frame), "column 'g' must be numeric")
  refused(kme_sketch(~ a + g, frame, twice), "kme_sketch\\(data, landmarks\\)")
})

test_that("text that looks like dates is told what makes dates of it", {
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  utils::write.csv(data.frame(day = as.Date("2020-02-27") + 0:9), file,
                   row.names = FALSE)
  expect_warning(text <- kme_landmarks(file, 3), "as.Date\\(\\)",
                 class = "kernmean_warning_text")
  expect_identical(text$variable$levels, format(as.Date("2020-02-27") + 0:9))
  read <- \(file) utils::read.csv(file, colClasses = "Date")
  days <- sample_raw(kme_landmarks(file, 20, read = read)$variable$sample)
  expect_setequal(days, as.numeric(as.Date("2020-02-27")) + 0:9)
})

test_that("a factor that is read as another type is no new level", {
  frame <- data.frame(a = x[, 1], g = rep_len(c("F", "M"), nrow(x)))
  frame$g <- factor(frame$g)
  landmarks <- kme_landmarks(frame, 8)
  women <- frame[frame$g == "F", ]
  women$g <- FALSE
  refused(kme_sketch(women, landmarks),
          "for 'g' levels such as F, M, not FALSE; .*g = \"character\"")
  # Levels that are new may be of rows to come.
  women$g <- "X"
  expect_identical(kme_sketch(women, landmarks)$n, nrow(women) + 0)
  frame$g <- frame$g == "F"
  logical <- kme_landmarks(frame, 8)
  women$g <- factor("TRUE")
  expect_gt(mean(kme_sketch(women, logical)$sums[[1]]$sum$first), 0)
  women$g <- "T"
  refused(kme_sketch(women, logical), "not T;")
})

test_that("the landmarks of a factor are its levels, which lose nothing", {
  set.seed(2)
  f <- factor(sample(c("u", "v", "w"), 50, TRUE), levels = c("w", "u", "v"))
  own <- kme_landmarks(f, 300)
  expect_equal(c(own$m, own$rank), c(3, 3))
  expect_near(own$lost, 0, 1e-12)
})

test_that("what cannot be landmarks is refused", {
  refused(kme_landmarks(~ a, data.frame(a = 1:9), subset = nosuch > 0),
          "unused argument: 'subset'")
  bad <- \(...) expect_error(kme_landmarks(...), class = "kernmean_error_input")
  bad(x, 1.5, rbf)
  bad(x, 5, "rbf")
  bad(x, 5, rbf, pilot = 0)
  bad(x, 5, rbf, method = "greedy")
  bad(replace(x, 3, Inf), 5, rbf)
  bad(letters, 5, rbf)
  bad(x[0, ], 5, rbf)
  bad(\() NULL, 5, rbf)
  bad(NULL, 5, rbf)
  bad(0 * x, 5, kernel_linear())
  expect_error(kme_landmarks(1e160 * x, 5, kernel_linear()), "overflow",
               class = "kernmean_error_numeric")
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  utils::write.csv(data.frame(a = 1:9), file)
  expect_identical(kme_landmarks(~ a, file, 5, chunk = 4)$pilot, 9L)
  bad(~ a, file, 5, read = "read.csv")
  bad(~ a, file, 5, chunk = -1)
  expect_error(kme_landmarks(y ~ a, data.frame(y = 1:3, a = 1:3), m = 2),
               class = "kernmean_error_input")
})

test_that("what is no kernel is refused with a formula, too", {
  for (bad in list(1, "rbf", list())) {
    refused(kme_landmarks(faithful, 5, kernel = bad), "'kernel' must be a")
    refused(kme_landmarks(~ eruptions, faithful, 5, kernel = bad),
            "'kernel' must be a")
  }
})
