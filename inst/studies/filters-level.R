# The part "level" of filters.R: how often a test rejects where there is nothing
# to find, and how often an interval misses.
#
# A row: list(claim, run), `run` a function of the data that gives a p-value;
# of an interval 1 or, if it misses, 0. Claims: "exact", "at most" (the level is
# an upper bound), "limit" (of large samples).

row <- function(run, claim = "exact") {
  # Heavy tails make columns that differ in scale, which is a warning.
  list(claim = claim, run = function(data) {
    suppressWarnings(run(data), classes = "kernmean_warning")
  })
}

# Groups of rows that share their data, the slow ones with a quarter as many.
level_groups <- function(B) {
  two <- function(...) {
    arguments <- list(..., B = B)
    row(function(data) {
      do.call(mmd_test, c(data, arguments))$p.value
    })
  }
  wide <- test_filter("none", factors = bandwidths)
  many <- test_filter(factors = c(0.25, 1, 4))
  biased <- test_control(statistic = "biased")
  unbiased <- test_control(statistic = "unbiased")
  free <- function(...) {
    arguments <- list(..., B = B)
    row(function(data) do.call(hsic_test, c(data, arguments))$p.value)
  }
  together <- function(...) {
    row(function(data) hsic_test(~ x + y + w, data, ..., B = B)$p.value)
  }
  # The first comparison's own p-value, and the smallest adjusted one.
  first <- function(...) {
    row(function(data) {
      mmd_pairwise(z ~ group, data, ..., B = B)$table$p.value[1]
    })
  }
  least <- function(...) {
    row(function(data) {
      min(mmd_pairwise(z ~ group, data, ..., B = B)$table$p.adjusted)
    }, "at most")
  }
  heavy <- function(df) function(n, d) matrix(stats::rt(n * d, df), n)
  t3 <- heavy(3)
  cauchy <- heavy(1)
  samples <- function(m, n, draw, d = 3) {
    function() list(x = draw(m, d), y = draw(n, d))
  }
  with_groups <- function(sizes, draw) {
    function() {
      n <- sum(sizes)
      list(z = draw(n, 2), group = rep(letters[seq_along(sizes)], sizes))
    }
  }
  # Simulated samples take long; the level is 0.05 with 19 of them too.
  model <- function(model, change = identity) {
    row(function(data) mmd_gof(change(data$x), model, B = 19)$p.value)
  }
  group <- function(make, ...) list(make = make, rows = list(...), share = 1)
  slow <- function(...) c(group(...)[c("make", "rows")], share = 4)
  list(
    group(
      samples(20, 20, normal),
      "MMD filters, 20 and 20, normal" = two(filter = "tikhonov"),
      "the same, order 1" = two(filter = test_filter(order = 1)),
      "the same, order 2" = two(filter = test_filter(order = 2)),
      "the same, iterated" = two(filter = "iterated"),
      "the same, Showalter" = two(filter = "showalter"),
      "the same, cutoff" = two(filter = "cutoff"),
      "the same, biased" = two(filter = "tikhonov", control = biased),
      "the same, MKME" = two(filter = "tikhonov", estimator = "mkme"),
      "MMD, 5 bandwidths" = two(filter = wide)
    ),
    slow(
      samples(20, 20, normal),
      "MMD filters, 3 bandwidths" = two(filter = many)
    ),
    group(
      samples(25, 8, t3),
      "MMD filters, 25 and 8, t(3)" = two(filter = "tikhonov"),
      "the same, biased, t(3)" = two(filter = "tikhonov", control = biased)
    ),
    group(
      samples(8, 25, cauchy),
      "MMD filters, 8 and 25, Cauchy" = two(filter = "tikhonov")
    ),
    group(
      with_groups(c(14, 10, 6), t3),
      "control: p of a comparison" = first(reference = "c"),
      "control: smallest Holm p" = least(reference = "c"),
      "pairwise: p of a comparison" = first(),
      "pairwise: smallest Holm p" = least()
    ),
    slow(
      with_groups(c(14, 10, 6), t3),
      "pairwise with filters: p" = first(filter = "tikhonov")
    ),
    group(
      function() {
        effect <- 2 * normal(20, 3)
        list(x = effect + normal(20, 3), y = effect + normal(20, 3),
             blocks = rep(1:20, 2))
      },
      "MMD filters, 20 blocks of 2" = two(filter = "tikhonov")
    ),
    group(
      samples(25, 25, normal, 2),
      "HSIC filters, normal" = free(filter = "tikhonov"),
      "the same, order 1, HSIC" = free(filter = test_filter(order = 1)),
      "the same, unbiased, HSIC" = free(filter = "tikhonov",
                                        control = unbiased),
      "the same, cutoff, HSIC" = free(filter = "cutoff")
    ),
    group(
      samples(25, 25, cauchy, 2),
      "HSIC filters, Cauchy" = free(filter = "tikhonov")
    ),
    group(
      function() list(x = noise(20), y = noise(20), w = noise(20)),
      "HSIC filters, 3 variables" = together(filter = "tikhonov")
    ),
    slow(
      function() list(x = normal(20, 2)),
      "against a mixture" = model(standard_normal),
      "against \"normal\"" = model("normal", function(x) {
        x %*% matrix(c(2, 1, 0, 0.3), 2) + 5
      })
    ),
    slow(
      function() list(x = noise(8)),
      "against a function" = model(function(n) stats::rnorm(n))
    ),
    group(
      function() list(x = normal(50, 2), z = normal(1, 2)),
      "radius, spectrum, n = 50" = row(misses_ball("spectrum"), "limit"),
      "radius, bound, n = 50" = row(misses_ball("bound"), "at most"),
      "interval at a point, n = 50" = row(misses_point, "at most"),
      "the same, normal law" = row(misses_normal, "limit")
    )
  )
}

