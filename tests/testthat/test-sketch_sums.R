# The sums of a sketch: what they are, and that they add up however the rows
# come.

x <- random_points(83, 3, 1)
colnames(x) <- c("a", "b", "c")
d <- as.data.frame(x)
rbf <- kernel_rbf(2.2)
set.seed(1)
own <- kme_landmarks(d, 9, rbf)
S <- landmark_x(own)
k <- \(x, y) gram_R(rbf, x, y)
values <- k(x, S)
w <- rep_len(c(1, 2.5, 0.2, 7), 83)
given_landmark <- \(x) matrix(x, dimnames = list(NULL, "x"))

test_that("sums are those of the rows", {
  totals <- sketch_totals(kme_sketch(d, own))
  expect_equal(totals$n, 83)
  expect_equal(totals$trace, 83)
  expect_near(totals$first, colSums(values), 1e-14)
  expect_near(totals$second, crossprod(values), 1e-14)
  expect_null(totals$along)
  expect_null(sketch_totals(kme_sketch(d, own, moments = 1))$second)
  weighted <- sketch_totals(kme_sketch(d, own, weights = w))
  expect_equal(weighted$n, 83)
  expect_equal(weighted$weight, sum(w))
  expect_equal(weighted$weight2, sum(w^2))
  expect_equal(weighted$trace, sum(w))
  expect_near(weighted$first, colSums(w * values), 1e-14)
  expect_near(weighted$second, crossprod(values, w * values), 1e-14)
})

test_that("any partition in any order gives the same sums", {
  set.seed(2)
  frame <- cbind(d, g = rep_len(c("u", "v", "w"), 83), w = w)[1:40, ]
  for (arguments in list(list(), list(moments = 1, weights = "w"),
                         list(groups = "g", weights = "w", moments = 4))) {
    of <- \(x, ...) do.call(kme_sketch, c(list(x, own), arguments, list(...)))
    whole <- of(frame)
    for (chunk in c(1, 7, 40, 1000)) {
      expect_lt(sketch_difference(of(frame, chunk = chunk), whole), 1e-13)
    }
    runs <- runs_of(frame[sample(40), ], random_sizes(40, 5))
    expect_lt(sketch_difference(of(runs), whole), 1e-13)
    expect_lt(sketch_difference(of(rev(runs)), whole), 1e-13)
    expect_lt(sketch_difference(of(stream_of(runs)), whole), 1e-13)
    added <- Reduce(`+`, lapply(runs, of))
    expect_lt(sketch_difference(added, whole), 1e-13)
    grown <- of(runs[[1L]])
    for (run in runs[-1L]) grown <- update(grown, run)
    expect_lt(sketch_difference(grown, whole), 1e-13)
    nested <- of(list(runs[[1L]], stream_of(runs[-1L])))
    expect_lt(sketch_difference(nested, whole), 1e-13)
  }
})

test_that("what is small beside what went before is not lost", {
  # In doubles 2^53 + 1 = 2^53, one row after the other.
  big <- c(2^53, rep(1, 6))
  rows <- data.frame(x = 1, w = big)
  one <- given_landmark(1)
  for (order in list(1:7, 7:1, c(2:4, 1, 5:7))) {
    parts <- runs_of(rows[order, ], rep(1L, 7))
    for (sketch in list(
      kme_sketch(parts, one, kernel_linear(), weights = "w"),
      Reduce(`+`, lapply(parts, kme_sketch, one, kernel_linear(),
                         weights = "w")),
      kme_sketch(stream_of(parts), one, kernel_linear(), weights = "w"),
      kme_sketch(rows[order, ], one, kernel_linear(), weights = "w", chunk = 1)
    )) {
      totals <- sketch_totals(sketch)
      for (name in c("weight", "trace", "first", "second")) {
        expect_identical(c(totals[[name]]), 2^53 + 6)
      }
    }
  }
})

test_that("what two sketches have lost is added, too", {
  one <- given_landmark(1)
  of <- \(w) kme_sketch(data.frame(x = 1, w = w), one, kernel_linear(),
                        weights = "w", chunk = 1)
  for (parts in list(list(c(2^53, 1), 1), list(1, c(2^53, 1)),
                     list(c(2^53, 1), c(2^53, 1)))) {
    added <- of(parts[[1L]]) + of(parts[[2L]])
    for (name in c("weight", "trace", "first", "second")) {
      total <- 2 + 2^53 * sum(lengths(parts) - 1)
      expect_identical(c(sketch_totals(added)[[name]]), total)
      expect_identical(c(sketch_sums(added)[[name]]), total)
    }
  }
})

