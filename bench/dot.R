# Rscript bench/dot.R
# A dot in a formula beside the same columns as matrices, and beside lm(. ~ g)'s
# own reading of them, model.frame(): seconds of processor time by the number of
# columns, of 12 rows.

suppressMessages(library(kernmean))
kernmean_threads(1)
took <- function(code) sum(system.time(code)[1:2])
rows <- lapply(c(500, 2000, 8000, 20000), function(d) {
  set.seed(1)
  data <- as.data.frame(matrix(rnorm(12 * d), 12))
  x <- as.matrix(data)
  data$g <- rep(1:2, 6)
  test <- function(...) mmd_test(..., B = 19, filter = "none")
  data.frame(
    columns = d, formula = took(test(. ~ g, data)),
    matrices = took(test(x[data$g == 1, ], x[data$g == 2, ])),
    # terms() runs out of its stack above about 10,000 terms.
    model.frame = if (d <= 8000) took(model.frame(g ~ ., data)) else NA
  )
})
table <- do.call(rbind, rows)
table$growth <- c(NA, diff(log(table$formula)) / diff(log(table$columns)))
print(table, digits = 3, row.names = FALSE)
cat("growth: the exponent of the number of columns since the row before\n")
