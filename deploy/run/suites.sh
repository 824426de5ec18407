# What ./run test runs: a line a suite. Suites that mostly wait for processes run beside those that compute, each kind one after the
# other; so each looks at its own things alone.
# suite NAME QUEUE NEEDS TITLE COMMAND...
#   QUEUE: compute, wait; long: by `./run test --long`, and by name
#   NEEDS: what is built before (a target, all, or - for nothing), then what it cannot do without (a tool of why_left_out)
source deploy/run/libtorch.sh
source deploy/run/tools.sh

SUITES=()
declare -A SUITE_QUEUE SUITE_NEEDS SUITE_TITLE SUITE_COMMAND

suite() {
  local name=$1
  SUITES+=("$name")
  SUITE_QUEUE[$name]=$2 SUITE_NEEDS[$name]=$3 SUITE_TITLE[$name]=$4
  shift 4
  SUITE_COMMAND[$name]=${*@Q}
}

# The long ones first: the short ones fill the cores at the end.
UNIT_PROGRAMS=(engine_tests lanes_tests kernels_tests coordinator_tests planner_tests client_tests daemon_tests files_tests tls_tests wire_tests
  common_tests metrics_tests records_tests)
# What another libtorch may change: operators, units, what is measured of them; and a dozen plans.
TORCH_FOLDERS=(worker/engine/operators worker/engine/model worker/engine/profiler)
TORCH_PLANS='Plans/EquivalenceTest.*/Hosts0:Plans/HalfEquivalenceTest.*/Hosts0:Plans/TensorParallelHalfEquivalenceTest.*/Hosts0'

run_units() { python3 tests/integration/run_units.py "$@"; }

# unit_programs FOLDER PROGRAM...: of a build folder.
unit_programs() {
  local folder=$1
  shift
  run_units ${MOTLEY_TEST_FILTER:+--filter "*$MOTLEY_TEST_FILTER*"} "${@/#/$folder/bin/}"
}

# all_plans FOLDER: every random plan of the tests. docs/use/training-semantics.md
all_plans() {
  MOTLEY_ALL_PLANS=1 run_units --filter '*EquivalenceTest.*:*MeasuredMemoryTest.*:*OffloadOnDevicesTest.*:MemoryCapsTest.*' "$1/bin/engine_tests"
}

# Plans that no run has seen before.
new_plans() {
  local seed
  seed=$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')
  if "$BIN_DIR/equivalence_bench" --plans 100 --seed "$seed"; then
    echo "ok 100 plans of seed $seed"
  else
    echo "FAIL 100 plans of seed $seed: ./run bench equivalence --plans 100 --seed $seed"
  fi
}

# second_engine VERSION
second_engine() {
  local folder
  folder=$(build_folder_of "$1")
  run_units "${TORCH_FOLDERS[@]/#/--folder=}" --filter "$TORCH_PLANS" "$folder/bin/engine_tests" &&
    python3 tests/integration/check_libtorch.py "$1"
}

# nccl_header FOLDER: NVIDIA's header there against ours.
nccl_header() {
  tests/integration/check_header.sh NCCL tests/worker/engine/nccl/nccl_header_check.cc "$1/nccl.h" \
    "$TORCH_DIR/nvidia/cu13/include" "$CUDA_DIR/nvidia/cu13/include" "$CUDA_DIR/nvidia/cu13/include/cccl"
}

# What the oracle's packages bring; its Python's version is in the folder's name.
oracles_nvidia() { echo "$ORACLE_DIR"/lib/python3*/site-packages/nvidia; }
oracles_nccl_header() { nccl_header "$(oracles_nvidia)/nccl/include"; }
driver_header() {
  tests/integration/check_header.sh "CUDA's driver" tests/worker/engine/kernels/driver_header_check.cc "$(oracles_nvidia)/cu13/include/cuda.h"
}

