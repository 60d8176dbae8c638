# Sourced by tools/test, tools/check and tools/slow.sh after tools/setup.sh: builds the driver (the
# numerical core without R) for a system and checks what it prints.

drivers=$tmp/drivers
mkdir -p "$drivers"

# build NAME COMPILER LIBRARIES FLAG...: $drivers/NAME/driver.exe from the sources below
# $root. (So named everywhere: for Windows the linker would add the suffix.)
build() {
  place=$drivers/$1
  with=$2
  libraries=$3
  shift 3
  mkdir -p "$place"
  # shellcheck disable=SC2016  # the inner shell's $1
  (cd "$root" && ls tools/core/*.c src/core/*.c src/apps/*.c |
    PLACE=$place CC="$with" FLAGS="-O2 -DKM_NO_R -Isrc -Iinst/include $*" xargs -P 4 -I '{}' sh -c '
      $CC $FLAGS -c "$1" -o "$PLACE/$(basename "$1" .c).o" || exit 255' sh '{}') \
    >"$drivers/log" 2>&1 &&
    $with -O2 "$@" -o "$place/driver.exe" "$place"/*.o $libraries -lm >>"$drivers/log" 2>&1
}

# outputs NAME LEVELS THREADS RUNNER...: the driver's output at each level that the
# processor has; the same bits for any number of threads. `levels`: those it has.
outputs() {
  name=$1
  wanted=$2
  counts=$3
  shift 3
  levels=
  for level in $wanted; do
    output=$drivers/$name-level$level
    rm -f "$output"
    for threads in $counts; do
      "$@" "$drivers/$name/driver.exe" "$level" "$threads" >"$drivers/raw" 2>"$drivers/log"
      status=$?
      [ $status != 3 ] || break # not there
      [ $status = 0 ] || return 1
      tr -d '\r' <"$drivers/raw" >"$output-$threads"
      [ -f "$output" ] || cp "$output-$threads" "$output"
      cmp "$output" "$output-$threads" >>"$drivers/log" || return 1
    done
    [ ! -f "$output" ] || levels="$levels $level"
  done
  [ -n "$levels" ]
}

# checked NAME: every number against plain formulas in R.
checked() {
  Rscript "$root/tools/core/check.R" $(for level in $levels; do
    echo "$drivers/$1-level$level"
  done) >"$drivers/log" 2>&1
}

r_libraries() {
  echo "$(R CMD config LAPACK_LIBS) $(R CMD config BLAS_LIBS) -Wl,-rpath,$(R RHOME)/lib"
}

r_openmp() { sed -n 's/^SHLIB_OPENMP_CFLAGS = //p' "$(R RHOME)/etc/Makeconf"; }

# native_driver THREADS LEVELS...: the compiler and libraries of R, as a gate. Of LEVELS
# that are separate words only the first that the processor has.
native_driver() (
  counts=$1
  shift
  build native "$(R CMD config CC)" "$(r_libraries) $(R CMD config FLIBS)" -fPIC $(r_openmp) ||
    { cat "$drivers/log"; exit 1; }
  for some; do
    if outputs native "$some" "$counts" env; then
      checked native
      status=$?
      cat "$drivers/log"
      exit $status
    fi
  done
  cat "$drivers/log"
  exit 1
)

# --- tools/slow.sh portable -----------------------------------------------------------

# try NAME "LEVELS" "THREADS" "RUNNER" COMPILER LIBRARIES FLAG...: builds, runs, one line.
try() {
  name=$1
  wanted=$2
  counts=$3
  runner=$4
  shift 4
  if build "$name" "$@" && outputs "$name" "$wanted" "$counts" $runner && checked "$name"; then
    echo "portable: $name: ok, levels$levels, threads $counts," \
      "$(sed 's/.*largest/largest/' "$drivers/log" | sort | tail -n 1)"
  else
    bad=1
    tail -n 20 "$drivers/log" | sed 's/^/    /'
    echo "portable: $name: PROBLEMS"
  fi
}

cannot() { echo "portable: not done: $1 ($2)"; }

# there COMMAND...: are all of them installed?
there() {
  for command; do command -v "$command" >/dev/null || return 1; done
}

# get PACKAGE...: by apt where it can; the caller looks whether they are there.
get() {
  (apt_get "$@")
  apt_updated=yes
}

# The sources of reference LAPACK, in $tmp/lapack.
lapack_sources() {
  [ ! -d "$tmp/lapack" ] || return 0
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  mkdir -p "$tmp/sources/lists/partial" "$tmp/sources/parts" "$tmp/sources/lapack"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    [ -f "$file" ] || continue
    sed 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$file" \
      >"$tmp/sources/parts/$(basename "$file")"
  done
  apt_sources() {
    apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::State::Lists="$tmp/sources/lists" \
      -o Dir::Etc::SourceParts="$tmp/sources/parts" "$@" >"$drivers/log" 2>&1 </dev/null
  }
  (apt_sources update && cd "$tmp/sources" &&
    apt_sources source --download-only lapack &&
    tar xzf lapack_*.orig.tar.gz -C lapack --strip-components 1) || return 1
  mv "$tmp/sources/lapack" "$tmp/lapack"
}

# lapack PREFIX: what the core calls of it and all that this calls, built with
# PREFIXgfortran into $tmp/PREFIXlapack/liblapack.a.
lapack() (
  lapack_sources && mkdir -p "$tmp/$1lapack" && cd "$tmp/$1lapack" || exit 1
  of=$tmp/lapack
  for file in la_constants.f90 la_xisnan.F90; do # modules, first
    "$1gfortran" -O2 -c "$of/SRC/$file" || exit 1
  done
  wanted=$(sed -n 's/.*F77_CALL(\([a-z0-9]*\)).*/\1/p' "$root"/src/*/*.c)
  seen=" "
  while [ -n "$wanted" ]; do
    found=
    for name in $wanted; do
      case $seen in *" $name "*) continue ;; esac
      seen="$seen$name "
      for file in "$of/BLAS/SRC/$name".f* "$of/SRC/$name".f* "$of/INSTALL/$name.f"; do
        [ -f "$file" ] || continue
        "$1gfortran" -O2 -w -c "$file" -o "$name.o" || exit 1
        found="$found $("$1nm" "$name.o" | sed -n 's/^ *U \([a-z0-9]*\)_$/\1/p')"
        break
      done
    done
    wanted=$found
  done
  "$1ar" rcs liblapack.a ./*.o
) >"$tmp/lapack-log" 2>&1

# 64-bit Windows by mingw-w64, run by wine; the assembler's flag as in Makevars.win.
windows() {
  prefix=x86_64-w64-mingw32-
  find_wine() { command -v wine64 || command -v wine || ls /usr/lib/wine/wine64; }
  there ${prefix}gcc ${prefix}gfortran && find_wine >/dev/null 2>&1 ||
    get gcc-mingw-w64-x86-64 gfortran-mingw-w64-x86-64 wine64
  wine=$(find_wine 2>/dev/null)
  if ! there ${prefix}gcc ${prefix}gfortran; then
    cannot Windows "no ${prefix}gcc and ${prefix}gfortran"
  elif [ -z "$wine" ]; then
    cannot Windows "no wine"
  elif ! lapack $prefix; then
    cannot Windows "no sources of LAPACK: $(tail -n 1 "$tmp/lapack-log")"
  else
    export WINEPREFIX="$tmp/wine" WINEDEBUG=-all
    "$wine" cmd /c exit >/dev/null 2>&1 # makes the prefix
    try windows "0 1 2" "1 2 4" "$wine" ${prefix}gcc \
      "$tmp/${prefix}lapack/liblapack.a -static -lgfortran -lquadmath" -fopenmp \
      -DANY_ALIGNMENT -Wa,-muse-unaligned-vector-move
    moves=$(aligned_moves "$drivers/windows" $prefix)
    [ "$moves" = 0 ] || { bad=1; echo "portable: windows: $moves aligned moves of vectors"; }
    "$(dirname "$wine")/wineserver" -k >/dev/null 2>&1
  fi
}

# Moves of vectors to and from memory that need an alignment of more than 16 bytes, in
# the objects of a folder. (None by the compiler of Debian, which avoids them itself: so
# the flag is proven on what the native compiler writes, too.)
aligned_moves() {
  for object in "$1"/*.o; do "${2}objdump" -d "$object"; done |
    grep -E 'vmovap[ds]|vmovdqa' | grep -c -E '\(%r([abcd]x|[sd]i|[bs]p|[0-9]+)'
}

spills() {
  [ "$(uname -m)" = x86_64 ] || return 0
  build spills "$(R CMD config CC)" "$(r_libraries)" -fopenmp || { bad=1; return; }
  before=$(aligned_moves "$drivers/spills" "")
  build spills "$(R CMD config CC)" "$(r_libraries)" -fopenmp -Wa,-muse-unaligned-vector-move ||
    { cannot "moves of vectors" "the assembler has no -muse-unaligned-vector-move"; return; }
  after=$(aligned_moves "$drivers/spills" "")
  echo "portable: aligned moves of vectors: $before, by the flag of Makevars.win $after"
  [ "$after" = 0 ] || bad=1
}

# 64-bit ARM, run by qemu.
arm() {
  prefix=aarch64-linux-gnu-
  there ${prefix}gcc ${prefix}gfortran qemu-aarch64 ||
    get gcc-aarch64-linux-gnu gfortran-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
  if ! there ${prefix}gcc ${prefix}gfortran; then
    cannot ARM "no ${prefix}gcc and ${prefix}gfortran"
  elif ! there qemu-aarch64; then
    cannot ARM "no qemu-aarch64"
  elif ! lapack $prefix; then
    cannot ARM "no sources of LAPACK: $(tail -n 1 "$tmp/lapack-log")"
  else
    libraries="$tmp/${prefix}lapack/liblapack.a -static -lgfortran"
    try arm 0 "1 2 4" qemu-aarch64 ${prefix}gcc "$libraries" -fopenmp
    if there clang; then # as for macOS: clang without OpenMP
      try arm-clang 0 1 qemu-aarch64 "clang --target=aarch64-linux-gnu" \
        "$libraries -L$(dirname "$(${prefix}gcc -print-file-name=libgfortran.a)")"
    else
      cannot "ARM by clang" "no clang"
    fi
  fi
}

portable() {
  libraries=$(r_libraries)
  every="0 1 2"
  try gcc "$every" "1 2 4" env gcc "$libraries" -fopenmp
  try gcc-serial "$every" 1 env gcc "$libraries"
  try gcc-sanitized "$every" "1 2" env gcc "$libraries" -fopenmp -g \
    -fsanitize=address,undefined -fno-sanitize-recover=undefined
  there clang || get clang
  [ -f "$(clang -print-resource-dir 2>/dev/null)/lib/linux/libclang_rt.asan-x86_64.a" ] ||
    get "libclang-rt-$(clang -dumpversion 2>/dev/null | cut -d . -f 1)-dev"
  if there clang; then
    try clang-serial "$every" 1 env clang "$libraries"
    try clang-sanitized "$every" 1 env clang "$libraries" -g \
      -fsanitize=address,undefined -fno-sanitize-recover=undefined
  else
    cannot clang "no clang"
  fi
  spills
  windows
  arm
}
