# What check_run.sh asks of `./run doctor`: of $root, with files of its own in $folder.

doctor_names_other_versions() {
  MOTLEY_CACHE=$folder/no-cache status_is 1 "$root/run" doctor && says "MISSING  libtorch 2.11.0" &&
    says "without  libtorch 2.7.1 and its rank, for cards that libtorch 2.11.0 has no kernels for (sm_50 to sm_90)" &&
    says "mend: ./run setup --libtorch 2.7.1"
}

doctor_is_satisfied() { status_is 0 "$root/run" doctor; }

# A driver's files as recorded on a machine with cards (of before CUDA 13), cards without a driver, and none.
doctor_names_nvidia_cards() {
  local device=$folder/pci/0000:3b:00.0
  mkdir -p "$device" "$folder/no-pci"
  echo 0x10de >"$device/vendor" && echo 0x030200 >"$device/class"
  MOTLEY_NVIDIA_PROC=$root/tests/worker/daemon/nvidia status_is 0 "$root/run" doctor &&
    says "NVIDIA cards: 2 x NVIDIA A100-SXM4-40GB, Quadro RTX 8000; driver 535.129.03" &&
    says "without  a driver that runs libtorch 2.11.0 (has 535.129.03)" &&
    says "mend: install driver 580 or newer, or .*--libtorch 2.7.1" &&
    says "without  kernels of our own for libtorch 2.11.0: PyTorch's operators take their place" && says "mend: ./run setup --gpu" &&
    MOTLEY_NVIDIA_PROC=$folder/nowhere MOTLEY_PCI_DEVICES=$folder/pci status_is 0 "$root/run" doctor &&
    says "without  NVIDIA's driver: 1 card(s) without one" &&
    MOTLEY_NVIDIA_PROC=$folder/nowhere MOTLEY_PCI_DEVICES=$folder/no-pci status_is 0 "$root/run" doctor && ! says NVIDIA
}

# A lowered limit of locked memory, a module that is not loaded and one that is, a folder without room for NCCL and one that is none.
doctor_names_what_cards_need_beside() (
  export MOTLEY_NVIDIA_PROC=$root/tests/worker/daemon/nvidia
  echo "nvidia 1 0 - Live 0x0" >"$folder/modules-without" && echo "nvidia_uvm 1 0 - Live 0x0" >"$folder/modules-with"
  ulimit -l 64 &&
    MOTLEY_PROC_MODULES=$folder/modules-without MOTLEY_SHARED_MEMORY=$folder/nowhere status_is 0 "$root/run" doctor &&
    says "without  kernel module nvidia_uvm" && says "mend: sudo modprobe nvidia_uvm" &&
    says "without  locked memory: at most 64 KiB in this shell" && says "mend: ulimit -l unlimited" &&
    says "without  shared memory: 0 MiB in /dev/shm" && says "mend: docker run --shm-size=1g" &&
    MOTLEY_PROC_MODULES=$folder/modules-with status_is 0 "$root/run" doctor && says "ok       kernel module nvidia_uvm"
)
