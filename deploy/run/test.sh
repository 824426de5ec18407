# ./run test: builds everything and runs every suite (deploy/run/suites.sh), in two queues side by side. The last line is
# "N passed, N failed, N skipped". By name: one suite, or one test of it; --long: what no day has time for; --asan: the unit tests
# without torch, under the address and undefined-behaviour sanitizers; --libtorch: the engine's with that version.
source deploy/run/suites.sh

RESULTS=$LOG_DIR/results
# No test fails by how long something took; a wait gives up later where two queues share the cores, and later yet on CI's machine.
export MOTLEY_PATIENCE=${MOTLEY_PATIENCE:-$([[ -n ${CI:-} ]] && echo 5 || echo 3)}

count_lines() { grep -cE "$1" "$2" 2>/dev/null || true; }

# run_suite NAME: the command prints a line a check: "ok ...", "FAIL ...", "skip ...". A command that fails without a FAIL line
# counts as one failure, and so does one that checks nothing. What came out is in $RESULTS/NAME; failures besides in NAME.failures.
run_suite() {
  local name=$1 log=$LOG_DIR/test-$1.log rc=0 begin=$SECONDS why tool passed failed skipped
  tool=${SUITE_NEEDS[$name]#* }
  if [[ $tool != "${SUITE_NEEDS[$name]}" ]] && why=$(why_left_out "$tool") && [[ -n $why ]]; then
    echo "0 0 1" >"$RESULTS/$name"
    say "left out: ${SUITE_TITLE[$name]} ($why)"
    return
  fi
  echo "$begin" >"$RESULTS/$name.running"
  eval "${SUITE_COMMAND[$name]}" >"$log" 2>&1 </dev/null || rc=$?
  rm -f "$RESULTS/$name.running"
  passed=$(count_lines '^ok ' "$log") failed=$(count_lines '^FAIL ' "$log") skipped=$(count_lines '^skip ' "$log")
  grep -E '^FAIL ' "$log" | sed 's/^FAIL //' >"$RESULTS/$name.failures" || true
  if [[ $failed -eq 0 && ( $rc -ne 0 || $((passed + skipped)) -eq 0 ) ]]; then
    failed=1
    echo "${SUITE_TITLE[$name]}: status $rc, see $log" >"$RESULTS/$name.failures"
    tail -n 30 "$log" | sed 's/^/    /'
  fi
  grep -E '^(FAIL|skip) ' "$log" | sed 's/^/    /' || true
  echo "$passed $failed $skipped" >"$RESULTS/$name"
  say "${SUITE_TITLE[$name]}: $passed passed, $failed failed, $skipped skipped ($((SECONDS - begin)) s)"
}

# run_queue QUEUE: its suites one after the other.
run_queue() {
  local name
  trap - EXIT
  # What waits is quick when its turn comes; what computes takes what is left.
  if [[ $1 == compute ]]; then renice -n 10 -p "$BASHPID" >/dev/null; fi
  for name in "${SUITES[@]}"; do
    if [[ ${SUITE_QUEUE[$name]} == "$1" ]]; then run_suite "$name"; fi
  done
}

# Says what runs, with its log's last line: each second on a terminal, else every minute.
say_what_runs() {
  local every=60 running name line
  trap 'kill $! 2>/dev/null; exit 0' TERM
  if [[ -t 1 ]]; then every=1; fi
  while true; do
    sleep "$every" & wait $!
    line=
    for running in "$RESULTS"/*.running; do
      [[ -e $running ]] || continue
      name=$(basename "$running" .running)
      line+="  ${SUITE_TITLE[$name]} $((SECONDS - $(<"$running"))) s: $(tail -c 300 "$LOG_DIR/test-$name.log" 2>/dev/null |
        tr '\r' '\n' | grep -av '^[[:space:]]*$' | tail -n 1 | cut -c 1-45 || true);"
    done
    if [[ -t 1 ]]; then printf '\r\033[K%5d s%s' $((SECONDS - STARTED)) "$line"; else say "$line"; fi
  done
}

# run_queues QUEUE...: side by side. Interrupted, all that runs in them ends.
run_queues() {
  local queue pids=()
  mkdir -p "$RESULTS"
  rm -f "$RESULTS"/*
  # Bash has words of its own for a printer that is ended before its first wait.
  say_what_runs 2>/dev/null &
  PRINTER_PID=$!
  set -m   # a process group for each
  for queue; do
    run_queue "$queue" &
    pids+=($!)
  done
  set +m
  trap 'stop_printer; for pid in '"${pids[*]}"'; do kill -TERM -- "-$pid" 2>/dev/null; done; exit 130' INT TERM
  wait "${pids[@]}" || true
  trap - INT TERM
  stop_printer
  [[ -t 1 ]] && printf '\r\033[K'
  finish "$@"
}

# finish QUEUE...: a suite without a result did not run.
finish() {
  local name all_passed=0 all_failed=0 all_skipped=0 passed failed skipped
  for name in "${SUITES[@]}"; do
    [[ " $* " == *" ${SUITE_QUEUE[$name]} "* ]] || continue
    if ! read -r passed failed skipped 2>/dev/null <"$RESULTS/$name"; then
      passed=0 failed=1 skipped=0
      echo "${SUITE_TITLE[$name]}: it did not run to its end" >"$RESULTS/$name.failures"
    fi
    all_passed=$((all_passed + passed)) all_failed=$((all_failed + failed)) all_skipped=$((all_skipped + skipped))
  done
  if [[ $all_failed -gt 0 ]]; then
    say "failures:"
    cat "$RESULTS"/*.failures | sed 's/^/    /'
  fi
  say "logs: $LOG_DIR; whole time $((SECONDS - STARTED)) s"
  echo "$all_passed passed, $all_failed failed, $all_skipped skipped"
  [[ $all_failed -eq 0 ]]
}

# only NAME: nothing else is run.
only() {
  local name=$1
  SUITE_QUEUE[$name]=asked
  run_queues asked
}

ASAN_DIR=$ROOT/build/asan
ASAN_PROGRAMS=(coordinator_tests planner_tests client_tests daemon_tests files_tests lanes_tests kernels_tests wire_tests common_tests metrics_tests)

configure_and_compile_asan() {
  export CCACHE_BASEDIR=$ROOT
  [[ -e $ASAN_DIR/build.ninja ]] || cmake --preset asan || return
  ninja -C "$ASAN_DIR" -j "$(parallel_jobs)" "${ASAN_PROGRAMS[@]}" fuzz_targets
}

test_asan() {
  setup_packages
  with_lock "$ROOT/build/.lock" \
    compile_step asan 2400 "$ASAN_DIR" "compile the unit tests with sanitizers" configure_and_compile_asan
  suite asan asked - "unit tests with sanitizers" unit_programs "$ASAN_DIR" "${ASAN_PROGRAMS[@]}"
  suite asan-corpora asked - "inputs that fuzzing found, with sanitizers" corpora "$ASAN_DIR"
  run_queues asked
}

# test_engine VERSION
test_engine() {
  build_rank "$1" engine_tests lanes_tests
  suite engine asked - "engine with libtorch $1" unit_programs "$(build_folder_of "$1")" engine_tests lanes_tests
  run_queues asked
}

# test_one NAME [FILTER]
test_one() {
  local name=$1 target
  declare_programs
  if [[ -z ${SUITE_TITLE[$name]:-} ]]; then
    fail "test: no suite '$name'$(did_you_mean "$name" "${SUITES[@]}"); there are: ${SUITES[*]}"
    exit $EX_USAGE
  fi
  export MOTLEY_TEST_FILTER=${2:-}
  target=${SUITE_NEEDS[$name]%% *}
  case $target in
    -) ;;
    all) build_for_tests ;;
    *) build_target "$target" ;;
  esac
  if [[ ${SUITE_NEEDS[$name]} =~ all|' ' ]]; then setup_tools; fi
  export MOTLEY_BIN=$BIN_DIR
  only "$name"
}

build_target() {
  setup_packages
  setup_torch
  setup_cuda_headers
  compile "$1" "$TESTS_CORE_SECONDS" "compile $1" "$1"
}

build_for_tests() {
  local version
  build_everything
  for version in "${TORCH_VERSIONS[@]:1}"; do build_rank "$version" engine_tests; done
}

test_all() {
  local flag=${1:-}
  if [[ $# -gt 1 && " $* " == *" --"*" --"* ]]; then
    fail "test: ${*}: each is a test of its own: one after the other"
    exit $EX_USAGE
  fi
  case $flag in
    --asan) test_asan ; return ;;
    --libtorch) check_torch_version test "$2"; test_engine "$2"; return ;;
  esac
  declare_suites
  if [[ -n $flag && $flag != --long ]]; then
    test_one "$@"
    return
  fi
  build_for_tests
  setup_tools
  export MOTLEY_BIN=$BIN_DIR
  if [[ $flag == --long ]]; then run_queues long; else run_queues compute wait; fi
}
