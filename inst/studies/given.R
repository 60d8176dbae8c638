# Power and level of the tests given blocks, beside the tests of linear models.
#
# independence  hsic_test(y ~ x, blocks = b) on 100 points (waves: 200): lines,
#               with small and large differences between blocks, and what is no
#               line; beside lm(y ~ x + b).
# two-sample    mmd_test(y ~ g, blocks = b) on 120 points, g by other chances in
#               each block, and on 25 pairs; beside lm(y ~ g + b), of pairs the
#               t-test, or of binary y the test of Mantel and Haenszel.
# clusters      hsic_test(y ~ v, clusters = c), v constant in each of 20
#               clusters of 2 to 20 points; beside lm(mean of y ~ v).

usage <- "Usage: Rscript given.R [options]

  --part independence|two-sample|clusters|all
                      what to run (all)
  --reps N            data sets for each design (200; 400 under the null)
  --permutations B    (199)
  --out DIR           folder for the table (.)
  --cores N           processes, with the package future.apply (1); the
                      results do not depend on it
  --quick             the smallest form: one design of each part
  --help              this text"

study_name <- "given.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

rows <- function(blocks, size) rep(seq_len(blocks), each = size)

# y = effect of what x has within its block, each plus the block's own.
within <- function(blocks, size, between, effect, noise = 1,
                   x = stats::rnorm(blocks * size)) {
  b <- rows(blocks, size)
  own <- function() between * stats::rnorm(blocks)[b]
  data.frame(b, x = own() + x,
             y = own() + effect(x) + noise * stats::rnorm(length(b)))
}

line <- function(slope) function(x) slope * x

independence <- list(
  "line, 5 blocks against it" = function() {
    b <- rows(5, 20)
    u <- rep(seq(-1.5, 1.5, length.out = 5), each = 20)
    e <- stats::rnorm(100)
    data.frame(b, x = u + e, y = -1.2 * u + 0.25 * e + stats::rnorm(100))
  },
  "line, 20 blocks, sd 1" = function() within(20, 5, 1, line(0.3)),
  "line, 20 blocks, sd 5" = function() within(20, 5, 5, line(0.3)),
  "line, 50 pairs, sd 2" = function() within(50, 2, 2, line(0.4)),
  "square, 10 blocks, sd 2" = function() {
    within(10, 10, 2, function(x) 0.5 * x^2)
  },
  "waves, 5 blocks, sd 1" = function() {
    within(5, 40, 1, function(x) sin(3 * pi * x), 0.8,
           stats::runif(200, -1, 1))
  },
  "noise as wide as x, 10 blocks" = function() {
    within(10, 10, 1, function(x) x * stats::rnorm(length(x)), 1)
  },
  "null, 20 blocks, sd 3" = function() within(20, 5, 3, line(0)),
  "null, t(3), 33 blocks of 3" = function() {
    transform(within(33, 3, 2, line(0)), y = y + stats::rt(length(y), 3))
  }
)

hsic_p <- function(...) {
  function(data) hsic_test(y ~ x, data, blocks = b, ...)$p.value
}

# The p-value of a coefficient.
slope_p <- function(formula, data) {
  summary(stats::lm(formula, data))$coefficients[2L, 4L]
}

independence_tests <- function(B) {
  list(
    "hsic_test()" = hsic_p(B = B),
    "hsic_test(), filter none" = hsic_p(B = B, filter = "none"),
    "lm()" = function(data) slope_p(y ~ x + factor(b), data)
  )
}

groups <- function(outcome) {
  b <- rows(6, 20)
  g <- stats::rbinom(120, 1, b / 7)
  data.frame(b, g = factor(g), y = outcome(b, g))
}

# Both values of 25 persons, whose own level has this sd.
pairs <- function(between, noise, shift = 0) {
  own <- between * stats::rnorm(25)
  data.frame(b = rep(1:25, 2), g = factor(rows(2, 25)), y = c(
    own + stats::rnorm(25), own + shift + noise * stats::rnorm(25)
  ))
}

