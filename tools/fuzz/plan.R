# One call from one number: which function, which arguments as code, in which
# surroundings.

# Every exported function and every registered method: name, generic, formals
# and the code of what is called.
find_entries <- function(package) {
  space <- asNamespace(package)
  exports <- sort(getNamespaceExports(space))
  methods <- getNamespaceInfo(space, "S3methods")
  own <- unique(methods[, 1L])
  plain <- lapply(setdiff(exports, own), \(name) {
    list(name = name, generic = name, class = NULL, door = TRUE,
         head = as.name(name),
         formals = formals(get(name, space)))
  })
  from <- methods[, 4L]
  there <- vapply(from, \(p) is.na(p) || requireNamespace(p, quietly = TRUE),
                  NA)
  of_class <- lapply(which(there), \(i) {
    generic <- methods[i, 1L]
    function_name <- methods[i, 3L]
    list(name = paste0(generic, ".", methods[i, 2L]), generic = generic,
         class = methods[i, 2L], door = generic %in% exports &&
           !methods[i, 2L] %in% names(objects)[-1L],
         head = if (is.na(from[i])) as.name(generic) else
           call("::", as.name(from[i]), as.name(generic)),
         formals = formals(get(function_name, space)))
  })
  entries <- c(plain, of_class)
  names(entries) <- vapply(entries, `[[`, "", "name")
  entries <- entries[order(names(entries), method = "radix")]
  callable <- vapply(entries, \(e) !is_method(e) || has_object(e$class), NA)
  left_out <- names(entries)[!callable]
  entries <- entries[callable]
  list(entries = entries, exports = exports, left_out = left_out,
       weight = vapply(entries, \(e) {
         if (e$door) 4 else if (e$generic == "autoplot") 0.5 else
           if (identical(e$class, "kernmean_fit")) 8 else 1
       }, 0))
}

# What makes an argument sound: a recipe for it, or arguments of the function
# that its default calls, as test_control(). NULL: the default is kept.
find_recipe <- function(entry, argument, found) {
  recipe <- args[[paste0(entry$name, ".", argument)]] %||%
    args[[paste0(entry$generic, ".", argument)]]
  if (!is.null(recipe)) return(recipe)
  needed <- identical(entry$formals[[argument]], quote(expr = ))
  maker <- if (!needed && is.call(entry$formals[[argument]])) {
    deparse1(entry$formals[[argument]][[1L]])
  }
  if (isTRUE(maker %in% found$exports) &&
        !startsWith(maker, "kernel") && maker %in% names(found$entries)) {
    return(\(s) as.call(c(
      as.name(maker), sound_arguments(found$entries[[maker]], s, found, NULL)
    )))
  }
  args[[argument]] %||% if (needed) \(s) pts(s)
}
`%||%` <- function(a, b) if (is.null(a)) b else a

is_method <- function(entry) {
  !is.null(entry$class) && !is_door_class(entry$class)
}
is_door_class <- function(class) class %in% c("default", "formula", "dist")

start_seed <- function(seed) {
  set.seed(seed, "Mersenne-Twister", "Inversion", "Rejection")
}

draw_entry <- function(found) {
  found$entries[[sample.int(length(found$weight), 1L, prob = found$weight)]]
}

modes <- c(sound = 0.12, extreme = 0.28, one = 0.19, several = 0.08,
           damaged = 0.17,
           odd = 0.1, missing = 0.06)

make_plan <- function(seed, found) {
  start_seed(seed)
  entry <- draw_entry(found)
  mode <- sample(names(modes), 1L, prob = modes)
  plan <- plan_call(entry, mode, found)
  plan$seed <- seed
  plan$follow <- if (entry$door && mode != "damaged" && chance(0.5)) draw_seed()
  plan
}

