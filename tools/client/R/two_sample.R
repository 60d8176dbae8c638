two_sample <- function(x, y, bandwidth, B = 999) {
  m <- nrow(x)
  n <- m + nrow(y)
  first <- cbind(seq_len(m), matrix(replicate(B, sample.int(n, m)), m))
  values <- .Call(C_statistics, rbind(x, y), bandwidth, first)
  # What is equal but for rounding is as large.
  least <- values[1] - 1e-10 * max(abs(values))
  list(statistic = values[1], p.value = mean(values >= least))
}

.onUnload <- function(libpath) library.dynam.unload("twosample", libpath)
