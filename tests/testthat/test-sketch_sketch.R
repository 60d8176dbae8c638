# The door: what rows come in, and how they are read.

x <- random_points(70, 2, 1)
colnames(x) <- c("a", "b")
d <- as.data.frame(x)
rbf <- kernel_rbf(0.9)
set.seed(1)
own <- kme_landmarks(d, 8, rbf)
S <- landmark_x(own)
whole <- kme_sketch(d, own)
k <- \(x, y) gram_R(rbf, x, y)
same <- \(a, b) expect_lt(sketch_difference(a, b), 1e-13)
row_key <- \(x) paste(x[, 1], x[, 2])

test_that("a matrix, a frame, a formula and streams are the same rows", {
  same(kme_sketch(x, own), whole)
  set.seed(1)
  same(kme_sketch(~ a + b, d, 8, kernel = rbf), whole)
  same(kme_sketch(stream_of(list(d)), own), whole)
  same(kme_sketch(stream_of(runs_of(d, c(1, 60, 9))), own), whole)
  same(kme_sketch(list(x[1:9, ], d[10:70, ]), own), whole)
  # One column may be a vector.
  v <- x[, "a"]
  one <- kme_landmarks(v, 4, rbf)
  same(kme_sketch(v, one), kme_sketch(x[, "a", drop = FALSE], one))
})

test_that("landmarks are given, or points, or drawn from the rows", {
  points <- structure(S, dimnames = list(NULL, c("a", "b")))
  same(kme_sketch(d, points, rbf), whole)
  same(kme_sketch(d, as.data.frame(points), rbf), whole)
  set.seed(1)
  drawn <- kme_sketch(d, 8, rbf)
  expect_identical(landmark_x(drawn$landmarks[[1L]]), S)
  same(drawn, whole)
  # 300 where nothing is said.
  set.seed(1)
  all <- kme_sketch(d, kernel = rbf)
  set.seed(1)
  same(all, kme_sketch(d, kme_landmarks(d, 300, rbf)))
  # What can be read only once has none.
  expect_error(kme_sketch(stream_of(list(d))), "kme_landmarks",
               class = "kernmean_error_input")
})

test_that("columns are read by name", {
  same(kme_sketch(d[2:1], own), whole)
  same(kme_sketch(cbind(z = letters[1:10], d[2:1], u = NA), own), whole)
  same(kme_sketch(x[, 2:1], own), whole)
  same(kme_sketch(list(d[1:20, ], cbind(d, u = 1)[21:70, 3:1]), own), whole)
  refused(kme_sketch(d["a"], own))
  refused(kme_sketch(transform(d, b = as.character(b)), own))
  refused(kme_sketch(random_points(5, 3), S, rbf))
  refused(kme_sketch(stream_of(list(d, d["a"])), own))
})

test_that("without names columns are read by place", {
  bare <- unname(x)
  set.seed(1)
  plain <- kme_landmarks(bare, 8, rbf)
  same(kme_sketch(bare, plain), kme_sketch(bare, S, rbf))
  expect_near(sketch_totals(kme_sketch(bare, plain)),
              sketch_totals(whole), 1e-13)
  refused(kme_sketch(cbind(bare, 1), plain))
  refused(kme_sketch(bare[, 1], plain))
})

test_that("missing values are refused with their number, or dropped", {
  holes <- d
  holes$a[c(3, 9)] <- NA
  holes$b[c(9, 20, 21)] <- NaN
  expect_error(kme_sketch(holes, own), "4 of 70 rows",
               class = "kernmean_error_input")
  kept <- stats::complete.cases(holes)
  for (source in list(holes, as.matrix(holes),
                      stream_of(runs_of(holes, c(5, 5, 60))))) {
    sketch <- kme_sketch(source, own, na.action = na.omit)
    same(sketch, kme_sketch(d[kept, ], own))
    expect_equal(c(sketch$n, sketch$dropped), c(66, 4))
  }
  # Of columns that are not used nothing is asked.
  expect_equal(kme_sketch(cbind(d, z = NA), own)$n, 70)
  # Weights and groups go with their rows, and may be missing themselves.
  w <- rep_len(1:4, 70) / 2
  g <- rep_len(c("u", "v"), 70)
  both <- kme_sketch(cbind(holes, w = w, g = g), own, weights = "w",
                     groups = "g", na.action = na.omit)
  same(both, kme_sketch(d[kept, ], own, weights = w[kept], groups = g[kept]))
  refused(kme_sketch(d, own, groups = addNA(replace(g, 2, NA))))
  refused(kme_sketch(d, own, weights = replace(w, 2, NA)))
  dropped <- kme_sketch(d, own, groups = replace(g, 2, NA),
                        na.action = na.omit)
  expect_equal(c(dropped$n, dropped$dropped), c(69, 1))
  # All of them.
  none <- kme_sketch(transform(d, a = NA_real_), own, na.action = na.omit)
  expect_equal(c(none$n, none$dropped), c(0, 70))
  refused(kme(none))
  expect_equal(update(sketch, holes)$dropped, 8)
})

