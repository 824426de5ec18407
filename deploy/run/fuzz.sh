# ./run bench fuzz [--seconds N] [TARGET...]: fuzzes the parsers of tests/fuzz for N seconds in all, in turn. docs/inside/fuzzing.md.
source deploy/run/build.sh

FUZZ_DIR=$ROOT/build/fuzz

configure_and_compile_fuzz() {
  export CCACHE_BASEDIR=$ROOT
  [[ -e $FUZZ_DIR/build.ninja ]] || cmake --preset fuzz || return
  ninja -C "$FUZZ_DIR" -j "$(parallel_jobs)" fuzz_targets
}

fuzz_names() { (cd "$ROOT/tests/fuzz" && ls -- *_fuzz.cc | sed 's/_fuzz\.cc$//'); }

# Inputs that were found interesting stay in build/ and are where the next run begins.
fuzz_one() {
  local name=$1 seconds=$2 found=$FUZZ_DIR/found/$1 crashes=$FUZZ_DIR/crashes
  mkdir -p "$found" "$crashes"
  "$FUZZ_DIR/bin/${name}_fuzz" -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$crashes/$name-" "$found" "$ROOT/tests/fuzz/corpus/$name"
}

fuzz() {
  local seconds=60 names=() name each failed=0 executed log
  while [[ $# -gt 0 ]]; do
    case $1 in
      -h|--help) sed -n '1s/^# //p' "$ROOT/deploy/run/fuzz.sh"; return 0 ;;
      --seconds) seconds=${2:-}; shift; [[ $# -gt 0 ]] && shift ;;
      *) names+=("$1"); shift ;;
    esac
  done
  if ! [[ $seconds =~ ^[1-9][0-9]{0,5}$ ]]; then
    fail "--seconds must be a whole number from 1 on, got '$seconds'"
    exit $EX_USAGE
  fi
  [[ ${#names[@]} -gt 0 ]] || mapfile -t names < <(fuzz_names)
  for name in "${names[@]}"; do
    [[ -e $ROOT/tests/fuzz/${name}_fuzz.cc ]] && continue
    fail "no fuzz target '$name'; there are: $(fuzz_names | tr '\n' ' ')"
    exit $EX_USAGE
  done
  PACKAGES+=(clang-16 libclang-rt-16-dev)
  setup_packages
  with_lock "$ROOT/build/.lock" compile_step fuzz 480 "$FUZZ_DIR" "compile the fuzz targets" configure_and_compile_fuzz
  each=$((seconds / ${#names[@]} > 0 ? seconds / ${#names[@]} : 1))
  for name in "${names[@]}"; do
    mkdir -p "$LOG_DIR"
    log=$LOG_DIR/fuzz-$name.log
    if fuzz_one "$name" "$each" >"$log" 2>&1; then
      executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
      say "$name: nothing found in ${executed:-?} runs, $each s"
    else
      failed=$((failed + 1))
      fail "$name: found something; the end of $log (the input's path stands there):"
      tail -n 30 "$log" | sed 's/^/    /' >&2
    fi
  done
  [[ $failed -eq 0 ]]
}
