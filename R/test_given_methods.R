# The object of a test given covariates: what z explains and what it may hide,
# in words and pictures, and the verbs of base_fit.R.

# The part of a test on what is given.
#   sides     a row for each column of x and y: the kernel of z that predicts
#             it, degrees of freedom, and the share that left-out rows explain
#   residuals a list of the residuals of x and y, in standard deviations
#   strain    is z's effect learned from this many rows? above 3 it is not
#   share     of the residual variance of both sides: what of z the regressions
#             would have to miss
#   reach     how near rows are to each other in z, 1 for very near
#   alike     the correlations of residuals of neighbouring rows
# It also has the `words` of these for print().
new_given <- function(sides, residuals, strain, share, reach, alike) {
  given <- list(sides = sides, residuals = residuals, strain = strain,
                share = share, reach = reach, alike = alike)
  given$words <- given_lines(given)
  given
}

# In how many ways do rows change places within cells?
cell_ways <- \(cells) exp(sum(lfactorial(tabulate(cells))))

new_given_test <- function(x, sides, z, cells, statistic, options, arguments) {
  scheme <- list(ways = cell_ways(cells), complete = FALSE, B = options$B)
  given <- describe_given(sides, z)
  groups <- x$kind == "two-sample"
  test <- new_test(
    "given_test", options, statistic, drawn_null(statistic, scheme),
    parameter = c(n = nrow(z$x), B = options$B),
    alternative = if (groups) "given z, the distributions differ" else
      "given z, the variables are dependent",
    method = paste0(
      "Kernel ", if (groups) "two-sample" else "independence", " test given ",
      "covariates", if (options$linear) " (linear)", ", residuals permuted ",
      "among rows of like z and fitted again"
    ),
    data.name = paste(x$label[["y"]], if (groups) "by" else "and",
                      x$label[["x"]], "given", x$label[["z"]]),
    sizes = nrow(z$x), arguments = arguments, given = given, origin = x
  )
  doubts <- c(strain_words(given), known_words(given), reach_words(given))
  if (length(doubts) && test$p.value <= usual_level) {
    warn_kernmean(paste(doubts, collapse = "; "), kind = "strain")
  }
  warn_neighbours(given$alike, nrow(z$x))
  test
}

# The correlation of residuals of neighbouring rows.
neighbour_correlation <- function(e) {
  before <- e[-length(e)]
  after <- e[-1L]
  if (length(unique(before)) < 2L || length(unique(after)) < 2L) {
    return(0)
  }
  stats::cor(before, after)
}

warn_neighbours <- function(alike, n) {
  if (all(abs(alike) > 3.3 / sqrt(n))) {
    warn_kernmean(
      "the residuals of neighbouring rows are alike (correlations ",
      paste(format_number(alike, 2L), collapse = " and "), "): if they ",
      "follow each other in time or space, and are not merely sorted, the ",
      "p-value is too small", kind = "alike"
    )
  }
}

most_strain <- 3

describe_given <- function(sides, z) {
  rows <- lapply(names(sides), \(name) {
    data.frame(side = name, column = colnames(sides[[name]]$x), t(vapply(
      sides[[name]]$chosen, \(one) c(r2 = one$r2, df = one$df), c(0, 0)
    )), kernel = vapply(sides[[name]]$chosen, `[[`, "", "name"))
  })
  strain <- vapply(sides, side_strain, 0)
  g <- cross(sides$x$features, sides$y$features)
  sizes <- lapply(sides, \(side) rowSums(side$features^2))
  apart <- sum(g^2) - sum(sizes$x * sizes$y)
  n <- nrow(z$x)
  new_given(
    do.call(rbind, rows), lapply(sides, `[[`, "e"),
    sqrt(n * prod(strain)), sqrt(max(0, apart) / prod(vapply(sizes, sum, 0))),
    reach_of(z$x), vapply(sides, \(side) neighbour_correlation(side$e[, 1L]), 0)
  )
}

# The share of the residual variance of a side that half of the rows do not
# learn; or, if it is larger, a multiple of the variance of the fit.
side_strain <- function(side) {
  max(vapply(seq_along(side$chosen), \(j) {
    one <- side$chosen[[j]]
    max(half_loss(one, side$x[, j]) / one$loss - 1,
        2.5 * (1 - one$r2) * one$df / nrow(side$x), 0)
  }, 0))
}

# The mean squared error of predictions from half of the rows for the other
# half, with the best of five penalties, over random splits: six of few rows, of
# which one split says little, two of many.
half_loss <- function(one, y) {
  s <- one$smoother
  n <- length(y)
  penalties <- one$penalty * 10^(-1:3 / 2)
  splits <- max(2, min(6, 1000 %/% n))
  losses <- lapply(seq_len(splits), \(split) {
    half <- sample.int(n) <= n / 2
    lapply(list(which(half), which(!half)), \(rows) {
      at <- make_smoother(s$map, rows, rep(1, length(rows)), rows)
      coefficients <- ridge_inverse(at$ridge, penalties) *
        drop(right_sides(at, as.matrix(y[rows])))
      values <- product(smoother_axes(at, map_features(s$map, seq_len(n))),
                        coefficients)
      colMeans((y - values)[-rows, , drop = FALSE]^2)
    })
  })
  min(Reduce(`+`, unlist(losses, FALSE)) / (2 * splits))
}

