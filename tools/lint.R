# Checks what compilers do not see; each finding is printed as
# file:line: message.
#
#   Rscript tools/lint.R [FOLDER]      the project, or another tree like it
#   Rscript tools/lint.R --self-test   small wrong trees: does each rule fire?
#
# The rules for the rooms of R/ and their tests stand in lint_rooms.R.

script <- grep("^--file=", commandArgs(), value = TRUE)
script <- gsub("~+~", " ", sub("^--file=", "", script), fixed = TRUE)
source(file.path(dirname(script), "lint_rooms.R"))

# Line rules: in the files whose path matches `path` (and not `but`) no line of
# `view` may match `bad`. Views: "text" as it stands, "nocomment" (C comments
# blanked), "code" (strings too).
rule <- function(path, view, bad, message, but = "^$") {
  list(path = path, view = view, bad = bad, message = message, but = but)
}
c_file <- "^(src/.*[.][ch]|inst/include/.*[.]h)$"
r_file <- "^(R|tests|inst/studies|tools|bench)/.*[.]R$"
prose <- "^vignettes/.*[.]Rmd$|^[^/]*[.]md$|^tools/[^.]*$|[.]sh$|^[.]ci/run$"
written <- paste(c_file, r_file, prose, sep = "|")
below_glue <- "^src/(core|apps)/"

line_rules <- list(
  rule(c_file, "text", "^.{101,}", "line longer than 100 columns"),
  rule(r_file, "text", "^.{81,}", "line longer than 80 columns"),
  rule(written, "text", "\t", "tab"),
  rule(written, "text", "[ \t]+$", "trailing blank"),
  rule(written, "text", "\\b(TO[D]O|FIX[M]E|XX[X])\\b", "unfinished work"),
  rule(below_glue, "nocomment", "#\\s*include\\s*<(R\\w*|S|R_ext/\\w+)[.]h>",
       "R header in core or apps", but = "^src/core/blas[.]h$"),
  rule("^src/core/blas[.]h$", "nocomment", paste0(
    "#\\s*include\\s*<(?!stddef|(Rconfig|R_ext/BLAS|R_ext/Lapack)[.]h>)"),
    "only Rconfig.h, R_ext/BLAS.h and R_ext/Lapack.h belong here"),
  rule(below_glue, "code", paste0(
    "\\b(SEXP|SEXPTYPE|(Rf|R|SET)_\\w+|R(E)?v?printf|(UN)?PROTECT|REAL(_RO)?|",
    "INTEGER(_RO)?|Calloc|(error|warning)\\s*\\()"), "R in core or apps",
    but = "^src/core/blas[.]h$"),
  rule(c_file, "code", paste0(
    "\\b(malloc|calloc|realloc|reallocarray|aligned_alloc|posix_memalign|",
    "strdup|free|alloca|__builtin_alloca|(R_)?(Calloc|Realloc|Free))\\s*\\("),
    "memory outside R: use R_alloc in the glue, arguments below it"),
  rule(c_file, "code", "\\bomp_set_num_threads\\b",
       "omp_set_num_threads: threads are a num_threads() clause")
)

# Reading -------------------------------------------------------------------

# Comments (and strings) as blanks of the same length: line numbers stay.
blank <- function(lines, strings) {
  text <- paste(lines, collapse = "\n")
  found <- gregexpr(paste0("(?s)/[*].*?[*]/|//[^\n]*|\"(\\\\.|[^\"\\\\\n])*\"|",
                           "'(\\\\.|[^'\\\\\n])+'"), text, perl = TRUE)
  pieces <- regmatches(text, found)[[1]]
  gone <- strings | startsWith(pieces, "/")
  pieces[gone] <- gsub("[^\n]", " ", pieces[gone])
  regmatches(text, found) <- list(pieces)
  strsplit(paste0(text, "\n "), "\n", fixed = TRUE)[[1]][seq_along(lines)]
}

read_tree <- function(root) {
  paths <- list.files(root, recursive = TRUE, all.files = TRUE)
  known <- "^src/Makevars$|^DESCRIPTION$|^NAMESPACE$|^man/.*[.]Rd$"
  paths <- grep(paste(written, known, sep = "|"), paths, value = TRUE)
  paths <- paths[!grepl("_snaps/|fixtures/|^[.]git/", paths)]
  sapply(paths, function(path) readLines(file.path(root, path), warn = FALSE),
         simplify = FALSE)
}

