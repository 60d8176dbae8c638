# Makes one call and says how it ended: "result", "classed" (an error of the
# package, or of a function of the user), "argument" (R's own words for an
# argument that is missing, unknown or given twice), "limit" (time or memory),
# "damaged" (an object was, and R had something to say about it), "stale" (what
# the fuzzer itself calls to make arguments has other arguments now) or "other".

limit_seconds <- 2
grace_seconds <- 1

run_plan <- function(plan, found, tell = FALSE) {
  space <- new.env(parent = world)
  begun <- proc.time()[[3L]]
  result <- run_call(plan, space, tell)
  kept <- list(plan = with_data(plan, space), record = result$record)
  kept$plan$follow <- NULL
  came <- result$outcome == "result" ||
    is.list(plan$follow) && !is.null(result$value)
  if (came && !is.null(plan$follow)) {
    next_plan <- follow(plan, result$value, found)
    if (!is.null(next_plan)) {
      space$result <- result$value
      result <- run_call(next_plan, space, tell)
      kept$plan$follow <- with_data(next_plan, space)
      kept$record <- c(kept$record, result$record)
      plan <- next_plan
    }
  }
  result$value <- NULL
  result$kept <- if (result$outcome != "limit") kept
  result$entry <- plan$entry$name
  result$mode <- plan$mode
  result$seconds <- proc.time()[[3L]] - begun
  result
}

# A method of what came back, with sound arguments, or the plan that was kept.
follow <- function(plan, value, found) {
  if (is.list(plan$follow)) return(plan$follow)
  of_class <- Filter(\(e) {
    is_method(e) && inherits(value, e$class)
  }, found$entries)
  if (length(of_class) == 0L) return()
  set.seed(plan$follow)
  mode <- if (chance(0.3)) "extreme" else "sound"
  plan <- c(plan_call(any_of(of_class), mode, found, quote(result)),
            plan["seed"])
  plan
}

run_call <- function(plan, space, tell) {
  made <- make_values(plan, space, tell)
  if (!is.null(made$fault)) {
    return(made$fault)
  }
  undo <- if (!is.null(plan$odd)) {
    if (tell) cat(deparse1(plan$odd), "\n", sep = "")
    eval(plan$odd, world)
  }
  draws <- plan$entry$generic %in% c("plot", "screeplot")
  if (draws && is.null(grDevices::dev.list())) grDevices::pdf(NULL)
  if (tell) cat(deparse(made$call, width.cutoff = 70L), sep = "\n")
  depth <- sink.number()
  set.seed(plan$seed)
  sink(quiet)
  before <- state()
  answer <- answer_of(made$call, space, plan)
  after <- state()
  record <- if (keeping) keep_answer(answer, plan)
  while (sink.number() > depth) sink()
  if (!is.null(undo)) undo()
  while (!is.null(grDevices::dev.list())) grDevices::dev.off()
  kernmean::kernmean_threads("default")
  c(judge(answer, plan, changed(before, after)), list(record = record))
}

# The arguments as variables; what a function of the package refuses to make is
# an answer as well.
make_values <- function(plan, space, tell) {
  entry <- plan$entry
  call <- list(entry$head)
  names(call) <- ""
  names <- names(plan$values) %||% rep("", length(plan$values))
  # The first argument, and those of operators, have no names.
  named <- nzchar(names) & !grepl("^(\\[|[$]|[+])", entry$generic)
  if (length(named) && identical(names[1L], names(entry$formals)[1L])) {
    named[1L] <- FALSE
  }
  for (i in seq_along(plan$values)) {
    code <- plan$values[[i]]
    if (inherits(code, "as_it_is")) {
      call[length(call) + 1L] <- list(code$code)
    } else {
      variable <- paste0("x", i)
      if (tell) {
        cat(variable, " <- ", paste(deparse(code), collapse = "\n  "), "\n",
            sep = "")
      }
      made <- tryCatch(list(suppressWarnings(
        suppressMessages(eval(code, space))
      )), error = identity)
      if (inherits(made, "error")) {
        record <- leaves(class(made), paste0(entry$name, ":", variable))
        return(list(fault = c(refused(made, code), list(record = record))))
      }
      assign(variable, made[[1L]], space)
      call[[length(call) + 1L]] <- as.name(variable)
    }
    if (named[i]) names(call)[length(call)] <- names[i]
  }
  call <- as.call(call)
  # Some of the pictures are made ready to be drawn as well.
  # (ggplot2 makes numbers of labels that have the decimal mark of the options.)
  if (entry$generic == "autoplot" && plan$seed %% 4 == 0 &&
        !"OutDec" %in% names(plan$odd)) {
    call <- bquote(ggplot2::ggplot_build(.(call)))
  }
  list(call = call)
}

