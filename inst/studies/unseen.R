# What the guard of a stack is worth on data that nothing in the package was
# chosen by. Each set of points plays the population: its embedding mu is known
# exactly, and from n points drawn with replacement come the KME, the stack
# without and with its guard, and what the guard promises. Squared errors
# |f - mu|^2; bandwidths in median distances of the population.
#
# Part "first": sets and laws on which the formula of the guard was picked among
# others before the package had it. Part "fresh": twenty others, chosen before
# any of their results were seen; seven of them are discrete or have many ties.
# Part "readme": the five sets of heldout.R.

usage <- "Usage: Rscript unseen.R [options]

  --part NAME     first, fresh or readme; all is each (all)
  --reps N        samples of each (at least 3; 100)
  --cores N       processes (1)
  --out DIR       folder for the table (.)
  --quick         the smallest form: three of the sets, 10 points
  --help          this text"

study_name <- "unseen.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

sizes <- c(10, 20, 50)
multiples <- c(0.5, 1, 2)
law_points <- 2000

# Populations -----------------------------------------------------------------

from <- function(package, name, columns = NULL) {
  if (!requireNamespace(package, quietly = TRUE)) {
    give_up("the package '", package, "' must be installed")
  }
  box <- new.env()
  utils::data(list = name, package = package, envir = box)
  table <- box[[name]]
  if (is.data.frame(table)) {
    if (!is.null(columns)) table <- table[columns]
    table <- table[vapply(table, is.numeric, NA)]
  }
  x <- as.matrix(stats::na.omit(table))
  x <- x[, apply(x, 2, stats::sd) > 0, drop = FALSE]
  matrix(scale(x), nrow(x))
}

# n x d numbers of a law of one.
columns <- function(d, draw) {
  function() matrix(draw(law_points * d), law_points)
}

ring <- function() {
  angle <- stats::runif(law_points, 0, 2 * pi)
  cbind(cos(angle), sin(angle)) + stats::rnorm(2 * law_points, sd = 0.1)
}

clusters <- function(count, d, apart) {
  function() {
    centers <- matrix(stats::rnorm(count * d, sd = apart), count)
    centers[sample.int(count, law_points, TRUE), ] +
      stats::rnorm(law_points * d)
  }
}

populations <- list(
  first = list(
    "biopsy" = function() from("MASS", "biopsy", paste0("V", 1:9)),
    "galaxies" = function() from("MASS", "galaxies"),
    "crabs" = function() from("MASS", "crabs", 4:8),
    "Boston" = function() from("MASS", "Boston"),
    "Poisson 20" = columns(20, function(n) stats::rpois(n, 2)),
    "mixture" = clusters(5, 5, 2),
    "t(3)" = columns(5, function(n) stats::rt(n, 3))
  ),
  fresh = list(
    "correlated normal" = function() {
      x <- matrix(stats::rnorm(2 * law_points), law_points)
      cbind(x[, 1], 0.9 * x[, 1] + sqrt(1 - 0.9^2) * x[, 2])
    },
    "exponential" = columns(3, stats::rexp),
    "uniform" = columns(5, stats::runif),
    "lognormal" = columns(1, stats::rlnorm),
    "Laplace" = columns(10, function(n) stats::rexp(n) * sample(c(-1, 1), n,
                                                                TRUE)),
    "ring" = ring,
    "t(1.5)" = columns(2, function(n) stats::rt(n, 1.5)),
    "two clusters" = clusters(2, 3, 3),
    "arcsine" = columns(1, function(n) stats::rbeta(n, 0.5, 0.5)),
    "gamma" = columns(2, function(n) stats::rgamma(n, 0.5)),
    "quakes" = function() from("datasets", "quakes"),
    "swiss" = function() from("datasets", "swiss"),
    "geyser" = function() from("MASS", "geyser"),
    "binomial, ties" = columns(3, function(n) stats::rbinom(n, 4, 0.5)),
    "geometric, ties" = columns(2, function(n) stats::rgeom(n, 0.3)),
    "one of three, ties" = function() {
      diag(3)[sample.int(3, law_points, TRUE, c(0.5, 0.3, 0.2)), ]
    },
    "rounded normal, ties" = columns(2, function(n) {
      round(2 * stats::rnorm(n)) / 2
    }),
    "InsectSprays, ties" = function() from("datasets", "InsectSprays"),
    "infert, ties" = function() {
      from("datasets", "infert", c("parity", "induced", "spontaneous"))
    },
    "mtcars, ties" = function() {
      from("datasets", "mtcars", c("cyl", "gear", "carb", "am", "vs"))
    }
  ),
  readme = lapply(stats::setNames(nm = c("Ionosphere", "Sonar", "Glass",
                                         "Vehicle", "Satellite")),
                  function(name) function() from("mlbench", name))
)
quick_sets <- c("biopsy", "one of three, ties", "Glass")