# A file of R code: list(exprs, data); NULL if it does not parse.
read_code <- function(lines) {
  tryCatch({
    exprs <- parse(text = lines, keep.source = TRUE)
    list(exprs = exprs, data = utils::getParseData(exprs))
  }, error = function(e) NULL)
}

# list(exports, methods), the methods as generic.class.
read_namespace <- function(lines) {
  calls <- as.list(parse(text = lines))
  # The tidy of generics::tidy.
  bare <- function(x) utils::tail(as.character(x), 1L)
  named <- function(what) {
    lapply(calls[vapply(calls, function(x) identical(x[[1]], what), NA)],
           function(x) vapply(as.list(x)[-1], bare, ""))
  }
  list(exports = unlist(named(quote(export))),
       methods = vapply(named(quote(S3method)), function(x) {
         if (length(x) > 2L) x[3] else paste(x[1:2], collapse = ".")
       }, ""))
}

# The layers in order, from OBJECTS with its variables filled in.
read_objects <- function(makevars) {
  text <- gsub("\\\\\n", " ", paste(makevars, collapse = "\n"))
  lines <- sub("#.*", "", strsplit(text, "\n")[[1]])
  lines <- grep("^\\w+\\s*=", lines, value = TRUE)
  values <- as.list(trimws(sub("^\\w+\\s*=", "", lines)))
  names(values) <- sub("\\s*=.*", "", lines)
  expand <- function(value) {
    for (name in names(values)) {
      if (grepl(use <- paste0("$(", name, ")"), value, fixed = TRUE)) {
        value <- gsub(use, expand(values[[name]]), value, fixed = TRUE)
      }
    }
    value
  }
  if (is.null(values$OBJECTS)) return(character())
  sub("[.]o$", "", strsplit(trimws(expand(values$OBJECTS)), "\\s+")[[1]])
}

# Findings: a character vector of "file:line: message" ------------------------

at <- function(path, line, ...) {
  if (length(line) == 0) character() else paste0(path, ":", line, ": ", ...)
}

check_lines <- function(tree, views) {
  one <- function(rule) {
    paths <- names(tree)[grepl(rule$path, names(tree)) &
                           !grepl(rule$but, names(tree))]
    unlist(lapply(paths, function(path) {
      lines <- if (rule$view == "text") tree else views[[rule$view]]
      at(path, grep(rule$bad, lines[[path]], perl = TRUE), rule$message)
    }))
  }
  unlist(lapply(line_rules, one))
}

# The rank of a file is its place in OBJECTS. A header without a .c of its own
# stands below its layer. apps never include each other.
check_layers <- function(tree, views, objects) {
  layer <- function(stem) sub("/.*", "", stem)
  rank <- function(stem) {
    place <- match(stem, objects)
    if (is.na(place)) match(layer(stem), layer(objects)) - 0.5 else place
  }
  sources <- grep("^src/.*[.]c$", names(tree), value = TRUE)
  sources <- sub("^src/(.*)[.]c$", "\\1", sources)
  lost <- setdiff(objects, sources)
  extra <- setdiff(sources, objects)
  found <- c(
    at("src/Makevars", rep(1, length(lost)), "no source for ", lost, ".o"),
    at("src/Makevars", rep(1, length(extra)), extra, ".c is not in OBJECTS")
  )
  for (path in grep(c_file, names(tree), value = TRUE)) {
    from <- sub("^src/(.*)[.][ch]$", "\\1", path)
    include <- "^\\s*#\\s*include\\s*\"([^\"]*)\".*"
    for (line in grep(include, views$nocomment[[path]])) {
      header <- sub(include, "\\1", views$nocomment[[path]][line])
      to <- sub("[.]h$", "", header)
      wrong <- if (is.null(tree[[paste0("src/", header)]])) {
        "no such file below src/"
      } else if (!isTRUE(rank(to) <= rank(from))) {
        "it stands later in OBJECTS"
      } else if (layer(to) == "apps" && layer(from) == "apps" && to != from) {
        "apps never include each other"
      }
      if (!is.null(wrong)) {
        found <- c(found, at(path, line, "include of ", header, ": ", wrong))
      }
    }
  }
  found
}

