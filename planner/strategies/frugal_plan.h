// The plan that needs the least memory without splitting layers: ZeRO 3 over all devices, shares by what each has left,
// microbatches of one sample one after the other, everything recomputed (and the optimizer offloaded, then parameters, too, where
// the hosts' memory may be used). Slow, but whatever the batch is. `motley estimate` asks it first, auto where it finds nothing
// else, so that the two agree.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "planner/costs/memory_model.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// How all ranks of a frugal plan go about it.
struct FrugalWay {
  OffloadKinds offload;  // of those whose nodes offer host memory: optimizer, parameters
  int64_t ranks = 1;     // that share the state
  int64_t rounds = 0;    // samples of the rank that has most
};
// What a rank of the frugal plan does: samples one by one through all layers, a layer's parameters gathered for each.
RankDuty FrugalDuty(const Setting& setting, int device, double share, const FrugalWay& way);
// With the bytes that each rank needs, whether they are there or not. Where state lacks memory, all devices lack the same: no
// whole plan of this kind has a fullest device that lacks less.
Plan FrugalPlan(const Setting& setting, const OffloadKinds& offload);

struct FrugalAnswer {
  Plan plan;
  // RESOURCE_EXHAUSTED (lack_of_memory.h): what its fullest device lacks. FAILED_PRECONDITION: the request asks for another kind
  // of plan.
  absl::Status fits;
};
// Within the setting's limits, on the devices alone if that fits, else with as few kinds offloaded as do. The first that fits, or
// the one that comes nearer.
FrugalAnswer FindFrugal(const Setting& setting);

}  // namespace motley::planner
