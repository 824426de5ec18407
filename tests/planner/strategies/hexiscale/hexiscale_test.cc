// hexiscale, as published and tuned, and against the exhaustive optimum of its own problem.
#include <gtest/gtest.h>

#include <set>

#include "planner/pricing/evaluate.h"
#include "planner/strategies/catalog.h"
#include "planner/strategies/hexiscale/hexiscale_search.h"
#include "tests/planner/strategies/hexiscale/hexiscale_layouts.h"
#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

void ExpectHexiscale(const Setting& setting, const Plan& plan) {
  EXPECT_TRUE(Validate(plan, setting.workload.model).ok()) << Validate(plan, setting.workload.model);
  const Evaluation evaluation = Evaluate(setting, plan).value();
  EXPECT_TRUE(evaluation.does_not_fit.empty()) << evaluation.does_not_fit[0];
  EXPECT_EQ(plan.schedule, ScheduleFamily::k1F1B);
  for (const PipelinePlan& pipeline : plan.pipelines) {
    for (const StagePlan& stage : pipeline.stages) {
      ASSERT_EQ(stage.units.size(), 1u);
      std::set<std::string> nodes, models;
      for (const RankPlan& rank : stage.units[0].ranks) {
        nodes.insert(NodeOf(rank.device).value());
        models.insert(rank.device_model);
        EXPECT_NEAR(rank.tp_share, 1.0 / static_cast<double>(stage.units[0].ranks.size()), 1e-12);
      }
      EXPECT_EQ(nodes.size(), 1u);
      EXPECT_EQ(models.size(), 1u);
      EXPECT_LE(static_cast<int>(stage.units[0].ranks.size()), setting.request.max_tp);
      EXPECT_EQ(setting.workload.model.num_heads % static_cast<int64_t>(stage.units[0].ranks.size()), 0);
    }
  }
}

TEST(Hexiscale, PublishedAndTunedFitOnThePapersSettings) {
  for (const char* preset : {"hexiscale-1", "hexiscale-2", "zorse-b"}) {
    const auto published = PresetSetting(preset, "llama2-7b", 128, 1024, Published()),
               tuned = PresetSetting(preset, "llama2-7b", 128, 1024);
    const Plan a = PlanHexiscale(*published).value(), b = PlanHexiscale(*tuned).value();
    ExpectHexiscale(*published, a);
    ExpectHexiscale(*tuned, b);
    EXPECT_LE(b.predicted.step_seconds, a.predicted.step_seconds * 1.0001) << preset;
    for (const PipelinePlan& pipeline : a.pipelines) {
      for (const StagePlan& stage : pipeline.stages) EXPECT_EQ(stage.units[0].ranks[0].recompute, OpSet::All());
    }
  }
}

TEST(Hexiscale, EveryDeviceIsUsed) {
  const auto setting = PresetSetting("hexiscale-2", "llama2-7b", 128, 1024);
  const Plan plan = PlanHexiscale(*setting).value();
  size_t devices = 0;
  for (const PipelinePlan& pipeline : plan.pipelines) {
    for (const StagePlan& stage : pipeline.stages) devices += stage.units[0].ranks.size();
  }
  EXPECT_EQ(devices, static_cast<size_t>(setting->num_devices()));
}

TEST(Hexiscale, TensorParallelismIsLimitedByTheRequest) {
  PlanRequest request;
  request.max_tp = 1;
  const auto setting = PresetSetting("hexiscale-2", "llama2-7b", 128, 1024, request);
  ExpectHexiscale(*setting, PlanHexiscale(*setting).value());
}

TEST(Hexiscale, PinsDecideStages) {
  PlanRequest request;
  request.pins = {{"stage0", "slow"}};
  const auto setting =
      SettingOf(ClusterText({{"fast", Cards("A100-40GB", 2)}, {"slow", Cards("T4", 2)}}), "gpt2-1.5b", 32, 512, request);
  const Plan plan = PlanHexiscale(*setting).value();
  ExpectHexiscale(*setting, plan);
  for (const PipelinePlan& pipeline : plan.pipelines) {
    for (size_t s = 1; s < pipeline.stages.size(); ++s) EXPECT_EQ(pipeline.stages[s].units[0].ranks[0].device_model, "A100-40GB");
  }
}

