# What check_run.sh asks of libtorches: of a second one's rank, of what setup fetches, and of what the tables say of it. Of $root,
# with files of its own in $folder.

unknown_libtorch() {
  local command
  for command in setup test; do
    PATH=$(fakes):$PATH status_is 64 "$root/run" "$command" --libtorch 2.7 && says "no libtorch '2.7'; did you mean '2.7.1'" &&
      says "the known versions are: 2.11.0 2.7.1" && ! says "was called" || { echo "$command"; return 1; }
    status_is 64 "$root/run" "$command" --libtorch && says "needs a value" || { echo "$command without a value"; return 1; }
  done
  PATH=$(fakes):$PATH status_is 64 "$root/run" test --libtorch 2.7.1 --asan && says "one after the other" && ! says "was called"
}

# A build folder of its own for the second rank, which is seen beside the first; neither build touches the other's.
second_rank() {
  local clone=$folder/second second=$folder/second/build/release/bin/motley-rank-2.7.1
  clone_to "$clone"
  echo one >"$clone/commit"
  build_in "$clone" setup --libtorch 2.7.1 && says "set up: motley-rank 0.1.0, commit one, protocol motley.v1, libtorch 2.7.1" &&
    grep -q "^MOTLEY_TORCH_DIR:PATH=.*/torch-2.7.1$" "$clone/build/release-2.7.1/CMakeCache.txt" &&
    grep -q "^MOTLEY_CUDA_DIR:PATH=.*/cuda-headers-12.6$" "$clone/build/release-2.7.1/CMakeCache.txt" &&
    [[ ! -e $clone/build/release/build.ninja ]] && build_in "$clone" && ! says "other sources" &&
    grep -q "^MOTLEY_TORCH_DIR:PATH=.*/torch-2.11.0$" "$clone/build/release/CMakeCache.txt" &&
    [[ $(wc -l <"$clone/build/release-2.7.1/.ninja_log") -eq 1 ]] && prints "libtorch 2.7.1" "$second" --version &&
    mv "$clone" "$clone.moved" && prints "libtorch 2.7.1" "${second/second/second.moved}" --version
}

# Only what was asked for is compiled; a rank that stays behind is named, by the build and by the doctor.
old_second_rank() {
  local clone=$folder/old
  clone_to "$clone"
  echo one >"$clone/commit"
  build_in "$clone" setup --libtorch 2.7.1 && echo two >"$clone/commit" && build_in "$clone" &&
    says "motley-rank-2.7.1 is of other sources; ./run setup --libtorch 2.7.1 makes it anew" &&
    build_in "$clone" doctor && says "without  a rank of libtorch 2.7.1 from the sources of motley-rank" &&
    build_in "$clone" setup --libtorch 2.7.1 && build_in "$clone" && ! says "other sources" &&
    build_in "$clone" doctor && says "ok       libtorch 2.7.1 in $folder/cache/torch-2.7.1"
}

# A pip that brings a file of each package, of any Python's wheel; what it brings beside headers and libraries is not kept.
fetched_wheels() {
  local clone=$folder/fetched cache=$folder/fetched-cache headers=$folder/fetched-cache/cuda-headers-12.6/nvidia/cuda_nvcc
  local fakes=$folder/pip:$folder/compilers asked=$folder/pip/asked
  clone_to "$clone"
  mkdir -p "$folder/pip"
  cat >"$folder/pip/python3" <<'TEXT'
#!/bin/sh
echo "$*" >>"$(dirname "$0")/asked"
while [ "$1" != --target ]; do shift; done
case "$*" in
  *torch==*) mkdir -p "$2/torch/lib" "$2/nvidia/cuda_runtime/lib" &&
     touch "$2/torch/lib/libtorch_cpu.so" "$2/nvidia/cuda_runtime/lib/libcudart.so.12" ;;
  *) mkdir -p "$2/nvidia/cuda_nvcc/include/crt" "$2/nvidia/cuda_nvcc/bin" "$2/nvidia/nvml_dev/include" &&
     touch "$2/nvidia/cuda_nvcc/include/crt/host_config.h" "$2/nvidia/nvml_dev/include/nvml.h" "$2/nvidia/cuda_nvcc/bin/nvcc" ;;
