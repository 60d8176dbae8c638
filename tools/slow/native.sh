# Sourced by tools/slow.sh: the tests of the native code under valgrind and under R's
# torture of its garbage collector, in the parts that tools/slow/parts.txt lists.

# native_parts: their names, or those of them that KERNMEAN_PARTS names.
native_parts() {
  for part in $(sed -n 's/^\([a-z0-9_-]*\) *;.*/\1/p' "$root/tools/slow/parts.txt"); do
    case " ${KERNMEAN_PARTS:-$part} " in *" $part "*) echo "$part" ;; esac
  done
}

# part_field PART 2|3: its files, and the share of the tests in each.
part_field() {
  sed -n "s/^$1 *; *\(.*\)/\1;0\/1/p" "$root/tools/slow/parts.txt" | cut -d ';' -f $(($2 - 1)) |
    sed 's/^ *//; s/ *$//'
}

# in_parts CHECK FUNCTION WORDS PREPARE...: every part by the function, which is given the
# part's name, files and share; prepared once, when the first part begins.
in_parts() {
  check=$1
  one=$2
  words=$3
  shift 3
  parts=$(native_parts)
  [ -n "$parts" ] || die "no such parts: $KERNMEAN_PARTS"
  for part in $parts; do
    if ! done_before "$check" "$part" && time_left && [ $# -gt 0 ]; then
      "$@"
      shift $#
    fi
    part "$check" "$part" "$one" "$part" "$(part_field "$part" 2)" "$(part_field "$part" 3)"
  done
  conclude "$check" "$words" $parts
}

# --- valgrind --------------------------------------------------------------------------

# One thread but where a test asks for more: threads take turns there. Sums in R come out
# in doubles, for valgrind has no longer ones, so that expectations near rounding are not
# met; they are counted in the last line, and what is in kernmean.so decides.
memcheck() {
  in_parts valgrind memcheck_part "no error and no leak in kernmean.so" \
    variant valgrind "$tmp/kernmean" ""
}

memcheck_part() {
  rm -f "$tmp"/valgrind-*.xml "$tmp/counts"
  limited env NOT_CRAN=true R_LIBS="$tmp/valgrind:$R_LIBS" OMP_NUM_THREADS=1 \
    R -d "valgrind --tool=memcheck --leak-check=full --show-leak-kinds=definite,possible
      --num-callers=40 --xml=yes --xml-file=$tmp/valgrind-%p.xml
      --child-silent-after-fork=yes" \
    --no-echo --no-restore -f "$root/tools/suite.R" \
    --args "$tests" "$tmp/counts" 0/1 "$2" "$3"
  status=$?
  case $status in 124 | 137 | 143) return $status ;; esac
  status=0
  [ -s "$tmp/counts" ] || status=1 # the tests did not come to their end
  tail -n 1 "$place/$part.log" >"$tmp/met"
  Rscript "$root/tools/slow/memcheck.R" "$tmp" "$(cat "$tmp/met")" || status=1
  return $status
}

# --- gctorture -------------------------------------------------------------------------

# A .Call of its own in the namespace (byte code would not look for it) collects garbage
# at every allocation that the native routine makes: in the first 100 calls of a routine in
# each part, then in every 97th, since some are called 10,000 times.
torture() {
  in_parts gctorture torture_part "first 100 and every 97th call of a routine" make_torture
  finished gctorture $(native_parts) && [ -z "${KERNMEAN_PARTS-}" ] && all_reached
}

make_torture() {
  cp -R "$tmp/kernmean" "$tmp/torture"
  first=$(find "$tmp/torture/R" -name '*.R' | head -n 1)
  cat >>"$first" <<'R'
.torture <- new.env()
.torture$calls <- new.env()
.torture$done <- 0
.Call <- function(.NAME, ...) {
  list(...)
  calls <- 1 + get0(.NAME$name, .torture$calls, ifnotfound = 0)
  assign(.NAME$name, calls, .torture$calls)
  if (calls > 100 && calls %% 97 != 0) {
    return(.Primitive(".Call")(.NAME, ...))
  }
  .torture$done <- .torture$done + 1
  gctorture(TRUE)
  on.exit(gctorture(FALSE))
  .Primitive(".Call")(.NAME, ...)
}
R
  variant gctorture "$tmp/torture" "" --no-byte-compile
}

torture_part() {
  cat - "$root/tools/suite.R" >"$tmp/torture.R" <<'R'
report <- function(passed) {
  torture <- getNamespace("kernmean")$.torture
  calls <- unlist(as.list(torture$calls))
  cat("reached:", sort(names(calls)), "\n")
  cat(passed, " expectations met; ", length(calls), " routines, ", torture$done,
      " of ", sum(calls), " calls under torture\n", sep = "")
  length(calls) > 0
}
R
  limited env NOT_CRAN=true R_LIBS="$tmp/gctorture:$R_LIBS" R_ENABLE_JIT=0 \
    Rscript "$tmp/torture.R" "$tests" "$tmp/counts" 0/1 "$2" "$3"
}

# Every routine that R can call must be reached by some part.
all_reached() {
  sed -n 's/^ *ENTRY(\(r_[a-z0-9_]*\),.*/\1/p' "$root/src/init.c" | sort >"$tmp/entries"
  sed -n 's/^reached: //p' "$state"/gctorture/*.log | tr ' ' '\n' | sort -u |
    comm -23 "$tmp/entries" - >"$tmp/idle"
  if [ -s "$tmp/idle" ]; then
    bad=1
    echo "gctorture: PROBLEMS: no part of tools/slow/parts.txt calls" $(cat "$tmp/idle")
  fi
}
