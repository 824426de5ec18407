#include "common/device/device_kinds.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"

namespace motley {

namespace {

// Null: there is no such kind.
const DeviceKindRow* FindRow(DeviceKind kind) {
  static constexpr DeviceKindRow kCpu = {DeviceKind::kCpu, "cpu", "cpu", false, true};
  static constexpr DeviceKindRow kEmulated = {DeviceKind::kEmulated, "emulated", "gpu", true, false};
  static constexpr DeviceKindRow kCuda = {DeviceKind::kCuda, "cuda", "gpu", false, false};
  switch (kind) {  // no default: a kind without a row is an error of the compiler
    case DeviceKind::kCpu:
      return &kCpu;
    case DeviceKind::kEmulated:
      return &kEmulated;
    case DeviceKind::kCuda:
      return &kCuda;
  }
  return nullptr;
}

// From the same switch, so that no kind with a row is forgotten here.
std::vector<DeviceKindRow> AllRows() {
  std::vector<DeviceKindRow> rows;
  for (int kind = 0; const DeviceKindRow* row = FindRow(static_cast<DeviceKind>(kind)); ++kind) rows.push_back(*row);
  return rows;
}

}  // namespace

const DeviceKindRow& RowOf(DeviceKind kind) {
  const DeviceKindRow* row = FindRow(kind);
  return row != nullptr ? *row : *FindRow(DeviceKind::kCpu);
}

const std::vector<DeviceKindRow>& DeviceKinds() {
  static const auto* const kinds = new std::vector<DeviceKindRow>(AllRows());
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
