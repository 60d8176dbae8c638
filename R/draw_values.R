# What graphical parameters may be: said before anything is drawn, so that no
# half of a picture stays on the device.

# A pair as the `kinds` of object.R are: what it must be, in words, and whether
# it is.
most_values <- 1e7
# Numbers, also as text, and the codes of a factor are those of the palette, 0
# the background.
is_color <- function(x) {
  if (!is.atomic(x) || !length(x) || length(x) > most_values) {
    FALSE
  } else if (is.numeric(x)) {
    all(is.na(x) | is.finite(x) & x >= 0)
  } else if (is.factor(x)) {
    TRUE
  } else {
    named <- x[!(is.character(x) & grepl("^[0-9]+$", x))]
    !length(named) ||
      !inherits(tryCatch(grDevices::col2rgb(named), error = identity,
                         warning = identity), "condition")
  }
}
is_within <- function(x, least, most, size = NULL) {
  is.numeric(x) && !inherits(x, "integer64") && length(x) > 0L &&
    length(x) <= most_values && (is.null(size) || length(x) == size) &&
    all(is.finite(x) & x >= least & x <= most)
}
numbers_within <- function(words, least, most = Inf, size = NULL) {
  list(words, \(x) is_within(x, least, most, size))
}
one_of <- function(...) {
  choices <- c(...)
  list(paste0("one of ", paste0("\"", choices, "\"", collapse = ", ")),
       \(x) is.character(x) && length(x) == 1L && x %in% choices)
}
bin_rules <- c("sturges", "fd", "freedman-diaconis", "scott")
line_ends <- c("round", "butt", "square", "mitre", "bevel")
line_types <- c("blank", "solid", "dashed", "dotted", "dotdash", "longdash",
                "twodash")

color_value <- list("colors", is_color)
size_value <- list("finite numbers of at least 0", \(x) {
  length(x) > 0L && is.atomic(x) && length(x) <= most_values &&
    (all(is.na(x)) || is_within(x[!is.na(x)], 0, Inf))
})
number_or_missing <- list("a number or NA", \(x) {
  is.atomic(x) && length(x) == 1L && is.na(x) || is_within(x, -Inf, Inf, 1L)
})
flag_value <- list("TRUE or FALSE", \(x) {
  is_within(x, -Inf, Inf, 1L) || isTRUE(x) || isFALSE(x)
})
label_value <- list("text or an expression", \(x) {
  is.language(x) || is.atomic(x) && !is.raw(x) && length(x) <= most_values
})
title_value <- list(paste("text or an expression (cex.main, col.main and",
                          "font.main, or those of lab, say how it is drawn)"),
                    label_value[[2L]])
tick_value <- one_of("s", "n", "l", "t")
line_value <- list("line types", \(x) {
  is.atomic(x) && length(x) == 1L && is.na(x) ||
    is_within(x, 0, 1e6) && all(x == round(x)) || is.character(x) &&
    length(x) > 0L &&
    all(x %in% line_types | grepl("^([1-9A-Fa-f]{2}){1,4}$", x))
})
symbol_value <- list(paste0("symbols: numbers from 0 to 25, codes from 32 on, ",
                            "or letters"), \(x) {
  is.character(x) && length(x) > 0L || is.logical(x) && all(is.na(x)) ||
    is.numeric(x) && length(x) > 0L && length(x) <= most_values &&
      all(is.na(x) | x == round(x) & (x >= 0 & x <= 25 | abs(x) >= 32))
})
end_value <- list("0, 1, 2 or their names", \(x) {
  length(x) == 1L && (is_within(x, 0, 2) || x %in% line_ends)
})

values_of_colors <- c("bg", "border", "col", "col.axis", "col.lab", "col.main",
                      "col.sub", "fg")
values_of_sizes <- c("cex", "cex.axis", "cex.lab", "cex.main", "cex.sub",
                     "labcex", "lwd")
values_of_titles <- c("main", "sub", "xlab", "ylab")
values_of_labels <- c("names.arg", "labels")
values_of_fonts <- c("font", "font.axis", "font.lab", "font.main", "font.sub")