two_sample <- list(
  "shift .6 against the blocks" = function() {
    groups(function(b, g) -b + 0.6 * g + stats::rnorm(120))
  },
  "scale 1.8" = function() {
    groups(function(b, g) b / 2 + (1 + 0.8 * g) * stats::rnorm(120))
  },
  "binary, odds ratio 3.3" = function() {
    groups(function(b, g) {
      stats::rbinom(120, 1, stats::plogis(2 - 0.75 * b + 1.2 * g))
    })
  },
  "25 pairs, sd 2.5, shift .8" = function() pairs(2.5, 1, 0.8),
  "25 pairs, sd 1, noise 2.5 times as wide" = function() pairs(1, 2.5),
  "null" = function() groups(function(b, g) -b + stats::rnorm(120))
)

two_sample_tests <- function(B) {
  two <- function(...) {
    function(data) mmd_test(y ~ g, data, blocks = b, B = B, ...)$p.value
  }
  list(
    "mmd_test()" = two(), "mmd_test(), filter none" = two(filter = "none"),
    "lm() or Mantel-Haenszel" = function(data) {
      if (all(data$y %in% 0:1)) {
        table <- table(data$g, data$y, data$b)
        # Blocks of one margin say nothing.
        kept <- apply(table, 3, function(t) all(rowSums(t) > 0, colSums(t) > 0))
        stats::mantelhaen.test(table[, , kept], correct = FALSE)$p.value
      } else {
        slope_p(y ~ g + factor(b), data)
      }
    }
  )
}

schools <- function(slope) {
  function() {
    sizes <- sample(2:20, 20, TRUE)
    id <- rep(1:20, sizes)
    v <- stats::rnorm(20)
    data.frame(id, v = v[id],
               y = (slope * v + 0.3 * stats::rnorm(20))[id] +
                 stats::rnorm(length(id), sd = 2))
  }
}

clusters <- list("slope .5" = schools(0.5), "null" = schools(0))

cluster_tests <- function(B) {
  of <- function(...) {
    function(data) hsic_test(y ~ v, data, clusters = id, B = B, ...)$p.value
  }
  list(
    "hsic_test()" = of(), "hsic_test(), filter none" = of(filter = "none"),
    "lm() of means" = function(data) {
      slope_p(y ~ v, stats::aggregate(cbind(y, v) ~ id, data, mean))
    }
  )
}

# Tables ----------------------------------------------------------------------

run_part <- function(part, makers, tests, options) {
  if (options$quick) makers <- makers[2L]
  say("Rejections at the level ", nominal, " (", part, "), ",
      options$permutations, " permutations.")
  cat("\n", sprintf("%28s", names(tests)), "\n", sep = " ")
  do.call(rbind, lapply(names(makers), function(name) {
    null <- startsWith(name, "null")
    reps <- options$reps * if (null) 2 else 1
    p <- repeat_tests(makers[[name]], tests, reps, options$cores,
                      seed_of(part, name))
    rejected <- colMeans(rejects(p))
    cat(sprintf("  %-30s", name), sprintf("%8.3f", rejected), "\n")
    data.frame(part, design = name, test = names(tests), reps = reps,
               rejected = unname(rejected))
  }))
}

options <- read_options(commandArgs(TRUE), list(
  part = "all", reps = "200", permutations = "199", out = ".", cores = "1",
  quick = FALSE
), usage)
options$reps <- whole_number(options$reps, "--reps", 2)
options$permutations <- whole_number(options$permutations, "--permutations", 19)
options$cores <- whole_number(options$cores, "--cores", 1)
options$out <- output_folder(options$out)
parts <- list(independence = list(independence, independence_tests),
              "two-sample" = list(two_sample, two_sample_tests),
              clusters = list(clusters, cluster_tests))
options$part <- one_of(options$part, "--part", c(names(parts), "all"))
use_one_thread()

wanted <- if (options$part == "all") names(parts) else options$part
table <- do.call(rbind, lapply(wanted, function(part) {
  run_part(part, parts[[part]][[1L]], parts[[part]][[2L]](options$permutations),
           options)
}))
cat("\n")
write_table(table, options$out, "given.csv", c("part", "design", "test"))