# Every parallel region says what it shares, how many threads it may use and
# (a loop) how it is cut; sums are not left to the threads.
check_openmp <- function(tree, views) {
  unlist(lapply(grep(c_file, names(tree), value = TRUE), function(path) {
    lines <- views$nocomment[[path]]
    found <- character()
    for (i in grep("(#\\s*pragma|_Pragma\\s*\\(\\s*\")\\s*omp\\b", lines)) {
      last <- i
      while (grepl("\\\\\\s*$", lines[last])) last <- last + 1
      pragma <- paste(lines[i:last], collapse = " ")
      region <- grepl("omp\\s+parallel\\b", pragma)
      loop <- grepl("omp\\s+(parallel\\s+)?for\\b", pragma)
      needs <- c(c("default(none)", "num_threads(")[c(region, region)],
                 "schedule("[loop])
      lost <- needs[!vapply(needs, grepl, NA, pragma, fixed = TRUE)]
      found <- c(found, at(path, rep(i, length(lost)), "omp without ", lost))
      constants <- intersect(shared_names(pragma), constants_before(lines, i))
      found <- c(found, at(path, rep(i, length(constants)), constants,
                           " is const: firstprivate(), not shared()"))
      if ((region || loop) && grepl("reduction(", pragma, fixed = TRUE)) {
        found <- c(found, at(path, i, "omp reduction: its order is not fixed"))
      }
    }
    found
  }))
}

shared_names <- function(pragma) {
  clause <- regmatches(pragma, regexpr("shared\\([^)]*", pragma))
  names <- strsplit(sub("shared\\(", "", clause), "[\\s,]+", perl = TRUE)
  unlist(names)
}

# Variables of the function round line i that are const themselves: in gcc 8 and
# older they are shared already, and may not be named.
constants_before <- function(lines, i) {
  start <- max(0L, grep("^\\}", lines[seq_len(i)])) + 1L
  text <- paste(lines[start:i], collapse = " ")
  plain <- "\\bconst\\s+\\w+\\s+\\w+\\s*([=,)][^;*]*)?"
  declared <- unlist(regmatches(text, gregexpr(plain, text)))
  calls <- "\\([^()]*\\)"
  while (any(grepl(calls, declared))) declared <- gsub(calls, "", declared)
  # A parameter, or the names before the equals signs of "a = 1, b = 2".
  more <- sub("^const\\s+\\w+\\s+(\\w+).*", "\\1", declared)
  more <- c(more, unlist(regmatches(declared, gregexpr("\\w+(?=\\s*=[^=])",
                                                  declared, perl = TRUE))))
  pointer <- "[*]\\s*const\\s+\\w+"
  fixed <- unlist(regmatches(text, gregexpr(pointer, text)))
  c(more, sub("[*]\\s*const\\s+", "", fixed))
}

# ENTRY(r_x, n) in init.c, SEXP r_x(n arguments) in glue, .Call(C_r_x, n
# arguments) in R: the same names and numbers everywhere.
check_entries <- function(tree, views, parses) {
  init <- views$code[["src/init.c"]]
  entry <- "^\\s*ENTRY\\((\\w+),\\s*([0-9]+)\\).*"
  lines <- grep(entry, init)
  table <- data.frame(name = sub(entry, "\\1", init[lines]), line = lines,
                      arguments = as.integer(sub(entry, "\\2", init[lines])))
  found <- character()
  seen <- list(defined = character(), called = character())
  compare <- function(path, line, name, arguments, how) {
    registered <- table$arguments[match(name, table$name)]
    wrong <- if (is.na(registered)) {
      " is not registered in init.c"
    } else if (!is.na(arguments) && registered != arguments) {
      paste0(" has ", arguments, " arguments, in init.c ", registered)
    }
    if (!is.null(wrong)) found <<- c(found, at(path, line, name, wrong))
    seen[[how]] <<- c(seen[[how]], name)
  }
  for (path in grep("^src/glue/.*[.]c$", names(tree), value = TRUE)) {
    text <- paste(views$code[[path]], collapse = "\n")
    define <- "(?m)^SEXP\\s+(r_\\w+)\\s*\\(([^)]*)\\)\\s*\\{"
    starts <- gregexpr(define, text, perl = TRUE)
    for (k in seq_along(starts[[1]])[starts[[1]] > 0]) {
      whole <- regmatches(text, starts)[[1]][k]
      inside <- trimws(sub(define, "\\2", whole, perl = TRUE))
      commas <- lengths(regmatches(inside, gregexpr(",", inside)))
      before <- substr(text, 1, starts[[1]][k])
      compare(path, lengths(regmatches(before, gregexpr("\n", before))) + 1,
              sub(define, "\\1", whole, perl = TRUE),
              if (inside %in% c("", "void")) 0 else commas + 1, "defined")
    }
  }
  for (path in names(parses)) {
    parsed <- parses[[path]]$data
    if (is.null(parses[[path]])) {
      found <- c(found, at(path, 1, "does not parse"))
      next
    }
    for (k in which(parsed$token == "SYMBOL" & grepl("^C_r_", parsed$text))) {
      call <- parsed$parent[match(parsed$parent[k], parsed$id)]
      text <- c(utils::getParseText(parsed, call), "")[1]
      plain <- startsWith(text, ".Call(") && !grepl("...", text, fixed = TRUE)
      given <- sum(parsed$parent == call & parsed$token == "','")
      compare(path, parsed$line1[k], sub("^C_", "", parsed$text[k]),
              if (plain) given else NA, "called")
    }
  }
  for (how in names(seen)) {
    lost <- table[!table$name %in% seen[[how]], ]
    found <- c(found, at("src/init.c", lost$line, lost$name, " is never ", how))
  }
  found
}

