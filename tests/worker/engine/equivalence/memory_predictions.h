// What a plan's ranks are predicted to hold at most while they train, as in a job: saved and temporary bytes of the units
// measured, the rest by the planner's ledger and the walk through their programs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/memory_by_purpose.h"
#include "common/session/profile.h"
#include "planner/plan/plan.h"
#include "planner/pricing/evaluate.h"
#include "tests/worker/engine/equivalence/planned_job.h"
#include "tests/worker/engine/equivalence/training_run.h"

namespace motley::engine {

struct RankMemory {
  MemoryByPurpose predicted;
  int64_t measured_bytes = 0, measured_host_bytes = 0;
  MemoryByPurpose predicted_most = {};  // of each purpose its own
  MeasuredMemory measured = {};
  HostMemoryByPurpose predicted_on_host = {};
  // Of the predicted bytes, above 0 where the rank holds more; what lies within `uncounted_bytes` is none.
  double Excess(int64_t uncounted_bytes = 0) const;
  // The same of one purpose.
  double ExcessOf(int64_t MemoryByPurpose::*purpose, int64_t uncounted_bytes) const;
  bool HostIsExact() const { return measured_host_bytes == predicted.host && measured.host == predicted_on_host; }
};

// Not thread-safe. Measures each model and type once.
class MemoryPredictions {
 public:
  // Priced with the programs that the ranks get on threads. Errors of Price.
  absl::StatusOr<planner::Evaluation> Price(const PlannedJob& planned, Devices devices = Devices::kHosts);
  // By rank. Errors of Price.
  absl::StatusOr<std::vector<planner::MemoryByPurpose>> Of(const PlannedJob& planned, Devices devices = Devices::kHosts);
  // The same beside what the ranks hold when they train. Errors of the run, too.
  absl::StatusOr<std::vector<RankMemory>> AndMeasured(const PlannedJob& planned, Devices devices = Devices::kHosts);

 private:
  absl::StatusOr<ComputeProfile> ProfileOf(const TinyJob& job);

  std::map<std::string, ComputeProfile> profiles_;
};

}  // namespace motley::engine