test_that("terms of a formula are those of the landmarks' rows", {
  frame <- data.frame(a = exp(x[, 1]), b = x[, 2])
  for (formula in list(~ log(a) + b, ~ poly(b, 3), ~ scale(a) + b,
                       ~ I(a^2 / 9) + b)) {
    set.seed(2)
    of <- kme_landmarks(formula, frame, m = 6, kernel = rbf)
    matrix <- stats::model.matrix(stats::update(formula, ~ . + 0), frame)
    twin <- sketch_R(unname(matrix), landmark_x(of), k)
    for (rows in list(frame, stream_of(runs_of(frame, c(9, 1, 60))),
                      runs_of(frame, c(69, 1)))) {
      # The landmarks know their terms.
      totals <- sketch_totals(kme_sketch(rows, of))
      expect_near(totals$first, colSums(twin$values), 1e-12)
    }
    set.seed(2)
    streamed <- kme_landmarks(formula, stream_of(runs_of(frame, c(9, 61))),
                              m = 6, kernel = rbf)
    expect_equal(landmark_points(streamed, frame), matrix,
                 ignore_attr = TRUE, tolerance = 1e-12)
  }
  expect_error(kme_sketch(~ log(z) + b, frame, 6, kernel = rbf), "'z'")
  refused(kme_sketch(frame["a"], of))
})

test_that("a factor is sketched exactly, whatever its coding", {
  set.seed(3)
  f <- factor(sample(c("u", "v", "w"), 70, TRUE), c("w", "v", "u"))
  same_level <- outer(as.character(f), as.character(f), `==`) + 0
  lf <- kme_landmarks(f)
  frame <- data.frame(f = f)
  # A chunk may lack levels, code them otherwise, or hold characters.
  runs <- list(droplevels(frame[f == "v", , drop = FALSE]),
               data.frame(f = factor(as.character(f[f != "v"]))),
               data.frame(f = character()))
  for (source in list(f, frame, runs, stream_of(runs), rev(runs))) {
    fit <- kme(kme_sketch(source, lf))
    expect_near(c(fit$rho, fit$varrho), c(mean(same_level), 1), 1e-10)
  }
  # A level that no landmark knows would be lost.
  refused(kme_sketch(factor(c("u", "z")), lf))
  refused(kme_sketch(c(1, 2), lf))
  refused(kme_sketch(data.frame(a = 1, b = 2), kme_landmarks(frame)), "'f'")
})

test_that("numbers and factors make one variable with kernel_gower()", {
  frame <- cbind(d, f = factor(rep_len(c("u", "v", "v"), 70)))
  K <- gower_matrix(frame)
  set.seed(4)
  of <- kme_landmarks(frame, 20)
  sketch <- kme_sketch(frame, of)
  chosen <- match(do.call(paste, of$variable$sample$raw[1:2]),
                  do.call(paste, unname(d)))
  expect_false(anyNA(chosen))
  expect_near(sketch_totals(sketch)$first, colSums(K[, chosen]), 1e-12)
  expect_near(sketch_totals(sketch)$second, crossprod(K[, chosen]), 1e-12)
  same(kme_sketch(runs_of(frame, c(1, 2, 67)), of), sketch)
})

