# Sourced by check.R: what tools/core/statistics.c printed.

# bags: their points, of which k is the matrix.
check_bags <- function(bags, k) {
  fits <- matrix(got("bag_fits"), ncol = 4)
  blocks <- lapply(bags, \(i) k[i, i])
  each <- function(f) {
    vapply(seq_along(bags), \(b) f(blocks[[b]], fits[b, 1]), 0)
  }
  betas <- Map(\(k, lambda) solve(k + lambda * diag(nrow(k)), rowMeans(k)),
               blocks, fits[, 1])
  average <- \(k, i) k[i, i] - 2 * mean(k[i, -i]) + mean(k[-i, -i])
  want <- c(
    fits[, 1], each(\(k, lambda) loocv(lambda, k)),
    each(\(k, lambda) mean(vapply(seq_len(nrow(k)), \(i) average(k, i), 0))),
    mapply(\(beta, k) sum(beta * (k %*% beta)), betas, blocks)
  )
  # solve() loses the condition number, some 1e3
  check("bag_fits", want, 1e-11)
  check("bag_weights", unlist(betas), 1e-11)
  same("bag_border", numeric(3))
  # To both sides the score is no less; lambda is right to 1e-4, the score to
  # its square.
  for (step in c(-0.1, -1e-3, 1e-3, 0.1)) {
    beside <- each(\(k, lambda) loocv(lambda * exp(step), k))
    small(max(fits[, 2] - beside), 1e-12, "the smallest score of bags")
  }
  e <- matrix(1 + inputs(57, 9), 3)
  theta2 <- 1 / (1 + 0.5 * (0:2))^2
  x <- input_matrix(43, nrow(k), 3)
  inner <- outer(1:3, 1:3, Vectorize(\(a, b) {
    t <- theta2 + e[, a] + e[, b]
    s <- Reduce(`+`, lapply(1:3, \(l) {
      outer(x[bags[[a]], l], x[bags[[b]], l], "-")^2 / t[l]
    }))
    mean(exp(-s / 2)) * prod(sqrt(theta2 / t))
  }))
  check("bag_marginal", inner)
}

# E k(x_i + e, y_j) for bandwidths 1 and e of this covariance.
noisy_matrix <- function(x, y, covariance) {
  c <- diag(ncol(x)) + covariance
  inverse <- solve(c)
  exponents <- outer(seq_len(nrow(x)), seq_len(nrow(y)), Vectorize(\(i, j) {
    u <- x[i, ] - y[j, ]
    sum(u * (inverse %*% u)) / 2
  }))
  exp(-exponents) / sqrt(det(c))
}

# Points left out of discriminants with the ridge 0.3, or with an infinite one:
# squared lengths of projections on the directions of means.
check_fda <- function(k) {
  n <- nrow(k)
  of <- ((seq_len(n) - 1)^2 %% 7) %% 3 + 1
  centers <- \(k, of) t(rowsum(t(k), of) / as.vector(table(of)))
  for (scatter in c(TRUE, FALSE)) {
    want <- t(vapply(seq_len(n), \(i) {
      m <- centers(k[-i, -i], of[-i])
      a <- if (!scatter) diag(n - 1) else
        diag(0.3, n - 1) + tcrossprod(k[-i, -i] - m[, of[-i]])
      apart <- (m - rowMeans(k[-i, -i])) %*% diag(sqrt(table(of[-i])))
      e <- eigen(crossprod(apart, solve(a, apart)), symmetric = TRUE)
      u <- crossprod(apart, solve(a, k[-i, i] - m))
      colSums((crossprod(e$vectors[, 1:2], u) / sqrt(e$values[1:2]))^2)
    }, numeric(3)))
    check(if (scatter) "fda_left_out" else "fda_without_scatter", want, 1e-11)
  }
}

covariances <- function(seed, parts) {
  lapply(seq_len(parts), \(part) {
    a <- matrix(inputs(seed, 9 * parts), 9)[, part]
    if (part == 2) diag(0, 3) else tcrossprod(matrix(a, 3))
  })
}

