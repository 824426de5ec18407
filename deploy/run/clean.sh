# ./run clean [--cache] [--delete-checkpoints]: removes what ./run made. A running demo cluster is ended first; its checkpoints
# are not of ./run's making.
source deploy/run/demo.sh

clean() {
  local cache=0 down=() argument found
  for argument in "$@"; do
    if [[ $argument == --cache ]]; then cache=1; else down+=("$argument"); fi
  done
  if [[ -e $CLUSTER_DIR ]]; then cluster_down "${down[@]}"; fi
  if [[ -e $CLUSTER_DIR ]]; then
    find "$ROOT/build" -mindepth 1 -maxdepth 1 ! -path "$CLUSTER_DIR" -exec rm -rf {} +
    say "removed all else in build/"
  else
    rm -rf "$ROOT/build"
    say "removed build/"
  fi
  if [[ $cache -eq 0 ]]; then
    if [[ -d $MOTLEY_CACHE ]]; then
      say "the downloads stay ($(du -sh "$MOTLEY_CACHE" | cut -f 1) in $MOTLEY_CACHE; ./run clean --cache removes them)"
    fi
    return 0
  fi
  found=$(find "$MOTLEY_CACHE" -path '*/step-*/manifest.json' -printf '%h\n' -quit 2>/dev/null)
  if [[ -n $found && ${#down[@]} -eq 0 ]]; then   # jobs of the demo's cluster may write there
    say "$MOTLEY_CACHE stays: there are checkpoints in it ($found); --delete-checkpoints removes them with it"
    return 0
  fi
  rm -rf "$MOTLEY_CACHE"
  say "removed $MOTLEY_CACHE"
}
