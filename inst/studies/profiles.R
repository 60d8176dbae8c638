# What mmd_test() takes by default, a joint test of several statistics, beside
# the MMD alone, the nine of a spectral filter, and each of its own statistics.
#
#   low    power in 1 to 10 columns, two samples of 50 points: nine designs and
#          one without a difference, on none of which anything was chosen (the
#          weight of the means' z, 1.3, is from twelve others).
#   level  how often the test rejects where there is nothing to find.
#
# All tests of a pair of samples see the same permutations. More columns than
# points: klr.R.

usage <- "Usage: Rscript profiles.R [options]

  --part low|level|all  what to run (all)
  --reps N              sets for each design (low: 200, level: 1000)
  --permutations B      (199, level: 99)
  --out DIR             folder for the tables (.)
  --cores N             processes, with the package future.apply (1); the
                        results do not depend on it
  --quick               the smallest form: one design, without the level
  --help                this text"

study_name <- "profiles.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

# Data ------------------------------------------------------------------------

normal <- function(n, d = 1) matrix(stats::rnorm(n * d), n)
heavy <- function(n, d) matrix(stats::rt(n * d, 3), n)
cauchy <- function(n, d) matrix(stats::rcauchy(n * d), n)
binary <- function(n, d) matrix(stats::rbinom(n * d, 1, 0.5), n)
lognormal <- function(n, d) exp(normal(n, d))

equicorrelated <- function(n, d, correlation) {
  sqrt(1 - correlation) * normal(n, d) + sqrt(correlation) * stats::rnorm(n)
}

shifted <- function(x, column, by) {
  x[, column] <- x[, column] + by
  x
}

# Of density 1 + 0.9 sin(6 pi x) on (0, 1).
wave <- function(n) {
  x <- stats::runif(8 * n)
  kept <- 1.9 * stats::runif(8 * n) < 1 + 0.9 * sin(6 * pi * x)
  matrix(x[kept][seq_len(n)])
}

low_variance <- function(n) normal(n, 3) * rep(c(3, 1, 0.3), each = n)

pair <- function(x, y) list(x = x, y = y)

low <- list(
  "shift, 1 column" = function(n) pair(normal(n), normal(n) + 0.5),
  "spread, 1 column" = function(n) pair(normal(n), 1.6 * normal(n)),
  "two modes, 1 column" = function(n) {
    side <- sample(c(-0.9, 0.9), n, replace = TRUE)
    pair(normal(n), side + sqrt(1 - 0.81) * normal(n))
  },
  "waves, 1 column" = function(n) pair(matrix(stats::runif(n)), wave(n)),
  "correlation, 2 columns" = function(n) {
    pair(normal(n, 2), equicorrelated(n, 2, 0.6))
  },
  "tails, 5 columns" = function(n) pair(normal(n, 5), heavy(n, 5) / sqrt(3)),
  "shift, 10 columns" = function(n) pair(normal(n, 10), normal(n, 10) + 0.25),
  "correlation, 10 columns" = function(n) {
    pair(normal(n, 10), equicorrelated(n, 10, 0.3))
  },
  "column of low variance" = function(n) {
    pair(low_variance(n), shifted(low_variance(n), 3, 0.2))
  },
  "none" = function(n) pair(heavy(n, 3), heavy(n, 3))
)

# Two samples of one law.
of_law <- function(m, n, law, ...) function() pair(law(m, ...), law(n, ...))

level <- list(
  "t(3), 20 + 20, 3 columns" = of_law(20, 20, heavy, 3),
  "Cauchy, 20 + 100, 2 columns" = of_law(20, 100, cauchy, 2),
  "normal, 20 + 100, 50 columns" = of_law(20, 100, normal, 50),
  "lognormal, 30 + 30, 20 columns" = of_law(30, 30, lognormal, 20),
  "binary, 25 + 25, 4 columns" = of_law(25, 25, binary, 4),
  "normal, 6 + 6, 1 column" = of_law(6, 6, normal, 1),
  "normal, 15 + 40, 100 columns" = of_law(15, 40, normal, 100),
  "equicorrelated, 40 + 40, 200 columns" =
    of_law(40, 40, equicorrelated, 200, 0.5),
  "waves, 30 + 60, 1 column" = of_law(30, 60, wave),
  "rounded, 20 + 20, 1 column" =
    of_law(20, 20, function(n) round(2 * normal(n))),
  "exponential, 12 + 30, 1 column" =
    of_law(12, 30, function(n) matrix(stats::rexp(n))),
  "counts, 25 + 25, 2 columns" =
    of_law(25, 25, function(n) matrix(stats::rpois(2 * n, 2), n)),
  "two modes, 8 + 24, 2 columns" = of_law(8, 24, function(n) {
    normal(n, 2) + sample(c(0, 6), n, replace = TRUE)
  }),
  "correlated .95, 30 + 30, 5 columns" =
    of_law(30, 30, equicorrelated, 5, 0.95),
  "uniform, 10 + 10, 2 columns" =
    of_law(10, 10, function(n) matrix(stats::runif(2 * n), n)),
  "pairs, 20 blocks" = function() {
    subject <- 2 * normal(20)
    c(pair(subject + normal(20), subject + normal(20)),
      list(blocks = rep(1:20, 2)))
  },
  "mixed columns, 20 + 25" = function() {
    mixed <- function(n) {
      data.frame(a = stats::rt(n, 3), b = stats::rexp(n),
                 f = factor(sample(letters[1:4], n, TRUE), letters[1:4]))
    }
    pair(mixed(20), mixed(25))
  },
  "three groups, 10 + 15 + 20" = function() {
    list(y ~ g, data = list(y = heavy(45, 2),
                                g = rep(c("a", "b", "c"), c(10, 15, 20))))
  },
  "clusters of 1 to 4 points" = function() {
    id <- rep(1:16, rep(1:4, 4))
    x <- normal(16)[id, , drop = FALSE] + normal(40)
    c(pair(x[id <= 8, , drop = FALSE], x[id > 8, , drop = FALSE]),
      list(clusters = id))
  }
)

