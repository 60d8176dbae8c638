# The texts of a plot, read from the PDF that it makes.

# A data frame: label, and the box of the text in inches from the lower left
# corner of the page: x0, y0, x1, y1 (heights from the base line to that of a
# capital letter).
plot_texts <- function(code, width, height) {
  file <- tempfile(fileext = ".pdf")
  on.exit(unlink(file))
  grDevices::pdf(file, width, height, compress = FALSE, useKerning = FALSE)
  device <- grDevices::dev.cur()
  tryCatch(force(code), finally = grDevices::dev.off(device))
  lines <- readLines(file, warn = FALSE, encoding = "bytes")
  # /F3 1 Tf a b c d x y Tm (label) Tj
  form <- paste0("^/F([0-9]) 1 Tf ([-0-9.]+) ([-0-9.]+) ([-0-9.]+) ",
                 "([-0-9.]+) ([-0-9.]+) ([-0-9.]+) Tm \\((.*)\\) Tj.*$")
  found <- grep(form, lines, value = TRUE, useBytes = TRUE)
  part <- \(i) sub(form, paste0("\\", i), found, useBytes = TRUE)
  number <- \(i) as.numeric(part(i))
  label <- gsub("\\\\([()\\\\])", "\\1", part(8))
  font <- number(1)
  a <- number(2)
  b <- number(3)
  size <- sqrt(a^2 + b^2)
  grDevices::pdf(NULL, 20, 20)
  on.exit(grDevices::dev.off(), add = TRUE)
  graphics::plot.new()
  # Points of 1/72 inch; F2 is the plain font, F3 the bold one, others symbols.
  wide <- vapply(seq_along(label), \(i) {
    graphics::strwidth(label[i], "inches", size[i] / 12,
                       font = if (font[i] == 3) 2 else 1)
  }, 1)
  high <- 0.72 * size / 72
  x <- number(6) / 72
  y <- number(7) / 72
  # Horizontal, or upwards.
  up <- abs(b) > abs(a)
  data.frame(
    label, size, up, x0 = ifelse(up, x - high, x), y0 = y,
    x1 = ifelse(up, x, x + wide), y1 = ifelse(up, y + wide, y + high)
  )
}

# Pairs of texts that overlap, as "a | b". The labels of contours, which are
# clipped, have spaces around them.
overlaps <- function(texts, slack = 0.005) {
  texts <- texts[!grepl("^ .* $", texts$label), ]
  n <- nrow(texts)
  if (n < 2L) {
    return(character())
  }
  pairs <- utils::combn(n, 2L)
  a <- texts[pairs[1L, ], ]
  b <- texts[pairs[2L, ], ]
  over <- pmin(a$x1, b$x1) - pmax(a$x0, b$x0) > slack &
    pmin(a$y1, b$y1) - pmax(a$y0, b$y0) > slack
  paste(a$label, b$label, sep = " | ")[over]
}

# Texts of which a part is off the page.
off_page <- function(texts, width, height, slack = 0.01) {
  texts$label[texts$x0 < -slack | texts$y0 < -slack |
                texts$x1 > width + slack | texts$y1 > height + slack]
}
