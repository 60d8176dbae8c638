# A sketch as a sample of n rows, which are known only by sums over their
# features phi(x) = W'k(S, x), vectors of r numbers. A fit to a sketch keeps the
# landmarks as its sample, because its functions are weighted sums over
# landmarks.

# The sample of all rows of a sketch, or of those of a group, in its variable 1
# or 2. Beside the fields of every sample it has
#   sketch, variable, group   as given
#   support                   the landmarks as a sample
#   root                      W, m x r matrix
#   size                      n, or what the rows are worth with weights
#   moments                   means over rows; those that are not kept are NULL:
#     mean, covariance        mu = W's1/n and C = W'S2W/n
#     trace, rho, varrho      the mean of k(x, x), |mu|^2 and tr C
#     lost                    what projection takes of the trace
#     square, along           the means of |phi|^4 and of |phi|^2 phi
sketch_sample <- function(sketch, variable = 1L, group = NULL) {
  check_any_rows(sketch)
  landmarks <- sketch$landmarks[[variable]]
  root <- landmarks$root
  sums <- sketch_sums(sketch, group)
  total <- sums$weight
  if (!(total > 0)) stop_input("'weights' must not all be 0")
  end <- c("", "_y")[variable]
  pick <- \(name) sums[[paste0(name, end)]]
  mean <- drop(cross(root, pick("first"))) / total
  rho <- sum(mean^2)
  trace <- pick("trace") / total
  moments <- list(mean = mean, covariance = NULL, trace = trace, rho = rho,
                  varrho = max(rho, trace), lost = NA_real_)
  if (sketch$moments > 1) {
    covariance <- cross(root, product(pick("second"), root)) / total
    moments$covariance <- (covariance + t(covariance)) / 2
    moments$varrho <- max(rho, sum(diag(moments$covariance)))
    moments$lost <- max(0, trace - moments$varrho)
  }
  if (sketch$moments == 4) {
    moments$square <- pick("square") / total
    moments$along <- pick("along") / total
  }
  support <- landmark_sample(sketch, variable, group)
  out <- new_sample("sketch", sums$n, landmarks$kernel)
  out[c("sketch", "variable", "group", "support", "root", "size", "moments")] <-
    list(sketch, variable, group, support, root, total^2 / sums$weight2,
         moments)
  out
}

# The sums of a group, or of all groups together.
sketch_sums <- function(sketch, group = NULL) {
  total_sums(Reduce(join_sums,
                    sketch$sums[group %||% seq_along(sketch$sums)]))
}

check_any_rows <- function(sketch) {
  if (sketch$n == 0) {
    stop_input("'x' must be a sketch of at least one row, not of none",
               if (sketch$dropped > 0) paste0(
                 " (", sketch$dropped, " were dropped for missing values)"
               ))
  }
}

as_sample.kme_sketch <- function(x) {
  check_one_variable(x)
  sample <- sketch_sample(x)
  warn_lost(list(sample))
  sample
}

# The share of the trace that each sample loses by projection.
lost_shares <- function(samples) {
  vapply(samples, `[[`, 1, c("moments", "lost")) /
    vapply(samples, `[[`, 1, c("moments", "trace"))
}

most_lost <- 0.2

# Warns of samples with rows far from all landmarks; `labels` are the names of
# the samples if there are several. The features of such rows are nearly 0, and
# the differences between them may be lost by projection.
warn_lost <- function(samples, labels = NULL) {
  shares <- lost_shares(samples)
  worst <- which.max(shares)
  if (length(worst) && shares[worst] > most_lost) {
    warn_kernmean(
      "projection on the landmarks loses ",
      format_number(100 * shares[[worst]], 2L), "% of mean k(x, x)",
      if (!is.null(labels)) paste0(" of '", labels[worst], "'"),
      ", and with it what sets these rows apart; take more landmarks, chosen ",
      "from rows like these, or a larger bandwidth", kind = "projection"
    )
  }
}