TEST(Hexiscale, PinsThatCannotBeObeyed) {
  PlanRequest request;
  request.pins = {{"stage13", "n1/gpu0"}};  // the model has 12 layers
  const auto setting = SettingOf(ClusterText({{"n1", Cards("T4", 16)}}), "gpt2-124m", 32, 512, request);
  EXPECT_EQ(PlanHexiscale(*setting).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Hexiscale, TooLargeNamesDeviceAndBytes) {
  const auto setting = SettingOf(ClusterText({{"n1", Cards("T4", 2)}}), "llama-65b", 16, 1024);
  const absl::Status status = PlanHexiscale(*setting).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(std::string(status.message()).find("n1/gpu"), std::string::npos) << status;
  EXPECT_NE(std::string(status.message()).find("lacks"), std::string::npos) << status;
}

TEST(Hexiscale, EqualQuestionsEqualPlans) {
  const auto a = PresetSetting("hexiscale-1", "llama2-7b", 128, 1024), b = PresetSetting("hexiscale-1", "llama2-7b", 128, 1024);
  EXPECT_EQ(ToJson(PlanHexiscale(*a).value()), ToJson(PlanHexiscale(*b).value()));
}

// Reference: HexiScale appendix D compares with an MILP optimum, with gaps up to 5.7 %. The goal here is 1 %.
TEST(Hexiscale, WithinOnePercentOfTheExhaustiveOptimum) {
  const std::vector<std::vector<NodeText>> clusters = {
      {{"n1", Cards("A100-40GB", 1)}, {"n2", Cards("T4", 2)}},
      {{"n1", Cards("V100-16GB", 2)}, {"n2", Cards("T4", 1)}},
      {{"n1", Cards("RTX-3090", 1)}, {"n2", Cards("T4", 1)}, {"n3", Cards("V100-16GB", 1)}},
      {{"n1", Cards("T4", 3)}},
      {{"n1", Cards("V100-16GB", 2)}, {"n2", Cards("T4", 2)}},
  };
  for (const std::vector<NodeText>& nodes : clusters) {
    for (double nic : {1.0, 100.0}) {
      const auto setting = SettingOf(ClusterText(nodes, nic), "gpt2-124m", 5, 512);
      HexiscaleProblem problem(*setting, /*shared_links=*/false);
      auto search = HexiscaleSearch::Create(*setting, &problem, /*limits=*/{});
      ASSERT_TRUE(search.ok());
      const double found = search->Run(PartitionIntoPipelines(*setting), 1).value()[0].seconds;
      const double optimum = EveryHexiscaleLayout(*setting, &problem).Best();
      EXPECT_GE(found, optimum * (1 - 1e-9)) << nodes[0].cards << " " << nic;
      EXPECT_LE(found, optimum * 1.01) << nodes[0].cards << " " << nic;
    }
  }
}

// The tokens of all of a step's samples, although few of them are in flight.
TEST(HexiscaleProblem, MemoryIsThatOfTheWholeBatch) {
  PlanRequest request;
  request.runnable = true;
  request.memory_reserve = 0.9999;
  const auto setting = PresetSetting("hexiscale-2", "llama2-7b", 1024, 1024, request);
  HexiscaleProblem problem(*setting, /*shared_links=*/true);
  const StageShape shape = problem.ShapeOf(std::vector<int>{0});
  const auto missing = [&](int stage, int stages, int64_t count) {
    return problem.MissingBytes(shape, stage, stages, /*m=*/1, count, /*keep=*/false, /*replicas=*/2, /*zero_stage=*/1);
  };
  const Costs& costs = setting->costs;
  const int64_t tokens = costs.SavedBytes(shape.kind, UnitKind::kEmbedding, OpSet::None(), 1000);
  EXPECT_EQ(missing(0, 1, 1002) - missing(0, 1, 2), tokens);
  EXPECT_EQ(missing(0, 3, 1003) - missing(0, 3, 3), tokens);
  EXPECT_EQ(missing(1, 3, 1003), missing(1, 3, 3));
}

TEST(HexiscaleProblem, SharedLinksNeverSynchroniseFaster) {
  const auto setting = PresetSetting("hexiscale-1", "llama2-7b", 128, 1024);
  HexiscaleProblem alone(*setting, false), shared(*setting, true);
  auto search = HexiscaleSearch::Create(*setting, &alone, /*limits=*/{});
  const std::vector<PricedLayout> layouts = search->Run(PartitionIntoPipelines(*setting), 8).value();
  for (const PricedLayout& priced : layouts) {
    EXPECT_GE(shared.SyncSeconds(priced.layout), alone.SyncSeconds(priced.layout) * (1 - 1e-12));
    EXPECT_NEAR(alone.StepSeconds(priced.layout), priced.seconds, 1e-9 * priced.seconds);
  }
}

}  // namespace
}  // namespace motley::planner
