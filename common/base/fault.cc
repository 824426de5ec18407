#include "common/base/fault.h"

#include <array>

#include "absl/strings/cord.h"

namespace motley {
namespace {

constexpr char kPayload[] = "motley/fault";
constexpr char kFolderPayload[] = "motley/damaged_checkpoint";
constexpr char kDevicePayload[] = "motley/blamed_device";
constexpr std::array<std::string_view, 6> kNames = {"ours", "peer", "storage", "damage", "node", "memory"};

}  // namespace

std::string_view FaultName(Fault fault) { return kNames[static_cast<size_t>(fault)]; }

std::optional<Fault> ParseFault(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Fault>(i);
  }
  return std::nullopt;
}

absl::Status WithFault(absl::Status status, Fault fault) {
  if (status.ok()) return status;
  const std::string_view name = FaultName(fault);
  status.SetPayload(kPayload, absl::Cord(absl::string_view(name.data(), name.size())));
  return status;
}

Fault FaultOf(const absl::Status& status) {
  if (const auto payload = status.GetPayload(kPayload)) {
    if (const auto fault = ParseFault(std::string(*payload))) return *fault;
  }
  return absl::IsDataLoss(status) ? Fault::kDamage : Fault::kOurs;
}

absl::Status WithDamagedCheckpoint(absl::Status status, const std::string& folder) {
  if (!status.ok() && FaultOf(status) == Fault::kDamage) status.SetPayload(kFolderPayload, absl::Cord(folder));
  return status;
}

std::string DamagedCheckpointOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kFolderPayload);
  return payload ? std::string(*payload) : std::string();
}

absl::Status WithBlamedDevice(absl::Status status, const std::string& device) {
  if (!status.ok() && !device.empty()) status.SetPayload(kDevicePayload, absl::Cord(device));
  return status;
}

std::string BlamedDeviceOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kDevicePayload);
  return payload ? std::string(*payload) : std::string();
}

}  // namespace motley
