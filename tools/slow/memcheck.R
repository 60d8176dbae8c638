# What valgrind found with our object in the stack; of R's own reports (its
# string and regex code) the number alone. What OpenMP keeps for its threads
# until the process ends is possibly lost to valgrind, and told apart.
#
#   Rscript tools/slow/memcheck.R FOLDER WORDS

args <- commandArgs(TRUE)
files <- list.files(args[1L], "^valgrind-.*[.]xml$", full.names = TRUE)
text <- paste(unlist(lapply(files, readLines, warn = FALSE)), collapse = "\n")
pattern <- "(?s)<error>.*?</error>"
errors <- regmatches(text, gregexpr(pattern, text, perl = TRUE))[[1L]]
field <- function(x, name) {
  sub(paste0("(?s).*?<", name, ">(.*?)</", name, ">.*"), "\\1", x, perl = TRUE)
}
kind <- field(errors, "kind")
possible <- kind == "Leak_PossiblyLost"
threads <- possible & grepl("<fn>(pthread_create|gomp_|GOMP_|__kmp)", errors)
ours <- grepl("kernmean.so</obj>", errors, fixed = TRUE) & !threads
for (error in head(errors[ours], 10L)) {
  frames <- strsplit(error, "<frame>", fixed = TRUE)[[1L]]
  frames <- frames[grepl("kernmean.so</obj>", frames, fixed = TRUE)]
  cat(field(error, "kind"), "\n",
      paste0("  ", field(frames, "fn"), " (", field(frames, "file"), ":",
             field(frames, "line"), ")\n"), sep = "")
}
cat(args[2L], "; in kernmean.so ", sum(ours & !startsWith(kind, "Leak")),
    " errors, ", sum(ours & startsWith(kind, "Leak")), " leaks; threads of ",
    "OpenMP ", sum(threads), ", of R itself ", sum(!ours & !threads), "\n",
    sep = "")
quit(status = any(ours) || length(files) == 0L)
