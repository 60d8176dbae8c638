#!/bin/sh
# What the compilers and R CMD check do not see; slow, so not part of tools/test.
#
#   sh tools/check.sh [asan] [valgrind] [gctorture] [coverage] [portable]   (default: all)
#
# asan       the whole suite under AddressSanitizer and UndefinedBehaviorSanitizer
# valgrind   the tests of the native code under memcheck; errors in kernmean.so count
# gctorture  the same tests, a garbage collection at each allocation inside .Call
# coverage   lines of R and of C that the whole suite runs; at least 95% of each
# portable   the core without R (tools/core) by gcc and clang, with OpenMP and without, with
#            sanitizers, for Windows (mingw-w64, wine) and ARM (qemu): every number against
#            plain formulas; says what this machine could not do
#
# KERNMEAN_TESTS, a regular expression, chooses other test files for the middle two
# (default: tile).

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd) || exit 1
case " ${*:-} " in
  *[!a-z\ ]* | *" help "*)
    sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
    exit 2 ;;
esac
. "$root/tools/setup.sh"
. "$root/tools/core/portable.sh"
filter=${KERNMEAN_TESTS:-tile}
tests=$tmp/kernmean/tests/testthat
bad=0

# variant NAME FOLDER FLAGS OPTION...: the package of the folder in $tmp/NAME, compiled
# with these flags added.
variant() {
  name=$1
  folder=$2
  mkdir "$tmp/$name"
  printf 'CC = %s %s\nCFLAGS = -g -O1 -fno-omit-frame-pointer\n' \
    "$(R CMD config CC)" "$3" >"$tmp/$name.mk"
  shift 3
  quietly "building for $name" env R_MAKEVARS_USER="$tmp/$name.mk" \
    R CMD INSTALL --preclean --no-test-load --library="$tmp/$name" "$@" "$folder"
}

# verdict NAME STATUS LOG: the reporter's counts, or the end of the log.
verdict() {
  if [ "$2" = 0 ]; then
    echo "$1: clean; $(grep -o '\[ FAIL .*\]' "$3" | tail -n 1) $4"
  else
    bad=1
    tail -n 60 "$3" | sed 's/^/    /'
    echo "$1: PROBLEMS $4"
  fi
}

asan() {
  library=$("$(R CMD config CC | cut -d' ' -f1)" -print-file-name=libasan.so)
  [ -f "$library" ] || die "asan: the compiler has no libasan.so"
  variant asan "$tmp/kernmean" "-fsanitize=address,undefined -fno-sanitize-recover=undefined"
  # R itself never frees all it holds at its end: no leak check.
  LD_PRELOAD=$library ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
    NOT_CRAN=true R_LIBS="$tmp/asan:$R_LIBS" Rscript "$tmp/suite.R" "$tests" . \
    >"$tmp/asan.log" 2>&1
  status=$?
  ! grep -E -q 'ERROR: AddressSanitizer|runtime error:' "$tmp/asan.log" || status=1
  # Of a report only the lines that name the fault and our code.
  grep -E -v '^ *#[0-9]+ .*(libR\.so|exec/R|libc|libasan)|^  0x|^ +[A-Z][A-Za-z -]+: +' \
    "$tmp/asan.log" >"$tmp/asan.short"
  verdict asan $status "$tmp/asan.short" "whole suite"
}

memcheck() {
  variant valgrind "$tmp/kernmean" ""
  NOT_CRAN=true R_LIBS="$tmp/valgrind:$R_LIBS" \
    R -d "valgrind --tool=memcheck --leak-check=no --num-callers=40 --xml=yes
      --xml-file=$tmp/valgrind-%p.xml --child-silent-after-fork=yes" \
    --no-echo --no-restore -f "$tmp/suite.R" --args "$tests" "$filter" \
    >"$tmp/valgrind.log" 2>&1
  status=$?
  # R's own reports (its string and regex code) are left out: only stacks with our object.
  Rscript - "$tmp" >>"$tmp/valgrind.log" 2>&1 <<'R' || status=1
    files <- list.files(commandArgs(TRUE), "^valgrind-.*[.]xml$", full.names = TRUE)
    text <- paste(unlist(lapply(files, readLines, warn = FALSE)), collapse = "\n")
    errors <- regmatches(text, gregexpr("(?s)<error>.*?</error>", text, perl = TRUE))[[1]]
    ours <- errors[grepl("kernmean.so</obj>", errors, fixed = TRUE)]
    field <- function(x, name) {
      sub(paste0("(?s).*?<", name, ">(.*?)</", name, ">.*"), "\\1", x, perl = TRUE)
    }
    for (error in head(ours, 10)) {
      frames <- strsplit(error, "<frame>", fixed = TRUE)[[1]]
      frames <- frames[grepl("kernmean.so</obj>", frames, fixed = TRUE)]
      cat(field(error, "kind"), "\n", paste0("  ", field(frames, "fn"), " (",
          field(frames, "file"), ":", field(frames, "line"), ")\n"), sep = "")
    }
    cat("valgrind:", length(ours), "errors in kernmean.so,", length(errors),
        "in all\n")
    quit(status = length(ours) > 0 || length(files) == 0)
R
  verdict valgrind $status "$tmp/valgrind.log" "tests '$filter'"
}