# How much left-out rows say of a function of z that varies over half of the
# median distance: 1 less the mean variance of its prediction, with noise of the
# same variance (a Gaussian process).
reach_of <- function(z) {
  z <- take_rows(z, learning_rows(nrow(z)))
  kernel <- median_bandwidth(kernel_rbf(), z)
  kernel$bandwidth <- kernel$bandwidth / 2
  l <- cholesky(fold_store(kernel, z, z), 1)
  2 - mean(1 / colSums(inverse_lower(l)^2))
}

# --- Words -------------------------------------------------------------------

# "z explains 74% of y (Gaussian 0.5, 12.8 degrees of freedom)"
given_lines <- function(given) {
  shares <- explained_words(given)
  kernels <- lapply(split(given$sides$kernel, given$sides$side), unique)
  c(
    paste0("z explains ", shares[["y"]], " of y (", shorten(kernels$y),
           ") and ", shares[["x"]], " of x (", shorten(kernels$x), ")"),
    strain_words(given), known_words(given),
    paste0("to be z's doing, what the regressions missed would have to make ",
           "up ", format_percent(given$share), " of the residual variance of ",
           "both"),
    reach_words(given), freedom_words(given)
  )
}

least_reach <- 0.5

# Words where the regressions leave little of few rows.
freedom_words <- function(given) {
  n <- nrow(given$residuals$x)
  df <- tapply(given$sides$df, given$sides$side, max)
  if (max(df) > n / 4) {
    paste0("to learn z's effect takes ", paste(format_number(df, 2L),
                                               collapse = " and "),
           " of ", n, " degrees of freedom of x and y: a large p says little",
           "; bank = list(linear = kernel_linear()) in test_control() takes ",
           "fewer where z's effect is a line")
  }
}

format_percent <- \(share) paste0(round(100 * share), "%")

explained_words <- function(given) {
  shares <- tapply(given$sides$r2, given$sides$side, mean)
  vapply(shares, \(share) format_percent(max(0, share)), "")
}

# Words where z explains nearly all of a side.
known_words <- function(given) {
  left <- 1 - tapply(given$sides$r2, given$sides$side, max)
  known <- intersect(c("y", "x"), names(left)[left < 1e-3])
  if (length(known)) {
    paste0("z explains all but ", paste0(format_number(
      100 * left[known], 2L
    ), "% of ", known, collapse = " and "), ": what is left may be what the ",
    "regressions missed")
  }
}

reach_words <- function(given) {
  if (given$reach < least_reach) {
    paste0("rows are far apart in z (reach ", format_number(given$reach, 2L),
           "): hardly more than additive effects of its columns are taken away")
  }
}

strain_words <- function(given) {
  if (given$strain <= most_strain) {
    return(NULL)
  }
  shares <- explained_words(given)
  paste0("z's effect on y and x is not learned well enough from these rows ",
         "(strain ", format_number(given$strain, 2L), "; it explains ",
         shares[["y"]], " of y and ", shares[["x"]], " of x): a small p may ",
         "be z's own")
}

# --- Verbs -------------------------------------------------------------------

fit_picture.given_test <- function(x, type = NULL) {
  type <- check_null_type(type, x, "residuals")
  if (type != "residuals") {
    return(picture_null(x, type))
  }
  residuals <- vapply(x$given$residuals, \(e) e[, 1L], numeric(x$sizes))
  of <- vapply(c("x", "y"), \(side) {
    x$given$sides$column[match(side, x$given$sides$side)]
  }, "")
  of[!nzchar(of)] <- c("x", "y")[!nzchar(of)]
  new_picture("Residuals given z", paste(of[1L], "given z"),
              paste(of[2L], "given z"),
              list(points_layer(residuals, main = TRUE),
                   across_layer(h = 0, v = 0)),
              as.data.frame(residuals),
              note = list(text = paste0("p = ", format(x$p.value, digits = 3)),
                          color = accent))
}

fit_summary.given_test <- function(x) {
  c(fit_summary.htest(x), list("What z explains" = x$given$sides))
}

fit_values.given_test <- function(x, newdata = NULL) {
  if (!is.null(newdata)) {
    stop_input("'newdata' must be NULL for a test, which is of its rows")
  }
  first <- lapply(x$given$residuals, \(e) unname(e[, 1L]))
  stats::setNames(list2DF(first), c(".resid.x", ".resid.y"))
}

fit_request.given_test <- function(x, changes) {
  changed_data(changes, NULL)
  asked <- change_request(x$arguments, changes)
  asked$x <- x$origin
  asked
}
