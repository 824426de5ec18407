#include "common/base/memory_shortage.h"

#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/fault.h"

namespace motley {
namespace {

constexpr char kShortagePayload[] = "motley/memory_shortage";

}  // namespace

absl::Status WithMemoryShortage(absl::Status status, const MemoryShortage& shortage) {
  if (status.ok()) return status;
  status = WithFault(std::move(status), Fault::kMemory);
  status.SetPayload(kShortagePayload,
                    absl::Cord(absl::StrCat(static_cast<int>(shortage.tier), " ", shortage.held_bytes, " ", shortage.asked_bytes,
                                            " ", shortage.planned_bytes, " ", shortage.where)));
  return status;
}

std::optional<MemoryShortage> MemoryShortageOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kShortagePayload);
  if (!payload || FaultOf(status) != Fault::kMemory) return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(std::string(*payload), absl::MaxSplits(' ', 4));
  MemoryShortage shortage;
  int tier = 0;
  if (parts.size() != 5 || !absl::SimpleAtoi(parts[0], &tier) || !absl::SimpleAtoi(parts[1], &shortage.held_bytes) ||
      !absl::SimpleAtoi(parts[2], &shortage.asked_bytes) || !absl::SimpleAtoi(parts[3], &shortage.planned_bytes)) {
    return std::nullopt;
  }
  shortage.tier = static_cast<MemoryTier>(tier);
  shortage.where = parts[4];
  return shortage;
}

}  // namespace motley
