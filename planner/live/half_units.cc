#include "planner/live/half_units.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace motley::planner {
namespace {

constexpr int kFirstWithBFloat16 = 80, kFirstWithFloat16 = 53, kWithoutFloat16 = 61;

bool IsSlow(int capability, DType half) {
  if (capability == 0) return false;  // not a card, or not known
  if (half == DType::kBFloat16) return capability < kFirstWithBFloat16;
  return capability < kFirstWithFloat16 || capability == kWithoutFloat16;
}

}  // namespace

std::string SlowInHalf(const std::vector<DeviceDescription>& devices, DType compute) {
  std::vector<std::string> slow;
  for (const DeviceDescription& device : devices) {
    if (!IsHalf(compute) || !IsSlow(device.card.compute_capability, compute)) continue;
    slow.push_back(absl::StrCat(device.id.value(), " (", device.card.name, ")"));
  }
  if (slow.empty()) return "";
  return absl::StrCat(absl::StrJoin(slow, ", "), slow.size() == 1 ? " has" : " have", " no fast ",
                      std::string(DTypeName(compute)), ": it saves memory there and no time");
}

}  // namespace motley::planner
