# Every table and figure of the article about the package, vignette("article"),
# in its order: the code that the article shows (it reads it from here, by the
# labels), the simulations, and the times, beside those of other packages.
# Figures are replication-1.png and so on, as they are numbered there.

usage <- "Usage: Rscript replication.R [options]

  --out DIR   folder for tables and figures (.)
  --cores N   processes for the simulations (2); times are taken by one
  --quick     the smallest form, less than 20 seconds: a few rows of each table
  --help      this text

The packages kernlab, energy and MASS are compared with, or have data; vegan, ks
and mclust are, where they are installed."

study_name <- "replication.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))
source(file.path(here, "mixtures.R"))

chosen <- read_options(commandArgs(TRUE), list(out = ".", cores = "2",
                                               quick = FALSE), usage)
out <- output_folder(chosen$out)
quick <- chosen$quick
cores <- if (quick) 1 else whole_number(chosen$cores, "--cores", 1)
cores <- start_processes(cores)
use_one_thread()
absent <- \(package) !requireNamespace(package, quietly = TRUE)
needed <- c("kernlab", "energy", "MASS")
if (any(vapply(needed, absent, NA))) give_up("needs ", toString(needed))

# One file a page.
if (capabilities("png")) {
  grDevices::png(file.path(out, "replication-%d.png"), 960, 540, res = 144,
                 pointsize = 11)
} else {
  grDevices::pdf(file.path(out, "replication.pdf"), 6.67, 3.75)
}
graphics::par(mar = c(4, 4.6, 2.4, 0.8), mgp = c(2.6, 0.7, 0))

## ---- part-1 ----
# Illustration 1: the mean of a few points

## ---- few ----
crabs <- MASS::crabs
all_crabs <- kme(crabs[4:8], scale = TRUE)
set.seed(1)
few <- crabs[sample(200, 15), 4:8]
fit <- kme(few, all_crabs$kernel, estimator = "skmse")
fit

## ---- few-errors ----
names <- c("kme", "skmse", "fkmse", "mkme", "smooth", "stack")
fits <- sapply(names, \(name) update(fit, estimator = name), simplify = FALSE)
errors <- sapply(fits, \(fit) kme_distance(fit, all_crabs)^2)
round(errors / errors[["kme"]], 3)

## ---- risk-study ----
# Squared errors of n points of a law, 100 samples each: a draw gives points,
# their kernel, and the error of a fit. The mixtures are those of mixtures.R; a
# sample of heavy tails, and the crabs, play the law that is drawn from.
of_population <- function(x, kernel) {
  whole <- kme(x, kernel)
  function(n) {
    list(x = x[sample(nrow(x), n, TRUE), ], kernel = kernel, error = \(fit) {
      fit$norm2 - 2 * kme_inner(fit, whole) + whole$norm2
    })
  }
}
laws <- list(
  "mixture of normals" = function(n) {
    sample <- draw_sample(5, n)
    list(x = sample$x, kernel = kernel_rbf(),
         error = \(fit) kme_risk(fit, sample$mixture))
  },
  "Student's t, 2 df" = local({
    set.seed(1)
    of_population(matrix(stats::rt(4000 * 5, 2), 4000), kernel_rbf(3))
  }),
  "crabs" = of_population(as.matrix(crabs[4:8]), all_crabs$kernel)
)
risk_of <- function(cell) {
  names <- c("kme", "skmse", "fkmse", "mkme", "smooth", "stack")
  losses <- t(vapply(seq_len(100), function(r) {
    set.seed(seed_of("risk", cell$law, cell$n, r))
    drawn <- laws[[cell$law]](cell$n)
    g <- gram(drawn$x, drawn$kernel)
    vapply(names, \(name) drawn$error(kme(g, estimator = name)), 0)
  }, numeric(length(names))))
  gains <- apply(losses[, -1], 2, gain, a = losses[, 1])
  data.frame(law = cell$law, n = cell$n, estimator = names[-1],
             gain = gains["gain", ], se = gains["se", ], reps = nrow(losses),
             row.names = NULL)
}
sizes <- expand.grid(n = c(10, 20, 50, 100), law = names(laws),
                     stringsAsFactors = FALSE)
