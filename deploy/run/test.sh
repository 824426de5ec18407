# ./run test: builds everything and runs every check. The last line is "N passed, N failed, N skipped". With --asan: the unit tests
# without torch, under the address and undefined-behaviour sanitizers. With --libtorch: the engine's with that version.
source deploy/run/libtorch.sh
source deploy/run/tools.sh

PASSED=0 FAILED=0 SKIPPED=0
FAILURES=()

count_lines() { grep -cE "$1" "$2" 2>/dev/null || true; }

# suite WHAT COMMAND...: the command prints a line a check: "ok ...", "FAIL ...", "skip ...". A command that fails without a
# FAIL line counts as one failure.
suite() {
  local what=$1 log rc=0 begin=$SECONDS passed failed skipped line
  shift
  mkdir -p "$LOG_DIR"
  log=$LOG_DIR/test-$(tr -cs 'a-zA-Z0-9' '-' <<<"$what").log
  progress_printer "$what" "$log" &
  PRINTER_PID=$!
  "$@" >"$log" 2>&1 </dev/null || rc=$?
  stop_printer
  [[ -t 1 ]] && printf '\r\033[K'
  passed=$(count_lines '^ok ' "$log") failed=$(count_lines '^FAIL ' "$log") skipped=$(count_lines '^skip ' "$log")
  if [[ $rc -ne 0 && $failed -eq 0 ]]; then
    failed=1
    FAILURES+=("$what: status $rc, see $log")
    tail -n 30 "$log" | sed 's/^/    /'
  fi
  while IFS= read -r line; do
    FAILURES+=("${line#FAIL }")
    echo "    $line"
  done < <(grep -E '^FAIL ' "$log")
  grep -E '^skip ' "$log" | sed 's/^/    /' || true
  PASSED=$((PASSED + passed)) FAILED=$((FAILED + failed)) SKIPPED=$((SKIPPED + skipped))
  say "$what: $passed passed, $failed failed, $skipped skipped ($((SECONDS - begin)) s)"
}

# leave_out WHAT WHY
leave_out() {
  SKIPPED=$((SKIPPED + 1))
  say "left out: $1 ($2)"
}

