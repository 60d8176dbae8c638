# The rooms of R/: Collate in DESCRIPTION lists its files from the ground up.
# What a file may use, and what only some files may know. Sourced by lint.R,
# where a finding is "file:line: message".

room_file <- "^R/[^/]*[.]R$"

# Functions that take a function by its name, and those that take a class.
by_name <- c("do.call", "match.fun", "apply", "lapply", "sapply", "vapply",
             "mapply", "Map", "Reduce", "Filter", "outer")
by_class <- c("inherits", "UseMethod", "NextMethod", "class<-", ".S3method",
              "registerS3method", "is_a", "new_fit")

# What only the files that match `but` may know: `places` finds the lines of a
# file where another asks for it, of which there may be `most`.
count <- function(title, most, but, message, places) {
  list(title = title, most = most, but = but, message = message,
       places = places)
}
sample_file <- "^R/(gram|sample)_\\w+[.]R$"
counts <- list(
  count("estimators named elsewhere", 0,
        "^R/est_(estimator|verbs|bags)[.]R$",
        "names an estimator outside its own file",
        function(file) estimator_lines(file)),
  count("kernel families compared elsewhere", 5,
        "^R/kernel_\\w+[.]R$",
        "reads the family of a kernel", function(file) family_lines(file)),
  count("kinds of sample asked for elsewhere", 0, sample_file,
        "asks what kind of sample it has", function(file) kind_lines(file))
)
# Questions of kind: a call of `call` that matches `bad` and not `but`, which
# are the arguments of a call and no sample. The class of a sketch is known in
# its own file, too.
kinds <- list(
  list(call = "inherits", bad = "\"(gram|shrunk_gram)\"", but = "^$",
       own = "^$"),
  list(call = "inherits", bad = "\"sketch\"", but = "^$",
       own = "^R/sketch_\\w+[.]R$"),
  list(call = "is.null",
       bad = "(\\$|\\[\\[\")(gram|points|x)(\"\\]\\])?\\)$",
       but = "\\b(arguments|args|changes|dots)(\\$|\\[)", own = "^$")
)

# Reading -------------------------------------------------------------------

# The files in order; NULL if DESCRIPTION does not say.
read_collate <- function(description) {
  if (is.null(description)) return(NULL)
  lines <- textConnection(description)
  on.exit(close(lines))
  field <- read.dcf(lines, "Collate")[1]
  if (is.na(field)) NULL else scan(text = field, what = "", quiet = TRUE)
}

# A file of R/: list(path, data: the parse data, tokens: its leaves without the
# comments, free: those that name something, calls first, closures: those that
# a function is assigned to, pieces: the expressions at its top).
read_room <- function(path, parsed) {
  data <- parsed$data
  tokens <- data[data$terminal & data$token != "COMMENT", ]
  tokens$text <- gsub("^`|`$", "", tokens$text)
  before <- c("", "", tokens$text)[seq_len(nrow(tokens)) + 1]
  after <- function(k) c(tokens$token, rep("", k))[seq_len(nrow(tokens)) + k]
  name <- tokens$token %in% c("SYMBOL_FUNCTION_CALL", "SYMBOL", "SPECIAL")
  free <- tokens[name & !before %in% c("$", "@", "::", ":::"),
                 c("line1", "token", "text")]
  pieces <- Map(function(expr, ref) {
    list(path = path, first = ref[1], last = ref[3], expr = expr,
         names = unique(defined(expr)))
  }, as.list(parsed$exprs), attr(parsed$exprs, "srcref"))
  list(path = path, data = data, tokens = tokens,
       free = free[order(free$token != "SYMBOL_FUNCTION_CALL"), ],
       closures = tokens[tokens$token == "SYMBOL" & after(1) == "LEFT_ASSIGN" &
                           after(2) %in% c("FUNCTION", "'\\\\'"),
                         c("line1", "text")],
       pieces = pieces)
}

# The names that an expression at the top of a file assigns.
defined <- function(expr) {
  head <- if (is.call(expr)) paste(deparse(expr[[1]]), collapse = "") else ""
  if (head %in% c("", "function", "local", "quote", "~")) return(character())
  target <- if (head %in% c("<-", "=", "assign", "delayedAssign")) expr[[2]]
  simple <- is.character(target) || is.name(target) && head %in% c("<-", "=")
  names <- if (simple) as.character(target)
  for (k in seq_along(expr)) {
    if (is.call(expr[[k]])) names <- c(names, defined(expr[[k]]))
  }
  names
}