if (quick) sizes <- sizes[sizes$n == 10 & sizes$law == "crabs", ]
risk <- do.call(rbind, over(split(sizes, seq_len(nrow(sizes))), risk_of, cores))
numbers <- c("gain", "se")
risk[numbers] <- round(risk[numbers], 3)
write_table(risk, out, "article-risk.csv", c("law", "n", "estimator"))

## ---- risk-figure ----
looks <- data.frame(
  row.names = c("skmse", "fkmse", "mkme", "smooth", "stack"),
  label = c("S-KMSE", "F-KMSE", "MKME", "smoothing", "stack"),
  col = c("#0072B2", "#D55E00", "#009E73", "#CC79A7", "black"),
  pch = c(15:18, 1)
)
draw_risk <- function(risk) {
  laws <- unique(risk$law)
  before <- graphics::par(mfrow = c(1, length(laws)), mgp = c(2.2, 0.6, 0),
                          mar = c(3.4, 3.4, 1.8, 0.4), las = 1)
  on.exit(graphics::par(before))
  for (law in laws) {
    rows <- risk[risk$law == law, ]
    graphics::plot(NA, xlim = range(risk$n), log = "x", xaxt = "n", main = law,
                   ylim = range(0, risk$gain + 2 * risk$se,
                                risk$gain - 2 * risk$se),
                   xlab = "points", ylab = "% of the error saved", cex.main = 1)
    graphics::axis(1, unique(risk$n))
    graphics::abline(h = 0, lty = 2)
    for (i in seq_len(nrow(looks))) {
      at <- rows[rows$estimator == rownames(looks)[i], ]
      at$n <- at$n * 1.03^(i - 3)
      with(looks[i, ], {
        graphics::segments(at$n, at$gain - 2 * at$se, y1 = at$gain + 2 * at$se,
                           col = col)
        graphics::lines(at$n, at$gain, type = "o", col = col, pch = pch)
      })
    }
    if (law == laws[length(laws)]) {
      graphics::legend("topright", looks$label, col = looks$col, lty = 1,
                       pch = looks$pch, bty = "n", cex = 0.95)
    }
  }
}
draw_risk(risk)

## ---- part-2 ----
# Illustration 2: tests

## ---- males ----
males <- subset(crabs, sex == "M", c(sp, FL, RW, CL, CW, BD))
set.seed(1)
alone <- mmd_test(. ~ sp, males, filter = "none")
alone

## ---- males-joint ----
set.seed(1)
joint <- mmd_test(. ~ sp, males)
joint

## ---- males-figure ----
plot(joint)

## ---- males-energy ----
set.seed(1)
peer <- energy::eqdist.etest(males[-1], c(50, 50), R = 999)$p.value

## ---- pairs ----
mmd_pairwise(crabs[4:8], interaction(crabs$sp, crabs$sex, sep = " "),
             filter = TRUE, B = 399)

## ---- dependence ----
growth <- transform(males, ratio = RW / CL)
set.seed(1)
hsic_test(ratio ~ CL, growth[growth$sp == "O", ])

