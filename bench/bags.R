# Rscript bench/bags.R
# Gram matrices of bags: bag_gram() against the loop over pairs of bags with
# kernlab::kernelMatrix(), against mildsvm::kme(), and against a loop that does
# nothing but evaluate kernel values, as ratios in one run.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))
set.seed(1)

d <- 5
kernel <- kernel_rbf(2)
points <- function(count, size) {
  x <- matrix(rnorm(count * size * d), count * size)
  list(x = x, id = rep(seq_len(count), each = size))
}

# Of what takes long: one run.
once <- function(expression) system.time(expression)[["elapsed"]]

# What one would write without the package.
by_hand <- function(bags) {
  peer <- kernlab::rbfdot(1 / (2 * 2^2))
  inner <- matrix(0, length(bags), length(bags))
  for (a in seq_along(bags)) {
    for (b in seq_len(a)) {
      inner[a, b] <- mean(kernlab::kernelMatrix(peer, bags[[a]], bags[[b]]))
      inner[b, a] <- inner[a, b]
    }
  }
  inner
}

heading("200 bags of 50 points, d = 5")
few <- points(200, 50)
ours <- vapply(1:2, \(t) {
  with_threads(t, best_short(bag_gram(few$x, kernel, id = few$id,
                                      scale = FALSE)))
}, numeric(1))
row("bag_gram, 1 thread", ours[1])
row("bag_gram, 2 threads", ours[2])
bags <- lapply(split(seq_along(few$id), few$id), \(i) few$x[i, ])
hand <- measured("kernlab", once(inner <- by_hand(bags)))
row("the double loop with kernelMatrix()", hand)
bar("double loop / bag_gram, 1 thread", hand / ours[1], 30)
if (has("kernlab")) {
  own <- bag_gram(few$x, kernel, id = few$id, scale = FALSE)
  stopifnot(max(abs(own$inner - inner)) < 1e-12)
}
theirs <- measured("mildsvm", {
  frame <- data.frame(bag_label = 0, bag_name = few$id, instance_name = few$id,
                      few$x)
  once(mildsvm::kme(frame, sigma = 1 / 8))
})
row("mildsvm::kme", theirs)
bar("mildsvm / bag_gram, 1 thread", theirs / ours[1], 30)
row("estimator = \"fkmse\"", best_short(
  bag_gram(few$x, kernel, "fkmse", id = few$id, scale = FALSE), 3
))
for (estimator in c("mkme", "mmkme")) {
  row(paste0("estimator = \"", estimator, "\""), once(
    bag_gram(few$x, kernel, estimator, id = few$id, scale = FALSE)
  ))
}

heading("2,000 bags of 50 points, d = 5: 5e9 kernel values")
many <- points(2000, 50)
limit <- bare_loop(dirname(here))
seconds <- in_turn(
  2, bag_gram(many$x, kernel, id = many$id, scale = FALSE),
  bag_gram(many$x, kernel, "skmse", id = many$id, scale = FALSE)
)
bare <- limit(nrow(many$x), d, 2)
plain <- min(seconds[1, ])
row("bag_gram", plain)
row("bag_gram, estimator = \"skmse\"", min(seconds[2, ]))
row("bare loop", bare)
bar("bag_gram / bare loop", plain / bare, 1.5, at_least = FALSE)
bar("S-KMSE / KME", min(seconds[2, ]) / plain, 1.05, at_least = FALSE)
row("bag_gram, estimator = \"fkmse\"", once(
  bag_gram(many$x, kernel, "fkmse", id = many$id, scale = FALSE)
))
extra <- peak_memory(
  "x <- matrix(rnorm(1e5 * 5), 1e5); id <- rep(1:2000, each = 50)",
  "g <- bag_gram(x, kernel_rbf(2), id = id, scale = FALSE)"
)
cat(sprintf("  extra peak memory %.0f MB (M^2: 32 MB; the data: 4 MB)\n",
            extra))
bar("extra peak memory / (M^2 + N (d + 1)) doubles",
    extra * 1e6 / (8 * (2000^2 + 1e5 * (d + 1))), 8, at_least = FALSE)