# Parse data ----------------------------------------------------------------

unquote <- function(text) sub("^[\"'](.*)[\"']$", "\\1", text)

parent_of <- function(data, id) data$parent[match(id, data$id)]

# The name of the function that the expression `id` calls, "" if it is no call.
call_name <- function(data, id) {
  children <- data[data$parent == id, ]
  if (!identical(children$token[2], "'('")) return("")
  head <- data[data$parent == children$id[1], ]
  c(head$text[head$token == "SYMBOL_FUNCTION_CALL"], "")[1]
}

# Where the strings equal to one of `values` stand, c() looked through:
# data.frame(line1, value, call, argument, class: does it name a class?,
# default_of: the function at the top whose argument has it as its default).
find_strings <- function(file, values) {
  data <- file$data
  rows <- which(data$token == "STR_CONST" & unquote(data$text) %in% values)
  do.call(rbind, lapply(rows, function(row) {
    node <- data$parent[row]
    up <- parent_of(data, node)
    while (isTRUE(call_name(data, up) == "c")) {
      node <- up
      up <- parent_of(data, up)
    }
    around <- data[data$parent == up & data$token != "COMMENT", ]
    place <- match(node, around$id)
    before <- c("", "", around$token)[place + 0:1]
    call <- call_name(data, up)
    argument <- if (before[2] == "EQ_SUB") around$text[place - 2] else ""
    if (before[2] == "LEFT_ASSIGN") {
      call <- paste0(call_name(data, around$id[1]), "<-")
    }
    head <- data[data$parent == parent_of(data, up), ]
    top <- before[2] == "EQ_FORMALS" &&
      isTRUE(parent_of(data, head$parent[1]) == 0)
    passed <- data$text[data$parent %in% around$id & data$token == "SYMBOL"]
    data.frame(
      line1 = data$line1[row], value = unquote(data$text[row]),
      call = call, argument = argument,
      class = call %in% by_class || argument == "class" ||
        call %in% by_name && "inherits" %in% passed,
      default_of = if (top) data$text[data$parent == head$id[1]][1] else ""
    )
  }))
}

# An estimator may be named as a class, as a function, in what makes estimators
# and as the default of an exported function's argument.
estimator_lines <- function(file) {
  estimators <- file$estimators$names
  if (file$path %in% file$estimators$files) return(integer())
  strings <- find_strings(file, estimators)
  allowed <- strings$class | strings$call %in% by_name |
    startsWith(as.character(strings$call), "est_") |
    strings$default_of %in% file$exported
  # The class of a fit is a kind of field.
  fields <- Filter(function(piece) {
    any(grepl("^(fields_of[.]|whole_)", piece$names))
  }, file$pieces)
  for (piece in fields) {
    allowed <- allowed |
      strings$line1 >= piece$first & strings$line1 <= piece$last
  }
  data <- file$data
  names <- data[data$token == "SYMBOL_SUB" & data$text %in% estimators, ]
  cases <- vapply(names$parent, call_name, "", data = data) == "switch"
  c(strings$line1[!allowed], names$line1[cases])
}

# x$family and x[["family"]], unless it is assigned to.
family_lines <- function(file) {
  tokens <- file$tokens
  text <- c("", tokens$text, "", "", "")
  k <- 1 + which(unquote(tokens$text) == "family")
  dollar <- k[text[k - 1] == "$" & !text[k + 1] %in% c("<-", "=")]
  bracket <- k[text[k - 1] == "[[" & text[k + 1] == "]" &
                 !text[k + 3] %in% c("<-", "=")]
  tokens$line1[c(dollar, bracket) - 1]
}

kind_lines <- function(file) {
  data <- file$data
  unlist(lapply(kinds, function(kind) {
    heads <- data[data$text == kind$call &
                    data$token %in% c("SYMBOL_FUNCTION_CALL", "SYMBOL"), ]
    calls <- parent_of(data, heads$parent)
    text <- gsub("\\s+", " ", utils::getParseText(data, calls))
    heads$line1[grepl(kind$bad, text) & !grepl(kind$but, text) &
                  !grepl(kind$own, file$path)]
  }))
}

# Findings ------------------------------------------------------------------