## ---- power-study ----
# Shares of 100 data sets in which a test of level 0.05 rejects, B = 199: two
# samples of 50 points in five columns, or 100 pairs.
two_samples <- function(change) {
  function() {
    normal <- \() matrix(stats::rnorm(250), 50)
    list(x = normal(), y = change(normal()))
  }
}
pairs_of <- function(make) {
  function() {
    x <- stats::rnorm(100)
    list(x = x, y = make(x, stats::rnorm(100)))
  }
}
low <- c(3, 3, 3, 1, 0.3)
designs <- list(
  "no difference" = two_samples(identity),
  "shift of all columns" = two_samples(\(y) y + 0.3),
  "shift, column of little variance" = function() {
    both <- two_samples(\(y) y + rep(c(0, 0.7), c(200, 50)))()
    lapply(both, \(x) x * rep(low, each = 50))
  },
  "spread" = two_samples(\(y) 1.35 * y),
  "correlation" = two_samples(\(y) sqrt(0.5) * (y + stats::rnorm(50))),
  "two clusters" = two_samples(\(y) {
    0.5 * y + sqrt(0.75) * sample(c(-1, 1), 50, TRUE)
  }),
  "independent" = pairs_of(\(x, e) e),
  "line" = pairs_of(\(x, e) 0.3 * x + e),
  "parabola" = pairs_of(\(x, e) 0.4 * x^2 + e),
  "circle" = function() {
    angle <- stats::runif(100, 0, 2 * pi)
    list(x = cos(angle) + stats::rnorm(100, sd = 0.4),
         y = sin(angle) + stats::rnorm(100, sd = 0.4))
  },
  "wave" = pairs_of(\(x, e) sin(4 * x) + e),
  "noise grows" = pairs_of(\(x, e) e * (0.3 + abs(x)))
)
two_sample_tests <- list(
  "mmd_test()" = \(d) mmd_test(d$x, d$y, B = 199)$p.value,
  "MMD alone" = \(d) mmd_test(d$x, d$y, filter = "none", B = 199)$p.value,
  "energy::eqdist.etest()" = \(d) {
    energy::eqdist.etest(rbind(d$x, d$y), c(50, 50), R = 199)$p.value
  }
)
pair_tests <- list(
  "hsic_test()" = \(d) hsic_test(d$x, d$y, B = 199)$p.value,
  "HSIC alone" = \(d) hsic_test(d$x, d$y, filter = "none", B = 199)$p.value,
  "energy::dcov.test()" = \(d) energy::dcov.test(d$x, d$y, R = 199)$p.value
)
power_of <- function(design) {
  tests <- if (design %in% names(designs)[1:6]) two_sample_tests else pair_tests
  # The joint tests take most of the time.
  if (quick) tests <- tests[2:3]
  p <- repeat_tests(designs[[design]], tests, 100, 1, seed_of("power", design))
  data.frame(design, test = names(tests), power = colMeans(rejects(p)),
             reps = nrow(p), row.names = NULL)
}
# Samples and pairs by turns: pairs take less time.
asked <- names(designs)[c(rbind(1:6, 7:12))]
if (quick) asked <- c("correlation", "circle")
power <- do.call(rbind, over(asked, power_of, cores))
power <- power[order(match(power$design, names(designs))), ]
write_table(power, out, "article-power.csv", c("design", "test"))

## ---- part-3 ----
# Illustration 3: components and classes

## ---- components ----
crabs$group <- interaction(crabs$sp, crabs$sex, sep = " ")
pca <- kme_pca(crabs[4:8], ncomp = 4, scale = "whiten")
pca
fda <- kme_fda(group ~ FL + RW + CL + CW + BD, crabs, scale = "whiten")
fda

## ---- components-figure ----
plot(fda)

## ---- classes ----
set.seed(1)
fold <- sample(rep(1:10, 20))
wrong <- sapply(1:10, \(k) {
  known <- crabs[fold != k, ]
  new <- crabs[fold == k, ]
  by_kernel <- kme_fda(group ~ FL + RW + CL + CW + BD, known, scale = "whiten")
  by_line <- MASS::lda(group ~ FL + RW + CL + CW + BD, known)
  c(kme_fda = sum(predict(by_kernel, new)$class != new$group),
    lda = sum(predict(by_line, new)$class != new$group))
})
rowSums(wrong) / 200

## ---- part-4 ----
# Illustration 4: weights, effects, instruments