graphics_values <- c(
  stats::setNames(rep(list(color_value), length(values_of_colors)),
                  values_of_colors),
  stats::setNames(rep(list(size_value), length(values_of_sizes)),
                  values_of_sizes),
  stats::setNames(rep(list(title_value), length(values_of_titles)),
                  values_of_titles),
  stats::setNames(rep(list(label_value), length(values_of_labels)),
                  values_of_labels),
  stats::setNames(rep(list(numbers_within("a number from 1 to 5", 1, 5, 1L)),
                      length(values_of_fonts)), values_of_fonts),
  list(
    adj = numbers_within("a number from 0 to 1", 0, 1, 1L),
    angle = numbers_within("finite numbers", -Inf),
    ann = flag_value, axes = flag_value, drawlabels = flag_value,
    frame.plot = flag_value, freq = flag_value,
    asp = number_or_missing,
    breaks = list("numbers, a rule of hist() or a function", \(x) {
      is.function(x) || is_within(x, 1, 1e6, 1L) ||
        length(x) > 1L && is_within(x, -Inf, Inf) ||
        is.character(x) && length(x) == 1L &&
        !is.na(pmatch(tolower(x), bin_rules))
    }),
    bty = one_of("o", "l", "7", "c", "u", "]", "n", "L", "C", "U"),
    density = list("finite numbers or NA", \(x) {
      length(x) > 0L && (is.logical(x) && all(is.na(x)) ||
                           is.numeric(x) && !any(is.infinite(x)))
    }),
    family = list("a word", \(x) is.character(x) && length(x) == 1L),
    lab = numbers_within("three numbers of at least 1", 1, 1e6, 3L),
    las = numbers_within("0, 1, 2 or 3", 0, 3, 1L),
    lend = end_value, ljoin = end_value,
    levels = numbers_within("finite numbers", -Inf),
    lmitre = numbers_within("a number of at least 1", 1, Inf, 1L),
    log = one_of("", "x", "y", "xy", "yx"),
    lty = line_value,
    method = one_of("simple", "edge", "flattest"),
    mgp = numbers_within("three numbers", -Inf, Inf, 3L),
    nlevels = numbers_within("a number of at least 1", 1, 1e4, 1L),
    pch = symbol_value,
    tck = number_or_missing,
    tcl = number_or_missing,
    vfont = list("two words", \(x) is.character(x) && length(x) == 2L),
    xaxp = numbers_within("three numbers", -Inf, Inf, 3L),
    yaxp = numbers_within("three numbers", -Inf, Inf, 3L),
    xaxs = one_of("r", "i"), yaxs = one_of("r", "i"),
    xaxt = tick_value, yaxt = tick_value,
    xlim = list("two different numbers", \(x) {
      is_within(x, -Inf, Inf, 2L) && x[1L] != x[2L] &&
        is.finite(x[2L] - x[1L])
    })
  )
)
graphics_values$ylim <- graphics_values$xlim

# NULL is as if it had not been given.
check_graphics_value <- function(name, value) {
  rule <- graphics_values[[name]]
  if (!is.null(value) && !is.null(rule) && !isTRUE(rule[[2L]](value))) {
    stop_input("'", name, "' must be ", rule[[1L]], ", not ",
               if (is.numeric(value) && length(value) %in% 2:4) {
                 paste(trimws(format(value)), collapse = ", ")
               } else {
                 describe(value)
               })
  }
  value
}

# What base graphics says of parameters or of a device that it cannot draw with,
# as an error of ours; it makes axes of values near the smallest number as well
# as it can.
with_graphics <- function(drawing) {
  tryCatch(withCallingHandlers(drawing, warning = \(w) {
    if (grepl("pretty\\(\\)|small axp", conditionMessage(w))) {
      invokeRestart("muffleWarning")
    }
  }), error = \(e) {
    if (is_graphics_call(conditionCall(e))) {
      stop_kernmean("graphics", "the picture cannot be drawn on this device ",
                    "with these parameters: ", conditionMessage(e))
    }
    stop(e)
  })
}

# A call by do.call() has the function itself in its place.
is_graphics_call <- function(call) {
  if (!is.call(call)) {
    return(FALSE)
  }
  home <- c("graphics", "grDevices")
  by <- call[[1L]]
  if (is.function(by)) {
    return(environmentName(environment(by)) %in% home)
  }
  if (is.call(by)) by <- by[[length(by)]]
  any(vapply(home, \(space) {
    exists(as.character(by), asNamespace(space), inherits = FALSE)
  }, NA))
}
