# ./run setup --gpu, after what cards need: compiles the kernels of our own, beside each rank by the NVRTC that its libtorch needs
# anyway. That one knows the cards that its libtorch has kernels for.
source deploy/run/build.sh
source deploy/run/setup_gpu.sh

# Measured on a machine of two cores without a compiler cache.
KERNELS_CORE_SECONDS=40

# nvrtc_of VERSION: of that libtorch; nothing where it is not there.
nvrtc_of() { compgen -G "$(gpu_torch_dir "$1")/nvidia/*/lib/libnvrtc.so.1[0-9]" | head -n 1; }

# kernels_of VERSION: the file of that libtorch's rank.
kernels_of() {
  local "${TORCH_VARIABLES[@]}"
  use_torch "$1"
  echo "$BUILD_DIR/bin/motley-kernels"
}

# Without them ranks train, slower: nothing here fails the setup.
setup_kernels() {
  local version nvrtc file
  for version in $(gpu_torches); do
    nvrtc=$(nvrtc_of "$version") file=$(kernels_of "$version")
    [[ -n $nvrtc ]] || continue
    mkdir -p "${file%/*}"
    compile kernels "$KERNELS_CORE_SECONDS" "compile the compiler of kernels" compile_kernels || return 0
    step "compile kernels for the cards of libtorch $version" "$BIN_DIR/compile_kernels" --nvrtc "$nvrtc" --sources "$ROOT" --out "$file" ||
      say "libtorch $version goes without kernels of our own: slower"
  done
}
