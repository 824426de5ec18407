# ./run demo, up, down.
source deploy/run/build.sh

CLUSTER_DIR=$ROOT/build/cluster

demo() {
  local work example="" arguments=() folder=deploy/examples
  while [[ $# -gt 0 ]]; do
    if [[ $1 == --example ]]; then example=$2; shift 2; else arguments+=("$1"); shift; fi
  done
  if [[ -z $example && " ${arguments[*]} " =~ \ --(kill|big|only)\  ]]; then
    fail "demo: --kill, --big and --only are of an example: ./run demo --example zorse --kill"
    exit $EX_USAGE
  fi
  if [[ -n $example && ! -e $folder/$example/cluster.toml ]]; then
    local known
    known=$(cd $folder && printf '%s\n' */cluster.toml | sed 's,/cluster.toml,,')
    # shellcheck disable=SC2086
    fail "demo: no example '$example'$(did_you_mean "$example" $known); there are $(paste -sd' ' <<<"$known")"
    exit $EX_USAGE
  fi
  if [[ -e $folder/$example/tune.toml && " ${arguments[*]} " =~ \ --(kill|big|only)\  ]]; then
    fail "demo: $example has no rows to choose from, and a node is killed in any case; leave out --kill, --big and --only"
    exit $EX_USAGE
  fi
  if [[ " ${arguments[*]} " == *" --big "* ]] && ! grep -q '^\[big\]' "$folder/$example/cluster.toml"; then
    fail "demo: $example has no model that is too big for its cards: its cluster.toml has no [big]; leave out --big"
    exit $EX_USAGE
  fi
  build_product
  mkdir -p "$ROOT/build/demo"
  work=$(mktemp -d "$ROOT/build/demo/XXXXXX")   # its own folder and ports: two demos at once are fine
  local script=(deploy/demo/demo.py)
  if [[ -n $example ]]; then script=(deploy/demo/example.py --example "$folder/$example"); fi
  if [[ -e $folder/$example/tune.toml ]]; then script[0]=deploy/demo/fine_tune.py; fi
  python3 "${script[@]}" --bin "$BIN_DIR" --cache "$MOTLEY_CACHE" --work "$work" --setup-seconds $((SECONDS - STARTED)) \
    "${arguments[@]}"
}

# cluster_up [--data FOLDER]...: a folder is named from where ./run was called. Bash leaves a ~ in quotes as it is.
cluster_up() {
  local arguments=()
  while [[ $# -gt 0 ]]; do
    if [[ $1 == --data ]]; then arguments+=(--data "$(cd "$CALLED_FROM" && realpath -m -- "${2/#~\//$HOME/}")"); shift; fi
    shift
  done
  build_product
  with_lock "$ROOT/build/.cluster.lock" \
    python3 deploy/demo/up.py up --bin "$BIN_DIR" --cache "$MOTLEY_CACHE" --work "$CLUSTER_DIR" "${arguments[@]}"
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