test_that("every kernel that has estimates has sketches", {
  square <- kernel_function(\(x, y) (tcrossprod(x, y) + 1)^2)
  by_function <- kme_sketch(x, S, square)
  expect_near(sketch_totals(by_function),
              sketch_totals(kme_sketch(x, S, kernel_poly(2))), 1e-12)
  # Two variables, one of them with a function.
  y <- random_points(70, 1, 2)
  w <- rep_len(1:3, 70) / 3
  two <- \(kernel) sketch_totals(kme_sketch(
    x, list(kme_sketch(x, S, kernel)$landmarks[[1L]],
            kme_sketch(y, y[1:4, , drop = FALSE], rbf)$landmarks[[1L]]),
    y = y, weights = w
  ))
  expect_near(two(square), two(kernel_poly(2)), 1e-12)
  refused(kme_sketch(x, S, kernel_energy()))
})

test_that("units are those of the landmarks", {
  wide <- x * rep(c(1, 1000), each = 70)
  for (scale in list(TRUE, "whiten")) {
    set.seed(5)
    of <- kme_landmarks(wide, 8, rbf, scale = scale)
    z <- if (isTRUE(scale)) scale(wide) else scale(wide) %*% root_R(cor(wide))
    z <- unname(as.matrix(z))
    attributes(z) <- list(dim = c(70L, 2L))
    sketch <- kme_sketch(wide, of)
    # Whitened columns may be turned: distances are not.
    chosen <- match(row_key(of$variable$sample$raw), row_key(wide))
    expect_near(sketch_totals(sketch)$first, colSums(k(z, z[chosen, ])), 1e-10)
    same(kme_sketch(runs_of(wide, c(1, 69)), of), sketch)
    # Predictions are in the user's units.
    fit <- lossy(kme(sketch))
    values <- k(z[1:4, ], z[chosen, ])
    expect_near(unname(predict(fit, wide[1:4, ])),
                drop(values %*% fit$weights), 1e-9)
    set.seed(5)
    drawn <- kme_sketch(wide, 8, rbf, scale = scale)
    same(drawn, sketch)
  }
})

test_that("weights are positive numbers, one a row, or a column", {
  w <- rep_len(c(0.5, 2), 70)
  same(kme_sketch(cbind(d, w = w), own, weights = "w"),
       kme_sketch(d, own, weights = w))
  # Equal weights are no weights, but for their sum.
  twice <- kme_sketch(d, own, weights = rep(2, 70))
  expect_true(twice$weighted)
  expect_near(kme(twice, estimator = "skmse")$weights,
              kme(whole, estimator = "skmse")$weights, 1e-10)
  for (bad in list(w[-1], replace(w, 3, -1), replace(w, 3, Inf), "nowhere")) {
    refused(kme_sketch(d, own, weights = bad))
  }
  # Rows of weight 0 are counted, and weigh nothing.
  some <- kme_sketch(d, own, weights = replace(w, 1:3, 0))
  expect_equal(sketch_totals(some)$first,
               sketch_totals(kme_sketch(d[-(1:3), ], own,
                                        weights = w[-(1:3)]))$first,
               tolerance = 1e-13)
  none <- kme_sketch(d, own, weights = rep(0, 70))
  expect_output(print(none), "70 rows")
  refused(kme(none))
})

test_that("groups are a vector or a column, and no coordinates too", {
  g <- rep_len(c("u", "v", "w"), 70)
  frame <- cbind(d, g = g)
  of <- kme_sketch(frame, own, groups = "g")
  same(of, kme_sketch(d, own, groups = factor(g)))
  same(of, kme_sketch(stream_of(list(frame)), own, groups = "g"))
  # A column of a matrix, not its first.
  bound <- cbind(x, g = rep_len(3:1, 70))
  same(kme_sketch(bound, own, groups = "g", weights = "g"),
       kme_sketch(d, own, groups = rep_len(3:1, 70), weights = bound[, "g"]))
  refused(kme_sketch(d, own, groups = g[-1]))
  refused(kme_sketch(d, own, groups = "nowhere"))
  refused(kme_sketch(stream_of(list(d)), own, groups = g))
  refused(update(of, d[1, ]))
  all <- kme_landmarks(bound, 8, rbf)
  refused(kme_sketch(bound, all, groups = "g"))
  refused(kme_sketch(stream_of(list(bound)), all, weights = "g"))
})