# unit_tests [BUILD_FOLDER [TIMEOUT_SECONDS [PROGRAM...]]]: with programs, only theirs.
unit_tests() {
  local build=${1:-$BUILD_DIR} timeout=${2:-300} only=()
  shift $(($# < 2 ? $# : 2))
  if [[ $# -gt 0 ]]; then only=(--label-regex "^($(tr ' ' '|' <<<"$*"))\$"); fi
  # Engine tests use the cores themselves.
  ctest --test-dir "$build" --output-on-failure --no-tests=error -j "$(nproc)" --timeout "$timeout" "${only[@]}" |
    sed -uE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .*Passed .*/ok \1/
            s/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .*\*\*\*(Failed|Timeout|Exception|Not Run).*/FAIL \1: \2/'
  local rc=${PIPESTATUS[0]}
  # A skipped test's reason stands in ctest's log alone.
  awk '/ Testing: /{name = $3} /: Skipped$/{getline reason; print "skip " name ": " reason}' "$build/Testing/Temporary/LastTest.log"
  return "$rc"
}

ASAN_DIR=$ROOT/build/asan
ASAN_TARGETS=(common_tests wire_tests metrics_tests planner_tests coordinator_tests client_tests daemon_tests lanes_tests fuzz_targets)

configure_and_compile_asan() {
  export CCACHE_BASEDIR=$ROOT
  [[ -e $ASAN_DIR/build.ninja ]] || cmake --preset asan || return
  ninja -C "$ASAN_DIR" -j "$(parallel_jobs)" "${ASAN_TARGETS[@]}"
}

test_asan() {
  setup_packages
  with_lock "$ROOT/build/.lock" \
    compile_step asan 2400 "$ASAN_DIR" "compile the unit tests with sanitizers" configure_and_compile_asan
  suite "unit tests with sanitizers" unit_tests "$ASAN_DIR" 1500
  finish
}

# test_engine VERSION
test_engine() {
  build_rank "$1" "${ENGINE_TESTS[@]}"
  suite "engine with libtorch $1" unit_tests "$(build_folder_of "$1")" 300 "${ENGINE_TESTS[@]}"
}

finish() {
  if [[ $FAILED -gt 0 ]]; then
    say "failures:"
    printf '    %s\n' "${FAILURES[@]}"
  fi
  say "logs: $LOG_DIR; whole time $((SECONDS - STARTED)) s"
  echo "$PASSED passed, $FAILED failed, $SKIPPED skipped"
  [[ $FAILED -eq 0 ]]
}

test_all() {
  local version
  if [[ $# -gt 1 && " $* " == *" --asan "* ]]; then
    fail "test: --asan and --libtorch are tests of their own: one after the other"
    exit $EX_USAGE
  fi
  if [[ ${1:-} == --asan ]]; then
    test_asan
    return
  fi
  if [[ ${1:-} == --libtorch ]]; then
    check_torch_version test "$2"
    test_engine "$2"
    finish
    return
  fi
  build_everything
  setup_tools
  export MOTLEY_BIN=$BIN_DIR
  suite "include rules" tests/integration/check_includes.sh
  suite "floors" python3 tests/integration/check_floors.py
  suite "one name, one type" python3 tests/integration/check_type_names.py
  if [[ -x $CLANG_FORMAT ]]; then
    MOTLEY_CLANG_FORMAT=$CLANG_FORMAT suite "format" tests/integration/check_format.sh
  else
    leave_out "format" "clang-format $CLANG_FORMAT_VERSION could not be fetched"
  fi
  suite "thread safety" python3 tests/integration/check_thread_safety.py "$BUILD_DIR"
  # nccl.h comes with the oracle; the folder has its Python's version.
  suite "declarations of NCCL" tests/integration/check_nccl_header.sh "$ORACLE_DIR"/lib/python3*/site-packages/nvidia/nccl/include \
    "$TORCH_DIR/nvidia/cu13/include" "$CUDA_DIR/nvidia/cu13/include" "$CUDA_DIR/nvidia/cu13/include/cccl"
  suite "declarations of the NCCL of setup --gpu" tests/integration/check_nccl_header.sh "$TORCH_DIR/nvidia/nccl/include" \
    "$TORCH_DIR/nvidia/cu13/include" "$CUDA_DIR/nvidia/cu13/include" "$CUDA_DIR/nvidia/cu13/include/cccl"
  suite "unit tests" unit_tests
  for version in "${TORCH_VERSIONS[@]:1}"; do
    test_engine "$version"
    suite "ranks of libtorch $version" python3 tests/integration/check_libtorch.py "$version"
  done
  if command -v promtool >/dev/null; then
    suite "Prometheus rules" tests/integration/check_rules.sh
  else
    leave_out "Prometheus rules and dashboards" "no promtool, and it could not be fetched"
  fi
  suite "installed tree" tests/integration/check_install.sh
  suite "packages" python3 tests/integration/check_packages.py
  suite "fresh starts" python3 tests/integration/check_starts.py
  suite "command line" python3 tests/integration/check_cli.py
  suite "examples" python3 tests/integration/check_examples.py
  suite "two machines" python3 tests/integration/check_two_machines.py
  suite "faults" python3 tests/integration/check_faults.py
  suite "observability" python3 tests/integration/check_observability.py
  suite "API with grpcurl" python3 tests/integration/check_grpcurl.py
  if [[ -x $MOTLEY_ORACLE_PYTHON ]]; then
    suite "same numbers as PyTorch" "$MOTLEY_ORACLE_PYTHON" tests/oracle/check_plans.py
    suite "same states as PyTorch" "$MOTLEY_ORACLE_PYTHON" tests/oracle/check_states.py
    suite "step records" "$MOTLEY_ORACLE_PYTHON" tests/oracle/check_step_records.py
    suite "bench of cards, without one" python3 tests/integration/check_gpu_bench.py "$MOTLEY_ORACLE_PYTHON" "$TORCH_DIR"
  else
    leave_out "same numbers as PyTorch" "the Python oracle could not be installed"
    leave_out "step records read by TensorBoard" "the Python oracle could not be installed"
    leave_out "bench of cards, without one" "the Python oracle could not be installed"
  fi
  suite "the entry ./run" tests/integration/check_run.sh
  finish
}
