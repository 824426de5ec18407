# ./run setup --gpu: what libtorch_cuda.so of each libtorch here needs besides the wheel, from PyPI, beside the wheel. Only
# machines with NVIDIA cards need it: without cards nothing opens these libraries. The driver is the administrator's.

# A row: libtorch, its oldest driver branch, a package, MB to download, the library that tells that it is there. Versions are
# those of the wheel's METADATA, but for NCCL: ranks of all libtorches use one, so that they understand each other, and a newer
# one than any wheel names. Before 2.29.3 a proxy on an ARM host may lose an operation and stand; from 2.30 on ranks may share
# a card. What the wheel names besides (cuSOLVER, NVTX, triton) no part of Motley uses.
gpu_table() {
  cat <<'TEXT'
2.11.0 580 nvidia-cublas==13.1.0.3 423 libcublas.so.13
2.11.0 580 nvidia-cudnn-cu13==9.19.0.56 366 libcudnn.so.9
2.11.0 580 nvidia-cufft==12.0.0.61 214 libcufft.so.12
2.11.0 580 nvidia-nccl-cu13==2.30.7 216 libnccl.so.2
2.11.0 580 nvidia-cusparselt-cu13==0.8.0 170 libcusparseLt.so.0
2.11.0 580 nvidia-cusparse==12.6.3.3 146 libcusparse.so.12
2.11.0 580 nvidia-cuda-nvrtc==13.0.88 90 libnvrtc.so.13
2.11.0 580 nvidia-curand==10.4.0.35 60 libcurand.so.10
2.11.0 580 nvidia-nvshmem-cu13==3.4.5 60 libnvshmem_host.so.3
2.11.0 580 nvidia-nvjitlink==13.0.88 41 libnvJitLink.so.13
2.11.0 580 nvidia-cufile==1.15.1.6 1 libcufile.so.0
2.7.1 525 nvidia-cudnn-cu12==9.5.1.17 571 libcudnn.so.9
2.7.1 525 nvidia-cublas-cu12==12.6.4.1 393 libcublas.so.12
2.7.1 525 nvidia-cusparse-cu12==12.5.4.2 217 libcusparse.so.12
2.7.1 525 nvidia-nccl-cu12==2.30.7 303 libnccl.so.2
2.7.1 525 nvidia-cufft-cu12==11.3.0.4 200 libcufft.so.11
2.7.1 525 nvidia-cusparselt-cu12==0.6.3 157 libcusparseLt.so.0
2.7.1 525 nvidia-curand-cu12==10.3.7.77 56 libcurand.so.10
2.7.1 525 nvidia-cuda-nvrtc-cu12==12.6.77 24 libnvrtc.so.12
2.7.1 525 nvidia-nvjitlink-cu12==12.6.85 20 libnvJitLink.so.12
2.7.1 525 nvidia-cufile-cu12==1.11.1.6 1 libcufile.so.0
TEXT
}

gpu_torch_dir() { echo "$MOTLEY_CACHE/torch-$1"; }

# The libtorches that are here, newest first.
gpu_torches() {
  local version
  for version in "${TORCH_VERSIONS[@]}"; do
    if [[ -e $(gpu_torch_dir "$version")/torch/lib/libtorch_cuda.so ]]; then echo "$version"; fi
  done
}

# is_other_version FOLDER PACKAGE==VERSION: pip has left the package there, and not in this version.
is_other_version() {
  local name=${2%==*}
  name=$1/${name//-/_}
  [[ ! -e $name-${2#*==}.dist-info ]] && compgen -G "$name-*.dist-info" >/dev/null
}

# missing_gpu_rows VERSION: rows of the table whose library is not there, or is of another version.
missing_gpu_rows() {
  local version branch package megabytes library folder
  folder=$(gpu_torch_dir "$1")
  while read -r version branch package megabytes library; do
    [[ $version == "$1" ]] || continue
    compgen -G "$folder/nvidia/*/lib/$library" >/dev/null && ! is_other_version "$folder" "$package" ||
      echo "$version $branch $package $megabytes $library"
  done < <(gpu_table)
}

# "nvidia-cublas==13.1.0.3 (423 MB), ...; 1787 MB in all" of rows on the input.
describe_gpu_rows() {
  awk '{printf "%s%s (%s MB)", (NR > 1 ? ", " : ""), $3, $4; sum += $4} END {printf "; %d MB in all\n", sum}'
}

# pip leaves a folder that is there as it is, so the packages are unpacked beside it and moved in.
fetch_gpu_packages() {
  local folder=$1 partial=$1.gpu.$$ rc=0
  shift
  rm -rf "$folder".gpu.*
  mkdir -p "$partial"
  PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 python3 -m pip install --no-input --no-cache-dir --disable-pip-version-check --no-deps \
    --progress-bar off --target "$partial" "$@" && cp -alf "$partial/." "$folder/" || rc=$?
  rm -rf "$partial"
  return $rc
}

setup_gpu_of() {
  local version=$1 rows packages
  rows=$(missing_gpu_rows "$version")
  if [[ -z $rows ]]; then
    say "libtorch $version has its CUDA libraries"
    return 0
  fi
  say "for libtorch $version: $(describe_gpu_rows <<<"$rows")"
  mapfile -t packages < <(cut -d ' ' -f 3 <<<"$rows")
  with_lock "$MOTLEY_CACHE/torch.lock" long_step "gpu-$version" 120 \
    "fetch CUDA libraries of libtorch $version" fetch_gpu_packages "$(gpu_torch_dir "$version")" "${packages[@]}" || return
  rows=$(missing_gpu_rows "$version")
  [[ -z $rows ]] || { fail "not in their packages: $(cut -d ' ' -f 5 <<<"$rows" | tr '\n' ' ')"; return 1; }
}

setup_gpu() {
  local version
  for version in $(gpu_torches); do setup_gpu_of "$version" || return; done
}
