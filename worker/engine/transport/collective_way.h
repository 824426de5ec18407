// How NCCL, whose collectives are even, serves owners who are not. Pure. docs/inside/nccl.md
#pragma once

#include <cstdint>

#include "worker/engine/transport/communicator.h"

namespace motley::engine {

// What collectives cost on a group's cards. The defaults are thought, not measured: a profile replaces them.
struct NcclCosts {
  double seconds_per_call = 8e-6;  // of each call in a NCCL group
  double bytes_per_second = 10e9;  // of the slowest link in a ring
  double seconds_per_copy = 3e-6;  // of each copy within the card
  double copy_bytes_per_second = 200e9;
};

enum class CollectiveWay {
  kNothing,  // nobody owns anything
  kEven,     // equal pieces in the members' order, next to each other: one even call in place
  kPadded,   // one even call on slots as large as the largest share, copied in and out
  kGrouped,  // a broadcast or a reduce for each range, all in one NCCL group
};

struct CollectivePlan {
  CollectiveWay way = CollectiveWay::kNothing;
  int64_t slot_elements = 0;  // kEven, kPadded: of each member
  int64_t first = 0;          // kEven: the element where the first member's piece begins
};

// The same for all members, for an all-gather and for a reduce-scatter.
CollectivePlan PlanCollective(const Owners& owners, int64_t element_bytes, const NcclCosts& costs);

}  // namespace motley::engine
