# Kernel Fisher discriminants as their formulas are printed.

flowers <- as.matrix(iris[c(1:9, 51:58, 101:107), 1:4])
species <- droplevels(iris$Species[c(1:9, 51:58, 101:107)])

# M, N and D as the paper prints them, class by class.
scatter_R <- function(K, y) {
  y <- droplevels(as.factor(y))
  M <- sapply(levels(y), \(l) rowMeans(K[, y == l, drop = FALSE]))
  N <- 0 * K
  for (l in levels(y)) {
    kl <- K[, y == l, drop = FALSE]
    m <- ncol(kl)
    N <- N + kl %*% (diag(m) - 1 / m) %*% t(kl)
  }
  list(M = M, N = N,
       D = (M - rowMeans(K)) %*% diag(sqrt(tabulate(y))))
}

# Squared distances of points (columns of kernel values) to the class means on
# axes from an eigendecomposition, another way than the package's.
distance_R <- function(K, y, r, points) {
  s <- scatter_R(K, y)
  A <- if (is.finite(r)) s$N + r * diag(nrow(K)) else diag(nrow(K))
  classes <- ncol(s$M)
  e <- eigen(A, TRUE)
  half <- e$vectors %*% (t(e$vectors) / sqrt(e$values))
  w <- svd(half %*% s$D)$u[, seq_len(classes - 1), drop = FALSE]
  alpha <- sqrt(nrow(K) - classes) * half %*% w
  out <- sapply(seq_len(classes), \(c) {
    colSums(crossprod(alpha, points - s$M[, c])^2)
  })
  matrix(out, ncol(points))
}

# Those to the class means of each point in the fit without it, same ridge.
left_out_R <- function(K, y, r) {
  t(vapply(seq_along(y), \(i) {
    distance_R(K[-i, -i], y[-i], r, K[-i, i, drop = FALSE])[1, ]
  }, numeric(nlevels(y))))
}

# Leave-one-out error and mean log posterior by refits, in a population of these
# prior probabilities, with the ridge of shrinkage.
fda_score_R <- function(K, y, prior) {
  shrunk <- shrink_gram(as_gram(K))
  r <- shrunk$intensity / (1 - shrunk$intensity) *
    (shrunk$trace / (nrow(K) - 1))^2
  distance <- left_out_R(K, y, r)
  own <- cbind(seq_along(y), as.integer(y))
  sigma2 <- mean(distance[own]) / (nlevels(y) - 1)
  odds <- exp(-distance / (2 * sigma2)) %*% diag(prior)
  posterior <- odds / rowSums(odds)
  wrong <- max.col(posterior) != as.integer(y)
  rate <- tapply(wrong, y, mean)
  likelihood <- tapply(log(posterior[own]), y, mean)
  in_use <- prior > 0
  c(sum((prior * rate)[in_use]), sum((prior * likelihood)[in_use]))
}
