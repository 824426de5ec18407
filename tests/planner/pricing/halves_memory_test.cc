// What searches take pipelines to need whose backwards come in halves, and what they need as they run: what was made again for
// the first half stays until the second.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/plan/virtual_stages.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/price.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

constexpr int kStages = 4, kLayersAStage = 4;

struct Halves {
  ScheduleFamily family;
  int64_t rounds;
  OpSet recompute;
};

class HalvesMemoryTest : public testing::TestWithParam<Halves> {};

TEST_P(HalvesMemoryTest, TheClosedFormIsNearTheProgramsWalk) {
  const auto& [family, rounds, recompute] = GetParam();
  PlanRequest request;
  request.runnable = true;
  auto setting = Setting::Create(Nodes({{"T4", "T4", "T4", "T4"}}),
                                 WorkOf(MediumModel(kStages * kLayersAStage, false), 4 * rounds), request, nullptr);
  ASSERT_TRUE(setting.ok()) << setting.status();
  const VirtualStageMap map = TraitsOf(family).map;
  const auto dealt = DealLayers(kStages * kLayersAStage, kStages, map == VirtualStageMap::kV ? 2 : 1, map);
  PipelinePlan pipeline;
  for (int s = 0; s < kStages; ++s) {
    pipeline.stages.push_back(StageOf(**setting, s, {std::vector<int64_t>(rounds, 4)}, dealt[s], 0, recompute));
  }
  const Plan plan = PlanOf(**setting, family, {pipeline});
  const auto searched = Evaluate(**setting, plan), priced = Price(**setting, plan);
  ASSERT_TRUE(searched.ok() && priced.ok()) << searched.status() << priced.status();
  for (int s = 0; s < kStages; ++s) {
    const auto bytes = [&](const Evaluation& of) {
      const MemoryByPurpose& memory = of.plan.pipelines[0].stages[s].units[0].ranks[0].predicted.memory;
      return static_cast<double>(memory.saved + memory.boundaries + memory.workspace);
    };
    const double taken = bytes(*searched) / bytes(*priced);
    EXPECT_GT(taken, 0.88) << "stage " << s;
    // ZB-V's closed form takes each stage to be full, which fewer rounds than fill the pipeline do not make it.
    const bool fills = TraitsOf(family).map != VirtualStageMap::kV || rounds >= 2 * kStages;
    EXPECT_LT(taken, fills ? 1.12 : 1.5) << "stage " << s;
  }
}

OpSet AllButMatrices() { return OpSet().With(Op::kNorm1).With(Op::kAttention).With(Op::kNorm2).With(Op::kActivation); }

std::vector<Halves> Cases() {
  std::vector<Halves> cases;
  for (const ScheduleFamily family : {ScheduleFamily::kZeroBubble, ScheduleFamily::kZeroBubbleV}) {
    for (const int64_t rounds : {2, 4, 12}) {
      for (const OpSet recompute : {OpSet::None(), AllButMatrices(), OpSet::All()}) cases.push_back({family, rounds, recompute});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Pipelines, HalvesMemoryTest, testing::ValuesIn(Cases()), [](const auto& info) {
  const Halves& halves = info.param;
  const std::string again = halves.recompute.all() ? "all" : halves.recompute == OpSet::None() ? "nothing" : "some";
  return std::string(ScheduleName(halves.family)) + "_" + std::to_string(halves.rounds) + "_again_" + again;
});

}  // namespace
}  // namespace motley::planner
