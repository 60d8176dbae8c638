# Rscript bench/small.R [LIBRARY ...]
# What small calls cost beside the same done by hand or by others: processor
# time of 20 points in 4 columns, of tests of 30 and 30 points, of default tests
# of more (two samples in 5 columns; independence of two columns), of
# eigenvalues and eigenvectors to those of eigen(), and of products with 1 to 30
# columns, of which the worst ratio of each size is shown. Other
# states, installed in the libraries named, are measured in the same run, turn
# by turn; the least of all. NA: that state has no such call. Run it under each
# BLAS; the first line names it.

measure <- '
  suppressMessages(library(kernmean))
  set.seed(1)
  x <- matrix(rnorm(80), 20)
  y <- matrix(rnorm(80), 20)
  u <- matrix(rnorm(120), 30)
  v <- matrix(rnorm(120), 30)
  wide <- matrix(rnorm(5000), 1000)
  kernel <- kernel_rbf(2)
  fit <- kme(x, kernel)
  us <- function(code, frame = parent.frame()) {
    tryCatch({
      f <- as.function(list(code), frame)
      seconds <- \\(times) {
        from <- proc.time()
        for (i in seq_len(times)) f()
        sum((proc.time() - from)[1:2])
      }
      times <- 2
      while (seconds(times) < 0.1) times <- 2 * times
      1e6 * min(replicate(3, seconds(times))) / times
    }, error = \\(e) NA)
  }
  calls <- alist(
    by_hand = {
      square <- rowSums(x^2)
      colMeans(exp((2 * tcrossprod(x) - outer(square, square, "+")) / 8))
    },
    kme = kme(x, kernel), kme_median = kme(x), coef = coef(fit),
    predict = predict(fit, y),
    mmd = mmd_test(x, y, kernel, filter = "none", B = 99),
    hsic = hsic_test(x[, 1], x[, 2], filter = "none", B = 99),
    mmd_default = mmd_test(x, y, B = 99),
    hsic_default = hsic_test(x[, 1], x[, 2], B = 99),
    mmd_30 = mmd_test(u, v, filter = "none", B = 199),
    energy_30 = energy::eqdist.etest(rbind(u, v), c(30, 30), R = 199),
    mmd_default_30 = mmd_test(wide[1:30, ], wide[201:230, ]),
    mmd_default_100 = mmd_test(wide[1:100, ], wide[201:300, ]),
    mmd_default_200 = mmd_test(wide[1:200, ], wide[201:400, ]),
    hsic_default_30 = hsic_test(wide[1:30, 1], wide[1:30, 2]),
    hsic_default_1000 = hsic_test(wide[, 1], wide[, 2])
  )
  each <- vapply(calls, us, 0, environment())
  # The spectrum of n points, to eigen().
  spectra <- function(n, vectors) {
    k <- exp(-as.matrix(dist(wide[1:n, ]))^2 / 8)
    dimnames(k) <- NULL
    own <- if (vectors) quote(.Call(kernmean:::C_r_eigen, k, nrow(k))) else
      quote(kernmean:::spectrum_values(k))
    us(own) / us(bquote(eigen(k, TRUE, only.values = .(!vectors))))
  }
  for (n in c(5, 10, 30, 50, 100)) {
    each[paste("values", n)] <- spectra(n, FALSE)
    each[paste("vectors", n)] <- spectra(n, TRUE)
  }
  # AB, A\'W, W\'A, AB\' and W\'W to those of base R.
  for (name in c("product", "cross", "tcross")) {
    assign(name, get0(name, asNamespace("kernmean")))
  }
  worst <- function(n, d) {
    a <- matrix(rnorm(n * d), n)
    ratios <- vapply(c(1, 3, 8, 30), \\(p) {
      b <- matrix(rnorm(d * p), d)
      w <- matrix(rnorm(n * p), n)
      to <- \\(own, base) us(own, frame = parent.frame()) /
        us(base, frame = parent.frame())
      c(to(quote(product(a, b)), quote(a %*% b)),
        to(quote(cross(a, w)), quote(crossprod(a, w))),
        to(quote(cross(w, a)), quote(crossprod(w, a))),
        to(quote(tcross(a, t(b))), quote(tcrossprod(a, t(b)))),
        to(quote(cross(w)), quote(crossprod(w))))
    }, numeric(5))
    max(ratios)
  }
  sizes <- list(c(20, 5), c(100, 5), c(500, 5), c(500, 30), c(10000, 200))
  names(sizes) <- vapply(sizes, paste, "", collapse = " x ")
  each <- c(each, vapply(sizes, \\(size) worst(size[1], size[2]), 0))
  dput(each, control = c("digits17", "niceNames"))
'
libraries <- c("", commandArgs(TRUE))
one <- function(library) {
  paths <- c(if (nzchar(library)) library, Sys.getenv("R_LIBS"))
  found <- system2(
    file.path(R.home("bin"), "Rscript"), c("-e", shQuote(measure)),
    stdout = TRUE, env = c(paste0("R_LIBS=", paste(paths, collapse = ":")),
                           "OMP_NUM_THREADS=1")
  )
  if (length(found) == 0) {
    stop("kernmean must be installed in ", toString(paths), call. = FALSE)
  }
  eval(parse(text = found))
}
turns <- lapply(1:3, \(turn) sapply(libraries, one))
least <- do.call(pmin, turns)
colnames(least) <- c("this", libraries[-1L])
ratios <- grepl(" ", rownames(least))
cat("BLAS:", extSoftVersion()[["BLAS"]], "\nmicroseconds of processor time\n")
print(round(least[!ratios, , drop = FALSE], 1))
cat("spectra to eigen(), products of 1 to 30 columns to base R, the worst\n")
print(round(least[ratios, , drop = FALSE], 2))
ratio <- \(a, b) format(least[a, 1L] / least[b, 1L], digits = 2)
cat("kme(x, kernel) takes", ratio("kme", "by_hand"),
    "times colMeans() by hand, mmd_test(filter = \"none\") of 30 and 30 points",
    ratio("mmd_30", "energy_30"), "times energy::eqdist.etest()\n")
if (length(libraries) > 1L) {
  cat("ratios of this state to the others\n")
  print(round(least[, 1L] / least[, -1L, drop = FALSE], 2))
}
