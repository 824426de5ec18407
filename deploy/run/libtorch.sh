# The rank of another libtorch, beside motley-rank: ./run setup --libtorch VERSION makes it, ./run test --libtorch VERSION runs
# the engine's tests with it. Its build folder has what the engine needs, and nothing else is compiled there.
source deploy/run/build.sh

# The tests that a version of libtorch may change. Lanes know no torch, but carry the engine.
ENGINE_TESTS=(engine_tests lanes_tests)
# Measured after a first build: the compiler cache then has all that knows no torch.
RANK_CORE_SECONDS=80 ENGINE_TESTS_CORE_SECONDS=110

# build_rank VERSION [TARGET...]: the rank, and these besides; it is seen among the other programs, where workers look for ranks.
build_rank() {
  local "${TORCH_VARIABLES[@]}" program name seconds=$RANK_CORE_SECONDS
  use_torch "$1"
  shift
  program=$(rank_of "$TORCH_VERSION") name=$program
  if [[ $# -gt 0 ]]; then
    name+=-tests seconds=$((seconds + ENGINE_TESTS_CORE_SECONDS))
  fi
  setup_packages
  setup_torch
  setup_cuda_headers
  compile "$name" "$seconds" "compile the engine with libtorch $TORCH_VERSION" motley-rank "$@"
  if [[ $BIN_DIR != "$BUILD_DIR/bin" ]]; then
    mkdir -p "$BIN_DIR"
    ln -sfn "../../${BUILD_DIR##*/}/bin/$program" "$BIN_DIR/$program"
  fi
}

# setup_libtorch VERSION
setup_libtorch() {
  build_rank "$1"
  say "set up: $("$BIN_DIR/$(rank_of "$1")" --version)"
}

# torch_folder_of VERSION
torch_folder_of() {
  local "${TORCH_VARIABLES[@]}"
  use_torch "$1"
  echo "$TORCH_DIR"
}

# build_folder_of VERSION
build_folder_of() {
  local "${TORCH_VARIABLES[@]}"
  use_torch "$1"
  echo "$BUILD_DIR"
}