check_noisy <- function() {
  side <- function(n, sizes, x, weights, covariance) {
    list(x = input_matrix(x, n, 3), w = inputs(weights, n),
         rows = split(seq_len(n), rep(seq_along(sizes), sizes)),
         s = covariances(covariance, length(sizes)))
  }
  own <- side(70, c(20, 25, 25), 43, 44, 58)
  other <- side(90, c(62, 28), 55, 56, 59)
  inner <- function(a, b) {
    # Terms of both signs: the error is one on the scale of their sum.
    scale <- 0
    want <- outer(seq_along(a$rows), seq_along(b$rows), Vectorize(\(i, j) {
      p <- a$rows[[i]]
      q <- b$rows[[j]]
      terms <- outer(a$w[p], b$w[q]) *
        noisy_matrix(a$x[p, ], b$x[q, ], a$s[[i]] + b$s[[j]])
      scale <<- max(scale, sum(abs(terms)))
      sum(terms)
    }))
    list(want = want, tolerance = close * scale / max(abs(want)))
  }
  found <- inner(own, own)
  check("noisy", found$want, found$tolerance)
  found <- inner(own, other)
  check("other_noisy", found$want, found$tolerance)
}

check_sketches <- function() {
  n <- 2100
  w <- inputs(66, n)
  k <- kernel_matrix("rbf", input_matrix(43, 30, 3), input_matrix(64, n, 3))
  l <- kernel_matrix("laplace_l1", input_matrix(55, 26, 3),
                     input_matrix(65, n, 3))
  # Weights of both signs: errors on the scale of their absolute values.
  compare <- function(name, a, b) {
    want <- a %*% (w * b)
    check(name, want, close * max(a %*% (abs(w) * b)) / max(abs(want)))
  }
  compare("sketch_first", k, matrix(1, n, 1))
  compare("sketch_second", k, t(k))
  compare("sketch_cross", k, t(l))
  bin <- rep(1:4, c(50, 0, 2000, 50))
  compare("sketch_bins", k, outer(bin, 1:4, "=="))
}

# The end where the bets of five shares have made 2/rest of 1.
check_intervals <- function() {
  n <- 150
  x <- input_matrix(62, n, 3)^2
  shares <- c(0.5, 0.25, 0.125, 0.0625, 0.0625)
  stakes <- 2^(0:4) * sqrt(2 * log(2 / (shares * 0.05)) / n)
  ends <- vapply(1:3, \(j) {
    kept <- setdiff(seq_len(n), c(0, 40, n)[j])
    above <- \(m) {
      f <- pmin(1, stakes * sqrt(m / (1 - m)))
      made <- vapply(f, \(f) prod(1 - f + f * x[kept, j] / m), 1)
      sum(shares * made) - 2 / 0.05
    }
    stats::uniroot(above, c(1e-3, mean(x[kept, j])), tol = 1e-13)$root
  }, 1)
  # 24 bisections.
  check("lower_ends", ends, 2^-23)
}

# Each fold by the formulas, in the coordinates and with unseen directions: 2
# and one more that is lost with fold 3.
check_smooth <- function() {
  n <- 150
  fold <- (seq_len(n) - 1) %% 5 + 1
  x <- input_matrix(60, n, 3)
  x[fold != 2, 3] <- 0
  w <- array(inputs(61, n * 2 * 5), c(n, 2, 5))
  h <- c(0, 0.3, 1)
  pairs <- array(0, c(3, 3, 5))
  at <- matrix(0, 3, n)
  cross <- array(0, c(3, 2, 5))
  scale <- 0
  for (f in 1:5) {
    kept <- x[fold != f, ]
    m <- colMeans(kept)
    z <- sweep(kept, 2, m)
    own <- if (f == 2) 1:2 else 1:3
    unseen <- if (f == 3) 2 else 3
    plain <- diag(0, 3 + unseen)
    plain[own, own] <- crossprod(z[, own]) / nrow(z)
    seen <- c(own, 3 + seq_len(unseen))
    t <- sum(diag(plain)) / length(seen)
    target <- diag(0, 3 + unseen)
    diag(target)[seen] <- t
    apart <- sum((plain - target)^2)
    b2 <- sum(rowSums(z^2)^2) / nrow(z)^2 - sum(plain^2) / nrow(z)
    s <- plain + min(1, b2 / apart) * (target - plain)
    wide <- function(x) cbind(x, matrix(0, nrow(x), unseen))
    mu <- lapply(h, \(h) wide(sweep(sqrt(1 - h) * z, 2, m, "+")))
    for (a in 1:3) {
      value <- noisy_matrix(mu[[a]], wide(x), h[a] * s)
      at[a, fold == f] <- colMeans(value)[fold == f]
      own_w <- w[, , f] * (fold != f)
      cross[a, , f] <- drop(colMeans(value) %*% own_w)
      scale <- max(scale, colMeans(value) %*% abs(own_w))
      for (b in 1:3) {
        noise <- (h[a] + h[b]) * s
        pairs[a, b, f] <- mean(noisy_matrix(mu[[a]], mu[[b]], noise))
      }
    }
  }
  check("smooth_at", at)
  check("smooth_norms", apply(pairs, 3, diag))
  check("smooth_pairs", pairs)
  check("smooth_cross", cross, close * scale / max(abs(cross)))
}

