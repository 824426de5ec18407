# ./run build: configure and compile into build/release. Product targets by default; `all` adds tests and benchmarks.
source deploy/run/setup.sh

PRODUCT=(motley motley-coordinator motley-worker motley-rank)

configure_and_compile() {
  local targets=("$@")
  # ccache refuses files with a precompiled header otherwise; base_dir lets clones share their results.
  export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=$ROOT
  # Configuring again is ninja's business (globs with CONFIGURE_DEPENDS), except the first time and for another torch.
  if ! grep -qsF "MOTLEY_TORCH_DIR:PATH=$TORCH_DIR" "$BUILD_DIR/CMakeCache.txt" || [[ ! -e $BUILD_DIR/build.ninja ]]; then
    cmake --preset release "-DMOTLEY_TORCH_DIR=$TORCH_DIR" || return
  fi
  ninja -C "$BUILD_DIR" -j "$(parallel_jobs)" "${targets[@]}"
}

compile() {
  local what=$1
  shift
  with_lock "$ROOT/build/.lock" step "$what" configure_and_compile "$@"
}

build_product() {
  setup_packages
  setup_torch
  compile "compile (the first time about 8 min on two cores)" "${PRODUCT[@]}"
  say "built: $BIN_DIR"
}

build_everything() {
  setup_packages
  setup_torch
  compile "compile everything, tests included (the first time about 15 min on two cores)" all
}
