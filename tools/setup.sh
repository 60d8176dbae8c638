# Sourced by run, test, check and slow.sh, which set `root`: a scratch folder that is
# removed at the end, whatever is missing installed without a question, and gates that
# are counted. R packages that apt does not provide go into $lib, not into the user's
# library.

tmp=$(mktemp -d "${TMPDIR:-/tmp}/kernmean-XXXXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
# Without a home the library is the scratch folder's: others could write to a folder of a
# known name.
lib=${KERNMEAN_LIB:-${XDG_CACHE_HOME:-${HOME:-$tmp}/.cache}/kernmean/lib}
case $lib in /*) ;; *) lib=$PWD/$lib ;; esac

export HOME="${HOME:-$tmp}" TMPDIR="$tmp" LANGUAGE=en R_LIBS="$lib${R_LIBS:+:$R_LIBS}"
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}" # a thread that waits lets others work
export MAKEFLAGS="${MAKEFLAGS:--j$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)}"
[ "$(locale charmap 2>/dev/null)" = UTF-8 ] || export LC_ALL=C.UTF-8

die() {
  echo "$*" >&2
  exit 1
}

# quietly WHAT COMMAND...: one line when all goes well, the end of the log when not.
quietly() {
  what=$1
  shift
  echo "$what ..." >&2
  "$@" >"$tmp/log" 2>&1 </dev/null && return
  status=$?
  tail -n 40 "$tmp/log" >&2
  die "failed ($status): $what"
}

# Makes $lib; where that cannot be written, a library for this run alone.
make_lib() {
  mkdir -p "$lib" 2>/dev/null && [ -w "$lib" ] && return
  lib=$tmp/lib
  mkdir -p "$lib"
  R_LIBS=$lib:$R_LIBS
}

# Does nothing where apt cannot be used, so that the caller looks again in any case.
apt_get() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && [ $# -gt 0 ] || return 0
  if [ -z "${apt_updated-}" ]; then
    echo "updating the package lists ..." >&2
    apt-get update -q >"$tmp/log" 2>&1 </dev/null || tail -n 5 "$tmp/log" >&2
    apt_updated=yes
  fi
  known=
  for package; do
    if apt-cache show "$package" >/dev/null 2>&1; then known="$known $package"; fi
  done
  [ -z "$known" ] || (quietly "installing$known" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends $known) || true
}

# R with a compiler, make, BLAS and LAPACK: all that a package needs to be built.
can_build() (
  command -v R >/dev/null && command -v Rscript >/dev/null || exit 1
  rm -rf "$tmp/probe" && mkdir "$tmp/probe" && cd "$tmp/probe" || exit 1
  echo 'void probe(void); void probe(void) {}' >probe.c
  # shellcheck disable=SC2016  # make's variables, not the shell's
  echo 'PKG_LIBS = $(LAPACK_LIBS) $(BLAS_LIBS) $(FLIBS)' >Makevars
  R CMD SHLIB probe.c >"$tmp/log" 2>&1
)

need_r() {
  can_build || apt_get r-base-core r-base-dev
  if ! can_build; then
    [ ! -f "$tmp/log" ] || tail -n 20 "$tmp/log" >&2
    die "needs R (>= 4.2) and what builds R packages: a C compiler, make, BLAS, LAPACK"
  fi
  Rscript -e 'quit(status = getRversion() < "4.2")' ||
    die "needs R >= 4.2; here is $(Rscript --version 2>&1)"
}

# need_tools COMMAND...: each is the name of its Debian package too.
need_tools() {
  for tool; do
    command -v "$tool" >/dev/null || apt_get "$tool"
    command -v "$tool" >/dev/null || echo "not installed: $tool" >&2
  done
}

# described FIELD...: the packages named there in DESCRIPTION, but for R's own.
described() {
  Rscript -e '
    args <- commandArgs(TRUE)
    fields <- read.dcf(args[1], fields = args[-1])
    names <- unlist(strsplit(fields[!is.na(fields)], ","))
    names <- trimws(gsub("[(][^)]*[)]", "", names))
    own <- rownames(installed.packages(.Library, priority = "base"))
    cat(setdiff(names, c("R", "", own)))' "$root/DESCRIPTION" "$@"
}

absent() {
  Rscript -e '
    names <- commandArgs(TRUE)
    there <- vapply(names, requireNamespace, NA, quietly = TRUE)
    cat(names[!there])' "$@" 2>/dev/null
}

# Installs those that are missing; `left` is what could not be had. Where apt has packages
# built, those that are wanted only are not compiled from CRAN, which takes minutes.
get_packages() {
  left=
  [ $# -gt 0 ] || return 0
  left=$(absent "$@")
  [ -n "$left" ] || return 0
  case $(R RHOME) in
    /usr/lib/R) # Debian's own R finds Debian's packages
      debian=
      for package in $left; do
        debian="$debian r-cran-$(echo "$package" | tr '[:upper:]' '[:lower:]')"
      done
      apt_get $debian
      left=$(absent $left)
      [ -z "${built_only-}" ] || return 0 ;;
  esac
  [ -n "$left" ] || return 0
  make_lib
  echo "installing $left into $lib ..." >&2
  Rscript -e '
    repos <- getOption("repos")
    if (length(repos) == 0 || "@CRAN@" %in% repos) {
      chooseCRANmirror(ind = 1, local.only = TRUE)
    }
    install.packages(commandArgs(TRUE)[-1], lib = commandArgs(TRUE)[1])' \
    "$lib" $left >"$tmp/log" 2>&1 </dev/null
  left=$(absent $left)
}

need_packages() {
  get_packages "$@"
  [ -z "$left" ] && return
  tail -n 20 "$tmp/log" >&2
  die "cannot install the R packages: $left"
}

want_packages() {
  built_only=yes
  get_packages "$@"
  built_only=
  [ -z "$left" ] || echo "going on without the R packages: $left" >&2
}

# build_tarball OPTION...: the built package is $tarball; the checkout stays as it is, and
# may be one that cannot be written to.
tarball=$tmp/none
build_tarball() {
  rm -rf "$tmp/source" && mkdir "$tmp/source" &&
    (cd "$root" && tar cf - --exclude=./.git --exclude='*.o' --exclude='*.so' .) |
    tar xf - -C "$tmp/source" && chmod -R u+w "$tmp/source" || return
  (cd "$tmp" && rm -f kernmean_*.tar.gz && R CMD build "$@" source) || return
  tarball=$(echo "$tmp"/kernmean_*.tar.gz)
}

# --- gates: the checks that tools/test and tools/check count ----------------------------

passed=0
failed=0
skipped=0

# gate NAME COMMAND...: counts one. Shows the last line of the output, or all of its end
# when it fails.
gate() {
  name=$1
  shift
  begun=$(date +%s)
  said=$tmp/out-${lane-}
  if "$@" >"$said" 2>&1 </dev/null; then
    passed=$((passed + 1))
    verdict=ok
    shown=1
  else
    failed=$((failed + 1))
    verdict=FAILED
    shown=60
  fi
  echo "$verdict: $name ($(($(date +%s) - begun)) s)"
  grep '[^ ]' "$said" | tail -n $shown | cut -c 1-300 | sed 's/^/    /'
}

# side_by_side FUNCTION...: the gates of each in a process of its own. What it says is shown
# when all have ended.
side_by_side() {
  for lane; do
    (
      passed=0
      failed=0
      "$lane"
      echo "$passed $failed" >"$tmp/lane-$lane"
    ) >"$tmp/said-$lane" 2>&1 &
  done
  wait
  for lane; do
    cat "$tmp/said-$lane"
    more="0 1" # of one that did not come to its end
    [ ! -f "$tmp/lane-$lane" ] || more=$(cat "$tmp/lane-$lane")
    passed=$((passed + ${more% *}))
    failed=$((failed + ${more#* }))
  done
  lane=
}

# The last line of both. In .ci/run KERNMEAN_COUNTS names a file for the counts, and the
# sum of both scripts is its last line.
end_of_gates() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ -z "${KERNMEAN_COUNTS-}" ] || echo "$passed $failed $skipped" >>"$KERNMEAN_COUNTS"
  [ "$failed" = 0 ]
}

built() { [ -f "$tarball" ] || { echo "there is no built package"; return 1; }; }

picture() {
  [ "$(wc -c <"$1")" -gt 10240 ] || { echo "$1 is too small"; exit 1; }
}