check_counts <- function(files) {
  results <- lapply(counts, function(count) {
    places <- unlist(lapply(files, function(file) {
      if (grepl(count$but, file$path)) return(NULL)
      at(file$path, sort(unique(count$places(file))), count$message)
    }))
    over <- length(places) > count$most
    room <- if (count$most > 0) {
      paste0(" (", length(places), " places, at most ", count$most, ")")
    }
    list(found = if (over) paste0(places, room),
         summary = paste0(count$title, ": ", length(places)))
  })
  list(found = unlist(lapply(results, `[[`, "found")),
       summary = vapply(results, `[[`, "", "summary"))
}

# Names of `known` that a piece uses, each with its line: what findGlobals()
# sees, whatever it calls (f(x) finds a function behind a variable f, unless
# that is one as well), and functions given by their names. findGlobals() is
# slow: it is asked only where a name stands that is not called.
find_uses <- function(piece, file, known) {
  within <- function(place) {
    place[place$line1 >= piece$first & place$line1 <= piece$last, ]
  }
  known <- setdiff(known, piece$names)
  free <- within(file$free)
  named <- within(file$named)
  called <- free$text[free$token == "SYMBOL_FUNCTION_CALL"]
  other <- c(free$text[free$token != "SYMBOL_FUNCTION_CALL"],
             paste0(called, "<-"))
  globals <- if (any(other %in% known)) {
    codetools::findGlobals(eval(call("function", NULL, piece$expr), baseenv()))
  }
  changes <- is.call(piece$expr) && identical(piece$expr[[1]], quote(`<-`)) &&
    is.call(piece$expr[[2]])
  used <- c(globals, named$value,
            setdiff(called, within(file$closures)$text),
            if (changes) all.vars(piece$expr[[2]]))
  used <- intersect(used, known)
  if (length(used) == 0) return(NULL)
  line <- c(free$line1, named$line1)[
    match(sub("<-$", "", used), c(free$text, named$value))]
  data.frame(path = piece$path, name = used,
             line = ifelse(is.na(line), piece$first, line),
             as = ifelse(used %in% called, paste0(used, "()"), used))
}

# The files that reach each other: a list of character vectors.
find_circles <- function(from, to, files) {
  reach <- matrix(FALSE, length(files), length(files),
                  dimnames = list(files, files))
  reach[cbind(from, to)] <- TRUE
  for (k in files) reach <- reach | outer(reach[, k], reach[k, ], "&")
  reach <- reach & t(reach)
  unique(lapply(files[diag(reach)], function(file) files[reach[file, ]]))
}

check_rooms <- function(files, rooms, collate, tree, exported) {
  lost <- setdiff(collate, rooms)
  extra <- if (!is.null(collate)) setdiff(rooms, collate)
  twice <- unique(collate[duplicated(collate)])
  found <- c(
    if (is.null(collate) && length(rooms)) {
      at("DESCRIPTION", 1, "no Collate: the rooms of R/ have no order")
    },
    at("DESCRIPTION", rep(1, length(lost)), "Collate: no file R/", lost),
    at("DESCRIPTION", rep(1, length(twice)), "Collate has ", twice, " twice"),
    at(paste0("R/", extra), rep(1, length(extra)), "Collate does not list it")
  )
  pieces <- unlist(lapply(unname(files), `[[`, "pieces"), FALSE)
  names <- lapply(pieces, `[[`, "names")
  of_each <- function(field) {
    rep(unlist(lapply(pieces, `[[`, field)), lengths(names))
  }
  home <- list(name = unlist(names), path = of_each("path"),
               line = of_each("first"))
  again <- which(duplicated(home$name))
  first <- match(home$name[again], home$name)
  found <- c(found, at(home$path[again], home$line[again], home$name[again],
                       " is defined twice: ", home$path[first], ":",
                       home$line[first]))
  files <- lapply(files, function(file) {
    named <- find_strings(file, home$name)
    file$named <- named[named$call %in% by_name, ]
    file
  })
  uses <- do.call(rbind, lapply(pieces, function(piece) {
    find_uses(piece, files[[piece$path]], home$name)
  }))
  if (!is.null(uses)) uses <- uses[order(uses$path, uses$line, uses$name), ]
  from <- basename(as.character(uses$path))
  to <- basename(as.character(home$path[match(uses$name, home$name)]))
  uses$home <- as.character(home$path[match(uses$name, home$name)])
  faces <- if (length(from)) {
    check_faces(tree, uses, if (is.null(collate)) rooms else collate, exported)
  }
  later <- which(match(to, collate) > match(from, collate))
  circles <- find_circles(from[from != to], to[from != to], rooms)
  listed <- paste(vapply(circles, paste, "", collapse = " "), collapse = "; ")
  list(
    found = c(found, at(uses$path[later], uses$line[later], "uses ",
                        uses$as[later], ", which stands in the later room ",
                        to[later]), faces$found),
    summary = c(
      faces$summary,
      paste0("rooms: ", length(rooms), " files, ", length(circles),
             " circles (", length(unlist(circles)), " files in them)"),
      paste0("circles: ", if (length(circles)) listed else "none"))
  )
}