## ---- weights ----
births <- transform(MASS::birthwt, ptl = ptl > 0, ftv = pmin(ftv, 2))
births$race <- factor(births$race, labels = c("white", "black", "other"))
w <- kme_weights(smoke ~ age + lwt + race + ptl + ht + ui + ftv, births)
w

## ---- weights-figure ----
plot(w)

## ---- effect ----
effect <- kme_effect(bwt ~ smoke, ~ age + lwt + race + ptl + ht + ui + ftv,
                     births)
effect

## ---- market ----
set.seed(5)
market <- data.frame(cost = rnorm(500), cause = rnorm(500))
market$price <- with(market, cost + cause / 2 + rnorm(500) / 4)
market$sold <- with(market, 3 - log1p(exp(2 * price)) + cause)
demand <- rkhs_iv(sold ~ price | cost, market)
elasticity <- kme_effect(demand)
elasticity
mean(-2 * plogis(2 * market$price)) # the truth

## ---- effect-study ----
# 100 samples of a design with effect 1; its treatment and its outcome depend on
# squares of the covariates.
draw_trial <- function(n) {
  x <- as.data.frame(matrix(stats::rnorm(3 * n), n))
  x$treat <- stats::rbinom(n, 1, stats::plogis(x$V1 + (x$V2^2 - 1) / 2))
  x$y <- x$treat + x$V1 + x$V2^2 + stats::rnorm(n)
  x
}
estimate <- list(
  "kme_effect()" = function(d) {
    e <- kme_effect(y ~ treat, ~ V1 + V2 + V3, d)
    c(coef(e), sqrt(diag(vcov(e))))
  },
  "lm()" = function(d) {
    coef(summary(stats::lm(y ~ treat + V1 + V2 + V3, d)))["treat", 1:2]
  },
  "logistic weights" = function(d) {
    p <- stats::fitted(stats::glm(treat ~ V1 + V2 + V3, stats::binomial, d))
    at <- d$treat == 1
    c(stats::weighted.mean(d$y[at], 1 / p[at]) -
        stats::weighted.mean(d$y[!at], 1 / (1 - p[!at])), NA)
  }
)
effects_of <- function(n) {
  found <- vapply(seq_len(100), function(r) {
    set.seed(seed_of("effect", n, r))
    d <- draw_trial(n)
    vapply(estimate, \(f) as.numeric(f(d)), numeric(2))
  }, matrix(0, 2, length(estimate)))
  off <- found[1, , ] - 1
  covered <- abs(off) <= stats::qnorm(0.975) * found[2, , ]
  data.frame(n, method = names(estimate), bias = rowMeans(off),
             rmse = sqrt(rowMeans(off^2)), covered = rowMeans(covered),
             reps = ncol(off), row.names = NULL)
}
trials <- c(200, 500, 1000)
if (quick) trials <- 200
effects <- do.call(rbind, over(trials, effects_of, cores))
numbers <- c("bias", "rmse")
effects[numbers] <- round(effects[numbers], 4)
write_table(effects, out, "article-effects.csv", c("n", "method"))

## ---- part-5 ----
# Illustration 5: rows that no memory need hold

## ---- requests ----
requests <- function(n, day = 0, apart = 0) {
  size <- rnorm(n)
  queue <- rexp(n)
  other <- ifelse(runif(n) < apart, rnorm(n), size)
  data.frame(size = size + day, queue,
             time = 0.8 * other + 0.4 * queue + rnorm(n, sd = 0.4) + day)
}
set.seed(2026)
landmarks <- kme_landmarks(requests(20000), 100, scale = TRUE)
monday <- kme_sketch(requests(50000), landmarks)
tuesday <- kme_sketch(requests(50000, 0.02), landmarks)
monday + tuesday

## ---- requests-test ----
change <- mmd_test(monday, tuesday)
change$p.value
kme_pca(monday + tuesday, ncomp = 3)$values

