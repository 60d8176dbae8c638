# What a kernel must hold to be whole, see object.R.

fields_of.kernmean_kernel <- function(x) {
  family <- x$family
  c(
    formula = "word", degree = "count", offset = "number",
    fun = "function?", rule = "word?", equal = "text?", scaling = "list?",
    list(
      family = list("the name of a family", \(family) {
        identical(family, "function") == is.function(x$fun) &&
          is.character(family) && length(family) == 1L &&
          family %in% c(families, "function")
      }),
      bandwidth = list("positive numbers, \"median\" or a function",
                       \(x) is_bandwidth(x, family)),
      code = list("the one of its family", \(code) {
        identical(code, match(x$family, families) - 1L)
      })
    ),
    if (is.list(x$scaling)) c(
      "scaling$type" = "flag|word", "scaling$center" = "numbers",
      "scaling$factor" = "numbers", "scaling$columns" = "text?",
      if (is_whitened(x)) c("scaling$back" = "matrix",
                            "scaling$rank" = "count")
    )
  )
}

is_whitened <- \(kernel) identical(kernel$scaling$type, "whiten")

sizes_of.kernmean_kernel <- function(x) {
  d <- length(x$scaling$center)
  if (is_whitened(x)) {
    list("scaling$factor" = c(d, d), "scaling$back" = c(d, d))
  } else if (d > 0L) {
    list("scaling$factor" = d)
  }
}

# The first families have one.
is_bandwidth <- function(x, family) {
  is.null(x) && !family %in% families[1:5] || identical(x, "median") ||
    is.function(x) ||
    is.numeric(x) && length(x) > 0L && all(is.finite(x) & x > 0)
}