refused <- function(error, code) {
  if (inherits(error, c("kernmean_error", "fuzz_user_error"))) {
    return(list(outcome = "classed", what = conditionMessage(error)))
  }
  stale <- grepl("^unused argument|could not find function",
                 conditionMessage(error))
  list(outcome = if (stale) "stale" else "other", what = paste0(
    "making ", substr(deparse1(code[[1L]]), 1L, 30L), ": ",
    conditionMessage(error)
  ))
}

# Where the calls print to.
quiet <- file(nullfile(), "w")

# Warnings of R itself that a user of R expects.
expected_warnings <- c(
  # A font of the pdf device lacks a character of the user's own text.
  "^(conversion failure on|font (metrics|width) unknown|font family)",
  # A graphics parameter that the user's call passes on, which R does not know.
  "is not a graphical parameter$",
  # R looks at the methods of both sides of a sum before it calls one.
  "^Incompatible methods",
  # Limits of the user's below 0 on a logarithmic axis.
  "^nonfinite axis=[12] limits .*log=TRUE"
)

answer_of <- function(call, space, plan) {
  answer <- list(warnings = character(), signals = character(), value = NULL,
                 error = NULL, calls = NULL, names = all.names(call),
                 classed = FALSE, seconds = 0, strict = FALSE)
  strict <- identical(getOption("warn"), 2)
  signal <- function(condition) {
    answer$signals <<- c(answer$signals, paste(class(condition),
                                               collapse = " "))
  }
  on_warning <- function(w) {
    signal(w)
    own <- inherits(w, c("kernmean_warning", "fuzz_user"))
    if (own) answer$classed <<- TRUE
    known <- vapply(expected_warnings, grepl, NA, conditionMessage(w))
    if (!own && !any(known) && !of_a_term(w, sys.calls())) {
      answer$warnings <<- c(answer$warnings, paste0(conditionMessage(w),
                                                    where_from(w)))
      if (is.null(answer$calls)) answer$calls <<- sys.calls()
    }
    if (!strict || !own) invokeRestart("muffleWarning")
  }
  on_message <- function(m) {
    signal(m)
    if (!inherits(m, "kernmean_message") &&
          !inherits(m, "kernmean_message_openmp")) {
      answer$warnings <<- c(answer$warnings, paste("message:",
                                                   conditionMessage(m)))
    }
    invokeRestart("muffleMessage")
  }
  begun <- proc.time()[[3L]]
  error <- tryCatch({
    setTimeLimit(elapsed = limit_seconds, transient = TRUE)
    withCallingHandlers(
      answer["value"] <- list(eval(call, space)),
      warning = on_warning, message = on_message,
      error = \(e) if (!length(answer$warnings)) answer$calls <<- sys.calls()
    )
    NULL
  }, error = identity)
  setTimeLimit()
  answer["error"] <- list(error)
  answer$seconds <- proc.time()[[3L]] - begun
  answer$strict <- strict
  answer
}

# What the user's own code warns of that stands for columns: a term of a
# formula, as log(a), a subset, groups.
of_a_term <- function(warning, calls) {
  inside <- any(vapply(calls, \(call) {
    identical(call[[1L]], quote(model.frame.default)) ||
      identical(call[[1L]], quote(read_formula))
  }, NA))
  inside && !identical(conditionCall(warning)[[1L]], quote(model.frame.default))
}

where_from <- function(condition) {
  call <- conditionCall(condition)
  if (is.null(call)) return("")
  paste0(" [", substr(paste(deparse(call[[1L]]), collapse = ""), 1L, 40L), "]")
}

