# Rscript bench/fda.R
# Kernel Fisher discriminants: the choice of the bandwidth against one fit, and
# the factor and its solves against LAPACK as R calls it. Run it under each
# BLAS.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))

internal <- asNamespace("kernmean")

# Points of `classes` clouds, in d columns.
clouds <- function(n, d, classes) {
  set.seed(1)
  y <- rep_len(seq_len(classes), n)
  centers <- matrix(rnorm(classes * d), classes)
  list(x = centers[y, ] + matrix(rnorm(n * d), n), y = y)
}

compare <- function(n, d, classes) {
  heading("n = ", n, ", d = ", d, ", ", classes, " classes, one thread")
  data <- clouds(n, d, classes)
  with_threads(1, {
    one <- best(kme_fda(data$x, data$y, bandwidth = "median"), 3)
    seven <- best(kme_fda(data$x, data$y, ridge = "shrinkage"), 1)
    row("bandwidth = \"median\"", one)
    row("bandwidth = \"loo\", 7 bandwidths", seven)
    bar("time, loo / median", seven / one, 7.5, at_least = FALSE)
    svm <- measured("e1071", best(e1071::svm(data$x, factor(data$y)), 3))
    row("svm of e1071 with its defaults", svm)
  })
}

# N, its factor, and what leaving one out solves by it; as LAPACK has it.
compare_root <- function(n) {
  heading("scatter, factor, leave-one-out solves, n = ", n, ", one thread")
  data <- clouds(n, 10, 5)
  k <- kernel_matrix(data$x, kernel = kernel_rbf())
  with_threads(1, {
    mine <- best({
      l <- internal$cholesky(internal$tcross(k), 1)
      internal$inverse_lower(l)
      internal$solve_lower(l, k)
    }, 3)
    its <- best({
      a <- tcrossprod(k)
      diag(a) <- diag(a) + 1
      r <- chol(a)
      chol2inv(r)
      backsolve(r, k, transpose = TRUE)
    }, 1)
  })
  row("blocked loops", mine)
  row("tcrossprod, chol, chol2inv, backsolve", its)
  bar("time, LAPACK / ours", its / mine, if (n < 1000) 1 else 2)
}

compare_root(500)
compare_root(1000)
compare(150, 4, 3)
compare(1000, 10, 2)
compare(1000, 10, 11)