# What inst/include/ declares is what init.c gives to other packages.
check_callables <- function(tree, views) {
  names_in <- function(path, pattern) {
    sub(pattern, "\\1", grep(pattern, views$code[[path]], value = TRUE))
  }
  declare <- "^KM_(?:FUNCTION\\(\\w+, |PROCEDURE\\()(\\w+).*"
  registered <- names_in("src/init.c", "^\\s*CALLABLE\\((\\w+)\\).*")
  unlist(lapply(grep("^inst/include/", names(tree), value = TRUE), \(path) {
    declared <- names_in(path, declare)
    lost <- setdiff(declared, registered)
    more <- setdiff(registered, declared)
    c(at(path, rep(1, length(lost)), lost, " is not registered in init.c"),
      at("src/init.c", rep(1, length(more)), more, " is not in ", path))
  }))
}

# Pages of what several functions share.
topics <- c("estimators", "units", "given", "kme_given")

# Every export has a help page; every help page has something to explain.
check_man <- function(tree, exports, methods) {
  if (is.null(tree$NAMESPACE)) return(NULL)
  pages <- tree[grepl("^man/.*[.]Rd$", names(tree))]
  aliases <- lapply(pages, function(page) {
    sub("^\\\\alias\\{(.*)\\}.*", "\\1",
        grep("^\\\\alias\\{", page, value = TRUE))
  })
  lost <- setdiff(exports, unlist(aliases))
  found <- at("NAMESPACE", rep(1, length(lost)), lost,
              " is exported and has no help page")
  for (path in names(pages)) {
    page <- pages[[path]]
    from <- grep("^% Please edit documentation in|^%   R/", page, value = TRUE)
    sources <- unlist(regmatches(from, gregexpr("R/[^, ]+[.]R", from)))
    internal <- any(grepl("^\\\\(keyword\\{internal\\}|docType\\{)", page))
    known <- c(exports, methods, "kernmean", "kernmean-package")
    # What is a fit has the methods of fits.
    of_fits <- paste0(sub("[.].*", "", aliases[[path]]), ".kernmean_fit")
    known <- c(known, topics, aliases[[path]][of_fits %in% methods])
    stale <- if (!internal) setdiff(aliases[[path]], known)
    gone <- setdiff(sources, names(tree))
    found <- c(
      found,
      at(path, rep(1, length(stale)), stale, " is not exported, nor a method"),
      at(path, rep(1, length(gone)), "stale: ", gone, " is gone")
    )
  }
  found
}

# list(found, summary)
lint <- function(root) {
  tree <- read_tree(root)
  sources <- tree[grepl(c_file, names(tree))]
  views <- list(nocomment = lapply(sources, blank, strings = FALSE),
                code = lapply(sources, blank, strings = TRUE))
  objects <- read_objects(tree[["src/Makevars"]])
  code <- tree[grepl(r_file, names(tree))]
  parses <- lapply(code, read_code)
  public <- read_namespace(tree$NAMESPACE)
  rooms <- lint_rooms(tree, parses, unlist(public))
  found <- c(
    check_lines(tree, views),
    check_layers(tree, views, objects), check_openmp(tree, views),
    check_entries(tree, views, parses), check_callables(tree, views),
    check_man(tree, public$exports, public$methods), rooms$found)
  list(found = found, summary = rooms$summary)
}