esac
TEXT
  chmod +x "$folder/pip/python3"
  build_in "$clone" &&   # for the compilers
    PATH=$fakes:$PATH MOTLEY_CACHE=$cache status_is 0 "$clone/run" setup --libtorch 2.7.1 &&
    says "fetch PyTorch 2.7.1, 831 MB" && [[ $(wc -l <"$asked") -eq 2 ]] &&
    grep -q -- "--python-version 3.11 .* torch==2.7.1 nvidia-cuda-runtime-cu12==12.6.77 nvidia-cuda-cupti-cu12" "$asked" &&
    [[ -e $headers/include/crt/host_config.h && ! -e $headers/bin ]] &&
    PATH=$fakes:$PATH MOTLEY_CACHE=$cache status_is 0 "$clone/run" setup --libtorch 2.7.1 && ! says "fetch" &&
    status_is 0 env MOTLEY_CACHE="$cache" "$clone/run" clean --cache && [[ ! -e $cache && ! -e $clone/build ]]
}

# With a pip that writes a library of each package: what is asked for, that it comes beside the wheel, and that it is asked once.
setup_gpu_brings_libraries() {
  local cache=$folder/gpu-cache
  mkdir -p "$cache/torch-2.11.0/torch/lib" "$cache/torch-2.11.0/nvidia/cu13/lib" "$folder/pip"
  touch "$cache/torch-2.11.0/torch/lib/libtorch_cuda.so" "$cache/torch-2.11.0/nvidia/cu13/lib/libcudart.so.13"
  cat >"$folder/pip/python3" <<'TEXT'
#!/bin/bash
while [[ $1 != --target ]]; do shift; done
mkdir -p "$2/nvidia/cu13/lib" "$2/nvidia_nccl_cu13-2.30.7.dist-info"
cd "$2/nvidia/cu13/lib" && shift 2 && echo "$@" >>"$FAKE_PIP_LOG"
touch libcublas.so.13 libcudnn.so.9 libcufft.so.12 libnccl.so.2 libcusparseLt.so.0 libcusparse.so.12 libnvrtc.so.13
touch libcurand.so.10 libnvshmem_host.so.3 libnvJitLink.so.13 libcufile.so.0
TEXT
  chmod +x "$folder/pip/python3"
  cat >"$folder/setup-gpu" <<TEXT
set -euo pipefail
ROOT=$root MOTLEY_CACHE=$cache
cd "$root"
source deploy/run/common.sh; source deploy/run/durations.sh; source deploy/run/setup_gpu.sh
setup_gpu
TEXT
  export FAKE_PIP_LOG=$folder/pip.log
  PATH=$folder/pip:$PATH status_is 0 bash "$folder/setup-gpu" && says "nvidia-cublas==13.1.0.3 (423 MB), .* MB in all" &&
    grep -q "nvidia-cudnn-cu13==9.19.0.56" "$FAKE_PIP_LOG" && [[ -e $cache/torch-2.11.0/nvidia/cu13/lib/libnccl.so.2 ]] &&
    [[ -e $cache/torch-2.11.0/nvidia/cu13/lib/libcudart.so.13 ]] && ! compgen -G "$cache/torch-2.11.0.gpu.*" &&
    rm "$cache/torch-2.11.0/nvidia/cu13/lib/libcurand.so.10" &&
    PATH=$folder/pip:$PATH status_is 0 bash "$folder/setup-gpu" &&
    [[ $(tail -n 1 "$FAKE_PIP_LOG") == nvidia-curand==10.4.0.35 ]] &&
    PATH=$folder/pip:$PATH status_is 0 bash "$folder/setup-gpu" && says "libtorch 2.11.0 has its CUDA libraries" &&
    [[ $(wc -l <"$FAKE_PIP_LOG") -eq 2 ]]
}