## ---- days ----
effects_of_days <- rnorm(40, sd = 0.05)
log <- do.call(rbind, Map(\(t, day) {
  cbind(day = sprintf("day %02d", t), requests(1000, day, 0.1 * (t > 30)))
}, 1:40, effects_of_days))
days <- kme_sketch(log, landmarks, groups = "day", moments = 2)
monitor <- kme_monitor(days, reference = 20)
monitor

## ---- days-figure ----
plot(monitor)

## ---- changes ----
changes <- kme_changes(days, B = 199)
changes

## ---- sketch-study ----
# What landmarks lose: 5,000 rows and sketches of them.
set.seed(seed_of("sketch"))
rows <- requests(5000)
whole <- kme(rows, scale = TRUE)
own_risk <- (1 - whole$norm2) / 5000
values <- kme_pca(rows, whole$kernel, ncomp = 10)$values
sketches <- do.call(rbind, lapply(c(25, 50, 100, 200), function(m) {
  set.seed(seed_of("landmarks", m))
  s <- kme_sketch(rows, kme_landmarks(rows, m, whole$kernel))
  mean <- kme(s)
  found <- kme_pca(s, ncomp = 10)$values
  data.frame(m, lost = 100 * as.data.frame(s)$lost,
             error = 100 * kme_distance(mean, whole)^2 / own_risk,
             eigenvalue = 100 * max(abs(found / values - 1)))
}))
sketches[-1] <- signif(sketches[-1], 4)
write_table(sketches, out, "article-sketch.csv", "m")

## ---- part-6 ----
# Comparison: seconds

## ---- times-study ----
# Processor seconds of a call, one thread each: the median of three calls, and
# one call where that takes more than two seconds.
seconds <- function(call) {
  once <- \() {
    gc(FALSE)
    utils::capture.output(suppressMessages(
      used <- system.time(call(), gcFirst = FALSE)
    ))
    sum(used[c("user.self", "sys.self")])
  }
  first <- once()
  if (quick || first > 2) first else stats::median(c(first, once(), once()))
}
timed <- function(task, package, call, n, again = 1) {
  if (absent(package)) return(NULL)
  message(task, ", ", n)
  data.frame(task, n, seconds = signif(seconds(\() for (i in seq_len(again)) {
    call()
  }) / again, 3))
}
normal <- function(n, d = 5) matrix(stats::rnorm(n * d), n)
# By the number of points in each of two samples, to the largest that is taken.
ways <- list(
  list("mmd_test(filter = \"none\")", "kernmean", 30000,
       \(x, y) mmd_test(x, y, filter = "none", B = 199)),
  list("mmd_test()", "kernmean", 1000, \(x, y) mmd_test(x, y, B = 199)),
  list("mmd_test() of sketches", "kernmean", 3e5, \(x, y) {
    l <- kme_landmarks(x, 100)
    mmd_test(kme_sketch(x, l), kme_sketch(y, l))
  }),
  list("energy::eqdist.etest()", "energy", 3000, \(x, y) {
    energy::eqdist.etest(rbind(x, y), c(nrow(x), nrow(y)), R = 199)
  }),
  list("vegan::adonis2()", "vegan", 300, \(x, y) {
    sample <- gl(2, nrow(x))
    distances <- stats::dist(rbind(x, y))
    vegan::adonis2(distances ~ sample, permutations = 199)
  }),
  list("kernlab::kmmd(asymptotic = TRUE)", "kernlab", 300,
       \(x, y) kernlab::kmmd(x, y, asymptotic = TRUE))
)
counts <- c(100, 300, 1000, 3000, 10000, 30000, 1e5, 3e5)
if (quick) counts <- 100
set.seed(1)
times <- do.call(rbind, lapply(counts, function(n) {
  x <- normal(n)
  y <- normal(n)
  do.call(rbind, lapply(ways, function(way) {
    if (n <= way[[3]]) {
      timed(way[[1]], way[[2]], \() way[[4]](x, y), n,
            if (n < 1000 && !quick) 5 else 1)
    }
  }))
}))

