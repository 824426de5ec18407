// Is it worth it: what is lost without each node, what one machine does alone, and the best plan that the engine runs. Each is
// the answer of a planning of its own, with the same request.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "planner/costs/latency_book.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct NodeWorth {
  // Nodes with the same cards, links and prices: leaving out any of them leaves the same cluster.
  std::vector<NodeName> alike;
  absl::Status status;      // of the cluster without one of them: RESOURCE_EXHAUSTED: nothing fits there
  double step_seconds = 0;  // 0: no plan, see status
};

// The fastest of the plans that stay within one node.
struct BestMachine {
  NodeName node;
  double step_seconds = 0;
};

// Half the samples a step, where that takes less than half of its time: more of them are kept, or fewer recomputed.
struct HalfBatch {
  int64_t global_batch = 0;
  double step_seconds = 0;  // of one such step
};

struct Worth {
  std::vector<NodeWorth> without;      // in the cluster's order; empty where it has one node
  std::optional<BestMachine> machine;  // nothing: no node alone holds the job, or there is one node
  absl::Status no_machine;             // then: why the machine that could be fastest has no plan
  std::optional<Plan> runnable;        // where `best` does not run here and another does
  absl::Status not_runnable;           // why there is no such plan
  std::optional<HalfBatch> half;       // where it makes more tokens a second
};

// Called before each planning, one call at a time, with what is asked, and how many were asked of at most how many.
using WorthProgress = std::function<void(const std::string& question, int done, int total)>;

// Plans with the setting's strategy, once for each kind of node, once for each node that could be the best machine (those whose
// lower bound is above a plan that was found are not asked), once for half the batch, and once for what runs here where `best`,
// the setting's answer, does not. `book` as the setting was made with.
Worth FindWorth(const Setting& setting, const Plan& best, const LatencyBook* book, const WorthProgress& progress = nullptr);

// For people, a line each, against `best`: "  without old: 15.0k tokens/s, 31 % fewer".
std::string ToText(const Worth& worth, const Plan& best);

}  // namespace motley::planner
