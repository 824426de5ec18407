// Halves of a backward and parts of a unit, as measured: what planning has of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/live/live_inputs.h"
#include "planner/live/planner.h"
#include "tests/planner/live/setting_from_texts.h"

namespace motley::planner {
namespace {

// Every unit in halves, and a quarter of it.
void MeasureHalvesAndQuarter(PlannerInput* input) {
  for (ComputeProfile& profile : input->compute) {
    for (UnitProfile* unit : {&profile.embedding, &profile.layer, &profile.head}) {
      unit->part = 0.25;
      for (ComputePoint& point : unit->points) {
        point.backward_input_seconds = 0.75 * point.backward_seconds;
        point.backward_weight_seconds = 0.5 * point.backward_seconds;
        point.part_forward_seconds = 0.4 * point.forward_seconds;
        point.part_backward_seconds = 0.3 * point.backward_seconds;
      }
    }
  }
}

TEST(LiveInputs, TheSettingHasTheDevicesHalvesAndPart) {
  PlannerInput input = Mixed();
  MeasureHalvesAndQuarter(&input);
  const auto setting = SettingFromTexts(input, {});
  const Costs& costs = setting->costs;
  for (int d = 0; d < setting->num_devices(); ++d) {
    const int kind = setting->KindOf(d);
    const ComputeProfile& profile = input.compute[d];
    EXPECT_DOUBLE_EQ(costs.BackwardInputSeconds(kind, UnitKind::kLayer, 4), profile.layer.points[2].backward_input_seconds);
    EXPECT_DOUBLE_EQ(costs.BackwardWeightSeconds(kind, UnitKind::kHead, 8), profile.head.points[3].backward_weight_seconds);
    EXPECT_DOUBLE_EQ(costs.ForwardSeconds(kind, UnitKind::kHead, 2, 0.25), profile.head.points[1].part_forward_seconds);
    EXPECT_DOUBLE_EQ(costs.BackwardSeconds(kind, UnitKind::kLayer, 1, 0.25), profile.layer.points[0].part_backward_seconds);
  }
}

// A device alone takes what its instructions take.
TEST(LiveInputs, AZeroBubblePlanIsPricedByTheHalves) {
  const auto step = [](bool halves, const char* schedule) {
    PlannerInput input = MakeInput(SmallModel(), {{"n1/gpu0", "L4"}}, 8);
    if (halves) MeasureHalvesAndQuarter(&input);
    input.config.planner.plan_json = absl::StrCat(R"({"schedule":")", schedule, R"(","pipelines":[{"stages":[{"units":[
        {"ranks":[{"device":"n1/gpu0","shard_ratio":1}],"microbatches":[4,4]}]}]}]})");
    const auto planned = MakePlan(input);
    EXPECT_TRUE(planned.ok()) << planned.status();
    return planned->plan.predicted.step_seconds;
  };
  double backward = 0;
  const PlannerInput input = MakeInput(SmallModel(), {{"n1/gpu0", "L4"}}, 8);
  backward += 2 * input.compute[0].embedding.points[2].backward_seconds;
  backward += 2 * static_cast<double>(input.model.num_layers) * input.compute[0].layer.points[2].backward_seconds;
  backward += 2 * input.compute[0].head.points[2].backward_seconds;
  EXPECT_NEAR(step(true, "zero_bubble") - step(false, "zero_bubble"), 0.25 * backward, 1e-9);
  EXPECT_NEAR(step(true, "1f1b"), step(false, "1f1b"), 1e-12);
}

// Half of a backward may take nothing (an embedding's first), and then a file has the least that it may hold.
TEST(LiveInputs, HalvesAreOfAllPointsOrNone) {
  PlannerInput input = Mixed();
  MeasureHalvesAndQuarter(&input);
  for (ComputePoint& point : input.compute[0].embedding.points) point.backward_input_seconds = 0;
  ComputePoint& last = input.compute[1].layer.points.back();
  last.backward_input_seconds = last.backward_weight_seconds = 0;
  last.part_forward_seconds = last.part_backward_seconds = 0;
  const LiveInputs live = Described(input);
  EXPECT_LT(live.profile.cards[0].embedding->backward_input_seconds.back(), 1e-7);
  EXPECT_EQ(live.profile.cards[0].embedding->backward_weight_seconds.size(), 4u);
  EXPECT_TRUE(live.profile.cards[1].layer.backward_input_seconds.empty());
  EXPECT_EQ(live.profile.cards[1].layer.part, 0);
  EXPECT_EQ(live.profile.cards[1].head->part, 0.25);
  EXPECT_FALSE(SettingFromTexts(input, {})->costs.provenance(0).estimated);
}

TEST(LiveInputs, HalvesAndPartsAreMeansToo) {
  PlannerInput input = Mixed();
  MeasureHalvesAndQuarter(&input);
  const double part = input.compute[2].layer.points[1].part_forward_seconds;
  const double half = input.compute[2].layer.points[1].backward_input_seconds;
  input.compute[3].layer.points[1].part_forward_seconds *= 1.5;
  input.compute[3].layer.points[1].backward_input_seconds *= 1.5;
  const LiveInputs noisy = Described(input);
  ASSERT_EQ(noisy.cluster.kinds.size(), 4u) << "whole passes decide";
  EXPECT_NEAR(noisy.profile.cards[2].layer.part_forward_seconds[1], 1.25 * part, 1e-15);
  EXPECT_NEAR(noisy.profile.cards[2].layer.backward_input_seconds[1], 1.25 * half, 1e-15);
  input.compute[3].head.part = 0.5;
  EXPECT_EQ(Described(input).cluster.kinds.size(), 5u) << "there is no mean of two parts";
}

}  // namespace
}  // namespace motley::planner