test_that("a dot means all columns but those of groups and weights", {
  g <- rep_len(0:1, 70)
  w <- rep_len(c(0.5, 2), 70)
  frame <- cbind(g = g, d, w = w)
  set.seed(8)
  dot <- kme_sketch(~ ., frame, 6, kernel = rbf, groups = "g", weights = "w")
  set.seed(8)
  named <- kme_sketch(~ a + b, frame, 6, kernel = rbf, groups = "g",
                      weights = "w")
  expect_lt(sketch_difference(dot, named), 1e-13)
  set.seed(8)
  both <- kme_sketch(b ~ ., frame, 6, kernel = rbf, groups = "g")
  set.seed(8)
  expect_lt(sketch_difference(kme_sketch(b ~ a + w, frame, 6, kernel = rbf,
                                         groups = "g"), both), 1e-13)
})

test_that("arguments that make no sense are refused", {
  refused(kme_sketch(d, own, chunk = -5))
  refused(kme_sketch(d, own, bin = 4, weights = rep(1, 70)))
  refused(kme_sketch(d, own, scale = TRUE))
  refused(kme_sketch(d, "many", rbf))
  refused(kme_sketch(list(), own))
  refused(kme_sketch(whole, own))
  expect_warning(kme_sketch(stream_of(list()), own), "no rows")
  refused(kme_sketch(d, own, na.action = "sometimes"))
})

test_that("two variables are read row by row", {
  set.seed(6)
  y <- random_points(70, 1, 6)
  other <- kme_landmarks(y, 5, kernel_rbf(1))
  both <- kme_sketch(d, list(own, other), y = y)
  expect_length(both$landmarks, 2L)
  refused(kme_sketch(d, list(own, other), y = y[-1, , drop = FALSE]))
  refused(kme_sketch(d, list(own, other), y = y[c(1:70, 1), , drop = FALSE]))
  refused(kme_sketch(d, list(own, own, own)))
  # One variable against itself would be found dependent.
  refused(kme_sketch(d, list(own, own)))
  bare <- kme_landmarks(unname(x), 5, rbf)
  refused(kme_sketch(unname(x), list(bare, other)))
  refused(kme_sketch(d, own, y = y))
  refused(update(whole, d, y = d), "'y' must be NULL")
  refused(both + whole)
  holes <- y
  holes[4] <- NA
  refused(kme_sketch(d, list(own, other), y = holes))
  dropped <- kme_sketch(d, list(own, other), y = holes, na.action = na.omit)
  expect_equal(c(dropped$n, sum(dropped$dropped)), c(69, 1))
})

test_that("a kernel of inner products warns where its origin is far", {
  far <- cbind(a = 1e5 + x[, 1], b = x[, 2])
  for (kernel in list(kernel_linear(), kernel_poly(2))) {
    expect_warning(kme_landmarks(far, 5, kernel, scale = FALSE), "from 0",
                   class = "kernmean_warning_units")
    expect_warning(kme_sketch(far, far[1:3, ], kernel), "from 0",
                   class = "kernmean_warning_units")
    expect_silent(kme_landmarks(far, 5, kernel, scale = TRUE))
    expect_silent(kme_landmarks(x, 5, kernel, scale = FALSE))
  }
})

test_that("a stream is sketched in less memory than it would fill", {
  skip_on_cran()
  skip_on_os(c("mac", "windows", "solaris"))
  skip_if_not(file.exists("/proc/self/status"))
  script <- tempfile(fileext = ".R")
  on.exit(unlink(script))
  library <- dirname(getNamespaceInfo("kernmean", "path"))
  writeLines(c(
    sprintf("library(kernmean, lib.loc = '%s')", library),
    "kernmean_threads(1)",
    "set.seed(1)",
    "own <- kme_landmarks(matrix(rnorm(4000), 400), 20, kernel_rbf(3))",
    "chunks <- as.integer(commandArgs(TRUE))",
    "made <- 0L",
    "source <- function() {",
    "  made <<- made + 1L",
    "  if (made <= chunks) matrix(runif(2e5), 2e4)",
    "}",
    "sketch <- kme_sketch(source, own)",
    "stopifnot(sketch$n == chunks * 2e4)",
    "peak <- grep('VmPeak', readLines('/proc/self/status'), value = TRUE)",
    "cat('peak', gsub('[^0-9]', '', peak), '\\n')"
  ), script)
  run <- function(chunks, limit = "unlimited") {
    command <- paste0("ulimit -v ", limit, "; exec ",
                      shQuote(file.path(R.home("bin"), "Rscript")),
                      " --vanilla ", shQuote(script), " ", chunks)
    suppressWarnings(system2("sh", c("-c", shQuote(command)), TRUE, TRUE))
  }
  skip_if(nzchar(Sys.getenv("ASAN_OPTIONS")), "a sanitizer keeps what is freed")
  peak <- grep("^peak", run(8), value = TRUE)
  skip_if_not(length(peak) == 1L)
  # 100 chunks of 1.6 MB in 60 MB more than 8 of them took.
  limit <- as.numeric(gsub("[^0-9]", "", peak)) + 60 * 1024
  out <- run(100, format(limit, scientific = FALSE))
  expect_null(attr(out, "status"), label = paste(out, collapse = "\n"))
  expect_match(out, "^peak", all = FALSE)
})

