# Print, summary and the plot of the null distribution, for all tests.

# --- Print and summary -------------------------------------------------------

# As print.htest(), each number with digits of its own; what is a parameter is
# not printed as an estimate.
print_test <- function(x, digits, line = NULL) {
  number <- \(v) vapply(v, format, character(1), digits = max(1L, digits - 2L))
  p <- format.pval(x$p.value, digits = max(1L, digits - 3L))
  numbers <- c(x$statistic, x$parameter)
  items <- c(paste(names(numbers), "=", number(numbers)),
             paste0("p-value ", if (!startsWith(p, "<")) "= ", p))
  commas <- rep(c(",", ""), c(length(items) - 1L, 1L))
  estimate <- x$estimate[setdiff(names(x$estimate), names(x$parameter))]
  cat("\n")
  cat(strwrap(x$method, prefix = "\t"), sep = "\n")
  cat("\n")
  cat("data:  ", paste(strwrap(x$data.name), collapse = "\n       "), "\n",
      sep = "")
  cat(fill_lines(paste0(items, commas)), sep = "\n")
  if (!is.null(line)) cat(strwrap(line), sep = "\n")
  cat("alternative hypothesis: ", x$alternative, "\n", sep = "")
  if (length(estimate)) {
    cat("sample estimates:\n")
    print(estimate, digits = digits)
  }
  cat("\n")
  invisible(x)
}

# What stands behind a test, for its summary().
test_summary <- function(object) {
  structure(list(test = object), class = "summary.kernmean_test")
}

# What the summary of a test says of its sample: lines, or NULL.
sample_lines <- function(sample) UseMethod("sample_lines")
sample_lines.default <- \(sample) NULL

# The standard error of a p-value that is a share of random draws.
monte_carlo_line <- function(test) {
  given <- test$arguments$permutations
  if (test$null != "gamma" && (is.null(given) || inherits(given, "how"))) {
    p <- test$p.value
    error <- sqrt(p * (1 - p) / (length(test$replicates) + 1))
    paste("Monte-Carlo error of the p-value:", format(error, digits = 2))
  }
}

# c(h, c), or h of each variable.
smoothing_lines <- function(smoothing, digits) {
  if (!is.null(smoothing)) {
    paste("smoothing with", paste(names(smoothing), "=",
                                  format(smoothing, digits = digits),
                                  collapse = ", "))
  }
}

#' @export
print.summary.kernmean_test <- function(x, digits = digits_shown(), ...) {
  digits <- check_digits(digits)
  test <- x$test
  number <- \(v) format(v, digits = digits)
  amount <- \(name) {
    if (!is.null(test[[name]])) {
      paste(name, "=", paste(number(test[[name]]), collapse = ", "))
    }
  }
  print(test)
  say(
    if (inherits(test$kernel, "kernmean_kernel")) {
      kernel_lines(test$kernel)
    } else {
      unlist(Map(kernel_lines, test$kernel, names(test$kernel)))
    },
    if (!is.null(test$noise)) {
      paste("noise variances:",
            paste(unique(number(range(unlist(test$noise)))),
                  collapse = " to "))
    },
    sample_lines(test$sample),
    amount("lambda"), amount("alpha"), smoothing_lines(test$smoothing, digits),
    monte_carlo_line(test),
    if (!is.null(test$replicates)) {
      paste0("null distribution: mean ", number(mean(test$replicates)),
             ", standard deviation ", number(stats::sd(test$replicates)))
    },
    if (!is.null(test$unbiased)) {
      u <- test$unbiased
      c(paste0("unbiased MMD^2 = ", number(u[["statistic"]]), ", z = ",
               number(u[["statistic"]] / u[["deviation"]])),
        paste0("  (over all permutations mean 0, standard deviation ",
               number(u[["deviation"]]), ")"))
    }
  )
  if (!is.null(test$candidates)) {
    cat("Stack:\n")
    print(test$candidates, digits = digits, row.names = FALSE)
  }
  if (!is.null(test$left)) {
    say(paste("the features of this many points leave", number(test$left),
              "of the mean of k(x, x)"))
  }
  if (NROW(test$statistics) > 1L) {
    cat("Statistics:\n")
    print_statistics(test$statistics, digits)
  }
  if (!is.null(test$pairs)) {
    cat("MMD of each pair:\n")
    print(sqrt(pmax(test$pairs, 0)), digits = digits)
  }
  invisible(x)
}

# The table of statistics of a test of several.
print_statistics <- function(table, digits) {
  print(data.frame(
    statistic = table$statistic, value = table$value, z = table$z,
    "p-value" = format.pval(table$p.value, digits = 3L),
    " " = ifelse(table$maximum, "<- largest", ""), check.names = FALSE
  ), digits = digits, row.names = FALSE, right = FALSE)
}

# A row for each pair of groups.
pair_frame <- function(x) {
  if (!is.null(x$arguments$bandwidths)) {
    stop_input("'x' must be a test with one kernel for distances of pairs, ",
               "not of many bandwidths")
  }
  names <- utils::combn(names(x$sizes), 2L)
  value <- if (is.null(x$pairs)) x$statistic else x$pairs
  data.frame(group1 = names[1L, ], group2 = names[2L, ],
             estimate = sqrt(pmax(0, unname(value))), statistic = unname(value))
}

# --- Plot --------------------------------------------------------------------

# Histogram of the draws of the null distribution, or the density of its gamma
# law, with the observed statistic.
plot_null <- function(object, ...) {
  dots <- list(...)
  draw_picture(picture_null(object, dots), dots)
}

picture_null <- function(object, dots = list()) {
  check_graphics(dots)
  draws <- object$replicates
  law <- object$gamma
  observed <- object$statistic[[1L]]
  counts <- isTRUE(dots$freq)
  if (!is.null(draws)) {
    value <- draws
    bars <- bars_of(draws, if (is.null(dots$breaks)) 30 else dots$breaks)
    layer <- histogram_layer(bars, counts, "grey70", "grey70")
  } else if (!is.null(law)) {
    ends <- stats::qgamma(c(1e-4, 0.9999), law[["shape"]],
                          scale = law[["scale"]])
    z <- seq(min(ends, observed), max(ends, observed), length.out = 200)
    value <- data.frame(z = z, density = stats::dgamma(
      z, law[["shape"]], scale = law[["scale"]]
    ))
    layer <- new_layer("line", x = z, y = value$density, style = list(lwd = 2),
                       main = TRUE)
  } else {
    stop_input("'x' must be a test with a null distribution that varies")
  }
  new_picture(
    "Null distribution", names(object$statistic),
    if (counts && !is.null(draws)) "Frequency" else "Density",
    list(layer, across_layer(h = 0, lty = 1, col = "grey60"),
         across_layer(v = observed, col = accent, lty = 1, lwd = 2)),
    value, xlim = range(picture_limits(list(layer))$x, observed),
    note = list(
      text = paste0("observed ", format(observed, digits = 3), ", p = ",
                    format(object$p.value, digits = 3)),
      color = accent
    )
  )
}