standard_normal <- list(weights = 1, means = matrix(0, 1, 2),
                        covariances = array(diag(2), c(2, 2, 1)))
width <- kernel_rbf(1.5)

misses_ball <- function(method) {
  function(data) {
    fit <- kme(data$x, width)
    away <- sqrt(kme_risk(fit, standard_normal))
    as.numeric(away <= as.numeric(stats::confint(fit, method = method)))
  }
}

# E k(X, z) of a standard normal X in two columns.
misses_point <- function(data, method = NULL) {
  ends <- stats::predict(kme(data$x, width), data$z, interval = TRUE,
                         method = method)
  s <- 1.5^2
  truth <- s / (s + 1) * exp(-sum(data$z^2) / (2 * (s + 1)))
  as.numeric(ends[1, "lower"] <= truth && truth <= ends[1, "upper"])
}

misses_normal <- function(data) misses_point(data, "normal")

level_study <- function(reps, permutations, cores, out) {
  exact <- exact_level(permutations)
  say("Rejections at the nominal level ", nominal, " where nothing is to be ",
      "found, and intervals that miss: ", reps, " data sets (a quarter of ",
      "these for the slow ones), ", permutations, " permutations.")
  cat("\n")
  results <- do.call(rbind, lapply(level_groups(permutations), function(group) {
    message(names(group$rows)[1])
    reps <- max(2, reps %/% group$share)
    band <- level_band(reps, exact)
    p <- repeat_tests(group$make, lapply(group$rows, `[[`, "run"), reps, cores,
                      seed_of(names(group$rows)[1]))
    count <- colSums(rejects(p))
    claim <- vapply(group$rows, `[[`, "", "claim")
    rate <- count / reps
    data.frame(test = names(group$rows), claim = claim, reps = reps,
               rejected = count, rate = rate,
               se = sqrt(rate * (1 - rate) / reps),
               low = band[1] / reps, high = band[2] / reps,
               verdict = judge_claim(count, band, claim), row.names = NULL)
  }))
  cat(sprintf("%-32s %.4f (%.4f)  %s", results$test, results$rate, results$se,
              results$verdict), sep = "\n")
  cat("\n")
  counts <- function(claim) {
    mine <- results[results$claim == claim, ]
    kept <- mine$rate <= mine$high &
      (claim == "at most" | mine$rate >= mine$low)
    paste0(sum(kept), " of ", nrow(mine))
  }
  say("In the band: ", counts("exact"), " tests that claim an exact level; ",
      "not above it: ", counts("at most"), " that claim a bound; in the band: ",
      counts("limit"), " that claim the level for large samples.")
  cat("\n")
  write_table(results, out, "filters-level.csv")
  write_figure(out, "filters-level.png", 1300, 1300, function() {
    draw_levels(results)
  })
}

judge_claim <- function(count, band, claim) {
  ifelse(claim == "at most",
         ifelse(count > band[2], "ABOVE THE BAND", "not above (a bound)"),
         judge(count, band, claim == "exact"))
}

# Hollow: what does not claim an exact level.
draw_levels <- function(results) {
  y <- rev(seq_len(nrow(results)))
  graphics::par(mar = c(3.6, 14, 0.8, 0.8))
  graphics::plot(NA, xlim = range(results$low, results$high, results$rate),
                 ylim = range(y) + c(-0.5, 0.5), yaxs = "i", axes = FALSE,
                 xlab = "", ylab = "")
  graphics::rect(results$low, y - 0.5, results$high, y + 0.5, col = "grey92",
                 border = NA)
  graphics::abline(v = nominal, col = "grey60", lty = 3)
  graphics::axis(1, lwd = 0, line = -0.6)
  graphics::axis(2, y, results$test, las = 1, lwd = 0, line = -0.6)
  graphics::title(xlab = "share of rejections, or of intervals that miss",
                  line = 2)
  graphics::segments(results$rate - results$se, y, results$rate + results$se, y,
                     col = "#0072B2")
  graphics::points(results$rate, y, col = "#0072B2", bg = "white", lwd = 1.5,
                   pch = ifelse(results$claim == "exact", 16, 21))
}
