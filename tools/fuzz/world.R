# What the calls of the fuzzer are made of: data, functions and things that no
# sound call has. All of it is made in the environment `world` by names, so
# that a call can be printed as the code that makes it.

world <- new.env(parent = globalenv())

# Data ----------------------------------------------------------------------

# n points in d columns. A seed of its own each time: values do not depend on
# what was made before.
world$points <- function(n, d, seed, style = "normal", form = "matrix") {
  set.seed(seed)
  x <- matrix(rnorm(n * d), n, d)
  one <- if (n > 0L) sample.int(n, 1L)
  x <- switch(style,
    normal = x,
    shifted = x + 0.5,
    tiny = x * 1e-300,
    small = x * 1e-160,
    large = x * 1e155,
    huge = x * 1e300,
    denormal = x * 1e-315,
    largest = sign(x) * .Machine$double.xmax,
    constant = x * 0 + 3,
    zero = x * 0,
    duplicates = x[rep_len(seq_len(max(1L, n %/% 4L)), n), , drop = FALSE],
    ties = round(x),
    outlier = { x[one, ] <- 1e10; x },
    far = { x[one, ] <- 1e200; x },
    offset = 1e9 + x,
    units = x %*% diag(10^seq(-8, 8, length.out = d), d),
    spread = x * 10^runif(n * d, -300, 300),
    flat = { x[, 1L] <- 7; x },
    collinear = x[, rep(1L, d), drop = FALSE]
  )
  if (d > 0L) colnames(x) <- paste0("v", seq_len(d))
  switch(form,
    matrix = unname(x),
    named = { rownames(x) <- paste("row", seq_len(n)); x },
    frame = as.data.frame(x),
    tibble = structure(as.data.frame(x),
                       class = c("tbl_df", "tbl", "data.frame")),
    vector = if (d == 1L) drop(unname(x)) else unname(x),
    integer = {
      x[!is.finite(x) | abs(x) > 1e9] <- 0
      storage.mode(x) <- "integer"
      x
    }
  )
}

world$numbers <- function(n, seed, style = "normal") {
  world$points(n, 1L, seed, style, "vector")
}

world$labels <- function(n, k, seed) {
  set.seed(seed)
  factor(letters[sample(rep_len(seq_len(k), n))])
}

# A sketch of so many days of 10 rows.
world$daily <- function(days, seed, style = "normal") {
  dates <- format(as.Date("2026-03-01") + seq_len(days))
  kernmean::kme_sketch(world$points(10 * days, 2L, seed, style),
                       kernmean::kme_landmarks(world$points(40L, 2L, 1L), 8),
                       groups = rep(dates, each = 10), moments = 2)
}

world$codes <- function(n, k, seed) {
  set.seed(seed)
  sample(rep_len(seq_len(k), n))
}

world$shares <- function(n, seed) {
  set.seed(seed)
  w <- runif(n)
  w / sum(w)
}

world$perms <- function(n, b, seed) {
  set.seed(seed)
  vapply(seq_len(b), \(i) sample.int(n), integer(n))
}

# A data frame of every kind of column that a formula may name.
world$frame <- function(n, seed, style = "normal") {
  a <- world$points(n, 4L, seed, style)
  data.frame(
    a = a[, 1L], b = a[, 2L], c = a[, 3L], y = a[, 4L],
    k = seq_len(n), g = world$labels(n, 2L, seed), h = world$labels(n, 3L,
                                                                    seed),
    id = world$codes(n, max(1L, n %/% 5L), seed), w = world$shares(n, seed),
    l = rep_len(c(TRUE, FALSE, FALSE), n), s = rep_len(c("p", "q"), n),
    day = as.Date("2020-02-28") + seq_len(n)
  )
}

# The value of a bag is the same in each of its rows.
world$bagged <- function(n, bags, seed, style = "normal") {
  data <- world$frame(n, seed, style)
  data$id <- rep_len(seq_len(bags), n)
  data$y <- data$id %% 7 + 0.5
  data$g <- factor(c("u", "v")[data$id %% 2 + 1])
  data
}

world$bags <- function(count, size, d, seed, style = "normal") {
  lapply(seq_len(count), \(i) {
    world$points(size + i %% 3L, d, seed + i, style) + i %% 2
  })
}

world$mixture <- function(d, k = 2L) {
  list(weights = rep(1 / k, k), means = matrix(seq_len(k * d) / 2, k, d),
       covariances = array(diag(d), c(d, d, k)))
}

