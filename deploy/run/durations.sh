# How long long steps take. What this machine needed the last time stands in the cache folder, a line "NAME SECONDS" each; before
# there is such a line the duration is guessed, and said to be.

DURATIONS=$MOTLEY_CACHE/durations

known_duration() { awk -v name="$1" '$1 == name {seconds = $2} END {print seconds}' "$DURATIONS" 2>/dev/null || true; }

# Written beside and renamed: two at once lose a line at worst, never the file. There may be no other line to keep.
remember_duration() {
  local name=$1 seconds=$2 beside
  mkdir -p "$MOTLEY_CACHE"
  beside=$(mktemp "$DURATIONS.XXXXXX") || return 0
  { grep -v "^$name " "$DURATIONS" 2>/dev/null || true; echo "$name $seconds"; } >"$beside"
  mv "$beside" "$DURATIONS"
}

readable_seconds() { if [[ $1 -lt 100 ]]; then echo "$1 s"; else echo "$((($1 + 30) / 60)) min"; fi; }

# For work that uses all the cores that it may: seconds from the core-seconds that it costs.
seconds_on_cores() { echo $(($1 / $(parallel_jobs))); }

# long_step NAME GUESSED_SECONDS WHAT COMMAND...: a step that says beforehand how long it will take, and remembers how long it
# took.
long_step() {
  local name=$1 guess=$2 what=$3 known begin=$SECONDS
  shift 3
  known=$(known_duration "$name")
  if [[ -n $known ]]; then
    what+=" (the last time $(readable_seconds "$known"))"
  else
    what+=" (about $(readable_seconds "$guess"), a guess: the first time on this machine)"
  fi
  [[ -t 1 ]] || say "$what ..."
  step "$what" "$@" || return
  remember_duration "$name" $((SECONDS - begin))
}
