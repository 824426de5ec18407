// What could be trained on a cluster: `motley estimate` without a model. Each preset, whether it fits, whether it runs, about how
// fast.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/cluster/cluster.h"
#include "planner/costs/latency_book.h"
#include "planner/costs/workload.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct PresetFit {
  std::string model;
  int64_t parameters = 0;
  int64_t seq_len = 0;        // as asked, or the model's positions where those are fewer
  absl::Status fits;          // OK, or what the plan lacks that comes nearest
  int64_t lacking_bytes = 0;  // of its fullest device; 0: it fits, or memory is not the matter
  int64_t host_bytes = 0;     // of a plan that fits, in the hosts' memory; 0 where one runs here
  absl::Status runs_here;     // with the state that the engine keeps
  double step_seconds = 0;    // of the quick search's fastest plan that runs here, else of any; 0: it found none
  double tokens_per_second() const { return step_seconds > 0 ? tokens / step_seconds : 0; }
  double tokens = 0;  // of a step
};

// Called after each, one call at a time, with how many are done of how many.
using PresetProgress = std::function<void(int done, int total)>;

// One for each of ModelPresets(): what runs here first, then what fits, each with the largest model first; then what does not,
// with the one first that lacks least. Batch, sequence, dtype and bytes of state are `asked`'s; its model counts for nothing.
// Errors of the cluster, the request or the workload.
absl::StatusOr<std::vector<PresetFit>> FindPresetFits(const Cluster& cluster, const Workload& asked, const PlanRequest& request,
                                                      const LatencyBook* book, const PresetProgress& progress = nullptr);

}  // namespace motley::planner
