#include "worker/engine/transport/collective_way.h"

#include <algorithm>
#include <optional>

namespace motley::engine {
namespace {

// Padding may add so much to what links carry and to what the card holds.
constexpr double kMostWaste = 0.25;

int64_t ElementsOfMember(const std::vector<ElementRange>& ranges) {
  int64_t elements = 0;
  for (const ElementRange& range : ranges) elements += range.size();
  return elements;
}

// Where equal pieces in the members' order begin; null: they are none.
std::optional<int64_t> BeginOfEvenPieces(const Owners& owners, int64_t slot_elements) {
  int64_t next = 0;
  for (size_t i = 0; i < owners.size(); ++i) {
    if (owners[i].size() != 1 || owners[i][0].size() != slot_elements) return std::nullopt;
    if (i > 0 && owners[i][0].begin != next) return std::nullopt;
    next = owners[i][0].end;
  }
  return owners[0][0].begin;
}

}  // namespace

CollectivePlan PlanCollective(const Owners& owners, int64_t element_bytes, const NcclCosts& costs) {
  const int64_t elements = ElementsOf(owners);
  if (elements == 0) return {};
  int64_t slot_elements = 0, least_elements = elements, ranges = 0;
  for (const std::vector<ElementRange>& of_member : owners) {
    slot_elements = std::max(slot_elements, ElementsOfMember(of_member));
    least_elements = std::min(least_elements, ElementsOfMember(of_member));
    ranges += static_cast<int64_t>(of_member.size());
  }
  if (const auto begin = BeginOfEvenPieces(owners, slot_elements)) return {CollectiveWay::kEven, slot_elements, *begin};

  const double members = static_cast<double>(owners.size());
  const double bytes = static_cast<double>(elements * element_bytes);
  const double slot_bytes = static_cast<double>(slot_elements * element_bytes);
  // Either way a link carries everything but what its receiver owns; with slots that is all slots but one.
  const double least_bytes = static_cast<double>(least_elements * element_bytes);
  const double grouped_seconds = ranges * costs.seconds_per_call + (bytes - least_bytes) / costs.bytes_per_second;
  const double padded_seconds = costs.seconds_per_call + slot_bytes * (members - 1) / costs.bytes_per_second +
                                ranges * costs.seconds_per_copy + bytes / costs.copy_bytes_per_second;
  const bool fits = slot_bytes * members <= (1 + kMostWaste) * bytes;
  if (fits && padded_seconds < grouped_seconds) return {CollectiveWay::kPadded, slot_elements, 0};
  return {CollectiveWay::kGrouped, 0, 0};
}

}  // namespace motley::engine
