// zorse, as published and tuned.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "planner/pricing/evaluate.h"
#include "planner/strategies/catalog.h"
#include "planner/strategies/zorse/zorse_model.h"
#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

int64_t LayersOf(const StagePlan& stage) {
  int64_t layers = 0;
  for (const LayerRange& range : stage.ministages) layers += range.last - range.first + 1;
  return layers;
}

void ExpectZorse(const Setting& setting, const Plan& plan) {
  EXPECT_TRUE(Validate(plan, setting.workload.model).ok()) << Validate(plan, setting.workload.model);
  const Evaluation evaluation = Evaluate(setting, plan).value();
  EXPECT_TRUE(evaluation.does_not_fit.empty()) << evaluation.does_not_fit[0];
  ASSERT_EQ(plan.pipelines.size(), 1u);
  EXPECT_EQ(plan.schedule, ScheduleFamily::kLayered);
  size_t devices = 0;
  for (const StagePlan& stage : plan.pipelines[0].stages) {
    EXPECT_EQ(stage.zero_stage, 2);
    for (const UnitPlan& unit : stage.units) {
      ASSERT_EQ(unit.ranks.size(), 1u);
      const OpSet recompute = unit.ranks[0].recompute;
      EXPECT_TRUE(recompute.all() || (recompute.empty() && setting.request.fidelity == Fidelity::kTuned));
      ++devices;
    }
  }
  EXPECT_EQ(devices + plan.unused.size(), static_cast<size_t>(setting.num_devices()));
}

// Slow network: nodes become stages.
const std::vector<NodeText> kTwoNodes = {{"fast", "{card = \"A100-40GB\", count = 2}"}, {"slow", "{card = \"T4\", count = 4}"}};

TEST(Zorse, PublishedKeepsItsOwnLimits) {
  for (const char* preset : {"zorse-a", "zorse-b"}) {
    const auto setting = PresetSetting(preset, "llama-7b", 256, 512, Published());
    const Plan plan = PlanZorse(*setting).value();
    ExpectZorse(*setting, plan);
    std::set<int64_t> sizes;
    for (const StagePlan& stage : plan.pipelines[0].stages) {
      for (const LayerRange& range : stage.ministages) {
        EXPECT_EQ(range.last - range.first, stage.ministages[0].last - stage.ministages[0].first);
      }
      for (const UnitPlan& unit : stage.units) {
        EXPECT_NEAR(unit.ranks[0].shard_ratio, 1.0 / static_cast<double>(stage.units.size()), 1e-12);
        for (int64_t m : unit.microbatches) sizes.insert(m);
      }
    }
    ASSERT_EQ(sizes.size(), 1u);  // 256 is a power of two, so no microbatch is a rest
    EXPECT_EQ(*sizes.begin() & (*sizes.begin() - 1), 0);
  }
}

TEST(Zorse, TunedIsNoSlowerThanPublished) {
  for (const char* preset : {"zorse-a", "zorse-b", "hexiscale-1"}) {
    const auto published = PresetSetting(preset, "llama-7b", 256, 512, Published()),
               tuned = PresetSetting(preset, "llama-7b", 256, 512);
    const Plan a = PlanZorse(*published).value(), b = PlanZorse(*tuned).value();
    ExpectZorse(*tuned, b);
    EXPECT_LE(b.predicted.step_seconds, a.predicted.step_seconds) << preset;
  }
}

TEST(Zorse, SlowNetworkKeepsGroupsInNodesAndLayersFollowSpeed) {
  const auto setting = SettingOf(ClusterText(kTwoNodes, 2), "gpt2-1.5b", 64, 1024);
  const Plan plan = PlanZorse(*setting).value();
  ExpectZorse(*setting, plan);
  int64_t fast = 0, slow = 0;
  for (const StagePlan& stage : plan.pipelines[0].stages) {
    std::set<std::string> nodes;
    for (const UnitPlan& unit : stage.units) nodes.insert(NodeOf(unit.ranks[0].device).value());
    EXPECT_EQ(nodes.size(), 1u);
    (nodes.contains("fast") ? fast : slow) += LayersOf(stage);
  }
  EXPECT_GT(fast, slow);
}

