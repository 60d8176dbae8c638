two_sample <- function(x, y, bandwidth, B = 999) {
  m <- nrow(x)
  n <- m + nrow(y)
  first <- cbind(seq_len(m), replicate(B, sample.int(n, m)))
  values <- .Call(C_statistics, rbind(x, y), bandwidth, first)
  list(statistic = values[1], p.value = mean(values >= values[1]))
}
