// EstimatePlan against Evaluate. docs/simulator.md has the measured distance.
#include <cmath>
#include <cstdio>
#include <map>

#include "gtest/gtest.h"
#include "planner/evaluate.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

double WorstMemory(const Setting& setting, const Plan& plan) {
  std::map<DeviceId, int> index;
  for (int d = 0; d < setting.num_devices(); ++d) index[setting.cluster.devices[static_cast<size_t>(d)].id] = d;
  double worst = 0;
  for (const PipelinePlan& pipeline : plan.pipelines) {
    for (const StagePlan& stage : pipeline.stages) {
      for (const UnitPlan& unit : stage.units) {
        for (const RankPlan& rank : unit.ranks) {
          worst = std::max(worst, static_cast<double>(rank.predicted.peak_bytes) /
                                      static_cast<double>(setting.UsableBytes(index[rank.device])));
        }
      }
    }
  }
  return worst;
}

struct Distance {
  double sum = 0, worst = 0;
  int plans = 0;
  void Add(double distance) {
    sum += std::abs(distance);
    worst = std::max(worst, std::abs(distance));
    ++plans;
  }
  double mean() const { return plans > 0 ? sum / plans : 0; }
};

std::map<std::string, Distance> Distances(bool calm) {
  RandomPlans random(29);
  std::map<std::string, Distance> by_schedule;
  for (int i = 0; i < 600; ++i) {
    const auto setting = random.NextSetting(calm);
    const Plan plan = random.Next(*setting);
    if (!Validate(plan, setting->workload.model).ok()) continue;
    const auto evaluation = Evaluate(*setting, plan);
    const auto price = EstimatePlan(*setting, plan);
    EXPECT_TRUE(evaluation.ok() && price.ok()) << evaluation.status() << price.status();
    if (!evaluation.ok() || !price.ok()) continue;
    const double step = evaluation->plan.predicted.step_seconds;
    const std::string kind = plan.pipelines.size() > 1              ? "several pipelines"
                             : plan.pipelines[0].stages.size() == 1 ? "one stage"
                                                                    : std::string(ScheduleName(plan.schedule));
    by_schedule[kind].Add(price->step_seconds / step - 1);
    // The graph may keep more in flight than the formula says, never less.
    EXPECT_LE(price->worst_memory, WorstMemory(*setting, evaluation->plan) + 1e-9);
  }
  for (const auto& [kind, distance] : by_schedule) {
    std::printf("%-18s %4d plans: mean %4.1f %%, worst %4.1f %%\n", kind.c_str(), distance.plans, 100 * distance.mean(),
                100 * distance.worst);
  }
  return by_schedule;
}

TEST(EstimateTest, StaysCloseToTheSimulatorWhereLinksAreNotContended) {
  for (const auto& [kind, distance] : Distances(true)) EXPECT_LT(distance.mean(), 0.05) << kind;
}

TEST(EstimateTest, IsOfTheRightSizeWhereTheyAre) {
  for (const auto& [kind, distance] : Distances(false)) EXPECT_LT(distance.mean(), 0.3) << kind;
}

}  // namespace
}  // namespace motley::planner
