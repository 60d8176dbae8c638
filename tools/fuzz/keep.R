# What calls gave, kept by their seeds, and how it differs from what they give
# with another installed package.

# Paths that are not compared, as regular expressions. A path is the function,
# a verb that was called on the result, fields ($) and attributes (@).
ignored <- c(
  # What update() and predict() work with.
  "[$](arguments|origin|sample)\\b", "@(format|door)$",
  # They tell landmarks apart, by the process and the time.
  "^[^a].*[$]id$",
  # Words for the reader.
  "[$](method|data.name|label|title|lines)$"
)

# Numbers may differ by so much of the larger one, these and integers not at
# all.
tolerance <- 1e-12
exact <- "p[._](value|adj|linear)|:stream"

# Damage depends on fields that may change.
kept_modes <- c(sound = 0.6, extreme = 0.2, one = 0.1, odd = 0.05,
                missing = 0.05)
kept_seconds <- 30

# What is asked of each fit beside its fields.
verbs <- alist(coef, predict, fitted, residuals, weights, confint, nobs,
               as.data.frame, generics::tidy, generics::glance)

# Calls that give no object, for which random arguments seldom are right.
more_calls <- alist(
  score(rkhs_iv(points(24, 1, 1), numbers(24, 2), points(24, 1, 3), mu = 0.1),
        list(x = points(9, 1, 4), y = numbers(9, 5), z = points(9, 1, 6))),
  score(rkhs_iv(y ~ a | b + c, frame(24, 1), mu = 1), frame(9, 2)),
  preimage(kme_pca(points(15, 2, 1), ncomp = 2), points(5, 2, 2)),
  preimage(kme_pca(points(15, 1, 1), kernel_rbf(1)), points(5, 1, 2)),
  reconstruction_error(kme_pca(points(15, 2, 1), ncomp = 2), points(5, 2, 2)),
  kme_risk(kme(points(20, 2, 1)), mixture(2)),
  kme_risk(kme(points(20, 2, 1), kernel_rbf(1), "skmse"), mixture(2)),
  kme_distance(kme(points(20, 2, 1), kernel_rbf(1)),
               kme(points(15, 2, 2), kernel_rbf(1))),
  kme_weights(points(30, 2, 1), target = points(20, 2, 2))
)

# Each third call is one of these, or makes an object of the pool, from other
# data.
kept_plan <- function(seed, found) {
  if (seed %% 3 > 0) return(make_plan(seed, found))
  start_seed(seed)
  code <- vary(any_of(c(unlist(objects), more_calls, more_calls)))
  door <- deparse1(code[[1L]])
  entry <- list(name = door, generic = door, door = TRUE, head = code[[1L]])
  # Names stand for columns, or fields.
  values <- lapply(as.list(code)[-1L], \(v) if (is.name(v)) as_it_is(v) else v)
  list(entry = entry, mode = "pool", values = values, seed = seed,
       follow = draw_seed())
}

vary <- function(code) {
  if (!is.call(code)) return(code)
  code[] <- lapply(code, vary)
  at <- c(points = 4L, frame = 3L, numbers = 3L, labels = 4L, bags = 5L)
  at <- at[deparse1(code[[1L]])]
  if (!is.na(at)) code[[at]] <- draw_seed()
  code
}

keep_answer <- function(answer, plan) {
  name <- plan$entry$name
  record <- record_of(answer, name)
  if (!inherits(answer$value, "kernmean_fit")) return(record)
  space <- list2env(list(value = answer$value), parent = world)
  for (verb in verbs) {
    set.seed(plan$seed)
    said <- answer_of(as.call(list(verb, quote(value))), space, plan)
    record <- c(record, record_of(said, paste0(name, ":", deparse1(verb))))
  }
  record
}

# Values, classes of conditions, and where the random numbers stand: a sum that
# is exact in double precision.
record_of <- function(answer, path) {
  now <- as.numeric(get0(".Random.seed", globalenv()))
  signs <- c(answer$signals, paste(class(answer$error), collapse = " "))
  c(leaves(answer$value, path), leaves(signs, paste0(path, ":conditions")),
    leaves(c(now[1:2], sum(now * seq_along(now), na.rm = TRUE)),
           paste0(path, ":stream")))
}

