# What an estimate costs: processor seconds of one fit, one thread, for the KME,
# S-KMSE, F-KMSE (exact and generalized score), MKME, smoothing and the stack of
# n points in 10 columns, RBF kernel with a given bandwidth. Processor time is
# little disturbed by whatever else the machine does; the BLAS has next to no
# part in it.

usage <- "Usage: Rscript cost.R [options]

  --most N   largest n (2000; 5000 takes minutes)
  --out DIR  folder for the table (.)
  --help     this text"

study_name <- "cost.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

ways <- list(
  "KME" = est_kme(), "S-KMSE loocv" = est_skmse(),
  "F-KMSE gcv" = est_fkmse(select = "gcv"), "F-KMSE loocv" = est_fkmse(),
  "MKME loocv" = est_mkme(), "smoothing" = est_smooth(), "stack" = est_stack()
)

# Repeats until half a second has passed; the least of three, or of one that
# takes long.
seconds <- function(fit) {
  least <- Inf
  for (i in 1:3) {
    gc(FALSE)
    start <- proc.time()
    for (count in 1:1000) {
      fit()
      used <- sum((proc.time() - start)[c("user.self", "sys.self")])
      if (used > 0.5) break
    }
    least <- min(least, used / count)
    if (used > 2) break
  }
  least
}

arguments <- read_options(commandArgs(TRUE), list(most = "2000", out = "."),
                          usage)
most <- whole_number(arguments$most, "--most", 100)
folder <- output_folder(arguments$out)
use_one_thread()
set.seed(1)
sizes <- c(100, 300, 500, 1000, 2000, 5000)
cells <- expand.grid(estimator = names(ways), n = sizes[sizes <= most],
                     stringsAsFactors = FALSE)
cells$seconds <- mapply(\(name, n) {
  x <- matrix(stats::rnorm(10 * n), n)
  signif(seconds(\() kme(x, kernel_rbf(4), ways[[name]])), 3)
}, cells$estimator, cells$n)
print(cells)
write_table(cells, folder, "cost.csv")