check_one_variable <- function(sketch, name = "x") {
  if (length(sketch$landmarks) != 1L) {
    stop_input("'", name, "' must be a sketch of one variable, not of two, ",
               "which are for hsic_test() and kme_cov()")
  }
}

# A named list of a sample for each group.
group_samples <- function(sketch, variable = 1L) {
  groups <- seq_along(sketch$sums)
  stats::setNames(lapply(groups, \(g) sketch_sample(sketch, variable, g)),
                  sketch$groups)
}

# The mean of phi(x) psi(y)' over rows, W_S'(sum w k(S, x) l(T, y)')W_T / sum w,
# r_x x r_y matrix.
sketch_cross <- function(sketch) {
  check_any_rows(sketch)
  sums <- sketch_sums(sketch)
  roots <- lapply(sketch$landmarks, `[[`, "root")
  cross(roots[[1L]], product(sums$cross, roots[[2L]])) / sums$weight
}

# --- The verbs of a sample ---------------------------------------------------

check_rows.sketch_sample <- function(...) {
  stop_input("'x' must be the rows themselves here: a sketch keeps sums over ",
             "them, and not the rows")
}

plain_weights.sketch_sample <- function(sample) {
  drop(product(sample$root, sample$moments$mean))
}

sample_moments.sketch_sample <- function(sample) {
  rows <- drop(sample_apply(sample$support, plain_weights(sample)))
  c(list(n = sample$size, rows = rows), sample$moments[c("rho", "varrho")])
}

check_estimator.sketch_sample <- function(sample, estimator) {
  if (!has_trait(estimator, "sums")) {
    stop_input("'estimator' must be \"kme\", \"skmse\", or \"fkmse\" by ",
               "\"gcv\", \"printed\" or a given 'lambda' and without target, ",
               "for a sketch, which keeps sums over rows and not the rows")
  }
}

# The second moments of the features, or an error that names the result that
# needs them, `what`.
second_moments <- function(sample, what) {
  if (is.null(sample$moments$covariance)) {
    stop_input("'x' must be a sketch with second moments for ", what,
               "; kme_sketch(moments = 2) keeps them")
  }
  sample$moments$covariance
}

# --- F-KMSE ----------------------------------------------------------------

# mu_lambda = (C + (lambda/n) I)^{-1} C mu. With nC = V diag(gamma) V' the
# projected Gram matrix has the eigenvalues gamma, and the vector of ones has
# the squared coordinates q_j = (n v_j'mu)^2/gamma_j in its axes. Its n - r'
# other eigenvalues are 0, and share the rest of sum q_j = n.
fit_flexible.sketch_sample <- function(sample, estimator) {
  moments <- sample$moments
  second_moments(sample, paste("estimator", estimator_word(estimator)))
  n <- sample$size
  spectrum <- sketch_spectrum(sample)
  select <- estimator$select
  tuned <- list(lambda = estimator$lambda, score = NULL, minimum = NULL,
                border = FALSE)
  if (!is.null(select)) {
    if (sample$sketch$weighted) {
      stop_input("'select' must not be \"", select, "\" for a sketch of rows ",
                 "with weights, of which the score says nothing; give 'lambda'")
    }
    tuned <- search_lambda(sketch_score(spectrum, n, select),
                           spectrum$values[1L])
  }
  lambda <- tuned$lambda
  share <- spectrum$values / (spectrum$values + lambda)
  # At lambda = 0 the solution is the mean itself. Its coordinates in the axes
  # would lose the directions that sketch_spectrum() leaves out.
  mean <- if (lambda == 0) {
    moments$mean
  } else {
    drop(product(spectrum$vectors, share * spectrum$along))
  }
  weights <- drop(product(sample$root, mean))
  new_estimate(
    weights, drop(sample_apply(sample$support, weights)), sum(mean^2), moments,
    lambda, list(target = NULL, share = 1, score = tuned$score,
                 minimum = tuned$minimum, border = tuned$border,
                 reference = NULL, select = select)
  )
}