TEST(Zorse, OneDeviceIsOneStage) {
  const auto setting = SettingOf(ClusterText({{"n1", Cards("A100-40GB", 1)}}), "gpt2-124m", 8, 512);
  const Plan plan = PlanZorse(*setting).value();
  ExpectZorse(*setting, plan);
  EXPECT_EQ(plan.pipelines[0].stages.size(), 1u);
}

TEST(Zorse, OffloadsOnlyToKnownHostMemory) {
  const std::string unknown = ClusterText(kTwoNodes, 25);
  for (const PlanRequest& request : {Published(), PlanRequest()}) {
    const auto setting = SettingOf(unknown, "gpt2-1.5b", 64, 1024, request);
    const Plan plan = PlanZorse(*setting).value();
    for (const StagePlan& stage : plan.pipelines[0].stages) {
      for (const UnitPlan& unit : stage.units)
        EXPECT_FALSE(unit.ranks[0].offload.parameters || unit.ranks[0].offload.activations);
    }
  }
  const auto known = PresetSetting("zorse-b", "llama-33b", 512, 512, Published());
  const Plan plan = PlanZorse(*known).value();
  ExpectZorse(*known, plan);
  EXPECT_TRUE(plan.pipelines[0].stages[0].units[0].ranks[0].offload.parameters);
}

// As the paper does where parameters wait on the host; in a job only where nothing global decides a step.
TEST(Zorse, UnitsStepInTurnWhereAJobAllowsIt) {
  const std::string cluster = absl::StrCat(ClusterText({{"n1", Cards("T4", 2)}}), "host_memory_gib = 256\n");
  for (const bool in_turn : {false, true}) {
    PlanRequest request;
    request.runnable = true;
    request.steps_in_turn = in_turn;
    request.offload = {.activations = true, .parameters = true};
    const auto setting = SettingOf(cluster, in_turn ? "gpt2-1.5b" : "gpt2-774m", 64, 1024, request, DType::kBFloat16);
    const absl::StatusOr<Plan> plan = PlanZorse(*setting);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ExpectZorse(*setting, *plan);
    bool offloads = false;
    ForEachRank(*plan, [&](const RankPlan& rank) { offloads |= rank.offload.parameters; });
    EXPECT_EQ(plan->optimizer_steps, in_turn && offloads ? OptimizerSteps::kInTurn : OptimizerSteps::kAtEnd);
    EXPECT_EQ(offloads, in_turn) << "the larger model has no room for its parameters";
  }
}

// Its moments stay on the devices, as the paper's do, unless nothing fits so.
TEST(Zorse, MomentsWaitOnTheHostWhereNothingElseFits) {
  const std::string cluster = absl::StrCat(ClusterText({{"n1", Cards("T4", 2)}}), "host_memory_gib = 256\n");
  PlanRequest request;
  request.runnable = true;
  for (const auto& [model, on_host] : {std::pair("gpt2-774m", false), std::pair("llama-3b", true)}) {
    const auto setting = SettingOf(cluster, model, 64, 1024, request);
    const absl::StatusOr<Plan> plan = PlanZorse(*setting);
    ASSERT_TRUE(plan.ok()) << model << ": " << plan.status();
    ExpectZorse(*setting, *plan);
    ForEachRank(*plan, [&, host = on_host](const RankPlan& rank) {
      EXPECT_EQ(rank.offload.optimizer, host);
      EXPECT_EQ(rank.offload.gradients, host) << "stepped at the end, they wait beside the moments";
    });
  }
  request.offload = {.activations = true, .parameters = true};
  EXPECT_TRUE(absl::IsResourceExhausted(PlanZorse(*SettingOf(cluster, "llama-3b", 64, 1024, request)).status()));
}

