# Power and level of the tests where numeric columns and factors are tested
# together.
#
# two-sample    mmd_test() on 40 and 40 points: the numeric columns alone, the
#               kernel of numbers and factors (kernel_gower()), the larger of
#               that and the ANOVA kernel, which is what mmd_test() takes, and
#               the same with nine statistics of the Tikhonov filter.
# independence  hsic_test() of a number and mixed columns on 80 points.
#
# Four numeric columns and factors of 6 and 5 levels, but for "cancel, 2
# levels": two numeric columns and factors of 2 and 3 levels.

usage <- "Usage: Rscript mixed.R [options]

  --part two-sample|independence|all
                      what to run (all)
  --reps N            data sets for each design (200; 400 under the null)
  --permutations B    (199)
  --out DIR           folder for the tables (.)
  --cores N           processes, with the package future.apply (1); the
                      results do not depend on it
  --quick             the smallest form of all: few designs
  --help              this text"

study_name <- "mixed.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

# Two samples -----------------------------------------------------------------

levels_of <- function(n, count, weights = NULL) {
  factor(sample.int(count, n, TRUE, weights), seq_len(count))
}

draw <- function(n, numeric = 4, levels = c(6, 5), noise = stats::rnorm) {
  columns <- replicate(numeric, noise(n), simplify = FALSE)
  names(columns) <- paste0("x", seq_len(numeric))
  data.frame(columns, f = levels_of(n, levels[1]), g = levels_of(n, levels[2]))
}

low <- function(data) as.integer(data$f) <= nlevels(data$f) / 2

# The first column is moved up in some levels of the first factor and down in
# the others, in the second sample the other way round.
cancel <- function(data, effect) {
  transform(data, x1 = x1 + ifelse(low(data), effect, -effect))
}

t3 <- function(n) stats::rt(n, 3)

# Each makes list(first sample, second sample) of n points each.
two_sample_designs <- list(
  "shift .7" = function(n) {
    list(draw(n), transform(draw(n), x1 = x1 + 0.7))
  },
  "levels more often" = function(n) {
    list(draw(n), transform(draw(n), f = levels_of(n, 6, c(2, 2, 1, 1, 0.7,
                                                           0.7))))
  },
  "shift 1.4, half the levels" = function(n) {
    y <- draw(n)
    list(draw(n), transform(y, x1 = x1 + 1.4 * low(y)))
  },
  "cancel 1.1, 6 levels" = function(n) {
    list(cancel(draw(n), 1.1), cancel(draw(n), -1.1))
  },
  "cancel .8, 2 levels" = function(n) {
    small <- function() draw(n, 2, c(2, 3))
    list(cancel(small(), 0.8), cancel(small(), -0.8))
  },
  "scale 1.4" = function(n) {
    y <- draw(n)
    y[1:4] <- 1.4 * y[1:4]
    list(draw(n), y)
  },
  "null, t(3)" = function(n) list(draw(n, noise = t3), draw(n, noise = t3)),
  "null, rare levels" = function(n) {
    one <- function() {
      transform(draw(n, 2), f = levels_of(n, 6, c(20, 1, 1, 1, 1, 1)),
                x1 = stats::rpois(n, 0.3))
    }
    list(one(), one())
  }
)

two_sample_tests <- function(B) {
  two <- function(...) {
    function(data) mmd_test(data[[1]], data[[2]], ..., B = B)$p.value
  }
  list(
    "numeric columns" = function(data) {
      numbers <- lapply(data, Filter, f = is.numeric)
      mmd_test(numbers[[1]], numbers[[2]], filter = "none", scale = TRUE,
               B = B)$p.value
    },
    "Gower kernel" = two(filter = "none"),
    "Gower and ANOVA" = two(filter = test_filter("none", factors = 1)),
    "and nine filters" = two(filter = "tikhonov")
  )
}

# Independence ----------------------------------------------------------------

independence_designs <- list(
  "linear" = function(x) 0.45 * x$x1,
  "levels" = function(x) c(0.6, -0.6, 0, 0.6, -0.6, 0)[x$f],
  "slope in half the levels" = function(x) 0.9 * x$x1 * low(x),
  "slopes cancel" = function(x) x$x1 * ifelse(low(x), 1, -1),
  "square" = function(x) 0.5 * x$x1^2,
  "null, t(3)" = function(x) 0
)

independence_tests <- function(B) {
  list(
    "numeric columns" = function(data) {
      hsic_test(data$y, Filter(is.numeric, data$x), filter = "none",
                scale = TRUE, B = B)$p.value
    },
    "Gower kernel" = function(data) {
      hsic_test(data$y, data$x, filter = "none", B = B)$p.value
    }
  )
}

# Tables ----------------------------------------------------------------------

run_part <- function(part, makers, tests, options) {
  if (options$quick) makers <- makers[5]
  say("Rejections at the level ", nominal, " (", part, "), ",
      options$permutations, " permutations.")
  cat("\n")
  table <- do.call(rbind, lapply(names(makers), function(name) {
    null <- startsWith(name, "null")
    reps <- options$reps * if (null) 2 else 1
    p <- repeat_tests(makers[[name]], tests, reps, options$cores,
                      seed_of(part, name))
    rejected <- colMeans(rejects(p))
    band <- level_band(reps, exact_level(options$permutations)) / reps
    cat(sprintf("  %-28s", name), sprintf("%8.3f", rejected), "\n")
    data.frame(design = name, test = names(tests), reps = reps,
               rejected = unname(rejected),
               in_band = if (null) {
                 as.numeric(rejected >= band[1] & rejected <= band[2])
               } else {
                 NA_real_
               })
  }))
  cat("\n")
  write_table(table, options$out, paste0("mixed-", part, ".csv"),
              c("design", "test"))
}

options <- read_options(commandArgs(TRUE), list(
  part = "all", reps = "200", permutations = "199", out = ".", cores = "1",
  quick = FALSE
), usage)
options$reps <- whole_number(options$reps, "--reps", 2)
options$permutations <- whole_number(options$permutations, "--permutations", 19)
options$cores <- whole_number(options$cores, "--cores", 1)
options$out <- output_folder(options$out)
options$part <- one_of(options$part, "--part",
                       c("two-sample", "independence", "all"))
use_one_thread()

if (options$part %in% c("two-sample", "all")) {
  run_part("two-sample", lapply(two_sample_designs, function(make) {
    function() suppressWarnings(make(40))
  }), two_sample_tests(options$permutations), options)
}
if (options$part %in% c("independence", "all")) {
  run_part("independence", Map(function(mean, name) {
    null <- startsWith(name, "null")
    function() {
      x <- draw(80, noise = if (null) t3 else stats::rnorm)
      list(x = x, y = mean(x) + if (null) t3(80) else stats::rnorm(80))
    }
  }, independence_designs, names(independence_designs)),
  independence_tests(options$permutations), options)
}
