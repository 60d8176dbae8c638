# Objects of ours in which a field was damaged: what a method makes of one is a
# result without NaN or an error of ours, never one of R's own.

# Ways to spoil a field; gone() takes it away.
field_damages <- list(
  gone = \(value) NULL, null = \(value) list(NULL), word = \(value) list("a"),
  empty = \(value) list(list()), true = \(value) list(TRUE),
  shorter = \(value) {
    if (is_opaque(value)) {
      return(list(1))
    }
    # Objects of ours may have a way of their own to take a part.
    ours <- is.list(value) && is.object(value) && !is.data.frame(value)
    list(if (ours) structure(unclass(value)[-1], class = class(value)) else
      value[-1])
  },
  missing = \(value) {
    if (is_opaque(value) || !length(value)) {
      return(list(NA))
    }
    value[[length(value)]] <- NA
    list(value)
  }
)

is_opaque <- \(x) is.environment(x) || is.function(x) || is.language(x)

# The names of all fields down to `depth`, as paths; a list without names goes
# by number, only its first.
field_paths <- function(x, depth) {
  if (!depth || !is.list(x) && !is.environment(x) || is.data.frame(x)) {
    return(NULL)
  }
  own <- if (is.null(names(x))) as.list(seq_len(min(1L, length(x)))) else
    as.list(names(x))
  do.call(c, lapply(own, \(field) {
    value <- if (is.environment(x)) x[[field]] else unclass(x)[[field]]
    c(list(list(field)),
      lapply(field_paths(value, depth - 1L), \(path) c(list(field), path)))
  }))
}

# x with the field at the end of the path replaced by what damage() makes of it.
damage_field <- function(x, path, damage) {
  keep <- attributes(x)
  home <- is.environment(x)
  x <- if (home) as.list.environment(x, all.names = TRUE) else unclass(x)
  field <- path[[1L]]
  value <- if (length(path) > 1L) {
    list(damage_field(x[[field]], path[-1L], damage))
  } else {
    damage(x[[field]])
  }
  if (is.null(value)) x[[field]] <- NULL else x[field] <- value
  if (home) {
    x <- list2env(x, parent = emptyenv())
    attributes(x) <- keep
    return(x)
  }
  keep$names <- names(x)
  keep$dim <- NULL
  attributes(x) <- keep
  x
}

# `within`: the fields whose own fields are damaged too, NULL for all.
damaged_objects <- function(object, depth, within = NULL) {
  made <- list(
    "no field" = structure(list(), class = class(object)),
    "a number" = structure(1, class = class(object))
  )
  paths <- field_paths(object, depth)
  if (!is.null(within)) {
    paths <- Filter(\(path) length(path) == 1L || path[[1L]] %in% within, paths)
  }
  for (path in paths) {
    for (damage in names(field_damages)) {
      label <- paste(paste(unlist(path), collapse = "$"), damage)
      made[[label]] <- damage_field(object, path, field_damages[[damage]])
    }
  }
  made
}

has_nan <- function(x) {
  if (is.list(x)) {
    any(vapply(unclass(x), has_nan, NA))
  } else {
    is.numeric(x) && anyNA(x) && any(is.nan(x))
  }
}

# What is wrong with the outcome of a method, or NULL.
outcome_fault <- function(method, object) {
  tryCatch(
    if (has_nan(suppressWarnings(method(object)))) "NaN",
    kernmean_error = \(e) NULL,
    error = \(e) conditionMessage(e)
  )
}

# Lines "field damage: method(): what happened"; the methods, a named list of
# functions, must take the object itself. The first of them meets all damages,
# the others each `every`-th, not the same ones.
object_faults <- function(object, methods, depth = 2L, every = 1L,
                          within = NULL) {
  faults <- character()
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  utils::capture.output({
    for (method in names(methods)) {
      suppressWarnings(methods[[method]](object))
    }
    damaged <- damaged_objects(object, depth, within)
    for (i in seq_along(damaged)) {
      label <- names(damaged)[i]
      met <- seq_along(methods) == 1L | (seq_along(methods) + i) %% every == 0L
      for (method in names(methods)[met | i <= 2L]) {
        fault <- outcome_fault(methods[[method]], damaged[[i]])
        if (!is.null(fault)) {
          faults <- c(faults, paste0(label, ": ", method, "(): ", fault))
        }
      }
    }
  })
  faults
}

expect_whole <- function(object, methods, depth = 2L, every = 1L,
                         within = NULL) {
  faults <- object_faults(object, methods, depth, every, within)
  testthat::expect(
    !length(faults),
    paste0(length(faults), " methods of '", class(object)[1L],
           "' go wrong over damaged fields:\n",
           paste(utils::head(faults, 20L), collapse = "\n"))
  )
  invisible(object)
}