# Self-test -----------------------------------------------------------------

clean_tree <- list(
  "DESCRIPTION" = c("Package: clean", "Collate: 'first.R' 'one.R'",
                    "  'later.R' 'gram_gram.R'"),
  "NAMESPACE" = c("export(one, later)", "S3method(predict, later)"),
  "man/later.Rd" = "\\alias{later}",
  "man/one.Rd" = c("% Please edit documentation in R/one.R", "\\alias{one}"),
  "R/first.R" = c("# later(x), \"kme\", k$family, is.null(x$gram)",
                  "first <- function(x, families) {",
                  "  call <- list(later = families)",
                  "  c(predict(x), x$later, x@later, call, \"later\")", "}"),
  "R/one.R" = "one <- function(x) .Call(C_r_one, x)",
  "R/later.R" = c("later <- function(x, way = c(\"kme\", \"skmse\")) {",
                  "  if (inherits(x, \"kme\")) UseMethod(\"kme\")",
                  "  x$family <- \"the kme\"",
                  "  if (is.null(changes$x)) class(x) <- \"kme\"",
                  "  structure(one(x), class = c(\"fkmse\", \"kme\"))", "}",
                  "predict.later <- function(x, way = \"kme\") later(kme = x)",
                  "families <- c(k$family,", rep("k$family,", 3), "k$family)"),
  "R/gram_gram.R" = c(
    "kind <- function(x) inherits(x, \"gram\") || is.null(x$x)",
    "register_estimator(\"kme\", kind, aliases = \"skmse\")"
  ),
  "tests/testthat/test-one.R" = "one(1)",
  "tests/testthat/test-one-two.R" = "one(2)",
  "src/Makevars" = c("CORE = core/a.o \\", "  core/b.o",
                     "APPS = apps/p.o apps/q.o",
                     "OBJECTS = $(CORE) $(APPS) glue/one.o init.o"),
  "src/init.c" = c("  ENTRY(r_one, 1),", "  CALLABLE(km_a),"),
  "inst/include/clean.h" = "KM_FUNCTION(int, km_a, (void), ())",
  "src/core/low.h" = "",
  "src/core/a.h" = "#include \"core/low.h\"",
  "src/core/a.c" = "#include \"core/a.h\" /* free(x), SEXP */",
  "src/core/b.h" = "#include \"core/a.h\"",
  "src/core/b.c" = c("#include \"core/b.h\"", "#pragma omp parallel for \\",
                     "  default(none) num_threads(2) schedule(static)"),
  "src/core/blas.h" = "#include <R_ext/BLAS.h>",
  "src/apps/p.h" = "#include \"core/b.h\"",
  "src/apps/p.c" = "#include \"apps/p.h\"",
  "src/apps/q.c" = "#include \"core/a.h\"",
  "src/glue/one.c" = c("#include \"apps/p.h\"", "SEXP r_one(SEXP x) {", "}")
)

