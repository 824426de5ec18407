#include "worker/engine/nccl/nccl_causes.h"

#include "absl/strings/match.h"

namespace motley::engine {
namespace {

struct Cause {
  const char* said;  // in NCCL's or CUDA's words
  const char* why;
};

// The first that fits counts.
constexpr Cause kCauses[] = {
    {"driver version is insufficient", "the NVIDIA driver is older than this NCCL's CUDA: install a newer driver"},
    {"no kernel image", "this NCCL has no kernels for the card: `./run setup --libtorch 2.7.1` brings one for older cards"},
    {"system not yet initialized", "cards on an NVSwitch need its fabric manager: systemctl start nvidia-fabricmanager"},
    {"forward compatibility", "a CUDA compatibility package (libcuda.so in LD_LIBRARY_PATH) does not fit this card: remove it"},
    {"libnvidia-ml", "NVML is missing: start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"},
    {"out of memory", "other processes hold the card's memory: nvidia-smi names them"},
    {"Too many open files", "a process may open too few files: ulimit -n, LimitNOFILE= in a service"},
};

bool SaysSharedMemory(const std::string& said) {
  return absl::StrContains(said, "shared memory") || absl::StrContains(said, "/dev/shm") ||
         absl::StrContains(said, "posix_fallocate");
}

// Of the verbs library: "Call to ibv_reg_mr failed", "ibv_create_cq", "ibv_create_qp".
bool SaysVerbs(const std::string& said) { return absl::StrContains(said, "ibv_"); }

}  // namespace

std::string LikelyCause(const std::string& said, const MachineLimits& limits) {
  for (const Cause& cause : kCauses) {
    if (absl::StrContains(said, cause.said)) return cause.why;
  }
  const std::string shared = SharedMemoryTooSmall(limits), locked = LockedMemoryTooSmall(limits);
  if (SaysSharedMemory(said) && shared.empty()) return "/dev/shm is full: remove what ended processes left there (nccl-*)";
  if (SaysVerbs(said) && !locked.empty()) return locked;
  if (SaysSharedMemory(said) || !shared.empty()) return shared;
  return locked.empty() ? "not known; NCCL_DEBUG=INFO makes NCCL say more" : locked;
}

}  // namespace motley::engine