plan_call <- function(entry, mode, found, object = NULL) {
  s <- new_scene(entry$name, mode == "extreme" || chance(0.1))
  values <- sound_arguments(entry, s, found, object)
  values <- switch(mode,
    one = spoil_arguments(entry, values, 1L, object),
    several = spoil_arguments(entry, values, 2L + chance(0.4), object),
    damaged = damage_argument(values),
    values
  )
  values <- if (mode == "missing") misplace(entry, values) else values
  # Names of columns are for formulas.
  if (!any(vapply(values, \(v) is.call(v) && identical(v[[1L]], quote(`~`)),
                  NA))) {
    values <- values[!vapply(values, inherits, NA, "as_it_is")]
  }
  list(entry = entry, mode = mode, values = values,
       odd = if (mode == "odd") any_of(surroundings))
}

sound_arguments <- function(entry, s, found, object) {
  values <- list()
  put <- function(name, recipe) values[name] <<- list(recipe(s))
  method <- is_method(entry)
  # Some calls have most of the arguments, most have few.
  density <- any_of(c(0.05, 0.15, 0.15, 0.4))
  for (name in names(entry$formals)) {
    if (name == "...") next
    if (method && length(values) == 0L && is.null(s$object)) {
      own <- args[[paste0(entry$name, ".", name)]]
      s$object <- object %||%
        if (is.null(own)) from_pool(entry$class) else own(s)
      values[name] <- list(s$object)
      next
    }
    has_default <- !identical(entry$formals[[name]], quote(expr = ))
    p <- if (has_default) density else if (name %in% may_be_missing) 0.3 else 1
    p <- often[[paste0(entry$name, ".", name)]] %||%
      often[[paste0(entry$generic, ".", name)]] %||% often[[name]] %||% p
    if (!chance(p)) next
    recipe <- find_recipe(entry, name, found)
    if (!is.null(recipe)) put(name, recipe)
  }
  values <- agree(values, entry)
  more <- dots_of(entry, s, found)
  if (!is.null(more)) {
    values <- c(values, dots_arguments(more, entry, s, found, density))
  }
  if (entry$generic %in% c("[", "[<-") && entry$class == "gram") {
    values <- append(values, list(one(1, 1:2, -1, "a")), 1L)
  }
  values
}

# How often arguments are given of which this is not for the signature to say.
often <- list(newdata = 0.6, B = 0.95, nstart = 0.95, data = 0.9, parm = 0.03,
              plot.y = 0.3, kme_cov.y = 0.5, mmd_test.kme_sketch.y = 0.3,
              kme_cov.kme_sketch.y = 0.05, kme_fda.kme_sketch.grouping = 0.05,
              kme_density.kme_sketch.m = 0.9, smm.id = 0.95, augment.data = 0.4,
              kme_inner.b = 0.9, kme_distance.b = 0.9, read = 0.03,
              row.names = 0.1,
              optional = 0.1, checkpoint = 0.05, kme_sketch.y = 0.15)

# Mostly, what excludes each other is not given together.
agree <- function(values, entry) {
  if (chance(0.15)) return(values)
  if (entry$generic == "augment" && !is.null(values$data)) {
    values$newdata <- NULL
  }
  if (is.call(values$a) && values$a[[1L]] == quote(list)) values$b <- NULL
  if (is.call(values$x) && values$x[[1L]] == quote(list)) {
    values[c("y", "kernel_x", "kernel_y")] <- NULL
  }
  if (is.call(values$bags) && values$bags[[1L]] == quote(pool)) {
    values <- values[intersect(names(values), c("bags", "y", "type", "folds",
                                                "progress"))]
  }
  values
}

# What a formula says already.
by_formula <- c("x", "y", "z", "bags", "grouping", "model", "id")

