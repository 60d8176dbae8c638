# n x n!, the identity first.
all_permutations <- function(n) {
  if (n == 1L) {
    return(matrix(1L))
  }
  shorter <- all_permutations(n - 1L)
  do.call(cbind, lapply(seq_len(n), \(first) {
    rbind(first, shorter + (shorter >= first), deparse.level = 0)
  }))
}

most_pairings <- 1e5
# What the tests share: permutations, p-values, the objects and their plots.

# An object of class c(class, "htest"): fields as of stats::t.test(), and
# `replicates`, the draws of the null distribution.
new_test <- function(class, ...) {
  structure(list(...), class = c(class, "htest"))
}

# How permutations are made: list(B, matrix, all, blocks). `permutations` is
# NULL (B random ones), "all", or an n x B matrix, one a column.
check_permutations <- function(permutations, n, B, blocks) {
  B <- check_count(B, "B")
  blocks <- check_blocks(blocks, n)
  if (is.null(permutations)) {
    return(list(B = B, all = FALSE, blocks = blocks))
  }
  if (identical(permutations, "all")) {
    return(list(B = NA, all = TRUE, blocks = blocks))
  }
  if (!is.null(blocks)) {
    stop_input("'blocks' must be NULL when 'permutations' is a matrix")
  }
  ok <- is.matrix(permutations) && is.numeric(permutations) &&
    nrow(permutations) == n && ncol(permutations) >= 1L &&
    all(permutations %in% seq_len(n)) &&
    !any(apply(permutations, 2, anyDuplicated))
  if (!ok) {
    stop_input(
      "'permutations' must be NULL, \"all\" or a matrix of ", n, " rows, each ",
      "column a permutation of 1, ..., ", n, ", not ", describe(permutations)
    )
  }
  storage.mode(permutations) <- "integer"
  list(B = ncol(permutations), matrix = permutations, all = FALSE)
}

# Codes 1, 2, ... of the blocks within which points change places.
check_blocks <- function(blocks, n) {
  if (is.null(blocks)) {
    return(NULL)
  }
  if (!is.atomic(blocks) || length(blocks) != n || anyNA(blocks)) {
    stop_input(
      "'blocks' must be NULL or have one value for each of the ", n,
      " points, none missing, not ",
      if (is.atomic(blocks)) {
        paste(length(blocks), "values,", sum(is.na(blocks)), "missing")
      } else {
        describe(blocks)
      }
    )
  }
  if (!anyDuplicated(blocks)) {
    stop_input("'blocks' must hold two points in some block, or nothing moves")
  }
  match(blocks, unique(blocks))
}

# n x B, each column as sample.int(n) draws it (block by block).
draw_permutations <- function(n, B, blocks = NULL) {
  .Call(C_r_permutations, as.integer(n), as.integer(B), blocks)
}

# A test with the linear kernel does not see where the origin is, but its
# rounding does: the points, centred for that kernel.
centre_linear <- function(x, kernel) {
  if (is.null(x) || kernel$family != "poly" || kernel$degree > 1L) {
    return(x)
  }
  x - rep(colMeans(x), each = nrow(x))
}

tie_slack <- 1e-10

# The p-value of a permutation test: the share of draws at least as large as
# the observed statistic, which counts as one of them unless `complete` (it is
# among the draws already). Ties are ties to rounding of a statistic whose terms
# are of size `scale`; NULL where these have the size of the statistics, as the
# norms of shrunk means do.
permutation_p <- function(observed, replicates, scale, complete = FALSE) {
  if (is.null(scale)) {
    scale <- max(abs(c(observed, replicates)))
  }
  slack <- tie_slack * (abs(observed) + scale)
  extra <- if (complete) 0 else 1
  (sum(replicates >= observed - slack) + extra) / (length(replicates) + extra)
}

# Histogram of the draws of the null distribution, or the density of its gamma
# law, with the observed statistic.
plot_null <- function(object, ...) {
  draws <- object$replicates
  law <- object$gamma
  observed <- object$statistic[[1L]]
  common <- list(
    xlab = names(object$statistic), las = 1, main = "Null distribution"
  )
  if (!is.null(draws)) {
    draw(graphics::hist, c(list(
      x = draws, breaks = 30, freq = FALSE, col = "grey70",
      border = "grey70",
      xlim = range(draws, observed)
    ), common), ...)
  } else if (!is.null(law)) {
    ends <- stats::qgamma(c(1e-4, 0.9999), law[["shape"]],
                          scale = law[["scale"]])
    z <- seq(min(ends, observed), max(ends, observed), length.out = 200)
    draws <- data.frame(z = z, density = stats::dgamma(
      z, law[["shape"]], scale = law[["scale"]]
    ))
    draw(graphics::plot, c(list(
      x = draws$z, y = draws$density, type = "l", lwd = 2, ylab = "Density"
    ), common), ...)
  } else {
    stop_input("'x' must be a test with a null distribution that varies")
  }
  abline(v = observed, col = "#D55E00", lwd = 2)
  mtext(
    paste0("observed ", format(observed, digits = 3), ", p = ",
           format(object$p.value, digits = 3)),
    side = 3, line = 0.2, cex = 0.9, col = "#D55E00"
  )
  invisible(draws)
}

# What stands behind a test, for its summary().
test_summary <- function(object) {
  structure(list(test = object), class = "summary.kernmean_test")
}

#' @export
print.summary.kernmean_test <- function(x, digits = max(3L,
                                                        getOption("digits") -
                                                          3L), ...) {
  test <- x$test
  number <- \(v) format(v, digits = digits)
  print(test)
  kernels <- if (is.null(test$kernels)) list(test$kernel) else test$kernels
  for (name in seq_along(kernels)) {
    if (!is.null(kernels[[name]])) {
      cat(names(kernels)[name], if (!is.null(names(kernels))) ": ",
          format_kernel(kernels[[name]]), "\n", sep = "")
    }
  }
  noise <- unlist(test$noise)
  if (!is.null(noise)) {
    cat("noise variances: ", paste(unique(number(range(noise))),
                                   collapse = " to "), "\n", sep = "")
  }
  for (name in c("lambda", "alpha")) {
    if (!is.null(test[[name]])) {
      cat(name, " = ", number(test[[name]]), "\n", sep = "")
    }
  }
  if (!is.null(test$replicates)) {
    cat("null distribution: mean ", number(mean(test$replicates)),
        ", standard deviation ", number(stats::sd(test$replicates)), "\n",
        sep = "")
  }
  if (!is.null(test$unbiased)) {
    cat("unbiased MMD^2 = ", number(test$unbiased[["statistic"]]),
        ", over all permutations mean 0, standard deviation ",
        number(test$unbiased[["deviation"]]), ": z = ",
        number(test$unbiased[["statistic"]] / test$unbiased[["deviation"]]),
        "\n", sep = "")
  }
  if (!is.null(test$pairs)) {
    cat("MMD^2 of each pair:\n")
    print(test$pairs, digits = digits)
  }
  invisible(x)
}
