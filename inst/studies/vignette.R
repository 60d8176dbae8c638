# What the vignettes share: the results of the studies, and small figures.

# The folder of the studies in the sources, where a page is made beside them;
# results and most scripts are not installed (.Rinstignore).
studies <- if (dir.exists("../inst/studies")) {
  normalizePath("../inst/studies")
} else {
  system.file("studies", package = "kernmean")
}

# The path of a stored result, and its table.
stored_file <- function(name) {
  files <- file.path(studies, "results", paste0(name, c("", ".gz", ".xz")))
  c(files[file.exists(files)], files)[1]
}
stored <- function(name) utils::read.csv(stored_file(name), comment.char = "#")

# The one row of a table with these values.
row_of <- function(table, ...) {
  wanted <- list(...)
  for (name in names(wanted)) table <- table[table[[name]] == wanted[[name]], ]
  stopifnot(nrow(table) == 1)
  table
}

# A figure as a PNG file of few colours, a third of the size: knitr draws a BMP
# file, which is read and written again.
small_png <- function(bmp, most = 16) {
  bytes <- readBin(bmp, "raw", file.size(bmp))
  number <- function(at, size = 4) {
    readBin(bytes[at + seq_len(size)], "integer", 1, size, endian = "little")
  }
  width <- number(18)
  height <- number(22)
  depth <- number(28, 2) / 8
  # Lines of whole words, the last one first; blue, green, red.
  line <- ceiling(width * depth / 4) * 4
  body <- matrix(bytes[number(10) + seq_len(line * height)], line)
  body <- body[seq_len(width * depth), rev(seq_len(height))]
  pixels <- matrix(as.integer(body), depth)
  if (depth == 1) {
    table <- matrix(as.integer(bytes[54 + seq_len(1024)]), 4)
    pixels <- table[1:3, pixels + 1]
  }
  # The commonest colour, then again and again the one that the most pixels have
  # and that is farthest from those chosen. All others become the nearest.
  code <- drop(c(1, 256, 65536) %*% pixels)
  counts <- table(code)
  every <- as.numeric(names(counts))
  every <- outer(c(65536, 256, 1), every, function(unit, x) x %/% unit %% 256)
  chosen <- which.max(counts)
  apart <- colSums((every - every[, chosen])^2)
  while (length(chosen) < most && any(apart > 0)) {
    chosen <- c(chosen, which.max(counts * apart))
    apart <- pmin(apart, colSums((every - every[, chosen[length(chosen)]])^2))
  }
  kept <- every[, chosen, drop = FALSE]
  near <- max.col(2 * crossprod(every, kept) -
                    rep(colSums(kept^2), each = ncol(every)), "first")
  index <- near[match(code, drop(c(65536, 256, 1) %*% every))] - 1
  big <- function(x, size = 4) {
    writeBin(as.integer(x), raw(), size = size, endian = "big")
  }
  # A gzip file: ten bytes, the compressed data, their CRC and length.
  gzip <- function(bytes) {
    box <- tempfile()
    on.exit(unlink(box))
    file <- gzfile(box, "wb", compression = 9)
    writeBin(bytes, file)
    close(file)
    readBin(box, "raw", file.size(box))
  }
  chunk <- function(name, data) {
    tail <- rev(utils::tail(gzip(c(charToRaw(name), data)), 8))[5:8]
    c(big(length(data)), charToRaw(name), data, tail)
  }
  # memCompress() would take a level that leaves a tenth more.
  zlib <- function(bytes) {
    values <- as.integer(bytes)
    adler <- c(length(bytes) + sum(rev(seq_along(values)) * values),
               1 + sum(values)) %% 65521
    c(as.raw(c(0x78, 0xda)), utils::head(gzip(bytes)[-(1:10)], -8),
      big(ifelse(adler > 32767, adler - 65536, adler), 2))
  }
  # Two pixels a byte.
  index <- rbind(matrix(index, width), if (width %% 2) 0)
  even <- c(FALSE, TRUE)
  lines <- rbind(0, 16 * index[!even, ] + index[even, ])
  png <- sub("bmp$", "png", bmp)
  writeBin(c(
    as.raw(c(137, 80, 78, 71, 13, 10, 26, 10)),
    chunk("IHDR", c(big(c(width, height)), as.raw(c(4, 3, 0, 0, 0)))),
    chunk("PLTE", as.raw(kept)),
    chunk("IDAT", zlib(as.raw(lines))),
    chunk("IEND", raw())
  ), png)
  unlink(bmp)
  png
}

knitr::opts_chunk$set(
  collapse = TRUE, comment = "#>", fig.align = "center", dpi = 57,
  dev = "bmp", dev.args = list(pointsize = 11), fig.process = small_png
)
# While a chunk runs it draws on a device whose letters are as wide as those of
# the file; knitr's own is one for PDF.
options(device = function(width, height, ...) {
  grDevices::png(tempfile(), width, height, units = "in",
                 res = knitr::opts_current$get("dpi"),
                 pointsize = knitr::opts_current$get("dev.args")$pointsize)
})

# A wide table as text, an eighth of the size.
text_table <- function(cells, caption = NULL) {
  width <- options(width = 200)
  on.exit(options(width))
  cat("\n\n", caption, "\n\n```\n", sep = "")
  print(cells, quote = FALSE, right = TRUE)
  cat("```\n\n")
}