test_that("sums that cancel do not depend on the partition either", {
  set.seed(3)
  far <- cbind(x = rnorm(400) * rep(c(1e8, 1e8, 1, 1e-4), 100))
  far <- rbind(far, -far[sample(400), , drop = FALSE], 5)
  landmark <- given_landmark(1)
  scale <- sum(abs(far))
  for (chunk in c(1, 7, 100, 801)) {
    totals <- sketch_totals(kme_sketch(far, landmark, kernel_linear(),
                                       chunk = chunk))
    expect_lt(abs(totals$first[1L] - 5), 1e-13 * scale)
    # One row at a time nothing is lost but the last rounding.
    if (chunk == 1) expect_near(totals$first[1L], 5, 1e-7)
  }
})

test_that("empty parts change nothing, and one row is a sketch", {
  whole <- kme_sketch(d, own)
  none <- d[0, ]
  for (sketch in list(kme_sketch(list(none, d), own),
                      kme_sketch(list(d, none), own),
                      kme_sketch(stream_of(list(none, d, none)), own),
                      update(whole, none), whole + kme_sketch(none, own),
                      kme_sketch(none, own) + whole)) {
    expect_identical(sketch_difference(sketch, whole), 0)
  }
  expect_identical(kme_sketch(none, own)$n, whole$n * 0L)
  one <- kme_sketch(d[5, ], own)
  expect_near(sketch_totals(one)$first, values[5, ], 1e-14)
  expect_near(kme(one)$rho, sketch_R(x[5, , drop = FALSE], S, k)$rho, 1e-9)
})

test_that("the groups add up to the whole", {
  g <- factor(rep_len(c("v", "u", "w", "u"), 83))
  for (v in list(NULL, w)) {
    sketch <- kme_sketch(d, own, groups = g, weights = v, moments = 4)
    expect_setequal(sketch$groups, levels(g))
    whole <- sketch_totals(kme_sketch(d, own, weights = v, moments = 4))
    each <- lapply(sketch$groups, \(group) {
      part <- sketch_totals(sketch, match(group, sketch$groups))
      rows <- g == group
      alone <- kme_sketch(d[rows, ], own, weights = v[rows], moments = 4)
      expect_near(part, sketch_totals(alone), 1e-13)
      part
    })
    for (name in names(whole)) {
      expect_near(Reduce(`+`, lapply(each, `[[`, name)), whole[[name]], 1e-13)
    }
  }
})

test_that("a group may have any name, none too", {
  g <- rep_len(c("", "u", "NA", "n", " "), 83)
  sketch <- kme_sketch(d, own, groups = g)
  expect_setequal(sketch$groups, unique(g))
  for (group in unique(g)) {
    expect_near(sketch_totals(sketch, match(group, sketch$groups))$first,
                colSums(values[g == group, ]), 1e-13)
  }
})

test_that("some groups of a sketch are the sketch of their rows", {
  g <- rep_len(c("v", "u", "w", "u"), 83)
  sketch <- kme_sketch(d, own, groups = g, moments = 4)
  for (some in list("u", c("w", "u"))) {
    rows <- g %in% some
    part <- sketch[some]
    expect_identical(part$groups, some)
    expect_lt(sketch_difference(part, kme_sketch(
      d[rows, ], own, groups = g[rows], moments = 4
    )), 1e-13)
  }
  binned <- kme_sketch(d, own, groups = g, bin = 4)
  bins <- new_binned_rows(binned)
  expect_equal(new_binned_rows(binned["w"])$features,
               bins$features[, bins$group == "w"])
  expect_equal(binned["w"]$left, sum(g == "w") %% 4)
  for (bad in list("z", NA, c("u", "u"))) {
    expect_error(sketch[bad], class = "kernmean_error_input")
  }
})

test_that("two variables have a cross sum", {
  y <- cbind(y = random_points(83, 1, 4)[, 1])
  rbf_y <- kernel_rbf(0.6)
  set.seed(4)
  other <- kme_landmarks(y, 6, rbf_y)
  set.seed(5)
  k_y <- gram_R(rbf_y, y, landmark_x(other))
  for (v in list(NULL, w)) {
    both <- kme_sketch(d, list(own, other), y = y, weights = v)
    totals <- sketch_totals(both)
    ww <- if (is.null(v)) 1 else v
    expect_near(totals$cross, crossprod(values, ww * k_y), 1e-13)
    expect_near(totals$first_y, colSums(ww * k_y), 1e-13)
    expect_near(totals$second_y, crossprod(k_y, ww * k_y), 1e-13)
    expect_near(totals$trace_y, sum(ww * rep(1, 83)), 1e-13)
    expect_equal(
      sketch_cross(both),
      crossprod(values %*% own$root, ww * (k_y %*% other$root)) /
        sum(ww * rep(1, 83)), tolerance = 1e-9
    )
  }
  frame <- cbind(d, y = y[, 1])
  # Landmarks know their columns.
  both <- kme_sketch(frame, list(other, own))
  expect_near(sketch_totals(both)$cross, t(crossprod(values, k_y)), 1e-13)
  runs <- runs_of(frame, c(20, 0, 1, 62))
  for (source in list(runs, stream_of(runs), rev(runs))) {
    other_way <- kme_sketch(source, list(other, own))
    expect_lt(sketch_difference(other_way, both), 1e-13)
  }
})