# New points as the object can take them: by its formula, its bags, its columns
# or its kernel values.
world$new_for <- function(object, seed, style = "normal") {
  fields <- names(object)
  sample <- get_field(object, "sample")
  if (is.null(sample) && "variables" %in% fields) {
    sample <- object$variables[[1L]]$sample
  }
  if (inherits(object, c("bag_gram", "bag_smm"))) {
    return(world$bags(3L, 3L, 2L, seed, style))
  }
  if (!is.null(object$layout)) {
    return(world$frame(6L, seed, style))
  }
  if (inherits(object, "rkhs_iv_nested")) {
    return(list(a = world$points(5L, 1L, seed, style),
                b = world$points(5L, 1L, seed, style)))
  }
  if (inherits(object, "rkhs_iv")) {
    return(world$points(5L, 1L, seed, style))
  }
  if (!is.null(sample) && is.null(sample$x)) {
    return(matrix(0.5, 3L, sample$n))
  }
  d <- if (is.null(sample)) 2L else NCOL(sample$x)
  world$points(5L, d, seed, style)
}

# As many rows as the object has points; 20 where it does not say.
world$rows_of <- function(object) {
  n <- tryCatch(as.integer(nobs(object)), error = \(e) 20L)
  if (length(n) == 1L && !is.na(n)) n else 20L
}

# A source of rows that is used up.
world$stream <- function(data, size = 7L) {
  done <- 0L
  function() {
    if (done >= nrow(data)) {
      return(NULL)
    }
    rows <- seq.int(done + 1L, min(done + size, nrow(data)))
    done <<- done + length(rows)
    data[rows, , drop = FALSE]
  }
}

# Functions of the user -----------------------------------------------------

# Errors and warnings of the user's own functions are the user's own.
world$own_error <- function(...) {
  stop(errorCondition("the function of the user failed",
                      class = c("fuzz_user_error", "fuzz_user"), call = NULL))
}
world$own_warning <- function(...) {
  warning(warningCondition("the function of the user warns",
                           class = "fuzz_user", call = NULL))
  1
}
world$own_kernel <- function(x, y) exp(-as.matrix(abs(outer(x[, 1], y[, 1],
                                                            "-"))))
world$own_weights <- function(x) {
  n <- nrow(as.matrix(x))
  rep(1 / n, n)
}
world$own_width <- function(x) 1 + max(abs(x))

# Things that lie -----------------------------------------------------------

methods::setClass("fuzz_s4", representation(x = "numeric"), where = world)
methods::setClass("fuzz_sparse", contains = "numeric", where = world,
                  representation(i = "integer", Dim = "integer"))
world$s4 <- function() methods::new("fuzz_s4", x = 1)
world$sparse <- function() {
  methods::new("fuzz_sparse", c(1, 2), i = 1:2, Dim = c(2L, 2L))
}

# Says that it has three rows and has one number.
world$liar <- function() structure(1, class = "fuzz_liar")
dim_of_liar <- function(x) c(3L, 1L)
registerS3method("dim", "fuzz_liar", dim_of_liar, baseenv())
registerS3method("length", "fuzz_liar", function(x) 5L, baseenv())

world$int64 <- function() structure(c(5e-324, 1e-323), class = "integer64")
world$tibble <- function(...) {
  structure(data.frame(...), class = c("tbl_df", "tbl", "data.frame"))
}
world$listed <- function() {
  x <- data.frame(a = 1:3)
  x$b <- list(1, "b", NULL)[c(1, 2, 1)]
  x
}
world$twice <- function() {
  structure(data.frame(1:4, c(2, 5, 3, 9)), names = c("a", "a"))
}
world$nameless <- function() {
  structure(data.frame(1:4, c(2, 5, 3, 9)), names = c("a", NA))
}
world$dim_names <- function(rows, columns) {
  matrix(c(1, 4, 2, 8), 2, 2, dimnames = list(rows, columns))
}
world$pointer <- function() attr(stdin(), "conn_id")
world$long_text <- function() strrep("kernel ", 20000)
world$long_list <- function() as.list(1:20000)
world$circle <- function() {
  e <- new.env()
  e$e <- e
  e
}