dots_arguments <- function(more, entry, s, found, density) {
  if (more == "graphics") {
    return(graphics[runif(length(graphics)) < density / 8])
  }
  source <- if (more == "est") NULL else found$entries[[more]]
  names <- if (more == "est") estimator_arguments else
    setdiff(names(source$formals), c("...", by_formula, "progress"))
  if (entry$generic == "update" && chance(0.2)) names <- c(names, "x", "y",
                                                           "data")
  names <- setdiff(names, names(entry$formals))
  names <- names[runif(length(names)) < density / 2]
  for_door <- source %||% entry
  s$entry <- entry$name
  # What makes calls short stays in.
  if (entry$generic != "update") {
    short <- intersect(c("B", "nstart"), names(source$formals))
    names <- union(names, setdiff(short, names(entry$formals)))
  }
  recipes <- sapply(names, \(name) find_recipe(for_door, name, found),
                    simplify = FALSE)
  more_values <- lapply(Filter(Negate(is.null), recipes), \(recipe) recipe(s))
  if (entry$name == "smm.formula" && chance(0.7)) more_values$type <- "ridge"
  more_values
}

# Hostile values in the place of sound ones, or where none was.
spoil_arguments <- function(entry, values, count, object) {
  names <- union(names(values), setdiff(names(entry$formals), "..."))
  # A method is reached through its object.
  if (is_method(entry) || !is.null(object)) names <- setdiff(names,
                                                             names(values)[1L])
  names <- names[nzchar(names)]
  if (entry$generic == "plot" && chance(0.4)) {
    bad <- hostile_graphics[sample.int(length(hostile_graphics), count)]
    return(c(values[setdiff(names(values), names(bad))], bad))
  }
  if (length(names) == 0L || chance(0.03)) {
    return(c(values, list(any_of(hostile))))
  }
  for (name in sample(names, min(count, length(names)))) {
    values[name] <- list(any_of(hostile))
  }
  values
}

makers <- paste0("^(pool|gram|as_gram|shrink_gram|(kernel|est|kme)_?[a-z]*|",
                 "[a-z]+_(control|filter)|mixture|dist|bags)$")

# An object that something was done to, or made by hand; the first argument of
# all where none is an object.
damage_argument <- function(values) {
  objects <- which(vapply(values, \(v) {
    is.call(v) && is.name(v[[1L]]) && grepl(makers, v[[1L]])
  }, NA))
  if (length(values) == 0L) return(list(any_of(broken)))
  i <- if (length(objects) == 0L || chance(0.7)) c(objects, 1L)[1L] else
    any_of(objects)
  values[[i]] <- if (length(objects) == 0L || chance(0.1)) any_of(broken) else
    call("damage", values[[i]], draw_seed())
  values
}

# Arguments left out, without names, misspelled, given twice, or too many.
misplace <- function(entry, values) {
  names <- names(values)
  at <- if (length(values)) sample.int(length(values), 1L)
  way <- sample(c("first", "one", "none", "names", "spelling", "twice", "more"),
                1L)
  method <- is_method(entry)
  if (length(values) == 0L || method && way %in% c("first",
                                                   "none")) way <- "more"
  if (method && way == "one") at <- length(values)
  switch(way,
    first = values[-1L], one = if (method && at == 1L) values else values[-at],
    none = list(),
    names = unname(values[!vapply(values, inherits, NA, "as_it_is")]),
    spelling = {
      if (method && at == 1L) return(values)
      name <- names[at]
      names[at] <- any_of(c(paste0(name, "x"), substr(name, 1L,
                                                      nchar(name) - 1L),
                            toupper(name), substr(name, 1L, 1L), "nothing"))
      # What stands for the generic's own argument would be given to another.
      if (method && startsWith(names[1L], names[at])) return(values)
      structure(values, names = names)
    },
    twice = c(values, values[at]),
    more = c(values, if (chance(0.5)) list(any_of(hostile)) else
      list(nothing = any_of(hostile)))
  )
}

# Surroundings ----------------------------------------------------------------