test_that("the sides of a formula are two variables, the left one first", {
  frame <- cbind(d, y = exp(random_points(83, 1, 4)[, 1]))
  frame$f <- factor(rep_len(c("u", "v", "w", "w"), 83), c("w", "v", "u"))
  for (formula in list(log(y) ~ a + b, y + c ~ poly(a, 2), f ~ a + log(y),
                       a ~ f)) {
    set.seed(6)
    both <- kme_sketch(formula, frame, 12, kernel = rbf)
    sides <- lapply(2:3, \(i) {
      matrix <- stats::model.matrix(
        stats::as.formula(call("~", call("+", formula[[i]], 0))), frame
      )
      unname(matrix[, colnames(matrix) != "", drop = FALSE])
    })
    nominal <- vapply(2:3, \(i) identical(formula[[i]], quote(f)), NA)
    k_of <- lapply(1:2, \(i) {
      of <- both$landmarks[[i]]
      if (nominal[i]) {
        # In the order of levels that the landmarks have.
        outer(as.character(frame$f), of$variable$levels, `==`) + 0
      } else {
        k(sides[[i]], landmark_x(of))
      }
    })
    totals <- sketch_totals(both)
    expect_near(totals$first, colSums(k_of[[1L]]), 1e-12)
    expect_near(totals$first_y, colSums(k_of[[2L]]), 1e-12)
    expect_near(totals$cross, crossprod(k_of[[1L]], k_of[[2L]]), 1e-12)
    # The same landmarks for a stream of more columns in another order.
    runs <- lapply(runs_of(cbind(u = NA, frame[5:1]), c(1, 40, 42)), \(run) {
      run$f <- as.character(run$f)
      run
    })
    for (source in list(runs, stream_of(runs))) {
      streamed <- kme_sketch(source, both$landmarks)
      expect_lt(sketch_difference(streamed, both), 1e-13)
    }
  }
  for (formula in list(~ 1, y ~ 1)) {
    expect_error(kme_sketch(formula, frame, 5), class = "kernmean_error_input")
  }
})

test_that("sketches add only where landmarks and kernel are the same", {
  base <- kme_sketch(d, own)
  S_named <- structure(S, dimnames = list(NULL, colnames(x)))
  refused <- function(other) {
    expect_error(base + other, class = "kernmean_error_input")
    expect_error(other + base, class = "kernmean_error_input")
  }
  refused(kme_sketch(d, S_named + 1e-12, rbf))
  refused(kme_sketch(d, S_named[9:1, ], rbf))
  refused(kme_sketch(d, S_named, kernel_rbf(2.2 + 1e-12)))
  refused(kme_sketch(d, S_named, kernel_laplace(2.2, "L2")))
  refused(kme_sketch(d, own, moments = 1))
  refused(kme_sketch(d, own, moments = 4))
  refused(kme_sketch(d, own, groups = rep_len(1:2, 83)))
  expect_error(base + kme(x), class = "kernmean_error_input")
  # Equality is the proof, not who made them.
  same <- kme_sketch(d, S_named, rbf)
  expect_equal(sketch_totals(base + same)$n, 166)
  expect_equal((same + (base + same))$parts, 3)
  # Rows without weights weigh 1.
  mixed <- base + kme_sketch(d, own, weights = w)
  expect_true(mixed$weighted)
  expect_lt(sketch_difference(mixed, kme_sketch(
    rbind(d, d), own, weights = c(rep(1, 83), w)
  )), 1e-13)
})

# --- Bins --------------------------------------------------------------------

test_that("bins have one size, and what is left over is counted", {
  g <- rep(c("u", "v"), c(50, 33))
  set.seed(1)
  sketch <- kme_sketch(d, own, groups = g, bin = 7)
  bins <- new_binned_rows(sketch)
  expect_equal(bins$size, 7)
  expect_identical(as.integer(table(bins$group)[c("u", "v")]), c(7L, 4L))
  expect_equal(sum(sketch$left), 83 - 7 * 11)
  expect_identical(dim(bins$features), c(as.integer(own$rank), 11L))
  # The sums themselves hold all rows.
  plain <- kme_sketch(d, own, groups = g, moments = 2)
  expect_lt(sketch_difference(sketch, plain), 1e-13)
  # Fourth moments are for discriminants, which want no bins.
  expect_equal(kme_sketch(d, own, groups = g)$moments, 4)
  expect_equal(c(sketch$moments, kme_sketch(d, own)$moments), c(2, 2))
})