# The eigenpairs of nC whose values exceed their rounding errors, `values` and
# `vectors`, and `along`, the coordinates v_j'mu.
sketch_spectrum <- function(sample) {
  moments <- sample$moments
  pairs <- .Call(C_r_eigen, sample$size * moments$covariance,
                 length(moments$mean))
  # With n rows all eigenvalues after the n-th are rounding errors, however
  # large.
  kept <- pairs$values > spectrum_tolerance * max(pairs$values, 0) &
    seq_along(pairs$values) <= sample$n
  vectors <- take_columns(pairs$vectors, kept)
  list(values = pairs$values[kept], vectors = vectors,
       along = drop(cross(vectors, moments$mean)))
}

spectrum_tolerance <- 1e-12

# The score of F-KMSE as a function of a vector of lambdas: from the eigenvalues
# that are not 0, their q_j, and the terms of the eigenvalues that are 0.
sketch_score <- function(spectrum, n, select) {
  gamma <- spectrum$values
  q <- n^2 * spectrum$along^2 / gamma
  zeros <- max(0, n - length(gamma))
  rest <- if (zeros > 0) max(0, n - sum(q)) else 0
  trace <- sum(gamma)
  score <- switch(select,
    gcv = \(lambda) {
      inverse <- 1 / (gamma + lambda)
      h <- gamma * inverse
      factor <- lambda * n / (sum(inverse) + zeros / lambda)
      s1 <- sum(q * inverse) + rest / lambda
      s2 <- sum(q * inverse^2) + rest / lambda^2
      p <- sum(gamma * h * q)
      mixed <- factor * s1 * sum(h) / n
      square <- n * sum(gamma * h^2 * q) +
        factor^2 * s2 * sum(h * inverse) / n +
        trace + 2 * (factor * sum(h^2 * q * inverse) - p - mixed)
      (trace - 2 * (p + mixed - trace) / (n - 1) + square / (n - 1)^2) / n
    },
    printed = \(lambda) {
      h <- gamma / (gamma + lambda)
      sum(gamma / (1 - h / n)^2 * (q / n^2 * h * (h - 2) + 1 / n))
    }
  )
  \(lambda) vapply(lambda, score, numeric(1))
}

# --- The support -----------------------------------------------------------

# The landmarks as a sample of points that knows its sketch.
landmark_sample <- function(sketch, variable, group = NULL) {
  out <- sketch$landmarks[[variable]]$variable$sample
  class(out) <- c("landmark_sample", class(out))
  out$sketch <- sketch
  out$variable <- variable
  out["group"] <- list(group)
  out
}

sample_newdata.landmark_sample <- function(sample, newdata, layout = NULL) {
  landmarks <- sample$sketch$landmarks[[sample$variable]]
  new_points(landmark_points(landmarks, newdata, "newdata"),
             rownames(newdata))
}

plain_weights.landmark_sample <- function(sample) {
  plain_weights(sketch_sample(sample$sketch, sample$variable, sample$group))
}

describe_sample.landmark_sample <- function(sample) {
  sketch <- sample$sketch
  landmarks <- sketch$landmarks[[sample$variable]]
  n <- if (is.null(sample$group)) sketch$n else
    group_numbers(sketch, "n")[[sample$group]]
  paste0(rows_of(n), " in a sketch of ",
         count_of(landmarks$m, "landmark"), " in ",
         describe_variable(landmarks$variable))
}

sample_note.landmark_sample <- function(sample) {
  lost_line(sketch_sample(sample$sketch, sample$variable, sample$group))
}

# A line of print() on the share of mean k(x, x) that projection on the
# landmarks loses.
lost_line <- function(sample) {
  moments <- sample$moments
  if (is.na(moments$lost)) {
    "lost by projection: not known without second moments"
  } else {
    paste0("lost by projection: ",
           format(100 * moments$lost / moments$trace, digits = 2),
           "% of mean k(x, x)")
  }
}

# Messages of errors for arguments that the sketch has already fixed.
sketch_hints <- function(...) {
  stats::setNames(rep("must not be given: it is the sketch's own",
                      ...length()), c(...))
}
