# ./run demo, up, down.
source deploy/run/build.sh

CLUSTER_DIR=$ROOT/build/cluster

demo() {
  local work
  build_product
  mkdir -p "$ROOT/build/demo"
  work=$(mktemp -d "$ROOT/build/demo/XXXXXX")   # its own folder and ports: two demos at once are fine
  python3 deploy/demo/demo.py --bin "$BIN_DIR" --cache "$MOTLEY_CACHE" --work "$work" --setup-seconds $((SECONDS - STARTED)) "$@"
}

cluster_up() {
  build_product
  with_lock "$ROOT/build/.cluster.lock" python3 deploy/demo/up.py up --bin "$BIN_DIR" --cache "$MOTLEY_CACHE" --work "$CLUSTER_DIR"
}

# cluster_down [--delete-checkpoints]
cluster_down() {
  if [[ ! -e $CLUSTER_DIR ]]; then
    say "no demo cluster is running here"
    return 0
  fi
  with_lock "$ROOT/build/.cluster.lock" \
    python3 deploy/demo/up.py down --bin "$BIN_DIR" --cache "$MOTLEY_CACHE" --work "$CLUSTER_DIR" "$@"
}
