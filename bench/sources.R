# Rscript bench/sources.R [rows]
# A sketch of a .csv file of eight columns of numbers and one of letters: read
# in blocks by data.table's fread(), as it is where that is installed, and by
# read.csv(), as ratio of times in one run, and whether the sums are the same
# bits.

library(kernmean)
n <- as.double(commandArgs(trailingOnly = TRUE))
n <- if (length(n)) n[1] else 5e5
stopifnot(requireNamespace("data.table", quietly = TRUE))
set.seed(1)
path <- tempfile(fileext = ".csv")
x <- data.frame(matrix(rnorm(8 * n), n), letter = sample(letters, n, TRUE))
landmarks <- kme_landmarks(x[seq_len(2000), -9], 50)
data.table::fwrite(x, path)
rm(x)
run <- \(...) {
  time <- system.time(
    sketch <- kme_sketch(path, landmarks, ..., progress = FALSE)
  )
  list(seconds = sum(time[1:2]), sums = sketch$sums)
}
fast <- run()
plain <- run(read = utils::read.csv)
unlink(path)
cat(sprintf(
  "%.0f rows: %.1f s of processor time in blocks, %.1f s by read.csv(); %s\n",
  n, fast$seconds, plain$seconds,
  if (identical(fast$sums, plain$sums)) "the same bits" else "OTHER SUMS"
))
cat(sprintf("ratio %.1f\n", plain$seconds / fast$seconds))