# Each is code, so that it can be printed.
hostile <- alist(
  NULL, NA, NA_integer_, NA_real_, NA_character_, NA_complex_, NaN, Inf, -Inf,
  -1, 0, -0.5, 0.5, 1, 2, 3, 1.5, 1e-320, 5e-324, 1e-300, 1e300, 1e308,
  .Machine$integer.max, -.Machine$integer.max, 2^31, 2^53, -2^31, 1e6, 46341,
  1L, 0L, -1L, 5L, TRUE, FALSE, c(TRUE, NA), logical(0), integer(0), numeric(0),
  character(0), list(), "", " ", "a", "kme", "median", "all", "loo", "cv", "NA",
  "skmse", "v1", "\u00e9", "\xff", c("a", "b"), c(a = "b"), c(a = 1, b = 2),
  c(1, 2), c(1, NA), c(0, 0, 0), c(-1, 1), c(1, 1), 3:1, 1:40, c(1, Inf),
  as.raw(1:3), raw(0), 1i, c(1 + 2i, 3), list(1), list(1, "a"), list(NULL),
  list(a = 1, 2), list(list(1)), list(a = NULL), expression(a + b), quote(a),
  quote(a + b), quote(f(x)), y ~ x, ~a, ~1, ~., . ~ ., ~ a + nothing, a ~ b | c,
  data.frame(), data.frame(a = 1:3), data.frame(a = numeric(0)),
  data.frame(row.names = 1:3), data.frame(a = c("x", "y")), listed(), twice(),
  nameless(), data.frame(a = I(matrix(1:6, 3))), data.frame(a = c(1, NA, 3)),
  tibble(a = 1:3, b = 3:1), factor(c("a", "b", "a")), factor(character(0)),
  factor(c("a", NA)), factor(c("a", NA), exclude = NULL),
  factor("a", levels = c("a", "b", "c")), list("a", cex = 2), "Scott",
  ordered(c("lo", "hi")), as.Date("2020-02-29"), as.Date(c(NA, "2020-01-01")),
  as.POSIXct(0, origin = "1970-01-01", tz = "UTC"),
  as.POSIXlt("2020-01-01", tz = "UTC"), as.difftime(3, units = "mins"),
  s4(), sparse(), globalenv(), emptyenv(), new.env(), circle(), is.null, list,
  function() NULL, function(x) x, function(...) NaN, function(...) "text",
  function(x, y) matrix(0, 1, 1), own_error, own_warning, function(...) NULL,
  stdin(), pointer(), array(1, c(2, 2, 2)), array(1, 3), array(0, c(0, 2)),
  table(c("a", "b", "a")), ts(c(3, 1, 2)), matrix(numeric(0), 0, 0),
  matrix(0, 0, 3), matrix(0, 3, 0), matrix(NA_real_, 2, 2), matrix("a", 2, 2),
  matrix(list(1, "a"), 1), matrix(1:6, 2), matrix(1i, 2, 2), diag(2), diag(30),
  matrix(c(1, NaN, 2, 3), 2), matrix(Inf, 3, 1), matrix(TRUE, 3, 2),
  dim_names(c("r", NA), c("c", "c")), dim_names(NULL, c("", "b")),
  dim_names(c("r", "r"), NULL), long_text(), long_list(), int64(),
  bit64::as.integer64(3), 1:1e9, numeric_version("1.2"),
  dist(1:4), dist(matrix(1, 3, 2)),
  stats::na.fail, stats::na.omit, Sys.time(), simpleError("an error"), NULL
)
hostile <- hostile[-length(hostile)]
if (!requireNamespace("bit64", quietly = TRUE)) {
  hostile <- Filter(\(e) !grepl("bit64", deparse1(e)), hostile)
}

# Damage --------------------------------------------------------------------

# Objects made by hand, of no size or kind that their class promises.
broken <- alist(
  structure(list(), class = "kme"), structure(1, class = "gram"),
  structure(list(K = diag(3)), class = "gram"),
  structure(list(), class = "kernmean_kernel"),
  structure(list(name = "kme"), class = "kernmean_estimator"),
  structure("rbf", class = "kernmean_kernel"),
  structure(list(weights = 1), class = "kme_sketch"),
  structure(list(1, 2), class = "dist"), structure(1, class = "dist"),
  structure(1:3, class = "factor"),
  structure(list(a = 1:2), class = "data.frame"),
  structure(1:3, class = "permutationMatrix"), liar()
)