judge <- function(answer, plan, changed) {
  other <- function(...) {
    list(outcome = "other", what = paste0(...), calls = answer$calls,
         value = answer$value)
  }
  if (answer$seconds > limit_seconds + grace_seconds) {
    return(other("past its time limit"))
  }
  # Objects are trusted: who damages one by hand gets what R says of it.
  if (plan$mode == "damaged") {
    return(list(outcome = if (is.null(answer$error)) "result" else "damaged"))
  }
  if (length(changed)) {
    return(other("changed: ", paste(changed, collapse = ", ")))
  }
  # Text in the place of an aspect, a list in that of a color.
  if (plan$mode %in% c("one", "several")) {
    answer$warnings <- grep(paste0("coercion \\[(graphics::plot.window|plot",
                                   ".xy)\\]$|supplied color is neither"),
                            answer$warnings, value = TRUE, invert = TRUE)
  }
  if (length(answer$warnings)) {
    # What R says of a term of the formula, as model.frame() would hear it.
    if ("eval(part, data, home)" %in% vapply(answer$calls, deparse1, "")) {
      return(list(outcome = "argument"))
    }
    return(other("warning: ", answer$warnings[1L]))
  }
  error <- answer$error
  if (!is.null(error)) {
    message <- conditionMessage(error)
    if (inherits(error, c("kernmean_error", "fuzz_user_error")) ||
          answer$strict && isTRUE(answer$classed) &&
          startsWith(message, "(converted from warning)")) {
      return(list(outcome = "classed", what = message))
    }
    if (grepl("reached (elapsed|CPU) time limit|^cannot allocate vector",
              message)) {
      return(list(outcome = "limit"))
    }
    # A name in the call that stands for nothing.
    unknown <- sub("^object '(.*)' not found$", "\\1", message)
    if (unknown %in% answer$names) {
      return(list(outcome = "argument"))
    }
    # Of graphical parameters and subscripts R says what is wrong.
    if (is_argument_error(message, plan$entry) ||
          startsWith(message, "Logarithmic axis must") ||
          plan$entry$generic %in% c("plot", "[") &&
            plan$mode %in% c("one", "several")) {
      return(list(outcome = "argument"))
    }
    return(other(message, where_from(error)))
  }
  at <- flaw(answer$value, plan$entry, plan$values)
  if (!is.null(at)) {
    return(other(at))
  }
  list(outcome = "result", value = answer$value)
}

# R's own words, about an argument of the very function that was called.
is_argument_error <- function(message, entry) {
  arguments <- names(entry$formals)
  if (entry$door && !is.null(entry$class)) {
    arguments <- c("x", "bags", "object", "formula", arguments[-1L])
  }
  # What R looks for on both sides of a sum.
  if (entry$generic %in% c("+", "*") &&
        startsWith(message, "non-numeric argument") ||
        entry$generic == "[" && grepl("subscript", message)) {
    return(TRUE)
  }
  missing <- sub('^argument "([^"]+)" is missing, with no default$', "\\1",
                 message)
  if (missing != message) {
    return(missing %in% arguments)
  }
  if (startsWith(message, "no applicable method for ")) {
    # The verbs of base_fit.R, of which a class may lack one.
    return(grepl(paste0("'", entry$generic, "'"), message, fixed = TRUE) ||
             grepl("'fit_[a-z]+'", message))
  }
  if (endsWith(message, paste0(" passed to '", entry$generic,
                               "' which requires ",
                               c("1", "2", "3"))) |> any()) {
    return(TRUE)
  }
  grepl(paste0("^(unused arguments? [(]|formal argument \"[^\"]+\" matched ",
               "by multiple actual arguments|",
               "argument [0-9]+ matches multiple formal|",
               "'tolerance' should be numeric)"), message)
}

# What came back --------------------------------------------------------------

# Where NA is what the help page says.
na_fields <- c(
  # tidy(), glance(), augment() and tables: what does not apply is NA.
  "^(tidy|glance|augment|as.data.frame)[.]",
  # There is no variance of one point, and no unbiased norm of its mean.
  "variance$|[$]embedding[$]pool[$]u$",
  # The plain statistic has no ratio.
  "[$]statistics[$]ratio$", "^plot[.].*[$]ratio$",
  # Without second moments nobody knows what is lost.
  "^summary.kme_sketch[$]table[$]lost$",
  # Some kernels have no bandwidth.
  "[$]statistics[$]bandwidth$",
  "[$]cv[$]bandwidth$",
  # A kernel that failed has no error rate, landmarks that were given no loss.
  "[$]bandwidths[$]error$", "[$]lost$",
  # A target that is a mean only has no variance.
  "[$]balance[$]ratio_(before|after)$",
  # Weights of derivatives have the mean 0.
  "[$]fits[$].*[$]ess$",
  # Factors have no linear part, fits without residuals no test.
  "[$]strength[$][Fp]_linear$", "[$]overid$",
  # P-values on the diagonal.
  "^as.matrix.mmd_pairwise",
  # A matrix has no entry of a name.
  "^\\[[.]gram$"
)

