// Whether something fits and about how fast it is, of a short search: for questions that ask of many settings.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/setting/setting.h"

namespace motley::planner {

// Search nodes of one try: whether something fits shows early.
inline constexpr int64_t kTryBudget = 20'000;

struct QuickPlan {
  double step_seconds = 0;       // the fastest's
  double runs_here_seconds = 0;  // of the fastest that the engine runs; 0: none of them runs
};

// What a setting's strategy is asked as: itself, or of auto the quick strategies. They take milliseconds, and between them shard,
// offload, cut into stages and into tensor-parallel parts.
std::vector<std::string> QuickStrategies(const PlanRequest& request);

// Of these strategies' plans; nothing where none of them fits. `out_of_time`, where given, is asked before each.
std::optional<QuickPlan> FindQuickPlan(Setting& setting, const std::vector<std::string>& strategies,
                                       const std::function<bool(PlanRequest*)>& out_of_time = nullptr);

}  // namespace motley::planner
