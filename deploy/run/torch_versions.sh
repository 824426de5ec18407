# The versions of libtorch that the engine is built with. The first is that of motley-rank; each other one is for cards that the
# first has no kernels for, and its rank is called motley-rank-VERSION.

TORCH_VERSIONS=(2.11.0 2.7.1)
MAIN_TORCH=${TORCH_VERSIONS[0]}

# What use_torch sets: declared local, a function has another version for itself and for all that it calls.
TORCH_VARIABLES=(TORCH_VERSION TORCH_KERNELS TORCH_MEGABYTES TORCH_PACKAGES TORCH_DIR
                 CUDA_MEGABYTES CUDA_PACKAGES CUDA_DIR BUILD_DIR)

# use_torch VERSION: its row. Packages of TORCH_DIR: the wheel and the two CUDA runtime libraries that libtorch_cpu.so asks for
# even where there is no GPU. Packages of CUDA_DIR: headers that the wheel lacks. The product includes crt's alone, which CUDA 12
# has in the compiler's package; with the others tests compare our own declarations.
use_torch() {
  local cuda
  TORCH_VERSION=$1
  case $1 in
    2.11.0)
      cuda=13.0 TORCH_KERNELS="sm_75 to sm_120" TORCH_MEGABYTES=545 CUDA_MEGABYTES=4
      TORCH_PACKAGES=(torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
      CUDA_PACKAGES=(nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85 nvidia-nvml-dev==13.0.87) ;;
    2.7.1)
      cuda=12.6 TORCH_KERNELS="sm_50 to sm_90" TORCH_MEGABYTES=831 CUDA_MEGABYTES=24
      TORCH_PACKAGES=(torch==2.7.1 nvidia-cuda-runtime-cu12==12.6.77 nvidia-cuda-cupti-cu12==12.6.80)
      CUDA_PACKAGES=(nvidia-cuda-nvcc-cu12==12.6.85 nvidia-cuda-cccl-cu12==12.6.77 nvidia-nvml-dev-cu12==12.6.77) ;;
    *) fail "libtorch $1 has no row in deploy/run/torch_versions.sh"; return 1 ;;
  esac
  TORCH_DIR=$MOTLEY_CACHE/torch-$1
  CUDA_DIR=$MOTLEY_CACHE/cuda-headers-$cuda
  BUILD_DIR=$ROOT/build/release
  if [[ $1 != "$MAIN_TORCH" ]]; then BUILD_DIR+=-$1; fi
}

# For --help: which version is for which cards.
torch_table() {
  local "${TORCH_VARIABLES[@]}" version
  printf '\n'
  for version in "${TORCH_VERSIONS[@]}"; do
    use_torch "$version"
    printf '%26s  kernels for %s; %s MB to download; %s\n' "$version" "$TORCH_KERNELS" \
      $((TORCH_MEGABYTES + CUDA_MEGABYTES)) "$(rank_of "$version")"
  done
}

# rank_of VERSION: the program's name.
rank_of() { if [[ $1 == "$MAIN_TORCH" ]]; then echo motley-rank; else echo "motley-rank-$1"; fi; }

# of_other_sources VERSION: the rank is there, and was compiled from another commit than motley-rank.
of_other_sources() {
  local own main
  [[ -x $BIN_DIR/$(rank_of "$1") && -x $BIN_DIR/motley-rank ]] || return 1
  own=$("$BIN_DIR/$(rank_of "$1")" --version) main=$("$BIN_DIR/motley-rank" --version)
  own=${own#* } main=${main#* }
  [[ ${own%, libtorch*} != "${main%, libtorch*}" ]]
}

# check_torch_version COMMAND VERSION: exits when there is no such row.
check_torch_version() {
  [[ " ${TORCH_VERSIONS[*]} " == *" $2 "* ]] && return 0
  fail "$1: no libtorch '$2'$(did_you_mean "$2" "${TORCH_VERSIONS[@]}"); the known versions are: ${TORCH_VERSIONS[*]}"
  exit $EX_USAGE
}

use_torch "$MAIN_TORCH"
