# ./run setup: Debian packages and the PyTorch wheel. Does only what is missing; safe to run twice at once.
source deploy/run/packages.sh
source deploy/run/durations.sh

install_packages() {
  export DEBIAN_FRONTEND=noninteractive
  # Another apt (of a second ./run, say) is waited for.
  apt-get -o DPkg::Lock::Timeout=900 -o Acquire::Retries=3 update || return
  apt-get -o DPkg::Lock::Timeout=900 -o Acquire::Retries=3 install -y --no-install-recommends "$@"
}

setup_packages() {
  local missing
  if ! is_debian; then
    fail "this is no Debian or Ubuntu: install the equivalents of these packages yourself: ${PACKAGES[*]}"
    exit $EX_UNAVAILABLE
  fi
  mapfile -t missing < <(missing_packages)
  [[ ${#missing[@]} -eq 0 ]] && return 0
  if [[ $(id -u) -ne 0 ]]; then
    fail "${#missing[@]} Debian packages are missing and only root may install them. Run this once, then ./run again:"
    echo "    sudo sh -c '$(apt_command "${missing[@]}")'" >&2
    exit $EX_NOPERM
  fi
  long_step packages 60 "install ${#missing[@]} Debian packages" install_packages "${missing[@]}"
}

have_torch() { [[ -e $TORCH_DIR/torch/lib/libtorch_cpu.so && -d $TORCH_DIR/nvidia/cu13/lib ]]; }

# The wheel is taken for libtorch: its headers and libraries, not its Python. libtorch_cpu.so asks for the two CUDA runtime
# libraries even where there is no GPU.
fetch_torch() {
  local partial=$TORCH_DIR.partial.$$
  have_torch && return 0   # a run that held the lock before us brought it
  rm -rf "$TORCH_DIR" "$TORCH_DIR".partial.*
  mkdir -p "$partial"
  PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 python3 -m pip install --no-input --no-cache-dir --disable-pip-version-check --no-deps \
    --progress-bar off --target "$partial" "torch==$TORCH_VERSION" nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85 || return
  test -e "$partial/torch/lib/libtorch_cpu.so" || return
  mv "$partial" "$TORCH_DIR"
}

setup_torch() {
  have_torch && return 0
  mkdir -p "$MOTLEY_CACHE"
  with_lock "$MOTLEY_CACHE/torch.lock" long_step torch 60 "fetch PyTorch $TORCH_VERSION, 545 MB" fetch_torch
}

have_cuda_headers() { [[ -e $CUDA_DIR/nvidia/cu13/include/crt/host_config.h && -e $CUDA_DIR/nvidia/cu13/include/nvml.h ]]; }

fetch_cuda_headers() {
  local partial=$CUDA_DIR.partial.$$
  have_cuda_headers && return 0
  rm -rf "$CUDA_DIR" "$CUDA_DIR".partial.*
  mkdir -p "$partial"
  PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 python3 -m pip install --no-input --no-cache-dir --disable-pip-version-check --no-deps \
    --progress-bar off --target "$partial" nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85 nvidia-nvml-dev==13.0.87 || return
  mv "$partial" "$CUDA_DIR"
}

setup_cuda_headers() {
  have_cuda_headers && return 0
  mkdir -p "$MOTLEY_CACHE"
  with_lock "$MOTLEY_CACHE/torch.lock" long_step cuda-headers 10 "fetch CUDA headers, 4 MB" fetch_cuda_headers
}

setup_all() {
  setup_packages
  setup_torch
  setup_cuda_headers
  say "set up: packages installed, libtorch $TORCH_VERSION in $TORCH_DIR"
}
