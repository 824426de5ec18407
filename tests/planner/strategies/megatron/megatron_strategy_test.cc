#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/groups/megatron_layout.h"
#include "planner/pricing/evaluate.h"
#include "planner/strategies/catalog.h"
#include "planner/strategies/megatron/megatron_cut.h"
#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(MegatronStrategyTest, PlansAreValidFitAndUseEveryDeviceOnceOrSayWhyNot) {
  for (const PlanRequest& request : {PlanRequest(), Published()}) {
    for (const char* cluster : {"baton", "cephalo-b", "zorse-a", "poplar-c"}) {
      const auto setting = PresetSetting(cluster, "llama-1.1b", 96, 1024, request);
      const absl::StatusOr<Plan> plan = PlanMegatron(*setting);
      ASSERT_TRUE(plan.ok()) << cluster << ": " << plan.status();
      ExpectFitsAndNamesEveryDevice(*setting, *plan);
    }
  }
}

TEST(MegatronStrategyTest, PublishedIsUniform) {
  const auto setting = PresetSetting("cephalo-b", "llama-7b", 256, 512, Published());
  const Plan plan = PlanMegatron(*setting).value();
  const StagePlan& first = plan.pipelines.at(0).stages.at(0);
  for (const StagePlan& stage : plan.pipelines[0].stages) {
    EXPECT_EQ(stage.units.size(), first.units.size());
    EXPECT_EQ(stage.zero_stage, 1);
    for (size_t v = 0; v < stage.ministages.size(); ++v) {
      EXPECT_EQ(stage.ministages[v].last - stage.ministages[v].first, first.ministages[v].last - first.ministages[v].first);
    }
    for (const UnitPlan& unit : stage.units) {
      EXPECT_EQ(unit.microbatches, first.units[0].microbatches);
      EXPECT_EQ(unit.ranks.size(), first.units[0].ranks.size());
      EXPECT_THAT(unit.microbatches.front() & (unit.microbatches.front() - 1), 0);
    }
  }
}

TEST(MegatronStrategyTest, TunedIsNeverSlowerAndGivesFastStagesMoreLayers) {
  for (const char* cluster : {"baton", "cephalo-b", "zorse-a"}) {
    const Plan published = PlanMegatron(*PresetSetting(cluster, "llama-1.1b", 64, 1024, Published())).value();
    const Plan tuned = PlanMegatron(*PresetSetting(cluster, "llama-1.1b", 64, 1024)).value();
    EXPECT_LE(tuned.predicted.step_seconds, published.predicted.step_seconds) << cluster;
  }
  const Plan two =
      PlanMegatron(*SettingOf(ClusterText({{"n1", Cards("A100", 1)}, {"n2", Cards("T4", 1)}}, 1), "gpt2-1.5b", 64, 1024)).value();
  if (two.pipelines[0].stages.size() == 2) {
    const auto layers = [&](size_t s) {
      int64_t count = 0;
      for (const LayerRange& range : two.pipelines[0].stages[s].ministages) count += range.last - range.first + 1;
      return count;
    };
    const bool fast_first = two.pipelines[0].stages[0].units[0].ranks[0].device.value() == "n1/gpu0";
    EXPECT_GT(layers(fast_first ? 0 : 1), layers(fast_first ? 1 : 0));
  }
}

TEST(MegatronStrategyTest, MaxTpHolds) {
  PlanRequest request;
  request.max_tp = 1;
  const Plan plan = PlanMegatron(*PresetSetting("cephalo-b", "llama-7b", 64, 512, request)).value();
  for (const StagePlan& stage : plan.pipelines[0].stages) {
    for (const UnitPlan& unit : stage.units) EXPECT_THAT(unit.ranks, SizeIs(1));
  }
}

TEST(MegatronStrategyTest, NothingFitsNamesDeviceAndBytes) {
  const auto setting = SettingOf(ClusterText({{"n1", Cards("T4", 2)}}), "llama-65b", 16, 512);
  const absl::Status status = PlanMegatron(*setting).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("n1/gpu"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("GiB"));
}

