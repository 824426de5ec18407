#include "planner/live/memory_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

constexpr double kLeastCut = 0.95;

int64_t Less(int64_t a, int64_t b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }

bool IsSameCard(const DeviceDescription& a, const DeviceDescription& b) {
  return NodeOf(a.id) == NodeOf(b.id) && a.kind == b.kind && a.model == b.model && a.memory_bytes == b.memory_bytes;
}

}  // namespace

std::vector<int64_t> MemoryLimits(const PlannerInput& input) {
  std::vector<int64_t> limits;
  for (const DeviceDescription& device : input.devices) {
    int64_t limit = device.memory_bytes;
    for (size_t other = 0; other < input.devices.size(); ++other) {
      if (IsSameCard(device, input.devices[other])) limit = Less(limit, input.compute[other].usable_bytes);
    }
    limits.push_back(limit);
  }
  return limits;
}

int64_t CorrectedLimit(int64_t before, int64_t held, int64_t peak) {
  double limit = static_cast<double>(held > 0 ? held : before);
  if (peak > 0 && held > peak) limit = static_cast<double>(peak) * static_cast<double>(peak) / static_cast<double>(held);
  if (before > 0) limit = std::min(limit, kLeastCut * static_cast<double>(before));
  return static_cast<int64_t>(limit);
}

std::string MemoryLimitsText(const PlannerInput& input) {
  const std::vector<int64_t> limits = MemoryLimits(input);
  std::vector<std::string> limited;
  for (size_t d = 0; d < limits.size(); ++d) {
    const DeviceDescription& device = input.devices[d];
    if (limits[d] == device.memory_bytes) continue;
    limited.push_back(absl::StrCat(BytesText(limits[d]), " of ", device.id.value(),
                                   device.memory_bytes > 0 ? absl::StrCat("'s ", BytesText(device.memory_bytes)) : ""));
  }
  if (limited.empty()) return "";
  return absl::StrCat("of devices that ran out of memory in this model plans count on less: ", absl::StrJoin(limited, ", "),
                      "; `motley node measure NODE` forgets that");
}

}  // namespace motley::planner