# The vectors that x is made of, by their paths.
leaves <- function(x, path, depth = 0L) {
  if (inherits(x, "gram")) {
    x <- list(K = x$K, x = x$x, raw = x$raw, repair = x$repair)
  } else if (inherits(x, "ggplot")) {
    x <- c(list(x$data), lapply(x$layers, `[[`, "data"))
  } else if (inherits(x, "ggplot_built")) {
    x <- x$data
  }
  if (is.null(x) || is.language(x) || depth > 9L ||
        !is.list(x) && !is.atomic(x)) return()
  more <- attributes(x)
  if (is.list(x) && !is.data.frame(x)) more$names <- NULL
  own <- if (is.list(x)) unclass(x)
  names <- names(own) %||% seq_along(own)
  paths <- paste0(path, c(sprintf("$%s", make.unique(paste(names))),
                          sprintf("@%s", names(more))))
  c(if (!is.list(x)) structure(list(brief(x)), names = path),
    unlist(unname(Map(leaves, c(own, more), paths, depth + 1L)),
           recursive = FALSE))
}

# Of many numbers the first, and sums of each hundredth.
brief <- function(x) {
  x <- as.vector(unclass(x))
  n <- length(x)
  if (n <= 400L || !is.numeric(x)) return(x)
  c(n, sum(is.na(x)), x[1:100],
    rowSums(matrix(c(x, rep(0, -n %% 100)), 100L), na.rm = TRUE))
}

# The arguments that follow from the fields of an object, as data.
with_data <- function(plan, space) {
  for (i in seq_along(plan$values)) {
    code <- plan$values[[i]]
    made <- paste0("x", i)
    if (is.call(code) && identical(code[[1L]], quote(new_for)) &&
          exists(made, space, inherits = FALSE)) {
      plan$values[i] <- list(space[[made]])
    }
  }
  plan
}

same <- function(a, b, path) {
  if (!is.numeric(a) || !is.numeric(b) || length(a) != length(b)) {
    return(identical(a, b))
  }
  near <- a == b
  if (!grepl(exact, path) && !(is.integer(a) && is.integer(b))) {
    near <- near | is.finite(a) & is.finite(b) &
      abs(a - b) <= tolerance * pmax(abs(a), abs(b))
  }
  all(near %in% TRUE | is.na(a) & is.na(b) & is.nan(a) == is.nan(b))
}

# A line for each path at which two records differ.
differences <- function(old, new) {
  paths <- union(names(old), names(new))
  for (pattern in ignored) paths <- grep(pattern, paths, value = TRUE,
                                         invert = TRUE)
  differs <- Filter(\(p) !same(old[[p]], new[[p]], p), paths)
  vapply(differs, \(p) {
    a <- old[[p]]
    b <- new[[p]]
    # Of long vectors what is shown begins where they differ.
    if (length(a) == length(b) && length(a) > 1L) {
      at <- which(!vapply(seq_along(a), \(i) same(a[i], b[i], p), NA))
      a <- a[at]
      b <- b[at]
      p <- paste0(p, "[", at[1L], "]")
    }
    paste0(p, ": ", shown(a), " -> ", shown(b))
  }, "")
}
shown <- function(x) {
  if (is.null(x)) return("nothing")
  x <- if (is.double(x)) format(x[1L], digits = 17L) else x[1L]
  substr(encodeString(paste(x)), 1L, 80L)
}

compare <- function(old, new) {
  count <- 0L
  for (seed in names(old)) {
    found <- if (is.null(new[[seed]])) "no result: it died, or had no time" else
      differences(old[[seed]]$record, new[[seed]]$record)
    if (length(found) == 0L) next
    count <- count + 1L
    cat("seed ", seed, " (", old[[seed]]$plan$mode, "), ", length(found),
        " of ", length(old[[seed]]$record), " values\n", sep = "")
    cat(paste0("  ", utils::head(found, 5L), "\n"), sep = "")
  }
  cat(length(old), " calls, ", count, " differ\n", sep = "")
  count == 0L && length(old) > 0L
}
