// Does the model fit, and what is the most that does: `motley estimate`. About memory, not speed.
//
// A plan made for little memory answers most questions at once: ZeRO 3 over all devices, shards by what each has left,
// microbatches of one sample one after the other, everything recomputed (and offloaded, where the host's memory is known). Only
// where that does not fit, the requested strategy (tensor parallelism, stages) is asked. With another strategy than auto, that
// strategy alone decides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/answers/ways_out.h"
#include "planner/costs/memory_model.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// The fullest rank of one kind of device.
struct KindFit {
  std::string kind;
  DeviceId device;
  int ranks = 0;  // of this kind in the plan
  MemoryByPurpose memory;
  int64_t usable_bytes = 0;
  // Samples that a device holds at once beside its state, everything kept and everything recomputed. 0 = not one.
  int64_t largest_microbatch_keep = 0, largest_microbatch_recompute = 0;
};

// The largest value that fits. `at_least`: the search ended at its limit, more may fit.
struct Largest {
  int64_t value = 0;
  bool at_least = false;
};

struct FitReport {
  bool fits = false;
  Plan plan;                                  // the one that fits, or the frugal one that does not
  std::vector<std::string> missing;           // by rank that lacks memory; or why the strategy has no plan
  int64_t state_bytes = 0, usable_bytes = 0;  // the whole training state, and what all cards together may use
  std::vector<KindFit> kinds;                 // in the cluster's order
  Largest batch, sequence;                    // with everything else as asked
  // The fewest cards that hold it, those with most memory first; empty where it does not fit or a strategy alone decides.
  std::vector<DeviceId> fewest;
  std::vector<WayOut> ways;  // where it does not fit, what would
};

// Errors of the evaluation; not fitting is none.
absl::StatusOr<FitReport> FindFit(const Setting& setting, const LatencyBook* book);

// What a rank of the frugal plan does: samples one by one through all layers, a layer's parameters gathered for each.
RankDuty FrugalDuty(const Setting& setting, int device, double share, bool offload);
// Over every device that holds at least its context, with the bytes that each needs, whether they are there or not.
// RESOURCE_EXHAUSTED: no device holds even one sample beside its context.
absl::StatusOr<Plan> FrugalPlan(const Setting& setting, bool offload);

}  // namespace motley::planner
