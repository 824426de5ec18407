# ./run build: configure and compile into build/release. Product targets by default; `all` adds tests and benchmarks.
source deploy/run/setup.sh

PRODUCT=(motley motley-coordinator motley-worker motley-rank)
# Measured without a compiler cache on a slow machine of two cores.
PRODUCT_CORE_SECONDS=720 TESTS_CORE_SECONDS=520

# A clone that was copied with its build folder would compile the sources that CMake remembers: those of the original.
disown_copied_build() {
  local folder=$1 home
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$folder/CMakeCache.txt" 2>/dev/null) || true
  if [[ -n $home && ! $home -ef $ROOT ]]; then
    say "$folder was made for $home (a copied clone?): made anew for this one"
    rm -rf "$folder"
  fi
}

# compile_step NAME CORE_SECONDS BUILD_FOLDER WHAT COMMAND...: a long step the first time that a folder is compiled for NAME.
# Later ones compile what changed, or go on after an interruption: how long they take says nothing about the next clone.
compile_step() {
  local name=$1 core_seconds=$2 folder=$3 what=$4
  shift 4
  disown_copied_build "$folder"
  if [[ -e $folder/.begun-$name || ( -e $folder/.ninja_log && ! -e $folder/.begun-product ) ]]; then
    step "$what (what is not up to date)" "$@"
    return
  fi
  mkdir -p "$folder"
  touch "$folder/.begun-$name"
  long_step "compile-$name" "$(seconds_on_cores "$core_seconds")" "$what" "$@"
}

configure_and_compile() {
  local targets=("$@")
  # ccache refuses files with a precompiled header otherwise; base_dir lets clones share their results.
  export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=$ROOT
  # Configuring again is ninja's business (globs with CONFIGURE_DEPENDS), except the first time and for another torch.
  if ! grep -qsF "MOTLEY_TORCH_DIR:PATH=$TORCH_DIR" "$BUILD_DIR/CMakeCache.txt" ||
    ! grep -qsF "MOTLEY_CUDA_DIR:PATH=$CUDA_DIR" "$BUILD_DIR/CMakeCache.txt" || [[ ! -e $BUILD_DIR/build.ninja ]]; then
    cmake --preset release "-DMOTLEY_TORCH_DIR=$TORCH_DIR" "-DMOTLEY_CUDA_DIR=$CUDA_DIR" \
      "-DMOTLEY_RANK_NAME=$(rank_of "$TORCH_VERSION")" -B "$BUILD_DIR" || return
  fi
  ninja -C "$BUILD_DIR" -j "$(parallel_jobs)" "${targets[@]}"
}

# compile NAME CORE_SECONDS WHAT TARGET...
compile() {
  local name=$1 core_seconds=$2 what=$3
  shift 3
  with_lock "$ROOT/build/.lock" compile_step "$name" "$core_seconds" "$BUILD_DIR" "$what" configure_and_compile "$@"
}

build_product() {
  setup_packages
  setup_torch
  setup_cuda_headers
  compile product "$PRODUCT_CORE_SECONDS" "compile" "${PRODUCT[@]}"
  say "built: $BIN_DIR"
  say_old_ranks
}

# A rank of another libtorch is compiled when it is asked for. What it was compiled from may not understand what is new.
say_old_ranks() {
  local version
  for version in "${TORCH_VERSIONS[@]:1}"; do
    if of_other_sources "$version"; then
      say "$(rank_of "$version") is of other sources; ./run setup --libtorch $version makes it anew"
    fi
  done
}

build_everything() {
  setup_packages
  setup_torch
  setup_cuda_headers
  if [[ -e $BUILD_DIR/.begun-product ]]; then
    compile tests "$TESTS_CORE_SECONDS" "compile the tests" all
  else
    compile all $((PRODUCT_CORE_SECONDS + TESTS_CORE_SECONDS)) "compile everything, tests included" all
  fi
}
