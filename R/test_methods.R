# The verbs of base_fit.R for all tests.

# The lines of print(), as print.htest() has them, but each number is rounded by
# itself, and a parameter is not repeated as an estimate.
fit_lines.htest <- function(x, digits) {
  each <- \(v) {
    paste(names(v), "=", vapply(v, format, "", digits = min(digits + 1L, 22L)))
  }
  p <- format.pval(x$p.value, digits = digits)
  items <- c(each(c(x$statistic, x$parameter)),
             paste0("p-value ", if (!startsWith(p, "<")) "= ", p, p_remark(x)))
  estimate <- x$estimate[setdiff(names(x$estimate), names(x$parameter))]
  c(
    "", strwrap(x$method, prefix = "\t"), "",
    paste0("data:  ", paste(strwrap(x$data.name), collapse = "\n       ")),
    if (inherits(x$kernel, "kernmean_kernel")) kernel_lines(x$kernel) else
      c(unlist(Map(kernel_lines, x$kernel, names(x$kernel))),
        describe_factors(list(levels = lapply(
          Filter(is_factor_variable, x$variables), `[[`, "levels"
        )))),
    fill_lines(paste0(items, rep(c(",", ""), c(length(items) - 1L, 1L)))),
    strwrap(c(maximum_line(x), low_line(x), x$given$words)),
    if ("guard" %in% names(x$smoothing)) {
      paste0(x$estimator$label, guard_words(list(share = x$smoothing["guard"])))
    },
    paste("alternative hypothesis:", x$alternative),
    if (length(estimate)) {
      paste("sample estimates:", paste(each(estimate), collapse = ", "))
    },
    ""
  )
}

# A line that says which of several statistics was the largest.
maximum_line <- function(test) {
  words <- test$statistics$statistic
  if (length(words) > 1L) {
    paste0("one p-value for ", length(words), " statistics, of which the ",
           "largest is ", words[test$statistics$maximum],
           if (is.null(c(test$arguments$filter, test$given))) {
             paste0("; filter = \"none\" is ", words[1L], " alone")
           })
  }
}

# Returns a line that warns if the statistic is unusually small, because points
# of one sample are then less alike than points of different samples.
low_line <- function(test) {
  draws <- test$replicates
  if (inherits(test, c("mmd_test", "hsic_test")) && length(draws) > 98L &&
        mean(draws <= test$statistic) < 0.01) {
    paste0("the statistic is below 99% of the draws, as where rows come in ",
           "pairs, strata or repeated measures that 'blocks' were not told of")
  }
}

# The lines of the summary about the sample, or NULL.
sample_lines <- function(sample) UseMethod("sample_lines")
sample_lines.default <- \(sample) NULL

# A line on noise: variances, a covariance, or a list of them by variable.
noise_line <- function(noise) {
  one <- if (is.list(noise)) noise[[1L]] else noise
  if (!is.null(dim(one))) {
    return(paste("noise:", describe_covariance(one)))
  }
  noise <- unique(range(unlist(noise)))
  paste("noise variances =", paste(format_number(noise), collapse = ", "))
}

fit_summary.htest <- function(x) {
  unbiased <- x$unbiased
  noise <- x$noise
  amounts <- Filter(length, c(x[c("lambda", "alpha")], as.list(x$smoothing)))
  list(
    lines = c(
      sample_lines(x$sample),
      if (!is.null(noise)) noise_line(noise),
      paste(names(amounts), "=", vapply(amounts, \(amount) {
        paste(format_number(amount), collapse = ", ")
      }, ""), recycle0 = TRUE),
      monte_carlo_line(x),
      if (!is.null(x$replicates)) {
        paste0("null distribution: mean ", format_number(mean(x$replicates)),
               ", standard deviation ", format_number(stats::sd(x$replicates)))
      },
      if (!is.null(unbiased)) {
        words <- format_number(c(unbiased, unbiased[[1L]] / unbiased[[2L]]))
        paste0("unbiased MMD^2 = ", words[1L], ", standard deviation over all ",
               "permutations ", words[2L], ", z = ", words[3L])
      },
      if (!is.null(x$left)) {
        paste("the features of this many points leave", format_number(x$left),
              "of the mean of k(x, x)")
      }
    ),
    Stack = x$candidates,
    Statistics = if (NROW(x$statistics) > 1L) {
      x$statistics[order(!x$statistics$maximum, -x$statistics$z),
                   c("statistic", "value", "z", "p.value")]
    },
    "MMD of each pair" = if (!is.null(x$pairs)) sqrt(pmax(x$pairs, 0))
  )
}

took_all <- \(test) grepl(", all permutations", test$method, fixed = TRUE)

# A line with the standard error of a p-value that is a share of random draws.
monte_carlo_line <- function(test) {
  if (!is.null(error <- monte_carlo_error(test))) {
    paste("Monte-Carlo error of the p-value:", format(error, digits = 2))
  }
}

monte_carlo_error <- function(test) {
  given <- c(test$arguments$control, test$arguments)$permutations
  if (test$null != "gamma" && (is.null(given) || inherits(given, "how")) &&
        !took_all(test)) {
    sqrt(test$p.value * (1 - test$p.value) / (length(test$replicates) + 1))
  }
}

