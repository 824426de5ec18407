# ./run bench NAME: builds and runs one benchmark of tests/bench: a C++ program, or a script that drives the product. `fuzz` is
# deploy/run/fuzz.sh.
source deploy/run/build.sh

bench_names() { (cd "$ROOT/tests/bench" 2>/dev/null && ls -- *_bench.cc *_bench.py 2>/dev/null | sed 's/_bench\..*$//' | cat - <(echo fuzz) | sort) || true; }

bench() {
  local name=${1:-}
  if [[ -z $name ]]; then
    echo "benchmarks: $(bench_names | tr '\n' ' ')"
    return 0
  fi
  shift
  if [[ $name == fuzz ]]; then
    source deploy/run/fuzz.sh
    fuzz "$@"
    return
  fi
  if [[ -e $ROOT/tests/bench/${name}_bench.py ]]; then
    build_product
    # Unit tests that the benchmark runs with seeds of its own, and a benchmark that it includes.
    if [[ $name == faults ]]; then
      compile faults 600 "compile the tests of corruption and crowds" coordinator_tests common_tests crowd_bench strangers_bench
    fi
    if [[ $name == gpu ]]; then compile gpu 900 "compile the tests of cards and their bench" engine_tests cards_bench; fi
    mkdir -p "$ROOT/build/bench"
    python3 "$ROOT/tests/bench/${name}_bench.py" --bin "$BIN_DIR" --cache "$MOTLEY_CACHE" --work "$(mktemp -d "$ROOT/build/bench/XXXXXX")" "$@"
    return
  fi
  if [[ ! -e $ROOT/tests/bench/${name}_bench.cc ]]; then
    fail "no benchmark '$name'; there are: $(bench_names | tr '\n' ' ')"
    exit $EX_USAGE
  fi
  setup_packages
  setup_torch
  setup_cuda_headers
  compile "bench-$name" 300 "compile ${name}_bench" "${name}_bench"
  "$BIN_DIR/${name}_bench" "$@"
}