# 2,000 rows in chunks of 250, the columns of which `change` alters.
chunks_of <- function(change = identity, from = 4) {
  set.seed(1)
  x <- MASS::crabs[sample.int(200, 2000, TRUE), c("FL", "RW", "CL")] +
    rnorm(6000, sd = 0.1)
  chunks <- runs_of(x, rep(250, 8))
  chunks[from:8] <- lapply(chunks[from:8], change)
  chunks
}

test_that("each chunk has the share of its rows that is lost", {
  skip_if_not_installed("MASS")
  chunks <- chunks_of()
  landmarks <- kme_landmarks(chunks[[1]], 15)
  sketch <- kme_sketch(stream_of(chunks), landmarks)
  # Of each chunk as a sketch of its own.
  alone <- vapply(chunks, \(x) fit_rows(kme_sketch(x, landmarks))$lost, 1)
  expect_near(sketch$chunks[, "lost"], alone, 1e-9)
  expect_identical(sketch$chunks[, "rows"], rep(250, 8))
  expect_equal(sketch$chunks[3, "median.CL"], median(chunks[[3]]$CL),
               ignore_attr = TRUE)
  expect_true(all(sketch$chunks[, "changed"] == 0))
  halves <- kme_sketch(stream_of(chunks[1:4]), landmarks) +
    kme_sketch(stream_of(chunks[5:8]), landmarks)
  expect_identical(halves$chunks, sketch$chunks)
  picture <- fit_picture(sketch)
  expect_identical(picture$value, sketch$chunks[, "lost"])
})

test_that("units that change are warned of once, with column and row", {
  skip_if_not_installed("MASS")
  landmarks <- kme_landmarks(do.call(rbind, chunks_of()), 50)
  seen <- function(change, words) {
    expect_warning(
      sketch <- kme_sketch(stream_of(chunks_of(change)), landmarks), words,
      class = "kernmean_warning_chunks"
    )
    expect_identical(sketch$chunks[, "changed"], rep(0:1, c(3, 5)) + 0)
  }
  seen(\(x) replace(x, "CL", x$CL / 2.54), "from row 751 on the column 'CL'")
  seen(\(x) x + 100, "from row 751 on projection loses 100%")
  # Rows in an order that follows the columns are no change of units.
  x <- do.call(rbind, chunks_of())
  x <- x[order(x$CL), ]
  expect_no_warning(kme_sketch(stream_of(runs_of(x, rep(250, 8))), landmarks))
})

test_that("of many chunks neighbors are joined", {
  sketch <- kme_sketch(stream_of(runs_of(faithful, rep(1, 272))),
                       kme_landmarks(faithful, 10, scale = TRUE))
  chunks <- sketch$chunks
  expect_lte(nrow(chunks), 200)
  expect_identical(sum(chunks[, "rows"]), 272)
  # Of one row each the median is the row.
  expect_near(sum(chunks[, "rows"] * chunks[, "median.waiting"]),
              sum(faithful$waiting), 1e-9)
})

test_that("a column may be called NA", {
  x <- data.frame(a = c(1, 3, 2, 6), b = 4:1, g = gl(2, 2))
  set.seed(1)
  want <- kme_sketch(x, 4, groups = "g")
  names(x)[1] <- NA
  set.seed(1)
  got <- kme_sketch(x, 4, groups = "g")
  expect_identical(got$sums, want$sums)
  landmarks <- kme_landmarks(x[1:2], 4)
  expect_near(kme_distance(kme(kme_sketch(x[1:2], landmarks)),
                           kme(kme_sketch(list(x[1:2]), landmarks))), 0,
              1e-7)
})