TEST(Zorse, PinsDecideStages) {
  PlanRequest request;
  request.pins = {{"stage1", "fast"}, {"stage0", "slow"}};
  const auto setting = SettingOf(ClusterText(kTwoNodes), "gpt2-1.5b", 64, 1024, request);
  const Plan plan = PlanZorse(*setting).value();
  ExpectZorse(*setting, plan);
  ASSERT_GE(plan.pipelines[0].stages.size(), 2u);
  for (const UnitPlan& unit : plan.pipelines[0].stages[0].units) EXPECT_EQ(unit.ranks[0].device_model, "T4");
  for (const UnitPlan& unit : plan.pipelines[0].stages[1].units) EXPECT_EQ(unit.ranks[0].device_model, "A100-40GB");
}

TEST(Zorse, PinsThatCannotBeObeyed) {
  PlanRequest request;
  request.pins = {{"stage13", "n1/gpu0"}};  // the model has 12 layers
  const auto setting = SettingOf(ClusterText({{"n1", Cards("T4", 16)}}), "gpt2-124m", 64, 1024, request);
  EXPECT_EQ(PlanZorse(*setting).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Zorse, TooLargeNamesDeviceAndBytes) {
  const auto setting = SettingOf(ClusterText({{"n1", Cards("T4", 2)}}), "llama-65b", 16, 1024);
  const absl::Status status = PlanZorse(*setting).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(std::string(status.message()).find("n1/gpu"), std::string::npos) << status;
  EXPECT_NE(std::string(status.message()).find("lacks"), std::string::npos) << status;
}

TEST(Zorse, EqualQuestionsEqualPlans) {
  const auto a = PresetSetting("zorse-b", "llama-13b", 512, 512), b = PresetSetting("zorse-b", "llama-13b", 512, 512);
  EXPECT_EQ(ToJson(PlanZorse(*a).value()), ToJson(PlanZorse(*b).value()));
}

TEST(Zorse, SmallBudgetStillAnswers) {
  PlanRequest request;
  request.budget_nodes = 40;
  const auto setting = PresetSetting("zorse-a", "llama-7b", 128, 512, request);
  ExpectZorse(*setting, PlanZorse(*setting).value());
}

TEST(ZorseModel, BatchesFollowSpeedAndAddUp) {
  const auto setting = SettingOf(ClusterText(kTwoNodes), "gpt2-1.5b", 61, 1024);
  const ZorseModel model(*setting);
  const ZorseGroup group = model.Group({0, 1, 2, 3, 4, 5});
  for (bool whole : {false, true}) {
    for (int64_t m : {1, 4, 7, 64}) {
      const ZorseLoad load = model.Split(group, m, whole, true);
      int64_t batch = 0;
      for (const ZorseLoad::Member& member : load.members) {
        batch += member.batch();
        EXPECT_LE(member.size, m);
        EXPECT_LT(member.last, std::max<int64_t>(1, member.size));
      }
      EXPECT_EQ(batch, 61);
      if (m < 8) {
        EXPECT_GT(load.members[0].batch(), load.members[5].batch());
      }
    }
  }
}

TEST(ZorseModel, LayersWithinMemoryAreTheBestForTheSlowestStage) {
  const auto setting = SettingOf(ClusterText(kTwoNodes), "gpt2-1.5b", 32, 1024);
  const ZorseModel model(*setting);
  const ZorseGroup fast = model.Group({0, 1}), slow = model.Group({2, 3, 4, 5});
  const ZorseLoad a = model.Split(fast, 2, false, true), b = model.Split(slow, 2, false, true);
  ZorseChoice choice;
  choice.groups = {&fast, &slow};
  choice.loads = {&a, &b};
  choice.microbatch = 2;
  ASSERT_TRUE(model.SplitLayersByMemory(false, &choice));
  ASSERT_EQ(choice.layers.size(), 2u);
  EXPECT_EQ(choice.layers[0] + choice.layers[1], 48);
  EXPECT_EQ(model.Fit(choice, false).missing_bytes, 0);
  // Embedding and head make up for a few percent.
  const auto slowest = [&] {
    return std::max(static_cast<double>(choice.layers[0]) * a.layer_seconds(),
                    static_cast<double>(choice.layers[1]) * b.layer_seconds());
  };
  const double seconds = slowest();
  for (int64_t first = 1; first < 48; ++first) {
    choice.layers = {first, 48 - first};
    if (model.Fit(choice, false).missing_bytes > 0) continue;
    EXPECT_GE(slowest(), 0.93 * seconds) << first;
  }
}

// Embedding or head, both passes, slowest device.
double Extra(const Setting& setting, const ZorseGroup& group, const ZorseLoad& load, UnitKind unit) {
  double worst = 0;
  for (size_t i = 0; i < group.devices.size(); ++i) {
    const ZorseLoad::Member& member = load.members[i];
    const auto seconds = [&](int64_t samples) {
      const double m = static_cast<double>(samples);
      return setting.costs.ForwardSeconds(group.kinds[i], unit, m) + setting.costs.BackwardSeconds(group.kinds[i], unit, m);
    };
    worst = std::max(worst, static_cast<double>(member.count) * seconds(member.size) + seconds(member.last));
  }
  return worst;
}

// Against all layers and both loads of each stage.
TEST(ZorseModel, StagesRecomputeWhereThatIsFasterWithinMemory) {
  int mixed = 0;
  for (const int64_t batch : {8, 16, 32, 48, 64}) {
    const auto setting = SettingOf(ClusterText(kTwoNodes), "gpt2-1.5b", batch, 1024);
    const ZorseModel model(*setting);
    const ZorseGroup fast = model.Group({0, 1}), slow = model.Group({2, 3, 4, 5});
    ZorseLoad loads[2][2];  // by stage, then recomputing
    for (const bool again : {false, true}) {
      loads[0][again] = model.Split(fast, 2, false, again);
      loads[1][again] = model.Split(slow, 2, false, again);
    }
    const auto slowest = [&](const ZorseChoice& c) {
      return std::max(
          static_cast<double>(c.layers[0]) * c.loads[0]->layer_seconds() +
              Extra(*setting, fast, *c.loads[0], UnitKind::kEmbedding),
          static_cast<double>(c.layers[1]) * c.loads[1]->layer_seconds() + Extra(*setting, slow, *c.loads[1], UnitKind::kHead));
    };
    ZorseChoice choice;
    choice.groups = {&fast, &slow};
    choice.loads = {&loads[0][0], &loads[1][0]};
    choice.microbatch = 2;
    choice.frugal = {&loads[0][1], &loads[1][1]};
    const bool fits = model.SplitLayersByMemory(false, &choice);
    if (fits) EXPECT_EQ(model.Fit(choice, false).missing_bytes, 0);
    if (fits) mixed += choice.loads[0]->recompute != choice.loads[1]->recompute ? 1 : 0;
    ZorseChoice other = choice;
    for (int i = 0; i < 4 * 47; ++i) {
      other.loads = {&loads[0][i % 2], &loads[1][i / 2 % 2]};
      other.layers = {1 + i / 4, 47 - i / 4};
      if (model.Fit(other, false).missing_bytes > 0) continue;
      const bool both_recompute = other.loads[0]->recompute && other.loads[1]->recompute;
      ASSERT_TRUE(fits || both_recompute);
      if (!fits) continue;
      EXPECT_GE(slowest(other), slowest(choice) * (1 - 1e-9)) << batch;
    }
  }
  EXPECT_GT(mixed, 0);
}

}  // namespace
}  // namespace motley::planner
