# Printing, keeping and going on with sketches.

x <- random_points(50, 2, 1)
colnames(x) <- c("a", "b")
rbf <- kernel_rbf(2)
set.seed(1)
own <- kme_landmarks(x, 7, rbf)
g <- rep_len(c("u", "v"), 50)

test_that("a sketch that was saved goes on where it was", {
  file <- tempfile(fileext = ".rds")
  on.exit(unlink(file))
  half <- kme_sketch(x[1:25, ], own, weights = rep_len(c(1, 1e8), 25))
  saveRDS(half, file)
  expect_identical(readRDS(file), half)
  # What is kept is small: no rows.
  saveRDS(kme_sketch(x[rep(1:50, 200), ], own), file)
  expect_lt(file.size(file), 20000)
})

test_that("print says rows, landmarks, loss and groups in at most ten lines", {
  sketches <- list(
    kme_sketch(x, own), kme_sketch(x, own, moments = 1),
    kme_sketch(x, own, groups = g, bin = 4),
    kme_sketch(x, own, weights = rep_len(1:2, 50)),
    kme_sketch(rbind(x, NA), own, na.action = na.omit),
    kme_sketch(x, list(own, own), y = x), kme_sketch(x[0, ], own)
  )
  for (sketch in sketches) {
    lines <- capture.output(print(sketch))
    expect_lte(length(lines), 10L)
    expect_match(lines, format(sketch$n), all = FALSE)
    expect_lte(max(nchar(lines)), 80L)
    if (sketch$n > 0) expect_output(print(summary(sketch)))
  }
})

test_that("messages say what must be, and what was given", {
  d <- as.data.frame(x)
  sketch <- kme_sketch(d, own)
  grouped <- kme_sketch(d, own, groups = g, moments = 2)
  expect_snapshot(writeLines(refusals(expression(
    kme_landmarks(x, 0, rbf), kme_landmarks(x, 5, kernel_energy()),
    kme_landmarks(replace(x, 3, NA), 5, rbf), kme_sketch(NULL, own),
    kme_sketch(\() NULL, 5), kme_sketch(d["a"], own),
    kme_sketch(replace(d, 1, NA), own), kme_sketch(d, own, kernel = rbf),
    kme_sketch(d, own, weights = rep(-1, 50)), kme_sketch(d, own, groups = 1:3),
    kme_sketch(d, own, bin = 0), kme_sketch(d, own, moments = 3),
    kme_sketch(d, list(own, own)), kme_sketch(d, own, chnk = 5),
    sketch + 1, sketch + grouped, sketch + kme_sketch(d, 5, rbf),
    sketch + kme_sketch(d, own, moments = 1), grouped["w"], sketch["u"],
    kme(sketch, rbf), kme(sketch, estimator = "mkme"),
    kme(sketch, estimator = "fkmse"), kme(kme_sketch(d[0, ], own)),
    kme(kme_sketch(d, own, moments = 1), estimator = "fkmse", lambda = 1),
    kme(kme_sketch(d, own, weights = rep(1:2, 25)), estimator = "fkmse",
        select = "gcv"), as.matrix(sketch_sample(sketch))
  ))))
})