# An object to which something was done, anywhere in it: a field taken away, of
# another type, shorter, longer, not finite. What was done is told by notes().
world$damage <- function(object, seed, notes = note) {
  force(object) # a promise that sets a seed of its own
  set.seed(seed)
  if (runif(1L) < 0.1) {
    way <- sample(c("number", "list", "text", "function", "NULL"), 1L)
    notes("all of it replaced by ", way, " of its class")
    return(structure(
      switch(way, number = 1, list = list(), text = "a",
             "function" = \(...) 1, "NULL" = list(NULL)),
      class = class(object)
    ))
  }
  hurt(object, NULL, notes)
}

hurt <- function(x, path, notes) {
  fields <- names(x)
  # Of a list without names places stand for fields.
  if (is.null(fields) && is.list(x)) fields <- seq_along(x)
  if (is.character(fields)) fields <- fields[nzchar(fields)]
  if (!(is.list(x) || is.environment(x)) || length(fields) == 0L ||
        length(path) > 4L) {
    return(spoil(x, path, notes))
  }
  field <- fields[sample.int(length(fields), 1L)]
  value <- get_field(x, field)
  path <- c(path, field)
  deeper <- (is.list(value) || is.environment(value)) && length(value) > 0L
  if (deeper && runif(1L) < 0.55) {
    return(set_field(x, field, hurt(value, path, notes)))
  }
  if (runif(1L) < 0.3) {
    notes(paste(path, collapse = "$"), " taken away")
    return(drop_field(x, field))
  }
  set_field(x, field, spoil(value, path, notes))
}

# Methods of ours for `$<-` and `[[<-` do not matter here.
get_field <- function(x, field) {
  if (is.environment(x)) get0(field, x, inherits = FALSE) else
    unclass(x)[[field]]
}

set_field <- function(x, field, value) {
  if (is.environment(x)) {
    if (bindingIsLocked(field, x)) unlockBinding(field, x)
    assign(field, value, x)
    return(x)
  }
  kept <- attributes(x)
  x <- unclass(x)
  x[field] <- list(value)
  restore(x, kept)
}

drop_field <- function(x, field) {
  if (is.environment(x)) {
    rm(list = field, envir = x)
    return(x)
  }
  kept <- attributes(x)
  x <- unclass(x)
  x[[field]] <- NULL
  restore(x, kept)
}

restore <- function(x, kept) {
  kept[c("names", "dim", "dimnames")] <- NULL
  attributes(x) <- c(attributes(x), kept)
  x
}

# The ways that need a value of some kind do nothing good to others either.
spoil <- function(x, path, notes) {
  ways <- c("NULL", "text", "list", "NA", "function", "Inf", "empty", "number",
            "matrix", "names", "factor", "data frame")
  if (length(x) > 0L && (is.atomic(x) || is.list(x))) {
    ways <- c(ways, rep(c("shorter", "longer", "reversed"), 2L))
  }
  if (is.numeric(x) && length(x) > 0L) {
    ways <- c(ways, rep(c("one NA", "one Inf", "negative", "huge", "zero",
                          "integer", "as text", "no dim", "transposed"), 2L))
  }
  if (is.object(x)) ways <- c(ways, rep("no class", 3L))
  way <- sample(ways, 1L)
  notes(if (length(path)) paste(path, collapse = "$") else "it", ": ", way)
  x0 <- if (is.object(x) && !is.environment(x)) unclass(x) else x
  switch(way,
    "NULL" = NULL, text = "a", list = list(1, "a"), "NA" = NA,
    "function" = \(...) NULL, "Inf" = Inf, number = 1.5,
    empty = if (is.atomic(x0) || is.list(x0)) x0[0] else list(),
    matrix = matrix(c(1, 2, 3, 4, 5, 6), 3), factor = factor(c("a", "b")),
    "data frame" = data.frame(a = 1:2),
    names = if (length(x0) && (is.atomic(x0) || is.list(x0))) {
      structure(as.vector(x0), names = paste0("n", seq_along(x0)))
    } else "n",
    shorter = x0[-length(x0)], longer = c(x0, x0[1L]), reversed = rev(x0),
    "one NA" = replace(x0, 1L, NA), "one Inf" = replace(x0, length(x0), Inf),
    negative = -abs(x0) - 1, huge = x0 * 1e300, zero = x0 * 0,
    integer = {
      storage.mode(x0) <- "integer"
      x0
    },
    "as text" = {
      storage.mode(x0) <- "character"
      x0
    },
    "no dim" = as.vector(x0),
    transposed = if (length(dim(x0)) == 2L) t(x0) else rev(x0),
    "no class" = if (is.environment(x)) as.list.environment(x) else x0
  )
}

note <- function(...) NULL