# Returns the words beside a p-value. They say that it is the least possible, or
# that other draws could put it on the other side of the usual level.
p_remark <- function(test) {
  draws <- test$replicates
  error <- monte_carlo_error(test)
  least <- if (took_all(test)) permutation_p(max(draws), draws, NULL, TRUE) else
    1 / (length(draws) + 1)
  if (length(draws) && test$p.value <= least * (1 + 1e-9)) {
    paste0(" (", least_words(length(draws), took_all(test)), ")")
  } else if (!is.null(error) && abs(test$p.value - usual_level) < 2 * error) {
    paste0(" (Monte-Carlo s.e. ", format(error, digits = 2), ")")
  }
}

least_words <- function(B, all = FALSE) {
  if (all) paste("least possible of all", B, "labelings") else
    paste("least possible with B =", B)
}

fit_facts.htest <- function(x) {
  list(
    statistic = x$statistic, p.value = x$p.value,
    nobs = if (is.null(x$variables)) sum(x$sizes) else
      x$variables[[1L]]$sample$n,
    B = if (is.null(x$replicates)) NA_integer_ else length(x$replicates),
    r.squared = x$estimate["r.squared"], null = x$null, type = x$type,
    estimator = x$estimator$name,
    lambda = x$lambda, method = x$method
  )
}

# Returns a row like that of broom's tidy.htest(), which would take our several
# estimates for those of several groups. Bandwidths are parameters here, not
# estimates.
fit_rows.htest <- function(x, ...) {
  check_dots(...)
  estimate <- x$estimate
  estimate <- estimate[!startsWith(as.character(names(estimate)), "bandwidth")]
  others <- number_columns(estimate[seq_along(estimate) > 1L |
                                      names(estimate) == "r.squared"])
  as.data.frame(c(
    list(estimate = one_number(unname(estimate)[1L])), others,
    list(statistic = unname(x$statistic), p.value = x$p.value),
    number_columns(x$parameter),
    list(method = x$method, alternative = x$alternative)
  ))
}

# Columns from named numbers. The bandwidths of variables are numbered, so that
# the tables of two tests can be bound.
number_columns <- function(x) {
  names <- sub(" of .*", "", names(x))
  stats::setNames(as.list(x), make.names(names, unique = TRUE))
}

fit_frame.htest <- function(x) {
  x$statistics %||% fit_rows(x)
}

# --- Plot --------------------------------------------------------------------

# Checks the type of a picture. `more` has the types that the test offers beside
# the null distribution.
check_null_type <- function(type, test, more = NULL) {
  check_type(type, c(if (NROW(test$statistics) > 1L) "statistics", "null",
                     more))
}

p_note <- function(test, what) {
  list(text = paste0(what, format(test$statistic[[1L]], digits = 3), ", p = ",
                     format(test$p.value, digits = 3)), color = accent)
}

# A picture of the z of each statistic, over a bar that holds 90% of its draws.
# A dashed line shows the value that the largest z must reach for p = 0.05.
picture_statistics <- function(test) {
  table <- test$statistics
  top <- table$maximum
  words <- c("observed", "the largest", "5% of max z")
  colors <- c(level_palette[1L], accent, "grey40")
  shapes <- c(21L, 24L, 21L)
  y <- rev(seq_along(top))
  points <- \(shown, i) {
    mark_layer(table$z[shown], y[shown], words[i], colors[i], shapes[i])
  }
  new_picture(
    "Statistics of the test", "z (grey: 90% of the draws)", "", list(
      new_layer("bars", x0 = table$z.05, y0 = y - 0.35, x1 = table$z.95,
                y1 = y + 0.35, col = "grey85", border = NA),
      across_layer(v = quantile(test$replicates, 0.95), level = words[3L]),
      points(!top, 1L), points(top, 2L)
    ), table, ticks_y = list(at = y, labels = table$statistic),
    note = p_note(test, paste0(table$statistic[top], ": z = ")),
    key = key_entries(words, colors, c("point", "point", "line"), shapes, 2L)
  )
}

# A histogram of the draws of the null distribution, or the density of its gamma
# law, with the observed statistic.
picture_null <- function(object, type = "null") {
  if (type == "statistics") {
    return(picture_statistics(object))
  }
  draws <- object$replicates
  law <- object$gamma
  observed <- object$statistic[[1L]]
  if (!is.null(draws)) {
    value <- draws
    bars <- graphics::hist(draws, 30, plot = FALSE)
    layer <- histogram_layer(bars, FALSE, "grey70", "grey70")
  } else if (!is.null(law)) {
    ends <- stats::qgamma(c(1e-4, 0.9999), law[["shape"]],
                          scale = law[["scale"]])
    z <- seq(min(ends, observed), max(ends, observed), length.out = 200)
    value <- data.frame(z = z, density = stats::dgamma(
      z, law[["shape"]], scale = law[["scale"]]
    ))
    layer <- new_layer("line", x = z, y = value$density, lwd = 2,
                       main = TRUE)
  } else {
    stop_input("'x' must be a test with a null distribution that varies")
  }
  new_picture(
    "Null distribution", names(object$statistic), "Density",
    list(layer, across_layer(h = 0, lty = 1, col = "grey60"),
         across_layer(v = observed, col = accent, lty = 1, lwd = 2)),
    value, xlim = range(picture_limits(list(layer))$x, observed),
    note = p_note(object, "observed ")
  )
}

# Fills lines with words that may contain spaces but are not broken. strwrap()
# cannot keep them together in every locale.
fill_lines <- function(words) {
  lines <- words[1L]
  for (word in words[-1L]) {
    last <- length(lines)
    longer <- paste(lines[last], word)
    if (nchar(longer, "width") <= getOption("width")) {
      lines[last] <- longer
    } else {
      lines <- c(lines, word)
    }
  }
  lines
}