# The study -------------------------------------------------------------------

# The errors of a sample: list(kme, stack, guarded, promised).
losses_of <- function(x, kernel, loss) {
  k <- gram(x, kernel, scale = FALSE)
  estimators <- list(kme = est_kme(), stack = est_stack(guard = FALSE),
                     guarded = est_stack())
  fits <- lapply(estimators, function(e) kme(k, estimator = e))
  c(vapply(fits, loss, 0), promised = fits$guarded$guard$saved)
}

run_cell <- function(cell, part, name, reps) {
  set.seed(seed_of("unseen", name))
  x <- populations[[part]][[name]]()
  whole <- kme(x, kernel_rbf("median"), scale = FALSE)
  whole <- kme(x, kernel_rbf(cell$times * whole$kernel$bandwidth),
               scale = FALSE)
  loss <- function(fit) {
    fit$norm2 - 2 * mean(predict(fit, x)) + whole$norm2
  }
  set.seed(seed_of("unseen", name, cell$n, cell$times))
  drawn <- t(replicate(reps, {
    rows <- sample.int(nrow(x), cell$n, TRUE)
    losses_of(x[rows, , drop = FALSE], whole$kernel, loss)
  }))
  bare <- gain(drawn[, "kme"], drawn[, "stack"])
  kept <- gain(drawn[, "kme"], drawn[, "guarded"])
  data.frame(
    part = part, data = name, n = cell$n, times = cell$times,
    bare = bare[["gain"]], bare_se = bare[["se"]], gain = kept[["gain"]],
    se = kept[["se"]], promised = 100 * mean(drawn[, "promised"]), reps = reps
  )
}

# What is shown ---------------------------------------------------------------

show <- function(table) {
  for (part in unique(table$part)) {
    here <- table[table$part == part, ]
    cells <- sprintf("%.1f (%.1f) %.1f [%.1f]", here$gain, here$se, here$bare,
                     here$promised)
    rows <- unique(paste(here$n, here$times))
    print_block(
      paste0(part, ": % of the KME's squared error saved with the guard ",
             "(s.e.), without, [promised]; n, bandwidth"),
      matrix(cells, ncol = length(rows), byrow = TRUE,
             dimnames = list(unique(here$data), rows)), 24
    )
    over <- here$promised - here$gain
    say("worse than -1% by more than 2 s.e.: ",
        sum(here$gain + 2 * here$se < -1), " of ", nrow(here),
        " cells, without the guard ", sum(here$bare + 2 * here$bare_se < -1))
    say(sprintf(paste("of the gain without the guard %.0f%% is kept; promised",
                      "less true %.1f points on average, above 5 in %d cells"),
                100 * sum(here$gain) / sum(here$bare), mean(over),
                sum(over > 5)))
  }
}

main <- function(args) {
  chosen <- read_options(args, list(part = "all", reps = "100", cores = "1",
                                    out = ".", quick = FALSE), usage)
  parts <- c(names(populations), "all")
  one_of(chosen$part, "--part", parts)
  reps <- whole_number(chosen$reps, "--reps", 3)
  cores <- whole_number(chosen$cores, "--cores", 1)
  out <- output_folder(chosen$out)
  use_one_thread()
  parts <- if (chosen$part == "all") names(populations) else chosen$part
  jobs <- do.call(rbind, lapply(parts, function(part) {
    expand.grid(times = multiples, n = sizes, data = names(populations[[part]]),
                part = part, stringsAsFactors = FALSE)
  }))
  if (chosen$quick) jobs <- jobs[jobs$n == 10 & jobs$data %in% quick_sets, ]
  table <- do.call(rbind, over(split(jobs, seq_len(nrow(jobs))), function(job) {
    run_cell(job, job$part, job$data, reps)
  }, cores))
  show(table)
  numbers <- c("bare", "bare_se", "gain", "se", "promised")
  table[numbers] <- round(table[numbers], 2)
  write_table(table, out, "unseen.csv", c("part", "data", "n", "times"))
}

main(commandArgs(trailingOnly = TRUE))
