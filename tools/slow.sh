#!/bin/sh
# What the compilers and R CMD check do not see; slow, so not part of tools/check.
#
#   sh tools/slow.sh [builds] [valgrind] [gctorture] [coverage] [portable]
#
# builds     the whole suite under AddressSanitizer and UndefinedBehaviorSanitizer, built by
#            clang, with LTO, at -O0, as C23, at -O3 -march=native, with sums in 80 bits (x87),
#            without OpenMP, with OpenBLAS, on one thread, in a Turkish, a C and a latin1
#            locale; the core before the front end of gcc 5, by avr-gcc (KERNMEAN_BUILDS: some
#            of asan clang lto O0 gnu2x native x87 serial openblas one-thread turkish C latin1
#            gcc5); says what this machine could not do
# valgrind   tests of the native code under memcheck; errors and leaks in kernmean.so count
# gctorture  the same tests, a garbage collection at each allocation inside .Call; every
#            routine that R can call must be among them
# coverage   lines of R and of C that the whole suite runs; at least 95% of each
# portable   the core without R (tools/core) by gcc and clang, with OpenMP and without, with
#            sanitizers, for Windows (mingw-w64, wine) and ARM (qemu): every number against
#            plain formulas; says what this machine could not do
#
# Without a name, all of them. builds, valgrind and gctorture run in parts of at most ten
# minutes on an idle machine and keep the verdict of each in KERNMEAN_STATE (default:
# ~/.cache/kernmean/check-<hash of the source>): a second start goes on where the first was
# stopped. With KERNMEAN_MINUTES set, no part begins after so many minutes. KERNMEAN_PARTS:
# some of the parts in tools/slow/parts.txt, which the middle two run.

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd) || exit 1
for check; do
  case $check in
    builds | valgrind | gctorture | coverage | portable) ;;
    *)
      sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2
      exit 2 ;;
  esac
done
. "$root/tools/setup.sh"
. "$root/tools/core/portable.sh"
. "$root/tools/slow/parts.sh"
. "$root/tools/slow/builds.sh"
. "$root/tools/slow/native.sh"
tests=$tmp/kernmean/tests/testthat
bad=0

# variant NAME FOLDER FLAGS OPTION...: the package of the folder in $tmp/NAME, compiled
# with these flags added.
variant() {
  name=$1
  folder=$2
  flags=$3
  shift 3
  compile "$name" "$folder" \
    "CC = $(R CMD config CC) $flags\nCFLAGS = -g -O1 -fno-omit-frame-pointer\n" "$@"
}

# compile NAME FOLDER LINES OPTION...: the same with these lines of a Makevars file.
compile() {
  name=$1
  folder=$2
  mkdir "$tmp/$name"
  printf '%b' "$3" >"$tmp/$name.mk"
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

for check in ${*:-builds valgrind gctorture coverage portable}; do
  case $check in
    builds) builds ;;
    valgrind) need_tools valgrind; memcheck ;;
    gctorture) torture ;;
    coverage) coverage ;;
    portable) portable ;;
  esac
done
exit $bad