# A shelf is the first word of its rooms' names. The first room of a shelf says
# in a comment which of its names other shelves may use: "# Offers from
# base_fit.R: a, b.", up to the full stop. Exported functions are for all.
shelf_of <- function(room) sub("[_.].*", "", basename(room))

# data.frame(path, line, name), a row for each name that a comment offers.
read_face <- function(path, lines) {
  starts <- grep("^# Offers( [^:]*)?:", lines)
  do.call(rbind, lapply(starts, function(start) {
    ends <- grep("[.]$|^[^#]|^$", lines)
    block <- start:c(ends[ends >= start], start)[1]
    words <- sub("^# *(Offers[^:]*:)? *", "", lines[block])
    found <- strsplit(sub("[.]$", "", words), ", *")
    data.frame(path = path, line = rep(block, lengths(found)),
               name = unlist(found))
  }))
}

# `uses` as in check_rooms(), with the room where each name is at home.
check_faces <- function(tree, uses, rooms, exported) {
  first <- rooms[!duplicated(shelf_of(rooms))]
  empty <- data.frame(path = character(), line = integer(), name = character())
  faces <- lapply(file.path("R", first), \(x) read_face(x, tree[[x]]))
  face <- do.call(rbind, c(list(empty), faces))
  across <- uses[shelf_of(uses$home) != shelf_of(uses$path), ]
  shared <- unique(across$name)
  of_shelf <- function(name, room) paste(shelf_of(room), name)
  offered <- of_shelf(face$name, face$path)
  hidden <- across[!across$name %in% exported &
                     !of_shelf(across$name, across$home) %in% offered, ]
  idle <- face[!offered %in% of_shelf(across$name, across$home), ]
  list(
    found = c(
      at(hidden$path, hidden$line, "uses ", hidden$as, ", which is not on the ",
         "face of the shelf ", shelf_of(hidden$home)),
      at(idle$path, idle$line, "offers ", idle$name,
         ", which no other shelf uses")),
    summary = paste0("shelves: ", length(first), ", names shared across them: ",
                     length(shared))
  )
}

check_test_names <- function(paths) {
  rooms <- basename(grep(room_file, paths, value = TRUE))
  rooms <- c(sub("(_methods|_plot)?[.]R$", "", rooms), "studies")
  # test-<room>.R, or test-<room>-<topic>.R
  test <- "^tests/testthat/test-([^-]*)(-.*)?[.]R$"
  tests <- grep(test, paths, value = TRUE)
  lost <- tests[!sub(test, "\\1", tests) %in% rooms]
  at(lost, rep(1, length(lost)), "no room of this name")
}

# Whoever calls register_estimator() is an estimator's own file; list(files,
# names), the aliases among them.
read_registered <- function(tree) {
  call <- "^register_estimator\\(\""
  own <- tree[grepl(room_file, names(tree))]
  lines <- lapply(own, grep, pattern = call, value = TRUE)
  lines <- lines[lengths(lines) > 0]
  quoted <- regmatches(unlist(lines), gregexpr("\"[^\"]+\"", unlist(lines)))
  list(files = names(lines), names = gsub("\"", "", unlist(quoted)))
}

# list(found, summary: the lines printed at the end of a run)
lint_rooms <- function(tree, parses, exported) {
  paths <- grep(room_file, names(tree), value = TRUE)
  estimators <- read_registered(tree)
  empty <- vapply(parses[paths], function(parsed) is.null(parsed$data), NA)
  files <- sapply(paths[!empty], function(path) {
    c(read_room(path, parses[[path]]),
      list(exported = exported, estimators = estimators))
  }, simplify = FALSE)
  rooms <- check_rooms(files, basename(paths), read_collate(tree$DESCRIPTION),
                       tree, exported)
  known <- check_counts(files)
  list(found = c(rooms$found, check_test_names(names(tree)), known$found),
       summary = c(rooms$summary, known$summary))
}
