# Sourced by tools/slow.sh: checks that take hours, in parts of some minutes. The verdict
# of each part is kept in a folder, so that a second start goes on where the first stopped.

# What the verdicts are about: another source, another folder.
source_hash() (
  cd "$root" && find DESCRIPTION NAMESPACE R src inst/include tests tools/core -type f \
    ! -name '*.o' ! -name '*.so' | LC_ALL=C sort | xargs cksum | cksum | cut -d ' ' -f 1
)

state=${KERNMEAN_STATE:-${XDG_CACHE_HOME:-$HOME/.cache}/kernmean/check-$(source_hash)}
case $state in /*) ;; *) state=$PWD/$state ;; esac
longest=3600 # seconds a part may take: beyond that it hangs
started=$(date +%s)

# done_before CHECK PART
done_before() { [ -f "$state/$1/$2.verdict" ]; }

# time_left: may another part begin?
time_left() {
  [ -z "${KERNMEAN_MINUTES-}" ] ||
    [ $(($(date +%s) - started)) -lt $((60 * KERNMEAN_MINUTES)) ]
}

# part CHECK PART COMMAND...: runs it unless its verdict is there. Clean if the status is 0;
# no verdict if it took too long or was killed. The last line of its log is shown.
part() {
  check=$1
  part=$2
  shift 2
  place=$state/$check
  before=
  if done_before "$check" "$part"; then
    before=" (before)"
  else
    time_left || return 0
    mkdir -p "$place"
    begun=$(date +%s)
    "$@" >"$place/$part.log" 2>&1 </dev/null
    status=$?
    took="$(($(date +%s) - begun)) s"
    case $status in
      0) verdict=clean ;;
      124 | 137 | 143) echo "$check, $part: no verdict: stopped after $took"; return ;;
      *) verdict=PROBLEMS
         tail -n 60 "$place/$part.log" | sed 's/^/    /' ;;
    esac
    echo "$verdict, $took: $(grep '[^ ]' "$place/$part.log" | tail -n 1 | cut -c 1-200)" \
      >"$place/$part.new"
    mv "$place/$part.new" "$place/$part.verdict"
  fi
  echo "$check, $part: $(cat "$place/$part.verdict")$before"
}

# limited COMMAND...
limited() {
  if command -v timeout >/dev/null; then timeout $longest "$@"; else "$@"; fi
}

# finished CHECK PART...: have all of them a verdict?
finished() {
  check=$1
  shift
  for part; do done_before "$check" "$part" || return 1; done
}

# conclude CHECK WORDS PART...: one verdict over all parts.
conclude() {
  check=$1
  words=$2
  shift 2
  all=$#
  clean=0
  met=0
  problems=
  for part; do
    said=$(cat "$state/$check/$part.verdict" 2>/dev/null)
    case $said in
      clean*) clean=$((clean + 1)) ;;
      PROBLEMS*) problems="$problems $part" ;;
    esac
    number=$(echo "$said" | sed -n 's/.* \([0-9]*\) expectations met.*/\1/p')
    met=$((met + ${number:-0}))
  done
  if [ -n "$problems" ]; then
    bad=1
    echo "$check: PROBLEMS in$problems (logs in $state/$check)"
  elif [ $clean -lt $all ]; then
    bad=1
    echo "$check: NOT FINISHED, $clean of $all parts clean; the same command goes on"
  else
    echo "$check: clean; $all parts, $met expectations met; $words"
  fi
}