TEST(MegatronStrategyTest, RefusesStagesThatItDoesNotHave) {
  PlanRequest request;
  request.zero_stage = 3;
  const absl::Status status =
      PlanMegatron(*SettingOf(ClusterText({{"n1", Cards("T4", 2)}}), "llama-0.5b", 16, 512, request)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("0 or 1"));
}

TEST(MegatronStrategyTest, PinsHoldOrAreRefused) {
  const std::string cluster = ClusterText({{"n1", Cards("A10G", 1)}, {"n2", Cards("A10G", 1)}});
  PlanRequest request;
  request.pins["stage1"] = "n1";
  request.pins["stage0"] = "n2";
  const absl::Status status = PlanMegatron(*SettingOf(cluster, "llama-0.5b", 16, 512, request)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  request.pins = {{"stage1", "n2"}};
  const Plan plan = PlanMegatron(*SettingOf(cluster, "llama-0.5b", 16, 512, request)).value();
  ASSERT_THAT(plan.pipelines[0].stages, SizeIs(2));
  EXPECT_EQ(plan.pipelines[0].stages[1].units[0].ranks[0].device.value(), "n2/gpu0");
}

TEST(MegatronStrategyTest, TheSameTwice) {
  const auto setting = PresetSetting("cephalo-b", "llama-7b", 128, 512);
  EXPECT_EQ(ToJson(PlanMegatron(*setting).value()), ToJson(PlanMegatron(*setting).value()));
}

TEST(MegatronLayoutTest, GroupsStayInsideNodesAndLeftoversAreNamed) {
  const auto setting = SettingOf(ClusterText({{"n1", Cards("T4", 3)}, {"n2", Cards("T4", 4)}}), "llama-0.5b", 16, 512);
  const MegatronGroups groups = MakeGroups(*setting, {0, 1, 2, 3, 4, 5, 6}, 2);
  EXPECT_THAT(groups.groups, ElementsAre(ElementsAre(0, 1), ElementsAre(3, 4), ElementsAre(5, 6)));
  ASSERT_THAT(groups.unused, SizeIs(1));
  EXPECT_EQ(groups.unused[0].device.value(), "n1/gpu2");
  EXPECT_THAT(groups.unused[0].because, HasSubstr("groups of 2"));
}

TEST(MegatronLayoutTest, DegreesDivideHeads) {
  ModelShape model = LoadModel("llama-7b").value().model;
  EXPECT_THAT(TensorParallelDegrees(model, 8), ElementsAre(1, 2, 4, 8));
  model.num_kv_heads = 4;
  EXPECT_THAT(TensorParallelDegrees(model, 8), ElementsAre(1, 2, 4));
  EXPECT_THAT(TensorParallelDegrees(model, 3), ElementsAre(1, 2));
}

TEST(MegatronLayoutTest, OrdersLeaveOutTheSlowestKinds) {
  const auto setting = SettingOf(ClusterText({{"n1", Cards("T4", 2)}, {"n2", Cards("A100", 2)}}), "llama-0.5b", 16, 512);
  const std::vector<std::vector<int>> orders = DeviceOrders(*setting, {setting->KindOf(2), setting->KindOf(0)}, true);
  EXPECT_THAT(orders, ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(2, 3, 0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(DeviceOrders(*setting, {1, 0}, false), SizeIs(1));
}

// Both replicas' activations cross the one NIC together.
TEST(MegatronCutTest, BordersShareTheNic) {
  const auto setting = SettingOf(ClusterText({{"n1", Cards("T4", 2)}, {"n2", Cards("T4", 2)}}, 8), "llama-0.5b", 16, 512);
  const GroupCut cut = CutGroups(*setting, {{0}, {1}, {2}, {3}}, 2, 2);
  ASSERT_THAT(cut.sends, SizeIs(1));
  EXPECT_NEAR(cut.sends[0].seconds_per_byte, 2 / 1e9, 1e-12);
  EXPECT_THAT(cut.kinds, SizeIs(2));
  const GroupCut alone = CutGroups(*setting, {{0, 1, 2, 3}}, 1, 1);
  EXPECT_THAT(alone.sends, IsEmpty());
  EXPECT_GT(alone.tensor_reduce[0].seconds_per_byte, 0);
  EXPECT_DOUBLE_EQ(alone.links_seconds_per_byte, 0);
}

}  // namespace
}  // namespace motley::planner