n <- if (quick) 50 else 1000
x <- normal(n)
y <- normal(n)
two <- normal(n, 2)
sigma <- list(sigma = 1 / (2 * 3^2))
others <- rbind(
  timed("hsic_test()", "kernmean", \() hsic_test(x, y, B = 199), n),
  timed("hsic_test(filter = \"none\")", "kernmean",
        \() hsic_test(x, y, filter = "none", B = 199), n),
  timed("energy::dcov.test()", "energy", \() energy::dcov.test(x, y, R = 199),
        n),
  timed("kme_pca()", "kernmean", \() kme_pca(x, kernel_rbf(3), ncomp = 10), n),
  timed("kernlab::kpca()", "kernlab",
        \() kernlab::kpca(x, kpar = sigma, features = 10), n),
  timed("kme_density()", "kernmean", \() kme_density(two), n),
  timed("ks::kde()", "ks", \() ks::kde(two, ks::Hpi(two)), n),
  timed("mclust::Mclust()", "mclust", \() {
    mclustBIC <- mclust::mclustBIC # nolint: Mclust() looks for it here.
    mclust::Mclust(two, verbose = FALSE)
  }, n)
)
times <- rbind(times, others)
print(times, row.names = FALSE)
write_table(times, out, "article-times.csv")

## ---- times-figure ----
draw_times <- function(times) {
  rows <- times[grepl("mmd|energy::eq|adonis", times$task), ]
  tasks <- unique(rows$task)
  colors <- c("#0072B2", "#56B4E9", "black", "#D55E00", "#E69F00", "#CC79A7")
  before <- graphics::par(mar = c(3.6, 4.4, 0.6, 15.5), las = 1, xpd = NA,
                          mgp = c(2.4, 0.7, 0))
  on.exit(graphics::par(before))
  graphics::plot(rows$n, rows$seconds, log = "xy", type = "n", axes = FALSE,
                 frame.plot = TRUE, xlab = "points in each sample", ylab = "")
  graphics::title(ylab = "seconds", line = 3.2)
  at <- 10^(2:5)
  at <- at[at >= min(rows$n) & at <= max(rows$n)]
  graphics::axis(1, at, format(at, big.mark = ",", scientific = FALSE,
                               trim = TRUE))
  at <- 10^(-3:2)
  at <- at[at >= min(rows$seconds) & at <= max(rows$seconds)]
  graphics::axis(2, at, format(at, drop0trailing = TRUE, trim = TRUE))
  for (i in seq_along(tasks)) {
    one <- rows[rows$task == tasks[i], ]
    graphics::lines(one$n, one$seconds, type = "o", col = colors[i],
                    pch = 14 + i, lwd = 1.6)
  }
  corner <- graphics::par("usr")
  graphics::legend(10^corner[2] * 1.15, 10^corner[4], tasks, lty = 1, lwd = 1.6,
                   col = colors, pch = 14 + seq_along(tasks), bty = "n",
                   cex = 0.85)
}
draw_times(times)

## ---- part-7 ----
# The numbers that the text gives

## ---- values ----
values <- c(errors, alone = alone$p.value, joint = joint$p.value, energy = peer,
            fda = sum(wrong["kme_fda", ]), lda = sum(wrong["lda", ]),
            effect = coef(effect), effect_se = sqrt(vcov(effect)),
            elasticity = coef(elasticity), change = change$p.value,
            evidence = log10(tail(as.data.frame(monitor)$evidence, 1)))
names(values) <- make.unique(names(values))
write_table(data.frame(name = names(values), value = signif(values, 5)), out,
            "article-values.csv", "name")
invisible(grDevices::dev.off())
