// What binds a plan, found by planning again with one resource relaxed; and what wrong profiles would cost.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/costs/latency_book.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct Relaxation {
  std::string what;      // "memory of L4: 25 % more", "one more A6000 in n1"
  std::string resource;  // "memory of L4": what binds, if this gains most
  double gain = 0;       // 0.19 = steps are 19 % shorter
};

struct Sensitivity {
  std::vector<Relaxation> relaxations;  // best first
  std::string binding;                  // resource of the best; "nothing alone" below 2 %
  // Seconds lost, as part of the best step, when the plan is made with every card's latencies wrong by up to 10 % either way.
  double regret_mean = 0, regret_worst = 0;
  int regret_trials = 0;
};

// Plans again some twenty times with the strategy of `setting`; `best` is its answer there. Deterministic (fixed seeds).
// `progress`, where given, is called before every planning with what is asked and how many are done of how many.
using SensitivityProgress = std::function<void(const std::string& question, int done, int total)>;
Sensitivity FindSensitivity(const Setting& setting, const Plan& best, const LatencyBook* book,
                            const SensitivityProgress& progress = nullptr);

// For people, several lines.
std::string ToText(const Sensitivity& sensitivity);

}  // namespace motley::planner