# Beside each rank by the NVRTC of its libtorch, with a compiler of kernels that writes what it is asked for; one that fails fails nothing.
setup_gpu_compiles_kernels() {
  local cache=$folder/kernels-cache built=$folder/kernels-built
  mkdir -p "$cache/torch-2.11.0/torch/lib" "$cache/torch-2.11.0/nvidia/cu13/lib" "$built/release/bin"
  touch "$cache/torch-2.11.0/torch/lib/libtorch_cuda.so" "$cache/torch-2.11.0/nvidia/cu13/lib/libnvrtc.so.13"
  printf '#!/bin/bash\necho "$@" >>"%s"; [[ -z $FAKE_FAILS ]] && echo kernels >"${@: -1}"\n' "$built/asked" \
    >"$built/release/bin/compile_kernels"
  chmod +x "$built/release/bin/compile_kernels"
  cat >"$folder/setup-kernels" <<TEXT
set -euo pipefail
ROOT=$root MOTLEY_CACHE=$cache
cd "$root"
source deploy/run/common.sh; source deploy/run/durations.sh; source deploy/run/kernels.sh
compile() { :; }
BIN_DIR=$built/release/bin
kernels_of() { echo "$built/release/bin/motley-kernels"; }
setup_kernels
TEXT
  FAKE_FAILS= status_is 0 bash "$folder/setup-kernels" && says "compile kernels for the cards of libtorch 2.11.0" &&
    [[ $(cat "$built/asked") == "--nvrtc $cache/torch-2.11.0/nvidia/cu13/lib/libnvrtc.so.13 --sources $root --out $built/release/bin/motley-kernels" ]] &&
    [[ -e $built/release/bin/motley-kernels ]] &&
    FAKE_FAILS=yes status_is 0 bash "$folder/setup-kernels" && says "goes without kernels of our own: slower"
}

# Ranks of two libtorches in one job go by NCCL if it is the same.
one_nccl_for_all() {
  local versions
  versions=$(bash -c 'source "$0/deploy/run/setup_gpu.sh"; gpu_table' "$root" | sed -n 's/.* nvidia-nccl-cu[0-9]*==\([^ ]*\) .*/\1/p')
  [[ $(wc -l <<<"$versions") -ge 2 && $(sort -u <<<"$versions" | wc -l) -eq 1 ]] || { echo "$versions"; return 1; }
}

# The worker's table of builds and the scripts' have the same versions for the same cards.
builds_are_the_scripts() {
  local scripts worker
  scripts=$(cd "$root" && ROOT=$root bash -c 'source deploy/run/common.sh
    for version in "${TORCH_VERSIONS[@]}"; do use_torch "$version"; echo "$version $TORCH_KERNELS"; done')
  worker=$(sed -nE 's/^.*\{"([0-9.]+)", [0-9]+, "[0-9]+", \{([0-9]+), .* ([0-9]+)\}\}.*$/\1 sm_\2 to sm_\3/p' \
    "$root/common/device/rank_builds.cc")
  [[ -n $worker && $worker == "$scripts" ]] || { echo "the worker has '$worker', the scripts '$scripts'"; return 1; }
}

# What the table names is what the wheel here asks for.
gpu_table_is_the_wheels() {
  local version package name metadata
  while read -r version _ package _; do
    metadata=$MOTLEY_CACHE_HERE/torch-$version/torch-$version.dist-info/METADATA
    [[ -e $metadata ]] || continue
    # Of NCCL all libtorches have one, newer than theirs.
    [[ $package != nvidia-nccl-* ]] || continue
    # CUDA 13's own libraries stand behind one name, cuda-toolkit.
    name=$(sed -E 's/nvidia-(cuda-)?([a-z]+).*/\2/' <<<"$package")
    grep -qE "^Requires-Dist: ($package;|cuda-toolkit\[.*\b$name\b.*\])" "$metadata" ||
      { echo "$package is not what libtorch $version asks for"; return 1; }
  done < <(source "$root/deploy/run/setup_gpu.sh" && gpu_table)
}