# The same where arguments say so; these stand in the brackets.
na_calls <- c(
  # New points that are missing.
  "^predict[.].*[(].*\\b(NA|NaN)",
  # A row that a nested fit left out of the moment has no residual.
  "^kme_effect[.]rkhs_iv[(].*nested.*[)].*[$](residuals|fitted.values)$"
)

# Of these no value may be infinite either.
finite <- paste0("^(predict|fitted|residuals|coef|kernel_matrix|",
                 "kme_(inner|distance|risk)|preimage|reconstruction_error|",
                 "gram|as_weights)([.]|$)")

flaw <- function(value, entry, arguments) {
  # print() returns what it was given.
  if (entry$generic == "print") return()
  found <- find_flaw(value, "", grepl(finite, entry$name), 0L)
  if (is.null(found)) return()
  name <- paste0(entry$name, found$path)
  call <- paste0(entry$name, "(", toString(lapply(arguments, deparse1)), ")",
                 found$path)
  # The logarithm of a density that is 0 in double precision.
  allowed <- found$kind == "-Inf" && entry$name == "predict.kme_density" ||
    found$kind == "NA" && (any(vapply(na_fields, grepl, NA, name)) ||
                             any(vapply(na_calls, grepl, NA, call)))
  if (!allowed) paste0(found$kind, " in ", found$path)
}

find_flaw <- function(x, path, finite, depth) {
  if (depth > 8L) return()
  if (is.double(x) || is.complex(x)) {
    x <- unclass(x)
    kind <- if (anyNA(x)) {
      if (any(is.nan(x))) "NaN" else "NA"
    } else if (finite && any(is.infinite(x))) {
      if (all(Re(x) < Inf)) "-Inf" else "Inf"
    }
    if (!is.null(kind)) return(list(kind = kind, path = path))
    return()
  }
  if (inherits(x, c("ggplot", "ggplot_built", "terms", "formula"))) return()
  if (is.environment(x) && !inherits(x, "gram")) return()
  if (!is.list(x) && !is.environment(x)) return()
  names <- names(x)
  if (is.environment(x)) names <- setdiff(names, c("id"))
  for (i in if (is.environment(x)) names else seq_along(x)) {
    name <- if (is.character(i)) i else names[i] %||% ""
    if (name %in% c("arguments", "raw")) next
    value <- if (is.environment(x)) get(i, x) else unclass(x)[[i]]
    found <- find_flaw(value, paste0(path, "$", name), finite, depth + 1L)
    if (!is.null(found)) return(found)
  }
}

# The state of R --------------------------------------------------------------

state <- function() {
  list(options = options(), rng = RNGkind(), folder = getwd(),
       connections = length(getAllConnections()), locale = Sys.getlocale(),
       devices = grDevices::dev.list(), search = search(),
       sinks = sink.number(),
       par = if (!is.null(grDevices::dev.list())) {
         graphics::par(no.readonly = TRUE)
       })
}

# What a plot changes: where it drew, and what follows from that; mai from mar
# and a cex that was set after it.
of_a_plot <- c("usr", "xaxp", "yaxp", "xlog", "ylog", "mfg", "plt", "pin",
               "fin", "fig", "mai", "new")

changed <- function(before, after) {
  differs <- \(a, b, same = identical) {
    names <- union(names(a), names(b))
    names[!vapply(names, \(n) same(a[[n]], b[[n]]), NA)]
  }
  # Margins are kept by R in lines and in inches, with rounding between.
  close <- \(a, b) isTRUE(all.equal(a, b))
  what <- differs(before, after)
  c(setdiff(what, c("options", "par")),
    if ("options" %in% what) paste("option", differs(before$options,
                                                     after$options)),
    if ("par" %in% what) {
      bad <- setdiff(differs(before$par, after$par, close), of_a_plot)
      if (length(bad)) paste("par", bad)
    })
}
