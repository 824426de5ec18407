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
  mapfile -t missing < <(missing_packages "${PACKAGES[@]}")
  [[ ${#missing[@]} -eq 0 ]] && return 0
  if [[ $(id -u) -ne 0 ]]; then
    fail "${#missing[@]} Debian packages are missing and only root may install them. Run this once, then ./run again:"
    echo "    sudo sh -c '$(apt_command "${missing[@]}")'" >&2
    exit $EX_NOPERM
  fi
  long_step packages 60 "install ${#missing[@]} Debian packages" install_packages "${missing[@]}"
}

# fetch_wheels FOLDER PACKAGE...: unpacked there by pip; whole, or not at all. An old torch has no wheel for a new
# Python; none of it is run, so Python's version is no matter.
fetch_wheels() {
  local folder=$1 partial=$1.partial.$$
  shift
  rm -rf "$folder" "$folder".partial.*
  mkdir -p "$partial"
  PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 python3 -m pip install --no-input --no-cache-dir --disable-pip-version-check --no-deps \
    --only-binary=:all: --python-version 3.11 --progress-bar off --target "$partial" "$@" || return
  # Of CUDA only headers and the runtime's libraries are wanted; one of its packages brings a compiler.
  find "$partial/nvidia" -mindepth 2 -maxdepth 2 ! -name include ! -name lib -exec rm -rf {} + || return
  mv "$partial" "$folder"
}

# CUDA 13 has one folder for all that its packages bring, CUDA 12 one for each.
have_in() { compgen -G "$1/nvidia/*/$2" >/dev/null; }
have_torch() { [[ -e $TORCH_DIR/torch/lib/libtorch_cpu.so ]] && have_in "$TORCH_DIR" "lib/libcudart.so.*"; }
have_cuda_headers() { have_in "$CUDA_DIR" include/crt/host_config.h && have_in "$CUDA_DIR" include/nvml.h; }

# What a run that held the lock before us brought is there.
# The wheel is taken for libtorch: its headers and libraries, not its Python.
fetch_torch() { have_torch || fetch_wheels "$TORCH_DIR" "${TORCH_PACKAGES[@]}"; }
fetch_cuda_headers() { have_cuda_headers || fetch_wheels "$CUDA_DIR" "${CUDA_PACKAGES[@]}"; }

# The name of a duration: another version needs other seconds.
duration_of() { if [[ $TORCH_VERSION == "$MAIN_TORCH" ]]; then echo "$1"; else echo "$1-$TORCH_VERSION"; fi; }

setup_torch() {
  have_torch && return 0
  mkdir -p "$MOTLEY_CACHE"
  with_lock "$MOTLEY_CACHE/torch.lock" \
    long_step "$(duration_of torch)" 60 "fetch PyTorch $TORCH_VERSION, $TORCH_MEGABYTES MB" fetch_torch
}

setup_cuda_headers() {
  have_cuda_headers && return 0
  mkdir -p "$MOTLEY_CACHE"
  with_lock "$MOTLEY_CACHE/torch.lock" \
    long_step "$(duration_of cuda-headers)" 10 "fetch CUDA headers, $CUDA_MEGABYTES MB" fetch_cuda_headers
}

setup_all() {
  setup_packages
  setup_torch
  setup_cuda_headers
  say "set up: packages installed, libtorch $TORCH_VERSION in $TORCH_DIR"
}

# 0: there is one.
setup_browser() {
  local missing
  command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null && return 0
  is_debian && grep -qx 'ID=debian' /etc/os-release || return 1
  mapfile -t missing < <(missing_packages "${BROWSER_PACKAGES[@]}")
  if [[ $(id -u) -ne 0 ]]; then
    say "no browser to look at the page with; root may install one: $(apt_command "${missing[@]}")"
    return 1
  fi
  long_step browser 30 "install ${BROWSER_PACKAGES[0]}, 100 MB" install_packages "${missing[@]}"
}

# setup [--libtorch VERSION] [--gpu] [--browser]
setup() {
  local version= gpu= browser=
  while [[ $# -gt 0 ]]; do
    case $1 in
      --gpu) gpu=yes ;;
      --browser) browser=yes ;;
      *) version=$2; shift ;;
    esac
    shift
  done
  if [[ -z $version ]]; then
    setup_all
  else
    source deploy/run/libtorch.sh
    check_torch_version setup "$version"
    setup_libtorch "$version"
  fi
  if [[ -n $browser ]] && ! setup_browser; then
    fail "setup: there is no browser that the page could be tested in"
    exit $EX_UNAVAILABLE
  fi
  if [[ -n $gpu ]]; then source deploy/run/kernels.sh; setup_gpu; setup_kernels; fi
}