check_statistics <- function() {
  n <- 70
  draw <- drawing(41)
  relabeled <- cbind(seq_len(n) - 1,
                     draw_permutation(draw, list(seq_len(n) - 1)),
                     draw_permutation(draw, list(seq_len(n) - 1)))
  sample <- rep(1:3, c(20, 25, 25))
  members <- apply(relabeled, 2, \(p) {
    of <- integer(n)
    of[p + 1] <- sample
    cbind(of != 2, of == 2)
  })
  z <- matrix(as.numeric(members), n)
  same("subsets", z)
  check("subset_sums", crossprod(z, input_matrix(42, n, 2)))
  k <- gram(43, n, 3)
  forms <- \(k) colSums(z * (k %*% z))
  moments <- \(k) c(sum(abs(k)), sum(k^2))
  check("subset_forms", forms(k))
  check("subset_moments", moments(k))
  s <- kernel_matrix("sqdist", input_matrix(43, n, 3))
  check("rate_forms", c(forms(exp(-0.1 * s)), forms(exp(-2 * s))))
  check("rate_moments", c(moments(exp(-0.1 * s)), moments(exp(-2 * s))))
  members <- outer(3 * 0:39, 0:4, "+") %% n + 1
  check("small_forms", rep(apply(members, 2, \(i) sum(k[i, i])), 2))
  check("block_rows", k %*% outer(sample, 1:3, "=="))
  w <- inputs(44, n)
  in_block <- outer(sample, 1:3, "==") * w
  sums <- t(in_block) %*% k %*% in_block
  check("block_sums", sums, close * sum(abs(outer(w, w) * k)) / max(abs(sums)))
  check("block_moments", moments(k))
  other <- kernel_matrix("rbf", input_matrix(43, n, 3), input_matrix(55, 90, 3))
  v <- inputs(56, 90)
  sums <- t(in_block) %*% other %*% (outer(rep(1:2, c(62, 28)), 1:2, "==") * v)
  check("other_block_sums", sums,
        close * sum(abs(outer(w, v) * other)) / max(abs(sums)))
  check("other_block_moments", moments(other))

  check_bags(split(seq_len(n), sample), k)
  check_noisy()
  check_sketches()
  check_smooth()
  check_intervals()
  check_fda(k)

  draw <- drawing(45)
  p <- vapply(1:6, \(c) draw_permutation(draw, list(seq_len(n) - 1)),
              numeric(n)) + 1
  same("relabeled", p)
  grams <- lapply(46:48, gram, n, 3)
  rows <- lapply(46:48, inputs, n)
  # Sums of terms of both signs: errors on the scale of their absolute values.
  on_scale <- function(terms) {
    close * max(colSums(abs(terms))) / max(abs(colSums(terms)))
  }
  check("permuted_forms", apply(p, 2, \(c) sum(grams[[1]] * grams[[2]][c, c])))
  check("permuted_grid", unlist(lapply(grams[rep(1:3, each = 3)], \(l) {
    lapply(grams[rep(1:3, 2)], \(k) apply(p, 2, \(c) sum(k * l[c, c])))
  })))
  a <- tcrossprod(matrix(inputs(49, 4 * n), n, byrow = TRUE))
  b <- tcrossprod(matrix(inputs(50, 3 * n), n, byrow = TRUE))
  terms <- apply(p, 2, \(c) a * b[c, c])
  check("permuted_products", colSums(terms), on_scale(terms))
  terms <- apply(p, 2, \(c) rows[[1]] * rows[[2]][c])
  check("permuted_sums", colSums(terms), on_scale(terms))
  second <- p[, c(1, 3, 5)]
  third <- p[, c(2, 4, 6)]
  check("tensor_forms", vapply(1:3, \(c) {
    sum(grams[[1]] * grams[[2]][second[, c], second[, c]] *
          grams[[3]][third[, c], third[, c]])
  }, 0))
  terms <- rows[[1]] * matrix(rows[[2]][second], n) *
    matrix(rows[[3]][third], n)
  check("tensor_sums", colSums(terms), on_scale(terms))
  check_matching()
}

