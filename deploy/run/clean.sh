# ./run clean [--cache]: removes what ./run made. A running demo cluster is ended first.
source deploy/run/demo.sh

clean() {
  cluster_down quiet
  rm -rf "$ROOT/build"
  say "removed build/"
  if [[ ${1:-} == --cache ]]; then
    rm -rf "$MOTLEY_CACHE"
    say "removed $MOTLEY_CACHE"
  elif [[ -d $MOTLEY_CACHE ]]; then
    say "the downloads stay ($(du -sh "$MOTLEY_CACHE" | cut -f 1) in $MOTLEY_CACHE; ./run clean --cache removes them)"
  fi
}
