# ./run doctor on a machine with NVIDIA cards: driver, NVML, CUDA libraries, kernels.
source deploy/run/kernels.sh

# Of the kernel's list of PCI devices: NVIDIA's, that show pictures or compute.
nvidia_devices() {
  local folder=${MOTLEY_PCI_DEVICES:-/sys/bus/pci/devices} device count=0
  for device in "$folder"/*; do
    [[ $(cat "$device/vendor" 2>/dev/null) == 0x10de && $(cat "$device/class" 2>/dev/null) == 0x03* ]] || continue
    count=$((count + 1))
  done
  echo $count
}

# What the libtorches that are here need of a driver.
doctor_driver() {
  local driver=$1 has=${1:-none that says its version} version branch
  for version in $(gpu_torches); do
    branch=$(gpu_table | awk -v version="$version" '$1 == version {print $2; exit}')
    if [[ ${driver%%.*} =~ ^[0-9]+$ && ${driver%%.*} -ge $branch ]]; then
      good "driver $driver runs libtorch $version"
    elif [[ $version == 2.7.1 ]]; then
      optional "a driver that runs libtorch $version (has $has)" "install driver $branch or newer"
    else
      optional "a driver that runs libtorch $version (has $has)" \
        "install driver $branch or newer, or for this one: ./run setup --libtorch 2.7.1"
    fi
  done
}

# What NCCL and pinned copies need of the machine, and a boot or a container may not have given.
doctor_beside_cards() {
  local locked shared
  if grep -q '^nvidia_uvm ' "${MOTLEY_PROC_MODULES:-/proc/modules}" 2>/dev/null; then good "kernel module nvidia_uvm"; else
    optional "kernel module nvidia_uvm: no service can open a card before it is loaded" \
      "sudo modprobe nvidia_uvm; for each boot: echo nvidia-uvm | sudo tee /etc/modules-load.d/nvidia-uvm.conf"; fi
  locked=$(ulimit -l)
  if [[ $locked == unlimited ]]; then good "locked memory: unlimited"; else
    optional "locked memory: at most $locked KiB in this shell, which copies from pinned memory and RDMA need more of" \
      "ulimit -l unlimited, by /etc/security/limits.conf (the systemd unit has it; docker run --ulimit memlock=-1)"; fi
  shared=$(df -k --output=size "${MOTLEY_SHARED_MEMORY:-/dev/shm}" 2>/dev/null | tail -n 1 | tr -d ' ') || true
  if [[ ${shared:-0} -ge $((512 * 1024)) ]]; then good "shared memory: $((shared / 1024)) MiB"; else
    optional "shared memory: $((${shared:-0} / 1024)) MiB in /dev/shm, of which NCCL takes some for each pair of cards" \
      "docker run --shm-size=1g, or: sudo mount -o remount,size=1g /dev/shm"; fi
}

# Of the rank of one libtorch.
doctor_kernels() {
  local file
  file=$(kernels_of "$1")
  if [[ ! -e $file ]]; then
    optional "kernels of our own for libtorch $1: PyTorch's operators take their place, slower" "./run setup --gpu"
  elif [[ -n $(find worker/engine/kernels -name '*.h' -newer "$file") ]]; then
    optional "kernels of our own for libtorch $1 from the sources of today" "./run setup --gpu"
  else
    good "kernels of our own for libtorch $1"
  fi
}

# The kernel driver's files name the cards; nvidia-smi is not needed.
doctor_cards() {
  local folder=${MOTLEY_NVIDIA_PROC:-/proc/driver/nvidia} cards driver version rows devices
  cards=$(sed -n 's/^Model:[[:space:]]*//p' "$folder"/gpus/*/information 2>/dev/null | uniq -c |
    awk '{count = $1; $1 = ""; printf "%s", (NR > 1 ? "," : "") (count > 1 ? " " count " x" : "") $0}') || true
  if [[ -z $cards ]]; then
    devices=$(nvidia_devices)
    [[ $devices -eq 0 ]] || optional "NVIDIA's driver: $devices card(s) without one" \
      "install driver 580 or newer (for cards before Turing driver 580 is the last)"
    return 0
  fi
  driver=$(grep -m 1 '^NVRM version:' "$folder/version" 2>/dev/null | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1) || true
  note "NVIDIA cards:$cards; driver ${driver:-not known}"
  doctor_driver "$driver"
  doctor_beside_cards
  if ldconfig -p 2>/dev/null | grep -q 'libnvidia-ml\.so\.1 '; then good "NVML (libnvidia-ml.so.1)"; else
    optional "NVML (libnvidia-ml.so.1): the worker finds no card" "install the driver's libraries; in a container, pass them in"; fi
  for version in $(gpu_torches); do
    rows=$(missing_gpu_rows "$version")
    if [[ -z $rows ]]; then good "CUDA libraries of libtorch $version"; else
      optional "CUDA libraries of libtorch $version: $(describe_gpu_rows <<<"$rows")" "./run setup --gpu"; fi
    doctor_kernels "$version"
  done
}