# J = pi'G pi - 2 pi'g: inner products in closed form for RBF; for the
# polynomial of degree 3 from points with the moments of the normal one.
# Derivatives by central differences with an error of 1e-9.
check_matching <- function() {
  n <- 300
  d <- 3
  x <- input_matrix(53, n, d)
  weights <- (1 + inputs(51, n)) / n
  theta2 <- 1 / (1 + 0.5 * 0:2)^2
  inner_rbf <- function(a, e, b, f) {
    v <- theta2 + e + f
    prod(sqrt(theta2 / v)) * exp(-colSums((t(a) - b)^2 / v) / 2)
  }
  signs <- as.matrix(expand.grid(c(-1, 1), c(-1, 1), c(-1, 1)))
  inner_poly <- function(a, e, b, f) {
    total <- 0
    for (i in 1:8) {
      for (j in 1:8) {
        moved <- sweep(a, 2, signs[i, ] * sqrt(e), "+")
        inner <- drop(moved %*% (b + signs[j, ] * sqrt(f)))
        total <- total + (inner + 0.5)^3 / 64
      }
    }
    total
  }
  terms <- function(inner, noise, means, variances) {
    at <- \(a, e) vapply(1:2, \(j) {
      inner(a, e, means[j, ], rep(variances[j], d))
    }, numeric(nrow(a)))
    list(g = drop(crossprod(at(x, noise), weights)),
         gram = t(vapply(1:2, \(i) {
           at(means[i, , drop = FALSE], rep(variances[i], d))
         }, numeric(2))))
  }
  j_of <- function(inner, noise, shares, means, variances, pairs = TRUE) {
    parts <- terms(inner, noise, means, variances)
    pairs * sum(shares * (parts$gram %*% shares)) - 2 * sum(shares * parts$g)
  }
  slope <- function(f, at) {
    vapply(seq_along(at), \(i) {
      h <- replace(numeric(length(at)), i, 1e-5)
      (f(at + h) - f(at - h)) / 2e-5
    }, 0)
  }
  shares <- c(0.3, 0.7)
  variances <- c(0.2, 0.5)
  means <- input_matrix(52, 2, d)
  cases <- list(match = list(inner_rbf, c(0, 0.1, 0.2)),
                match_poly = list(inner_poly, numeric(3)))
  for (name in names(cases)) {
    j <- \(...) j_of(cases[[name]][[1]], cases[[name]][[2]], ...)
    parts <- terms(cases[[name]][[1]], cases[[name]][[2]], means, variances)
    value <- got(name)
    want <- c(j(shares, means, variances), parts$g, parts$gram)
    small(max(abs(value[1:7] - want)) / max(abs(want)), 1e-12, name)
    slopes <- c(slope(\(s) j(s, means, variances), shares),
                slope(\(m) j(shares, matrix(m, 2), variances), c(means)),
                slope(\(v) j(shares, means, v), variances))
    small(max(abs(value[-(1:7)] - slopes)) / max(abs(slopes)), 1e-8,
          paste(name, "(slopes)"))
  }
  standard <- scale(input_matrix(57, 70, 2), scale = FALSE)
  products <- 70 * standard %*% solve(crossprod(standard), t(standard))
  apart <- outer(diag(products), diag(products), `+`) - 2 * products
  check("normal_means", rep(c(mean(exp(-apart / (2 * 0.7^2))),
                              mean(exp(-diag(products) / (2 * (0.7^2 + 1))))),
                            8))
  u <- inputs(54, 10)
  pairs <- c(match_free = TRUE, match_free_cross = FALSE)
  for (name in names(pairs)) {
    free <- function(u) {
      shares <- exp(u[1:2]) / sum(exp(u[1:2]))
      j_of(inner_rbf, c(0, 0.1, 0.2), shares, matrix(u[3:8], 2), exp(u[9:10]),
           pairs[[name]])
    }
    value <- got(name)
    small(abs(value[1] - free(u)), 1e-12, name)
    small(max(abs(value[-1] - slope(free, u))), 1e-8, paste(name, "(slopes)"))
  }
}