# Code that sets something and returns what sets it back, a function.
world$with_options <- function(...) {
  before <- options(...)
  function() options(before)
}
world$with_rng <- function(...) {
  before <- RNGkind()
  suppressWarnings(RNGkind(...))
  function() suppressWarnings(do.call(RNGkind, as.list(before)))
}
world$with_locale <- function(locale) {
  before <- Sys.getlocale()
  Sys.setlocale("LC_ALL", locale)
  function() {
    parts <- strsplit(before, ";", fixed = TRUE)[[1L]]
    if (length(parts) == 1L) return(Sys.setlocale("LC_ALL", before))
    for (part in strsplit(parts, "=", fixed = TRUE)) {
      known <- c("LC_COLLATE", "LC_CTYPE", "LC_MONETARY", "LC_NUMERIC",
                 "LC_TIME")
      if (part[1L] %in% known) Sys.setlocale(part[1L], part[2L])
    }
  }
}
# A folder that cannot be written to, or one that is gone.
world$with_folder <- function(gone = FALSE) {
  before <- getwd()
  folder <- if (gone) tempfile() else "/proc"
  if (gone) dir.create(folder)
  if (dir.exists(folder)) setwd(folder)
  if (gone) unlink(folder, recursive = TRUE)
  function() setwd(before)
}
world$with_threads <- function(threads) {
  before <- kernmean::kernmean_threads(threads)
  function() kernmean::kernmean_threads(before)
}
world$with_env <- function(name, value) {
  before <- Sys.getenv(name, NA)
  do.call(Sys.setenv, structure(list(value), names = name))
  function() {
    if (is.na(before)) return(Sys.unsetenv(name))
    do.call(Sys.setenv, structure(list(before), names = name))
  }
}
world$with_device <- function(width, height, ...) {
  grDevices::pdf(NULL, width, height)
  graphics::par(...)
  function() NULL
}

surroundings <- alist(
  with_options(digits = 1), with_options(digits = 22),
  with_options(scipen = -5),
  with_options(scipen = 200), with_options(OutDec = ","),
  with_options(warn = 1),
  with_options(warn = 2), with_options(stringsAsFactors = NULL),
  with_options(na.action = "na.pass"), with_options(na.action = NULL),
  with_options(na.action = "na.exclude"), with_options(max.print = 3),
  with_options(contrasts = c("contr.sum", "contr.sum")),
  with_options(width = 10),
  with_options(kernmean.memory = 1), with_options(kernmean.memory = 1e4),
  with_options(kernmean.memory = "a"), with_options(kernmean.memory = NA),
  with_options(warnPartialMatchDollar = TRUE, warnPartialMatchArgs = TRUE,
               warnPartialMatchAttr = TRUE),
  with_options(showErrorCalls = FALSE),
  with_options(keep.source = TRUE), with_options(digits.secs = 6),
  with_options(expressions = 500), with_options(useFancyQuotes = FALSE),
  with_options(warning.length = 100), with_options(encoding = "latin1"),
  with_options(timeout = "a"), with_options(str = NULL),
  with_options(ts.eps = NULL),
  with_rng("Wichmann-Hill"), with_rng("Marsaglia-Multicarry"),
  with_rng("Super-Duper"),
  with_rng("Knuth-TAOCP"), with_rng("Knuth-TAOCP-2002"),
  with_rng("L'Ecuyer-CMRG"),
  with_rng(normal.kind = "Kinderman-Ramage"),
  with_rng(normal.kind = "Ahrens-Dieter"),
  with_rng(normal.kind = "Box-Muller"), with_rng(sample.kind = "Rounding"),
  with_locale("C"), with_locale("C"), with_locale("C.UTF-8"), with_folder(),
  with_folder(gone = TRUE), with_threads(1), with_threads(2), with_threads(64),
  with_env("TZ", "nowhere"), with_env("TMPDIR", "/nowhere"),
  with_env("OMP_NUM_THREADS", "a"), with_device(2, 2), with_device(3, 12),
  with_device(7, 7, mfrow = c(3, 2)), with_device(7, 7, mar = c(0, 0, 0, 0)),
  with_device(4, 4, cex = 2), with_device(7, 7, las = 3, xlog = FALSE)
)