corpora() {
  local program name
  for program in "$1"/bin/*_fuzz; do
    name=$(basename "$program" _fuzz)
    if "$program" "$ROOT/tests/fuzz/corpus/$name"; then echo "ok Fuzz.$name"; else echo "FAIL Fuzz.$name: status $?"; fi
  done
}

declare_suites() {
  local version program check=tests/integration oracle=$ORACLE_DIR/bin/python
  suite includes compute - "include rules" $check/check_includes.sh
  suite floors compute - "floors" python3 $check/check_floors.py
  suite links compute - "links" python3 $check/check_links.py
  suite types compute - "one name, one type" python3 $check/check_type_names.py
  suite run-units compute - "how unit tests are run" python3 $check/check_run_units.py
  suite presets compute - "clusters that CMake embeds" python3 $check/check_presets.py
  suite kernel-faults compute - "faults that are planted into kernels" python3 $check/check_kernel_faults.py
  suite kernels compute "compile_kernels nvrtc" "kernels compile for every card" python3 $check/check_kernels.py "$BIN_DIR/compile_kernels" "$NVRTC"
  suite format compute "- clang-format" "format" env "MOTLEY_CLANG_FORMAT=$CLANG_FORMAT" $check/check_format.sh
  suite python compute "- pyflakes" "names in Python" env "MOTLEY_PYFLAKES=$PYFLAKES_DIR" python3 $check/check_python.py
  suite threads compute all "thread safety" python3 $check/check_thread_safety.py "$BUILD_DIR"
  suite nccl compute "- oracle" "declarations of NCCL" oracles_nccl_header
  suite driver compute "- oracle" "declarations of CUDA's driver" driver_header
  suite nccl-gpu compute - "declarations of the NCCL of setup --gpu" nccl_header "$TORCH_DIR/nvidia/nccl/include"
  suite units compute all "unit tests" unit_programs "$BUILD_DIR" "${UNIT_PROGRAMS[@]}"
  suite corpora compute fuzz_targets "inputs that fuzzing found" corpora "$BUILD_DIR"
  for version in "${TORCH_VERSIONS[@]:1}"; do
    suite "libtorch-$version" compute "all" "engine with libtorch $version, and ranks of both" second_engine "$version"
  done
  suite parts compute all "no part of a lab plans faster than it" "$BIN_DIR/parts_bench" --labs 10 --large 0 --seed 2 --check yes
  suite prometheus compute "- promtool" "Prometheus rules" $check/check_rules.sh
  suite install compute all "installed tree" $check/check_install.sh
  suite oracle compute "all oracle" "same numbers as PyTorch" "$oracle" tests/oracle/check_plans.py

  suite faults wait all "faults" python3 $check/check_faults.py
  suite examples wait all "examples" python3 $check/check_examples.py
  suite two-machines wait all "two machines" python3 $check/check_two_machines.py
  suite local-storage wait all "checkpoints on the nodes' own disks" python3 $check/check_local_storage.py
  suite inputs wait all "data from the machine that submits" python3 $check/check_inputs.py
  suite observability wait all "observability" python3 $check/check_observability.py
  suite starts wait all "fresh starts" python3 $check/check_starts.py
  suite packages wait all "packages" python3 $check/check_packages.py
  suite cli wait all "command line" python3 $check/check_cli.py
  suite coldstart wait all "bench of steps that others measured" python3 $check/check_coldstart.py
  suite questions wait all "the questions of how-do-i-ask" python3 $check/check_questions.py
  suite grpcurl wait all "API with grpcurl" python3 $check/check_grpcurl.py
  suite page wait all "the page in a browser" python3 $check/check_page.py
  suite run wait all "the entry ./run" $check/check_run.sh

  # These compute; the queue of those that wait is done sooner.
  suite rows wait "all oracle" "packed rows as PyTorch" "$oracle" tests/oracle/check_rows.py
  suite row-plans wait "all oracle" "random plans on packed rows as PyTorch" "$oracle" tests/oracle/check_row_plans.py
  suite tokenizer wait "all oracle" "tokenizer of bytes" "$oracle" tests/oracle/check_tokenizer.py
  suite data wait "- oracle" "tokens of text and chats" "$oracle" -B tests/data/check_data.py
  suite states wait "all oracle" "same states as PyTorch" "$oracle" tests/oracle/check_states.py
  suite records wait "all oracle" "step records" "$oracle" tests/oracle/check_step_records.py
  suite gpu-bench wait "all oracle" "bench of cards, without one" python3 $check/check_gpu_bench.py "$oracle" "$TORCH_DIR"
  suite weights wait "all oracle" "from HuggingFace folders and back" "$oracle" tests/oracle/check_weights.py

  suite page-long long all "a curve of 100,000 steps over ten kills" python3 tests/bench/page_bench.py --bin "$BIN_DIR" --only long
  suite faults-long long all "faults at length" python3 $check/check_faults.py --long
  suite oracle-long long "all oracle" "all plans by hand as PyTorch" "$oracle" tests/oracle/check_plans.py --long
  suite rows-long long "all oracle" "24 random plans on packed rows as PyTorch" "$oracle" tests/oracle/check_row_plans.py --long
  suite weights-long long "all oracle" "from every HuggingFace folder and back" "$oracle" tests/oracle/check_weights.py --long
  suite examples-long long "all oracle" "the example fine-tune, whole" python3 $check/check_examples.py --long
  suite data-long long "- oracle" "tokens of text and chats at length" "$oracle" -B tests/data/check_data.py --long
  suite plans-long long all "all random plans" all_plans "$BUILD_DIR"
  for version in "${TORCH_VERSIONS[@]:1}"; do
    suite "plans-long-$version" long all "all random plans with libtorch $version" all_plans "$(build_folder_of "$version")"
    suite "engine-long-$version" long all "engine with libtorch $version" unit_programs "$(build_folder_of "$version")" engine_tests
  done
  suite new-plans-long long equivalence_bench "plans of a new seed" new_plans
}

# declare_programs: each program of unit tests, by name alone.
declare_programs() {
  local program
  for program in "${UNIT_PROGRAMS[@]}"; do
    suite "$program" name "$program" "$program" unit_programs "$BUILD_DIR" "$program"
  done
}

# why_left_out TOOL: nothing where it is here.
why_left_out() {
  case $1 in
    clang-format) [[ -x $CLANG_FORMAT ]] || echo "clang-format $CLANG_FORMAT_VERSION could not be fetched" ;;
    pyflakes) [[ -d $PYFLAKES_DIR ]] || echo "pyflakes $PYFLAKES_VERSION could not be fetched" ;;
    nvrtc) [[ -e $NVRTC ]] || echo "NVRTC $NVRTC_VERSION could not be fetched" ;;
    oracle) [[ -x $ORACLE_DIR/bin/python ]] || echo "the Python oracle could not be installed" ;;
    promtool) command -v promtool >/dev/null || echo "no promtool, and it could not be fetched" ;;
  esac
}
