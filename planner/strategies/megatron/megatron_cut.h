// Tensor-parallel groups cut into pipeline stages of equal width: which kinds each stage has and what its communication costs.
// What a search over microbatches and layers needs to know of the devices. A plain value.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/cluster/transfer_line.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct GroupCut {
  std::vector<std::vector<int>> kinds;      // of each stage, ascending, distinct
  std::vector<int> device_of_kind;          // by kind of the setting, some device in the cut; -1 = none
  std::vector<TransferLine> tensor_reduce;  // by stage: an all-reduce inside the slowest of its groups
  // By stage, over its replicas, the rings of all ranks of the groups at once. Of the bytes that one rank holds.
  std::vector<TransferLine> replica_gather, replica_reduce;
  // One microbatch of every replica over the border behind each stage but the last.
  std::vector<TransferLine> sends;
  // What all borders carry for one microbatch of every replica, forth and back: a full pipeline loads all links at once. The
  // second with the way from the last stage back to the first, which interleaving takes.
  double links_seconds_per_byte = 0, round_links_seconds_per_byte = 0;
};

// Stage s has groups [s * replicas, (s + 1) * replicas). Groups of a stage may differ in size; the smallest's ranks form the
// rings.
GroupCut CutGroups(const Setting& setting, const std::vector<std::vector<int>>& groups, int64_t stages, int64_t replicas);

// Every pinned device is in its stage.
bool PinsHold(const Setting& setting, const std::vector<std::vector<int>>& groups, int64_t stages, int64_t replicas);

}  // namespace motley::planner