# File, lines put at its end, finding expected. A file without lines is removed.
wrong <- function(path, lines, expect) {
  list(path = path, lines = lines, expect = expect)
}
wide <- function(columns) strrep("x", columns)
wrong_trees <- list(
  wrong("src/core/a.c", wide(101), "a.c:2: line longer than 100"),
  wrong("R/one.R", wide(81), "one.R:2: line longer than 80"),
  wrong("tests/testthat/test-a.R", wide(81), "test-a.R:1: line longer than 80"),
  wrong("R/one.R", "\tx", "one.R:2: tab"),
  wrong("tools/run", "x ", "tools/run:1: trailing blank"),
  wrong("README.md", paste0("TO", "DO"), "README.md:1: unfinished"),
  wrong("src/core/a.c", "#include <R.h>", "a.c:2: R header"),
  wrong("src/apps/p.c", "#include <R_ext/BLAS.h>", "p.c:2: R header"),
  wrong("src/core/blas.h", "#include <R.h>", "blas.h:2: only"),
  wrong("src/core/a.h", "SEXP x;", "a.h:2: R in core"),
  wrong("src/core/a.c", "x = R_alloc(1, 8);", "a.c:2: R in core"),
  wrong("src/apps/p.c", "Rf_error(0);", "p.c:2: R in core"),
  wrong("src/core/a.c", "Rprintf(0);", "a.c:2: R in core"),
  wrong("src/core/a.c", "x = malloc(8);", "a.c:2: memory"),
  wrong("src/glue/one.c", "x = R_Calloc(8, int);", "one.c:4: memory"),
  wrong("src/glue/one.c", "free (x);", "one.c:4: memory"),
  wrong("src/core/a.c", "x = alloca(8);", "a.c:2: memory"),
  wrong("src/glue/one.c", "omp_set_num_threads(1);", "one.c:4: omp_set_num"),
  wrong("src/Makevars", NULL, "OBJECTS"),
  wrong("src/core/c.c", "", "core/c.c is not in OBJECTS"),
  wrong("src/core/b.c", NULL, "no source for core/b.o"),
  wrong("src/core/a.c", "#include \"core/b.h\"", "a.c:2: include .*later"),
  wrong("src/core/low.h", "#include \"core/a.h\"", "low.h:2: include .*later"),
  wrong("src/core/a.c", "#include \"apps/p.h\"", "a.c:2: include .*later"),
  wrong("src/core/a.c", "#include \"a.h\"", "a.c:2: include .*no such file"),
  wrong("src/apps/q.c", "#include \"apps/p.h\"", "q.c:2: .*each other"),
  wrong("src/core/a.c", "#pragma omp parallel num_threads(2)",
        "a.c:2: omp without default"),
  wrong("src/core/a.c", "#pragma omp parallel default(none)",
        "a.c:2: omp without num_threads"),
  wrong("src/core/a.c", c("void f(const int n, int m) {", paste(
    "#pragma omp parallel default(none) num_threads(2) shared(n, m)"), "}"),
    "a.c:3: n is const"),
  wrong("src/core/a.c", "#pragma omp parallel for default(none) num_threads(2)",
        "a.c:2: omp without schedule"),
  wrong("src/core/a.c", "_Pragma(\"omp for\")", "a.c:2: omp without schedule"),
  wrong("src/core/a.c", "#pragma omp for schedule(static) reduction(+: s)",
        "a.c:2: omp reduction"),
  wrong("src/init.c", "  ENTRY(r_two, 2),", "init.c:3: r_two is never defined"),
  wrong("src/init.c", "  ENTRY(r_two, 2),", "init.c:3: r_two is never called"),
  wrong("src/init.c", "  CALLABLE(km_b),", "init.c:1: km_b is not in inst"),
  wrong("inst/include/clean.h", "KM_PROCEDURE(km_b, (int x), (x))",
        "clean.h:1: km_b is not registered"),
  wrong("src/glue/one.c", c("SEXP r_two(void) {", "}"),
        "one.c:4: r_two is not registered"),
  wrong("R/one.R", "two <- function() .Call(C_r_two)",
        "one.R:2: r_two is not registered"),
  wrong("R/one.R", "two <- function(x) .Call(C_r_one, x, x)",
        "one.R:2: r_one has 2 arguments, in init.c 1"),
  wrong("src/glue/one.c", c("", "SEXP r_one(SEXP x,", "  SEXP y) {", "}"),
        "one.c:5: r_one has 2 arguments, in init.c 1"),
  wrong("R/one.R", "two <- function(", "one.R:1: does not parse"),
  wrong("bench/one.R", "row('a", "bench/one.R:1: does not parse"),
  wrong("NAMESPACE", "export(two)", "two is exported and has no help"),
  wrong("man/two.Rd", "\\alias{two}", "two.Rd:1: two is not exported"),
  wrong("man/one.Rd", "% Please edit documentation in R/two.R",
        "one.Rd:1: stale: R/two.R is gone"),
  wrong("R/one.R", "a <- function(x) later(x)",
        "one.R:2: uses later\\(\\), which stands in the later room later.R"),
  wrong("R/one.R", c("a <- function(x) {", "  y <- x", "  later(y)", "}"),
        "one.R:4: uses later"),
  wrong("R/one.R", "print.one <- function(x, ...) later(x)",
        "one.R:2: uses later"),
  wrong("R/one.R", "a <- function() function(y) lapply(y, \\(z) later(z))",
        "one.R:2: uses later"),
  wrong("R/one.R", "a <- function(f = later) f()", "one.R:2: uses later"),
  wrong("R/one.R", "a <- list(fit = function(x) later(x))",
        "one.R:2: uses later"),
  wrong("R/one.R", "a <- local({", "one.R:1: does not parse"),
  wrong("R/one.R", c("a <- local({", "  function(x) later(x)", "})"),
        "one.R:3: uses later"),
  wrong("R/one.R", "a <- function(x) do.call(\"later\", x)",
        "one.R:2: uses later"),
  wrong("R/one.R", "a <- function(later) later(later)", "one.R:2: uses later"),
  wrong("R/one.R", "a <- families[1]", "one.R:2: uses families"),
  wrong("R/one.R", "names(families) <- 1", "one.R:2: uses families"),
  wrong("R/one.R", "a <- function(x) later(x)",
        "rooms: 4 files, 1 circles \\(2 files in them\\)"),
  wrong("R/one.R", "a <- function(x) later(x)", "^circles: later.R one.R$"),
  wrong("R/one.R", "a <- function(x) first(x, 1)",
        "one.R:2: uses first\\(\\), which is not on the face of"),
  wrong("R/first.R", c("", "# Offers from first.R: first, a."),
        "first.R:7: offers first, which no other shelf uses"),
  wrong("R/one.R", "a <- function(x) first(x, 1)",
        "^shelves: 4, names shared across them: 2$"),
  wrong("DESCRIPTION", NULL, "DESCRIPTION:1: no Collate"),
  wrong("DESCRIPTION", "  'one.R'", "Collate has one.R twice"),
  wrong("R/later.R", NULL, "DESCRIPTION:1: Collate: no file R/later.R"),
  wrong("R/extra.R", "a <- 1", "R/extra.R:1: Collate does not list it"),
  wrong("R/empty.R", character(), "R/empty.R:1: Collate does not list it"),
  wrong("R/one.R", "later <- 1",
        "one.R:2: later is defined twice: R/later.R:1"),
  wrong("tests/testthat/test-x.R", "", "test-x.R:1: no room of this name"),
  wrong("R/one.R", "a <- function(x) x == \"kme\"", "one.R:2: names an est"),
  wrong("R/one.R", "a <- function(x = \"kme\") x", "one.R:2: names an est"),
  wrong("R/one.R", "a <- function(x) switch(x, skmse = 1)",
        "one.R:2: names an est"),
  wrong("R/one.R", "a <- \"kme\"", "^estimators named elsewhere: 1$"),
  wrong("R/one.R", "a <- function(k) k$family == 1",
        "one.R:2: reads the family of a kernel \\(6 places, at most 5\\)"),
  wrong("R/one.R", "a <- function(k) k[[\"family\"]]", "one.R:2: reads the"),
  wrong("R/one.R", "a <- function(x) inherits(x, \"gram\")", "one.R:2: asks"),
  wrong("R/one.R", "a <- function(x) inherits(x, \"sketch\")", "one.R:2: asks"),
  wrong("R/one.R", "a <- function(x) !is.null(x$gram)", "one.R:2: asks"),
  wrong("R/one.R", "a <- function(x) is.null(x[[\"x\"]])", "one.R:2: asks")
)

