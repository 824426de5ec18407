#include "common/device/machine_limits.h"

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace motley {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr int64_t kEnoughShared = 256 * kMebibyte, kEnoughLocked = 1024 * kMebibyte;

}  // namespace

MachineLimits MachineLimitsHere(const std::string& shm, const std::string& verbs) {
  MachineLimits limits;
  struct statvfs room {};
  limits.shared_memory_bytes = statvfs(shm.c_str(), &room) == 0 ? static_cast<int64_t>(room.f_blocks * room.f_frsize) : 0;
  rlimit locked{};
  if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY) {
    limits.locked_memory_bytes = static_cast<int64_t>(locked.rlim_cur);
  }
  std::error_code error;
  limits.has_verbs = std::filesystem::directory_iterator(verbs, error) != std::filesystem::directory_iterator();
  return limits;
}

std::string SharedMemoryTooSmall(const MachineLimits& limits) {
  if (limits.shared_memory_bytes >= kEnoughShared) return "";
  return absl::StrCat("/dev/shm has ", limits.shared_memory_bytes / kMebibyte,
                      " MiB, and NCCL needs some 10 MiB for each connection between two cards: start the container with "
                      "--shm-size=1g or --ipc=host, in a pod mount an emptyDir of medium Memory there");
}

std::string LockedMemoryTooSmall(const MachineLimits& limits) {
  if (!limits.has_verbs || limits.locked_memory_bytes >= kEnoughLocked) return "";
  return absl::StrCat("this process may lock ", limits.locked_memory_bytes / 1024,
                      " KiB of memory, too little for RoCE and InfiniBand to register buffers: raise memlock in "
                      "/etc/security/limits.conf (ulimit -l), LimitMEMLOCK=infinity in a service, --ulimit memlock=-1 of a "
                      "container");
}

}  // namespace motley