# A .Call of its own in the namespace (byte code would not look for it) collects garbage
# at every allocation that the native routine makes.
torture() {
  cp -R "$tmp/kernmean" "$tmp/torture"
  first=$(find "$tmp/torture/R" -name '*.R' | head -n 1)
  cat >>"$first" <<'R'
.torture <- new.env()
.torture$calls <- 0
.Call <- function(.NAME, ...) {
  list(...)
  .torture$calls <- .torture$calls + 1
  gctorture(TRUE)
  on.exit(gctorture(FALSE))
  .Primitive(".Call")(.NAME, ...)
}
R
  variant gctorture "$tmp/torture" "" --no-byte-compile
  cat "$tmp/suite.R" - >"$tmp/torture.R" <<'R'
calls <- getNamespace("kernmean")$.torture$calls
cat("native calls:", calls, "\n")
if (calls == 0) quit(status = 1)
R
  NOT_CRAN=true R_LIBS="$tmp/gctorture:$R_LIBS" R_ENABLE_JIT=0 \
    Rscript "$tmp/torture.R" "$tests" "$filter" >"$tmp/gctorture.log" 2>&1
  verdict gctorture $? "$tmp/gctorture.log" \
    "tests '$filter', $(grep 'native calls' "$tmp/gctorture.log")"
}

coverage() {
  need_packages covr
  cp -R "$tmp/kernmean" "$tmp/covr"
  NOT_CRAN=true Rscript - "$tmp/covr" >"$tmp/coverage.log" 2>&1 <<'R'
    cov <- covr::package_coverage(commandArgs(TRUE), type = "tests")
    lines <- covr::tally_coverage(cov, by = "line")
    side <- ifelse(grepl("^src/", lines$filename), "C", "R")
    share <- 100 * tapply(lines$value > 0, side, mean)
    files <- 100 * tapply(lines$value > 0, lines$filename, mean)
    cat(sprintf("%6.1f%%  %s\n", files, names(files)), sep = "")
    idle <- lines[lines$value == 0, ]
    for (file in unique(idle$filename)) {
      cat(file, "not run:", idle$line[idle$filename == file], "\n")
    }
    cat("COVERAGE", sprintf("%s %.1f%%", names(share), share), "\n")
    quit(status = length(share) < 2 || any(share < 95))
R
  status=$?
  [ $status != 0 ] || grep -E '^ *[0-9.]+%|not run:' "$tmp/coverage.log"
  verdict coverage $status "$tmp/coverage.log" \
    "$(sed -n 's/^COVERAGE //p' "$tmp/coverage.log")"
}

need_r
if [ "$*" != portable ]; then # which needs no package
  need_packages $(described Imports) testthat
  want_packages $(described Suggests)
  quietly "building kernmean" build_tarball --no-build-vignettes
  tar xzf "$tarball" -C "$tmp" || exit 1
fi

# suite.R FOLDER FILTER: the tests whose file names match the filter.
cat >"$tmp/suite.R" <<'R'
args <- commandArgs(TRUE)
library(testthat)
results <- as.data.frame(
  test_dir(args[1], package = "kernmean", load_package = "installed",
           filter = args[2], reporter = "check", stop_on_failure = FALSE)
)
failed <- sum(results$failed) + sum(results$error)
cat("tests:", nrow(results), "expectations:", sum(results$nb), "\n")
if (failed > 0 || nrow(results) == 0) quit(status = 1)
R

for check in ${*:-asan valgrind gctorture coverage portable}; do
  case $check in
    asan) asan ;;
    valgrind) need_tools valgrind; memcheck ;;
    gctorture) torture ;;
    coverage) coverage ;;
    portable) portable ;;
    *) die "unknown check '$check': asan, valgrind, gctorture, coverage or portable" ;;
  esac
done
exit $bad
