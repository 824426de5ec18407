// What would make a plan's step shorter, found by planning again with more of one thing that the plan uses; and what wrong
// profiles would cost. What binds the plan as it is says its prediction.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/costs/latency_book.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct Relaxation {
  std::string what;      // "25 % more memory on every L4", "one more A6000"
  std::string resource;  // "memory of L4": what there is more of
  double gain = 0;       // 0.19 = steps are 19 % shorter
};

struct Sensitivity {
  std::vector<Relaxation> relaxations;  // best first
  std::string helps_most;               // the best one's `what`; "nothing alone" below 2 %
  // Seconds lost, as part of the best step, when the plan is made with every card's latencies wrong by up to 10 % either way.
  double regret_mean = 0, regret_worst = 0;
  int regret_trials = 0;
};

// Plans again up to some twenty times with the strategy of `setting`; `best` is its answer there. Deterministic (fixed seeds).
// `progress`, where given, is called before every planning with what is asked and how many are done of how many.
using SensitivityProgress = std::function<void(const std::string& question, int done, int total)>;
Sensitivity FindSensitivity(const Setting& setting, const Plan& best, const LatencyBook* book,
                            const SensitivityProgress& progress = nullptr);

// For people, several lines.
std::string ToText(const Sensitivity& sensitivity);

}  // namespace motley::planner