self_test <- function() {
  found_in <- function(tree) {
    root <- tempfile("lint-")
    on.exit(unlink(root, recursive = TRUE))
    for (path in names(tree)) {
      dir.create(dirname(file.path(root, path)), FALSE, recursive = TRUE)
      writeLines(tree[[path]], file.path(root, path))
    }
    lint(root)
  }
  bad <- found_in(clean_tree)$found
  if (length(bad)) bad <- c("the clean tree is not clean:", bad)
  for (case in wrong_trees) {
    tree <- clean_tree
    tree[[case$path]] <- if (!is.null(case$lines)) {
      c(tree[[case$path]], case$lines)
    }
    if (!any(grepl(case$expect, unlist(found_in(tree))))) {
      bad <- c(bad, paste("not found:", case$expect))
    }
  }
  writeLines(as.character(bad))
  cat("lint self-test:", length(wrong_trees), "wrong trees,", length(bad),
      "problems\n")
  length(bad) == 0
}

main <- function(args) {
  if (identical(args, "--self-test")) return(self_test())
  result <- lint(c(args, file.path(dirname(script), ".."))[1])
  writeLines(c(result$found, result$summary))
  cat("lint:", length(result$found), "problems\n")
  length(result$found) == 0
}

quit(save = "no", status = if (main(commandArgs(TRUE))) 0 else 1)
