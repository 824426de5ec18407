# ./run clean [--cache] [--delete-checkpoints]: removes what ./run made. A running demo cluster is ended first; its checkpoints
# are not of ./run's making, and no text of the user's is.
source deploy/run/demo.sh

# What ./run itself puts into the folder of the downloads.
DOWNLOADS=('torch-*' 'cuda-headers-*' 'oracle-*' tools 'prometheus.????' '*.lock' durations 'durations.??????' kjv.txt)

clean() {
  local cache=0 down=() argument
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
  [[ -d $MOTLEY_CACHE ]] || return 0
  if [[ $cache -eq 1 ]]; then
    clean_cache "${down[@]}"
  else
    say "the downloads stay ($(du -sh "$MOTLEY_CACHE" | cut -f 1) in $MOTLEY_CACHE; ./run clean --cache removes them)"
  fi
}

# clean_cache [--delete-checkpoints]: jobs of the demo's cluster may write there, and users may.
clean_cache() {
  local name names=() checkpoints
  for name in "${DOWNLOADS[@]}"; do names+=(-o -name "$name"); done
  find "$MOTLEY_CACHE/" -mindepth 1 -maxdepth 1 \( "${names[@]:1}" \) -exec rm -rf {} +
  if [[ $# -gt 0 ]]; then python3 deploy/demo/job_files.py delete "$MOTLEY_CACHE"; fi
  find "$MOTLEY_CACHE" -depth -type d -empty -delete
  if [[ ! -e $MOTLEY_CACHE ]]; then
    say "removed $MOTLEY_CACHE"
    return 0
  fi
  say "removed the downloads; what else is in $MOTLEY_CACHE stays: $(cd "$MOTLEY_CACHE" && ls -A | paste -sd' ')"
  checkpoints=$(python3 deploy/demo/job_files.py list "$MOTLEY_CACHE")
  if [[ -n $checkpoints ]]; then
    printf '%s\n' "checkpoints (--delete-checkpoints deletes them):" "$checkpoints" | sed 's/^/         /'
  fi
}