test_that("each bin holds rows of its group, and each row is in one bin", {
  # Features that name their rows: powers of two on separate axes.
  n <- 24
  rows <- data.frame(diag(n))
  names(rows) <- paste0("x", seq_len(n))
  eye <- diag(n)
  colnames(eye) <- names(rows)
  g <- rep_len(c("u", "v", "v"), n)
  set.seed(3)
  members <- \(sketch) {
    bins <- new_binned_rows(sketch)
    points <- sketch$landmarks[[1L]]$root %*% bins$features
    lapply(seq_len(ncol(points)), \(b) which(points[, b] > 1e-6))
  }
  for (chunk in c(1, 5, 24)) {
    sketch <- kme_sketch(rows, eye, kernel_linear(), groups = g, bin = 3,
                         chunk = chunk)
    found <- members(sketch)
    expect_true(all(lengths(found) == 3L))
    expect_identical(anyDuplicated(unlist(found)), 0L)
    for (b in seq_along(found)) {
      expect_identical(unique(g[found[[b]]]),
                       as.character(new_binned_rows(sketch)$group[b]))
    }
  }
  # At random: neighbours are together no more often than others.
  set.seed(4)
  alone <- kme_sketch(rows, eye, kernel_linear(), bin = 2)
  expect_false(identical(lapply(1:12, \(i) c(2L * i - 1L, 2L * i)),
                         members(alone)))
  together <- replicate(150, {
    found <- members(kme_sketch(rows, eye, kernel_linear(), bin = 2))
    any(vapply(found, \(pair) all(1:2 %in% pair), NA))
  })
  expect_gt(pbinom(sum(together), 150, 1 / 23), 1e-4)
  expect_gt(pbinom(sum(together) - 1, 150, 1 / 23, FALSE), 1e-4)
})

test_that("bins are drawn by R's generator, only where they are asked for", {
  g <- rep_len(1:2, 83)
  set.seed(9)
  first <- kme_sketch(d, own, groups = g, bin = 5)
  after <- runif(1)
  set.seed(9)
  expect_identical(kme_sketch(d, own, groups = g, bin = 5)$bins, first$bins)
  expect_identical(runif(1), after)
  set.seed(9)
  kme_sketch(d, own, groups = g, moments = 4)
  expect_identical(.Random.seed, {
    set.seed(9)
    .Random.seed
  })
})

test_that("bins go on over chunks, parts and sums", {
  set.seed(2)
  sizes <- c(3, 1, 0, 20, 2, 57)
  streamed <- kme_sketch(stream_of(runs_of(d, sizes)), own, bin = 4)
  expect_identical(length(new_binned_rows(streamed)$group), 20L)
  expect_equal(sum(streamed$left), 3)
  # Parts end their own bins.
  parts <- kme_sketch(runs_of(d, sizes), own, bin = 4)
  expect_identical(length(new_binned_rows(parts)$group), 19L)
  expect_equal(sum(parts$left), 83 - 4 * 19)
  # Two sketches keep all full bins, and of the open ones the fuller.
  a <- kme_sketch(d[1:41, ], own, bin = 4)
  b <- kme_sketch(d[42:80, ], own, bin = 4)
  features <- \(sketch) new_binned_rows(sketch)$features
  # Sums are made in another order where there are more rows.
  expect_near(features(a + b), cbind(features(a), features(b)), 1e-13)
  expect_near(features(b + a), cbind(features(b), features(a)), 1e-13)
  expect_equal(sum((a + b)$left), 4)
  for (both in list(a + b, b + a)) {
    expect_identical(ncol(features(update(both, d[81, ]))), 20L)
  }
  grown <- update(kme_sketch(d[1:40, ], own, bin = 4), d[41:80, ])
  expect_equal(sum(grown$left), 0)
  means <- new_binned_rows(grown)$features
  expect_near(rowMeans(means), colMeans(values[1:80, ] %*% own$root), 1e-9)
  refused <- \(...) expect_error(..., class = "kernmean_error_input")
  refused(kme_sketch(d, own, bin = 4) + kme_sketch(d, own, bin = 5))
  refused(kme_sketch(d, own, bin = 4) + kme_sketch(d, own))
})