# Tests -----------------------------------------------------------------------

# p-values by name: the tests, then the default's statistics.
p_values <- function(data, filters, permutations, seed) {
  run <- function(filter) {
    set.seed(seed)
    do.call(mmd_test, c(data, list(filter = filter, B = permutations,
                                   scale = FALSE)))
  }
  joint <- run(NULL)
  others <- vapply(filters, function(filter) run(filter)$p.value, 0)
  rows <- joint$statistics
  c(joint = joint$p.value, others,
    stats::setNames(rows$p.value, rows$statistic))
}

# A row for each test of a design.
one_design <- function(design, make, filters, reps, permutations, cores) {
  message(design)
  p <- do.call(rbind, over(seq_len(reps), function(set) {
    set.seed(seed_of("profiles", design, set))
    p_values(make(), filters, permutations, seed_of("draws", design, set))
  }, cores))
  power <- colMeans(rejects(p))
  data.frame(design = design, test = colnames(p), reps = reps, power = power,
             se = sqrt(power * (1 - power) / reps), row.names = NULL)
}

study <- function(part, designs, filters, reps, permutations, cores, out) {
  all <- do.call(rbind, Map(function(design, make) {
    one_design(design, make, filters, reps, permutations, cores)
  }, names(designs), designs))
  say("Rejections at level ", nominal, " among ", reps, " sets of each design,",
      " ", permutations, " permutations.")
  tests <- unique(all$test)
  tests <- tests[table(all$test)[tests] == length(designs)]
  names <- unique(all$design)
  cells <- vapply(names, function(design) {
    mine <- all[all$design == design, ]
    sprintf("%.2f", mine$power[match(tests, mine$test)])
  }, tests)
  dimnames(cells) <- list(format(tests, width = 36), letters[seq_along(names)])
  print_block(paste(paste0(colnames(cells), ": ", names), collapse = "\n  "),
              cells, 6)
  if (part == "low" && length(designs) > 2) {
    power <- all$power[all$test == "joint" & all$design != "none"]
    say("The joint test over the nine: mean ", sprintf("%.3f", mean(power)),
        ", least ", sprintf("%.3f", min(power)), ".")
  }
  write_table(all, out, paste0("profiles-", part, ".csv"), c("design", "test"))
}

# Arguments -------------------------------------------------------------------

main <- function(args) {
  chosen <- read_options(args, list(
    part = "all", reps = "", permutations = "", out = ".", cores = "1",
    quick = FALSE
  ), usage)
  part <- one_of(chosen$part, "--part", c("low", "level", "all"))
  number <- function(option, usual, least) {
    if (!nzchar(chosen[[option]])) return(usual)
    whole_number(chosen[[option]], paste0("--", option), least)
  }
  cores <- start_processes(whole_number(chosen$cores, "--cores", 1))
  out <- output_folder(chosen$out)
  use_one_thread()
  run <- function(name, designs, filters, reps, permutations) {
    if (!part %in% c(name, "all")) return(invisible())
    if (chosen$quick) designs <- designs[1]
    study(name, designs, filters, number("reps", reps, 2),
          number("permutations", permutations, 19), cores, out)
  }
  of_50 <- lapply(low, function(make) function() make(50))
  run("low", of_50, c(MMD = "none", nine = "tikhonov"), 200, 199)
  # A thousand repetitions make no small form.
  if (!chosen$quick) run("level", level, c(MMD = "none"), 1000, 99)
}

main(commandArgs(trailingOnly = TRUE))
