# Sourced by tools/slow.sh: the whole suite under sanitizers, other compilers, flags,
# libraries and locales, and the core before the front end of an old gcc. Nothing of the
# machine is changed: libraries are unpacked and locales made in the scratch folder.

all_builds="asan clang lto O0 gnu2x native x87 serial openblas one-thread turkish C latin1 gcc5"

# plan BUILD: how it is made and run.
#   make_lines  of a Makevars file; none: the build with R's own flags
#   with        variables of the environment its tests run in
#   proof       an expression of R that is true if the build is what it is called
#   note        what is to be said of it
# Status 1: not on this machine, `note` says why.
plan() {
  make_lines=
  with=
  proof=TRUE
  note=
  cc=$(R CMD config CC)
  flags=$(R CMD config CFLAGS)
  case $1 in
    asan) plan_asan ;;
    clang) plan_clang ;;
    lto) make_lines="CC = $cc -flto=auto\nCFLAGS = $flags\n" ;;
    O0) make_lines="CFLAGS = -g -O0\n" ;;
    gnu2x) make_lines="CFLAGS = $flags -std=gnu2x\n" ;;
    native) make_lines="CFLAGS = -g -O3 -march=native\n" ;;
    x87) make_lines="CFLAGS = $flags -mfpmath=387\n" ;;
    serial)
      make_lines="SHLIB_OPENMP_CFLAGS =\n"
      proof='!.Call(kernmean:::C_r_openmp)' ;;
    openblas) plan_openblas ;;
    one-thread)
      with="OMP_NUM_THREADS=1 OMP_THREAD_LIMIT=1"
      proof='.Call(kernmean:::C_r_threads, NULL) == 1L' ;;
    turkish)
      plan_locale tr_TR UTF-8
      proof='toupper("i") != "I" && l10n_info()[["UTF-8"]]' ;;
    C)
      with=LC_ALL=C
      proof='Sys.getlocale("LC_CTYPE") == "C"' ;;
    latin1)
      plan_locale en_US ISO-8859-1
      proof='l10n_info()[["Latin-1"]]' ;;
    *) die "unknown build '$1': $all_builds" ;;
  esac
}

# R itself never frees all it holds at its end: no leak check.
plan_asan() {
  sanitizer=$("${cc%% *}" -print-file-name=libasan.so)
  [ -f "$sanitizer" ] || { note="no libasan.so"; return 1; }
  make_lines="CC = $cc -fsanitize=address,undefined -fno-sanitize-recover=undefined\n"
  make_lines="${make_lines}CFLAGS = -g -O1 -fno-omit-frame-pointer\n"
  with="LD_PRELOAD=$sanitizer ASAN_OPTIONS=detect_leaks=0:log_path=$tmp/report"
  with="$with UBSAN_OPTIONS=print_stacktrace=1:log_path=$tmp/report"
}

# With OpenMP if that can be had, else as on macOS.
plan_clang() {
  command -v clang >/dev/null || (apt_get clang)
  command -v clang >/dev/null || { note="no clang"; return 1; }
  openmp=-fopenmp
  where=
  version=$(clang -dumpversion | cut -d . -f 1)
  echo 'int main(void) { return 0; }' >"$tmp/probe.c"
  if ! clang -fopenmp "$tmp/probe.c" -o "$tmp/probe.out" 2>/dev/null; then
    unpack "libomp-$version-dev" "libomp5-$version"
    place=$(dirname "$(find "$tmp/unpacked" -name libomp.so | head -n 1)" 2>/dev/null)
    openmp="-fopenmp -I$(dirname "$(find "$tmp/unpacked" -name omp.h | head -n 1)")"
    where="-L$place -Wl,-rpath,$place"
    clang $openmp $where "$tmp/probe.c" -o "$tmp/probe.out" 2>/dev/null || openmp=
  fi
  make_lines="CC = clang\nCFLAGS = -g -O2\nSHLIB_OPENMP_CFLAGS = $openmp\nLDFLAGS = $where\n"
  [ -n "$openmp" ] || note=", without OpenMP"
  proof=$([ -n "$openmp" ] && echo '.Call(kernmean:::C_r_openmp)' || echo TRUE)
}

plan_openblas() {
  unpack libopenblas0-pthread
  blas=$(find "$tmp/unpacked" -name libblas.so.3 | head -n 1)
  lapack=$(find "$tmp/unpacked" -name liblapack.so.3 | head -n 1)
  [ -n "$blas" ] && [ -n "$lapack" ] || { note="no libopenblas0-pthread"; return 1; }
  with=LD_PRELOAD=$blas:$lapack
  proof='grepl("openblas", extSoftVersion()[["BLAS"]])'
}

