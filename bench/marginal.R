# Rscript bench/marginal.R
# Selection of the noise: MKME along one variance, MMKME by its gradient against
# Nelder-Mead on the same score, in one run. Both start from the MKME optimum.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))

# The score is not exported: it is what the peer is given.
score_of <- utils::getFromNamespace("marginal_score", "kernmean")
select <- utils::getFromNamespace("find_noise", "kernmean")

nelder_mead <- function(x, kernel) {
  score <- score_of(x, kernel)
  shared <- select(est_mkme(), x, kernel)
  unit <- shared$noise[1L]
  gain <- shared$reference - shared$minimum
  scaled <- function(u) {
    if (any(u < 0)) return(Inf)
    (score$at(unit * u)$value - shared$reference) / gain
  }
  found <- optim(rep(1, ncol(x)), scaled, method = "Nelder-Mead",
                 control = list(maxit = 20000))
  list(minimum = found$value * gain + shared$reference,
       calls = found$counts[[1L]])
}

set.seed(1)
spread <- rep(c(2, 1, 0.3), each = 10)
x <- matrix(rnorm(500 * 30), 500) %*% diag(spread)
kernel <- kme(x)$kernel

heading("selection of the noise, RBF, n = 500, d = 30")
row("MKME", best_short(select(est_mkme(), x, kernel)))
ours <- best_short(select(est_mmkme(), x, kernel))
row("MMKME", ours)
started <- proc.time()[["elapsed"]]
peer <- nelder_mead(x, kernel)
theirs <- proc.time()[["elapsed"]] - started
row("Nelder-Mead on the same score", theirs, paste(peer$calls, "calls"))
bar("Nelder-Mead / MMKME", theirs / ours, 100)
mine <- select(est_mmkme(), x, kernel)
gain <- mine$reference - mine$minimum
bar("gain of Nelder-Mead / gain of MMKME",
    (mine$reference - peer$minimum) / gain, 1, at_least = FALSE)

heading("kme(), n = 2000")
for (d in c(2, 10, 50)) {
  y <- matrix(rnorm(2000 * d), 2000)
  for (estimator in c("mkme", "mmkme")) {
    seconds <- best_short(kme(y, kernel_rbf(sqrt(d)), estimator), 3)
    row(sprintf("%s, d = %d", estimator, d), seconds)
  }
}
