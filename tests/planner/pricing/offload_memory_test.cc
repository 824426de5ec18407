// What searches take plans to need whose state waits in host memory, on devices and on hosts, and what they need as they run.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "common/program/host_slots.h"
#include "gtest/gtest.h"
#include "planner/plan/each_rank.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/price.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

struct Bytes {
  OffloadKinds kinds;
  int64_t units = 0;    // of the rank, at most
  bool single = false;  // it computes whole ones
  MemoryByPurpose memory;
};

std::vector<Bytes> BytesOf(const Plan& plan) {
  std::vector<Bytes> bytes;
  for (const PipelinePlan& pipeline : plan.pipelines) {
    for (const StagePlan& stage : pipeline.stages) {
      int64_t layers = 0;
      for (const LayerRange& range : stage.ministages) layers += range.last - range.first + 1;
      for (const UnitPlan& unit : stage.units) {
        for (const RankPlan& rank : unit.ranks) {
          bytes.push_back({rank.offload, layers + 2, unit.ranks.size() == 1, rank.predicted.memory});
        }
      }
    }
  }
  return bytes;
}

// Whether a job may run it: several pipelines keep parameters on the device.
bool MayRun(const Plan& plan) {
  bool may = true;
  ForEachRank(plan, [&](const RankPlan& rank) { may &= plan.pipelines.size() == 1 || !rank.offload.parameters; });
  return may;
}

TEST(OffloadMemoryTest, TheClosedFormIsNearTheProgramsWalk) {
  RandomPlans plans(11);
  double sum = 0;
  int ranks = 0, too_little = 0;
  for (int n = 0; n < 250; ++n) {
    const std::unique_ptr<Setting> setting = plans.NextSetting();
    Plan plan = plans.Next(*setting);
    plans.DrawOffload(&plan);
    if (!Validate(plan, setting->workload.model).ok() || !MayRun(plan)) continue;
    const auto searched = Evaluate(*setting, plan), priced = Price(*setting, plan);
    ASSERT_TRUE(searched.ok() && priced.ok()) << searched.status() << priced.status() << "\n" << ToText(plan);
    const std::vector<Bytes> taken = BytesOf(searched->plan), as_run = BytesOf(priced->plan);
    for (size_t r = 0; r < taken.size(); ++r) {
      if (!taken[r].kinds.takes_state()) continue;
      const MemoryByPurpose &closed = taken[r].memory, &walked = as_run[r].memory;
      const double gap = static_cast<double>(walked.total()) / static_cast<double>(closed.total()) - 1;
      sum += std::abs(gap);
      too_little += gap > 0.05;
      ++ranks;
      if (!taken[r].single) continue;
      // Arrays are cut at whole elements. Buffers of other families follow an order that may be another one.
      const int64_t rounding = kHostSlotAlignment * taken[r].units;
      const bool layered = TraitsOf(plan.schedule).by_ministage;
      const auto of_state = [layered](const MemoryByPurpose& m) {
        return m.parameters + m.gradients + m.optimizer + m.slots + (layered ? m.gathered : 0);
      };
      EXPECT_GE(of_state(closed), of_state(walked) - rounding) << "rank " << r << "\n" << ToText(plan);
      if (taken[r].kinds.activations) continue;
      EXPECT_GE(closed.host, walked.host) << "rank " << r << "\n" << ToText(plan);
      EXPECT_LE(closed.host, walked.host + rounding) << "rank " << r << "\n" << ToText(plan);
    }
  }
  std::printf("%d ranks: mean %.1f %%, %d more than 5 %% too little\n", ranks, 100 * sum / ranks, too_little);
  EXPECT_GT(ranks, 400);
  EXPECT_LT(sum, 0.02 * ranks);
  EXPECT_LT(too_little, ranks / 20);
}

}  // namespace
}  // namespace motley::planner