# plan_locale LANGUAGE CHARSET
plan_locale() {
  mkdir -p "$tmp/locales"
  localedef -i "$1" -f "$2" "$tmp/locales/$1.$2" >"$tmp/log" 2>&1 ||
    [ -d "$tmp/locales/$1.$2" ] || { note="no localedef for $1.$2"; return 1; }
  with="LOCPATH=$tmp/locales LC_ALL=$1.$2"
}

# unpack PACKAGE...: Debian's, into $tmp/unpacked; the caller looks what is there.
unpack() {
  mkdir -p "$tmp/unpacked"
  for package; do
    (cd "$tmp/unpacked" && apt-get -q download "$package" && dpkg -x "$package"_*.deb .) \
      >"$tmp/log" 2>&1 </dev/null
  done
}

# run_build BUILD: what of its two halves has no verdict yet, side by side.
run_build() {
  build=$1
  library=$tmp/plain
  if ! plan "$build"; then
    echo "builds: not done: $build ($note)"
    return
  fi
  asked="$asked $build-1 $build-2"
  named="$named $build$note"
  if ! { done_before builds "$build-1" && done_before builds "$build-2"; }; then
    time_left || return
    if [ -n "$make_lines" ]; then
      library=$tmp/build-$build
      compile "build-$build" "$tmp/kernmean" "$make_lines"
    elif [ ! -d "$library" ]; then
      compile plain "$tmp/kernmean" ""
    fi
    if ! env $with R_LIBS="$library:$R_LIBS" Rscript -e "stopifnot($proof)" \
      >"$tmp/log" 2>&1; then
      asked=${asked% $build-1 $build-2}
      named=${named% $build$note}
      echo "builds: not done: $build (not so: $proof)"
      return
    fi
  fi
  for half in 1 2; do
    part builds "$build-$half" half_suite "$library" $half "$with" &
  done
  wait
}

# half_suite LIBRARY 1|2 VARIABLES
half_suite() {
  rm -rf "$tmp/tests-$2"
  cp -R "$tests" "$tmp/tests-$2"
  limited env NOT_CRAN=true R_LIBS="$1:$R_LIBS" OMP_WAIT_POLICY=passive $3 \
    Rscript "$root/tools/suite.R" "$tmp/tests-$2" "$tmp/counts-$2" $(($2 - 1))/2
  status=$?
  # Of sanitizers, in whatever process.
  ! cat "$tmp"/report.* 2>/dev/null || status=1
  return $status
}

# What gcc before 9 refuses under default(none), such as const variables that are shared. AVR's
# compiler is the old one that today's systems have. Its sizes have 16 bits: an array that
# is too large for them is no fault, nor is what it warns of.
gcc5() {
  if ! command -v avr-gcc >/dev/null; then (apt_get gcc-avr avr-libc); fi
  front=$(avr-gcc -print-prog-name=cc1 2>/dev/null)
  case $(avr-gcc -dumpversion 2>/dev/null) in
    [5-8].*) asked="$asked gcc5"; named="$named gcc5"; part builds gcc5 front_end ;;
    *) echo "builds: not done: gcc5 (no avr-gcc before 9)" ;;
  esac
}

front_end() {
  stubs=$tmp/stubs
  mkdir -p "$stubs"
  printf 'int omp_get_%s(void);\n' num_procs max_threads thread_limit >"$stubs/omp.h"
  cat >"$stubs/shared.c" <<'C'
int f(const int n);
int f(const int n) {
  int sum = 0;
#pragma omp parallel default(none) shared(n, sum)
  sum = n;
  return sum;
}
C
  refused "$stubs/shared.c" >/dev/null || { echo "takes what it should refuse"; return 1; }
  faults=0
  files=0
  for file in "$root"/src/core/*.c "$root"/src/apps/*.c "$root"/tools/core/*.c; do
    refused "$file" && faults=$((faults + 1))
    files=$((files + 1))
  done
  echo "$files files read by gcc $(avr-gcc -dumpversion), $faults refused"
  [ $faults = 0 ]
}

# refused FILE: its errors.
refused() {
  "$front" -quiet -w -std=c11 -fopenmp -fsyntax-only -DKM_NO_R -I"$root/src" \
    -I"$root/inst/include" -I"$stubs" -o /dev/null "$1" 2>&1 |
    grep 'error:' | grep -v 'size of array'
}

builds() {
  asked=
  named=
  for build in ${KERNMEAN_BUILDS:-$all_builds}; do
    case $build in gcc5) gcc5 ;; *) run_build "$build" ;; esac
  done
  [ -z "$asked" ] || conclude builds "the whole suite each:$named" $asked
}
