// The best plan of the language on a tiny setting: all plans (all_plans.h), less those that cannot fit or be faster than the best
// so far (plan_floor.h), priced.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>

#include "planner/pricing/evaluate.h"
#include "planner/pricing/price.h"
#include "planner/view/plan_view.h"
#include "tests/planner/all_plans.h"
#include "tests/planner/plan_floor.h"

namespace motley::planner {

struct BestOfAllPlans {
  double seconds = std::numeric_limits<double>::infinity();  // of the best; what was asked to be beaten where nothing does
  Plan plan;                                                 // empty where nothing does
  int64_t seen = 0;    // plans enumerated, those under a choice that was passed over not counted
  int64_t passed = 0;  // choices of layers, batches and recomputation that no plan under them can be worth
  int64_t simulated = 0;
};

// Plans must fit and take less than `to_beat` seconds.
inline BestOfAllPlans FindBestOfAllPlans(const Setting& setting, AllPlansGrid grid,
                                         double to_beat = std::numeric_limits<double>::infinity()) {
  constexpr double kTie = 1 - 1e-9;
  constexpr double kClassesOff = 1.3;  // Evaluate's seconds over the programs'
  constexpr ViewOptions kUnmerged{false, false};
  BestOfAllPlans best;
  best.seconds = to_beat;
  AllPlans(setting, std::move(grid))
      .ForEach(
          [&](const Plan& plan) {
            const auto view = ViewOf(setting, plan, kUnmerged);
            if (view.ok() && PlanFloor(setting, *view).ComputeSeconds(/*any_schedule=*/true) < best.seconds * kTie) return true;
            ++best.passed;
            return false;
          },
          [&](const Plan& plan) {
            ++best.seen;
            const auto view = ViewOf(setting, plan, kUnmerged);
            if (!view.ok() || !MayFit(setting, *view) || PlanFloor(setting, *view).Seconds() >= best.seconds * kTie) return;
            ++best.simulated;
            const auto evaluation = Evaluate(setting, plan);
            if (!evaluation.ok() || evaluation->plan.predicted.step_seconds >= best.seconds * kClassesOff) return;
            auto priced = Price(setting, plan);
            if (!priced.ok() || !priced->does_not_fit.empty()) return;
            if (priced->plan.predicted.step_seconds >= best.seconds * kTie) return;
            best.seconds = priced->plan.predicted.step_seconds;
            best.plan = std::move(priced->plan);
          });
  return best;
}

}  // namespace motley::planner
