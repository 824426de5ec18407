// Does the model fit, and what is the most that does: `motley estimate`. About memory, not speed.
//
// The frugal plan (planner/strategies/frugal_plan.h) answers most questions at once. Only where that does not fit, auto is asked
// (tensor parallelism, stages), which itself falls back to the frugal plan: so `motley plan` finds a plan exactly where this
// says that it fits. With another strategy than auto, that strategy alone decides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/answers/ways_out.h"
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

// The largest value that fits. `at_least`: the search ended at its limit, more may fit. `any`: at that limit samples still go
// one by one, so no more of them will ever bind.
struct Largest {
  int64_t value = 0;
  bool at_least = false, any = false;
};

struct FitReport {
  bool fits = false;
  Plan plan;                                  // the one that fits, or the frugal one that does not
  int64_t lacking_bytes = 0;                  // of the plan that comes nearest; 0: it fits, or memory is not the matter
  std::vector<std::string> missing;           // what that plan lacks, as `motley plan` says it; then by rank of `plan`
  int64_t host_bytes = 0;                     // of `plan`, in the memory of all hosts together
  absl::Status runs_here;                     // with the state that the engine keeps; else what is lacking then
  int64_t state_bytes = 0, usable_bytes = 0;  // the whole training state, and what all cards together may use
  std::vector<KindFit> kinds;                 // in the cluster's order
  Largest batch, sequence;                    // with everything else as asked
  // The fewest cards that hold it, those with most memory first; empty where it does not fit or a strategy alone decides.
  std::vector<DeviceId> fewest;
  int64_t fewest_host_bytes = 0;  // what lies in the hosts' memory then
  std::vector<WayOut> ways;       // where it does not fit, what would
};

// Errors of the evaluation; not fitting is none. `with_ways`: of what does not fit, what would is looked for too, which takes
// longest.
absl::StatusOr<FitReport> FindFit(const Setting& setting, const LatencyBook* book, bool with_ways = true);

// Without what takes many tries. Any error is a reason why it does not fit.
struct QuickFit {
  absl::Status why_not;  // OK: it fits
  int64_t lacking_bytes = 0, host_bytes = 0;
  absl::Status runs_here;
};
QuickFit FindQuickFit(const Setting& setting);

}  // namespace motley::planner
