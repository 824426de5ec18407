# What only the tests need: Debian packages, and in the cache folder the Python oracle, promtool and prometheus, grpcurl.
# Each is optional where it cannot be had; the tests then say which checks they leave out.
source deploy/run/setup.sh

TENSORBOARD=tensorboard==2.20.0
# What `motley data` reads packed files with, as pinned in deploy/data.
DATA_READERS=(zstandard==0.25.0 pyarrow==26.0.1)

fetch_oracle() {
  local partial=$ORACLE_DIR.partial.$$
  [[ -d $ORACLE_DIR ]] && return 0
  rm -rf "$ORACLE_DIR".partial.*
  python3 -m venv "$partial" || return
  "$partial/bin/python" -m pip install --no-input --no-cache-dir --disable-pip-version-check --progress-bar off \
    "torch==$MAIN_TORCH" transformers==5.23.0 safetensors numpy "$TENSORBOARD" "${DATA_READERS[@]}" || return
  mv "$partial" "$ORACLE_DIR"
}

# Into an oracle that was installed before this reader of event files was one of its parts.
add_tensorboard() {
  [[ -e $ORACLE_DIR/bin/tensorboard ]] && return 0
  "$ORACLE_DIR/bin/python" -m pip install --no-input --no-cache-dir --disable-pip-version-check --progress-bar off "$TENSORBOARD"
}

# And into one from before `motley data`.
add_data_readers() {
  "$ORACLE_DIR/bin/python" -c 'import pyarrow, zstandard' 2>/dev/null && return 0
  "$ORACLE_DIR/bin/python" -m pip install --no-input --no-cache-dir --disable-pip-version-check --progress-bar off "${DATA_READERS[@]}"
}

# pypi_tool NAME VERSION: into a folder of its own. From PyPI: Debian's has another version for each release.
pypi_tool() {
  [[ -d $TOOLS_DIR/$1-$2 ]] && return 0
  mkdir -p "$MOTLEY_CACHE"
  with_lock "$MOTLEY_CACHE/tools.lock" step "fetch $1 $2" fetch_pypi_tool "$1" "$2" || true
}

fetch_pypi_tool() {
  local folder=$TOOLS_DIR/$1-$2
  [[ -d $folder ]] && return 0
  rm -rf "$folder".partial.*
  python3 -m pip install --no-input --no-cache-dir --disable-pip-version-check --progress-bar off --target "$folder.partial.$$" "$1==$2" || return
  mv "$folder.partial.$$" "$folder"
}

# Versions format differently, so there is one.
CLANG_FORMAT_VERSION=16.0.6
CLANG_FORMAT=$TOOLS_DIR/clang-format-$CLANG_FORMAT_VERSION/clang_format/data/bin/clang-format
PYFLAKES_VERSION=3.4.0
PYFLAKES_DIR=$TOOLS_DIR/pyflakes-$PYFLAKES_VERSION

# NVIDIA's compiler as a library: the newest that still makes code for Pascal and Volta. 90 MB.
NVRTC_VERSION=12.9.86
NVRTC=$TOOLS_DIR/nvidia-cuda-nvrtc-cu12-$NVRTC_VERSION/nvidia/cuda_nvrtc/lib/libnvrtc.so.12

setup_clang_format() { pypi_tool clang-format "$CLANG_FORMAT_VERSION"; }

# Debian's package would start a server on port 9090; only its two programs are wanted.
fetch_prometheus() {
  local folder
  [[ -x $TOOLS_DIR/promtool ]] && return 0
  folder=$(mktemp -d "$MOTLEY_CACHE/prometheus.XXXX") || return
  (cd "$folder" && apt-get download prometheus && dpkg-deb -x prometheus_*.deb .) || return
  mkdir -p "$TOOLS_DIR"
  mv "$folder/usr/bin/prometheus" "$folder/usr/bin/promtool" "$TOOLS_DIR/"
  rm -rf "$folder"
}

fetch_grpcurl() {
  [[ -x $TOOLS_DIR/grpcurl ]] && return 0
  GOBIN=$TOOLS_DIR GOFLAGS=-modcacherw go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.1
}

# A program that came otherwise, a newer Go say, needs no package.
missing_test_packages() {
  local missing=() package
  mapfile -t missing < <(missing_packages "${TEST_PACKAGES[@]}")
  for package in "${missing[@]}"; do
    [[ $package == golang-go ]] && { command -v go || command -v grpcurl || [[ -x $TOOLS_DIR/grpcurl ]]; } >/dev/null || echo "$package"
  done
}

setup_test_packages() {
  local missing=()
  is_debian || return 0
  mapfile -t missing < <(missing_test_packages)
  [[ ${#missing[@]} -eq 0 ]] && return 0
  if [[ $(id -u) -ne 0 ]]; then
    say "checks are left out for want of ${#missing[@]} packages, which only root may install: $(apt_command "${missing[@]}")"
    return 0
  fi
  long_step test-packages 30 "install ${#missing[@]} Debian packages for the tests" install_packages "${missing[@]}" || true
}

setup_tools() {
  local lock=$MOTLEY_CACHE/tools.lock
  mkdir -p "$MOTLEY_CACHE"
  setup_test_packages
  if [[ ! -d $ORACLE_DIR ]]; then
    with_lock "$lock" long_step oracle 120 "install the Python oracle, 4.9 GB" fetch_oracle || true
  fi
  if [[ -d $ORACLE_DIR && ! -e $ORACLE_DIR/bin/tensorboard ]]; then
    with_lock "$lock" step "add TensorBoard to the oracle" add_tensorboard || true
  fi
  if [[ -d $ORACLE_DIR ]] && ! "$ORACLE_DIR/bin/python" -c 'import pyarrow, zstandard' 2>/dev/null; then
    with_lock "$lock" step "add what reads Parquet and zstd to the oracle" add_data_readers || true
  fi
  if ! command -v promtool >/dev/null || ! command -v prometheus >/dev/null; then
    [[ -x $TOOLS_DIR/promtool ]] || with_lock "$lock" step "fetch promtool and prometheus" fetch_prometheus || true
  fi
  if ! command -v grpcurl >/dev/null && [[ ! -x $TOOLS_DIR/grpcurl ]] && command -v go >/dev/null; then
    with_lock "$lock" long_step grpcurl 60 "build grpcurl" fetch_grpcurl || true
  fi
  setup_browser || true   # without one some checks of the page are left out, by name
  setup_clang_format
  pypi_tool pyflakes "$PYFLAKES_VERSION"
  pypi_tool nvidia-cuda-nvrtc-cu12 "$NVRTC_VERSION"
  export PATH=$PATH:$TOOLS_DIR
  export MOTLEY_ORACLE_PYTHON=$ORACLE_DIR/bin/python
}
