#include "common/device/device_kinds.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"

namespace motley {

const DeviceKindRow& RowOf(DeviceKind kind) {
  static constexpr DeviceKindRow kCpu = {DeviceKind::kCpu, "cpu", "cpu", false, true};
  static constexpr DeviceKindRow kEmulated = {DeviceKind::kEmulated, "emulated", "gpu", true, false};
  static constexpr DeviceKindRow kCuda = {DeviceKind::kCuda, "cuda", "gpu", false, false};
  switch (kind) {  // no default: a kind without a row is a warning, in CI an error
    case DeviceKind::kCpu:
      return kCpu;
    case DeviceKind::kEmulated:
      return kEmulated;
    case DeviceKind::kCuda:
      return kCuda;
  }
  return kCpu;
}

const std::vector<DeviceKindRow>& DeviceKinds() {
  static const auto* const kinds =
      new std::vector<DeviceKindRow>{RowOf(DeviceKind::kCpu), RowOf(DeviceKind::kEmulated), RowOf(DeviceKind::kCuda)};
  return *kinds;
}

absl::StatusOr<DeviceKind> ParseDeviceKind(std::string_view name) {
  std::vector<const char*> known;
  for (const DeviceKindRow& row : DeviceKinds()) {
    if (name == row.name) return row.kind;
    known.push_back(row.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("kind ", Quoted(std::string(name)), " is not known; use ", absl::StrJoin(known, ", ")));
}

}  // namespace motley
