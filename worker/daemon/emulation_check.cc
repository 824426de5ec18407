#include "worker/daemon/emulation_check.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace motley::worker {

absl::Status CheckTrueMemory(const WorkerConfig& config) {
  const bool any = std::ranges::count(config.devices, DeviceKind::kEmulated, &DeviceConfig::kind) > 0;
  const EmulationConfig& emulation = config.emulation;
  for (const auto& [key, part] : {std::pair("emulation.true_memory", emulation.true_memory),
                                  std::pair("emulation.true_host_memory", emulation.true_host_memory)}) {
    if (!(part > 0 && part <= 1))
      return absl::InvalidArgumentError(absl::StrCat(key, " must be above 0 and at most 1, got ", part));
    if (part < 1 && !any)
      return absl::InvalidArgumentError(absl::StrCat(key, " is of emulated devices, and this node has none; leave it out"));
  }
  return absl::OkStatus();
}

}  // namespace motley::worker
