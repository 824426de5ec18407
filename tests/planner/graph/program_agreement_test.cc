// What is predicted of a plan (Evaluate: merged step graph and memory model) beside what its ranks' programs do: their own graph,
// and their memory walked. In one layered stage both are the same.
#include <algorithm>
#include <numeric>

#include "gtest/gtest.h"
#include "planner/graph/program_graph.h"
#include "planner/memory/program_memory.h"
#include "planner/plan/ownership.h"
#include "planner/plan/placement.h"
#include "planner/pricing/evaluate.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/scheduled.h"

namespace motley::planner {
namespace {

// Of the programs' own graph.
double ProgramSeconds(const Setting& setting, const Plan& plan, const std::vector<Program>& programs) {
  const auto graph = GraphOfPrograms(setting, plan, programs);
  EXPECT_TRUE(graph.ok()) << graph.status();
  const auto timeline = Run(graph->graph);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return ToSeconds(timeline->end);
}

struct Duty {
  double share = 0;
  std::vector<int64_t> microbatches;
  std::string recompute;
};

void ExpectAgreement(const Setting& setting, const std::vector<Duty>& duties) {
  const int64_t layers = setting.workload.model.num_layers;
  StagePlan stage;
  for (size_t u = 0; u < duties.size(); ++u) {
    RankPlan rank;
    rank.device = setting.cluster.devices[u].id;
    rank.shard_ratio = duties[u].share;
    rank.recompute = ParseOpSet(duties[u].recompute).value();
    stage.units.push_back({{rank}, duties[u].microbatches});
  }
  stage.ministages = {{0, layers - 1}};
  Plan whole = PlanOf(setting, ScheduleFamily::kLayered, {{{stage}}});
  GiveOwnership(setting.workload.model, &whole);
  const auto programs = ScheduleAndLower(setting, whole);
  ASSERT_TRUE(programs.ok()) << programs.status();
  const double step = ProgramSeconds(setting, whole, *programs);
  stage.ministages.clear();
  for (int64_t l = 0; l < layers; ++l) stage.ministages.push_back({l, l});
  for (const Plan& plan : {whole, PlanOf(setting, ScheduleFamily::kLayered, {{{stage}}})}) {
    const auto predicted = Evaluate(setting, plan);
    ASSERT_TRUE(predicted.ok()) << predicted.status();
    EXPECT_NEAR(predicted->plan.predicted.step_seconds, step, 1e-6 * step);
    for (size_t u = 0; u < duties.size(); ++u) {
      const RankPrediction& rank = predicted->plan.pipelines[0].stages[0].units[u].ranks[0].predicted;
      const int64_t activations = rank.memory.boundaries + rank.memory.saved + rank.memory.workspace;
      const int64_t walked = PeakActivations(setting.costs, setting.KindOf(static_cast<int>(u)), (*programs)[u]).total();
      const auto samples = static_cast<double>(predicted->plan.pipelines[0].stages[0].units[u].batch());
      const bool as_engine = setting.workload.state == StateKeeping::kEngine;  // the walk is without tokens then
      const int64_t tokens =
          as_engine ? setting.costs.SavedBytes(setting.KindOf(static_cast<int>(u)), UnitKind::kEmbedding, OpSet::None(), samples)
                    : 0;
      EXPECT_NEAR(static_cast<double>(activations), static_cast<double>(walked + tokens), 64) << u;
      int64_t buffers = 0;
      for (const UnitBuffer& buffer : (*programs)[u].parameter_buffers)
        buffers += buffer.elements * setting.costs.element_bytes();
      for (const UnitBuffer& buffer : (*programs)[u].gradient_buffers)
        buffers += buffer.elements * setting.costs.gradient_bytes();
      EXPECT_EQ(rank.memory.gathered, buffers) << u;
      EXPECT_EQ(rank.memory.total(), rank.peak_bytes) << u;
    }
  }
}

TEST(ProgramAgreementTest, UnevenBatchesSharesAndRecomputation) {
  for (const bool tied : {false, true}) {
    for (const double nic : {0.2e9, 3e9, 100e9}) {  // bound by the network, by both, by compute
      SCOPED_TRACE(testing::Message() << "tied " << tied << ", NIC " << nic);
      const auto setting = MakeSetting(Nodes({{"A10G", "T4"}, {"V100-16GB"}}, 12e9, nic), WorkOf(MediumModel(6, tied), 20));
      ExpectAgreement(*setting, {{0.5, {4, 4, 3}, "full"}, {0.2, {2, 1}, "none"}, {0.3, {3, 3}, "none"}});
      ExpectAgreement(*setting, {{1, {5, 5}, "none"}, {0, {4, 3, 3}, "full"}, {0, {}, "none"}});
    }
  }
}

// What collectives cost the compute beside them (measured of a job's devices together) is in a job's prediction, too. A rank that
// is early pays for a sum one computation later in the merged graph: that writes the sum when the last rank is there.
TEST(ProgramAgreementTest, WhatOverlapDoesNotHide) {
  for (const double nic : {0.2e9, 3e9, 100e9}) {
    SCOPED_TRACE(testing::Message() << "NIC " << nic);
    double merged[2], programs[2];
    for (const bool all_hides : {false, true}) {
      Cluster cluster = Nodes({{"A10G", "T4"}, {"V100-16GB"}}, 12e9, nic);
      cluster.overlap_efficiency = all_hides ? 1 : 0.7;
      const auto setting = MakeSetting(std::move(cluster), WorkOf(MediumModel(6, true), 20));
      const Plan plan =
          PlanOf(*setting, ScheduleFamily::kLayered, {{{StageOf(*setting, 0, {{4, 4, 3}, {2, 1}, {3, 3}}, {{0, 5}})}}});
      const auto evaluation = Evaluate(*setting, plan);
      const auto lowered = ScheduleAndLower(*setting, plan);
      ASSERT_TRUE(evaluation.ok() && lowered.ok()) << evaluation.status() << lowered.status();
      merged[all_hides] = evaluation->plan.predicted.step_seconds;
      programs[all_hides] = ProgramSeconds(*setting, plan, *lowered);
      EXPECT_NEAR(programs[all_hides], merged[all_hides], (all_hides ? 1e-6 : 0.02) * merged[all_hides]);
    }
    // Less overlap is never faster; where the network binds, compute that idles anyway pays.
    EXPECT_GE(merged[0], (nic == 100e9 ? 1.01 : 1) * merged[1]);
    EXPECT_NEAR(programs[0] - programs[1], merged[0] - merged[1], 0.002 * merged[1]);
  }
}

TEST(ProgramAgreementTest, MixedPrecision) {
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    Workload workload = WorkOf(MediumModel(6, true), 20, dtype);
    workload.state = StateKeeping::kEngine;
    const auto setting = MakeSetting(Nodes({{"A10G", "A100-40GB"}, {"L4"}}, 12e9, 1e9), workload);
    ExpectAgreement(*setting, {{0.5, {4, 4, 3}, "full"}, {0.2, {2, 1}, "none"}, {0.3, {3, 3}, "none"}});
  }
}

TEST(ProgramAgreementTest, RandomDuties) {
  RandomPlans random(3);
  for (int i = 0; i < 60; ++i) {
    const int64_t layers = 1 + random.Below(6);
    std::vector<Duty> duties(3);
    int64_t batch = 0;
    double sum = 0;
    for (Duty& duty : duties) {
      const int64_t own = &duty == &duties[0] ? 1 + random.Below(8) : random.Below(9);
      duty.microbatches = Microbatches(own, 1 + random.Below(8));
      duty.share = 0.05 + static_cast<double>(random.Below(100));
      duty.recompute = random.Below(2) == 0 ? "none" : "full";
      batch += own;
      sum += duty.share;
    }
    for (Duty& duty : duties) duty.share /= sum;
    const double nic = 1e9 * static_cast<double>(1 + random.Below(30));
    ExpectAgreement(
        *MakeSetting(Nodes({{"A10G", "T4"}, {"A100-40GB"}}, 12e9, nic), WorkOf(MediumModel(layers, random.Below(2) == 0), batch)),
        duties);
  }
}

// Stages whose microbatches line up, links that hide. The merged graph and the programs' differ where a ministage's units meet
// their neighbours, where unlike devices share a stage (their microbatches are dealt by speed, merged ones together), and where
// nothing is sharded (programs sum gradients at one owner and hand the stepped values on before the next forward).
TEST(ProgramAgreementTest, PipelinesThatLineUp) {
  RandomPlans random(29);
  double sum = 0;
  int plans = 0, far = 0;
  while (plans < 500) {
    const auto setting = random.NextSetting(true);
    Plan plan = random.Next(*setting);
    MakeRunnable(&plan);
    if (setting->workload.dtype != DType::kFloat32 || !ValidateForEngine(plan, setting->workload.model).ok()) continue;
    const auto evaluation = Evaluate(*setting, plan);
    ASSERT_TRUE(evaluation.ok()) << evaluation.status();
    const auto programs = ScheduleAndLower(*setting, plan);
    ASSERT_TRUE(programs.ok()) << programs.status();
    const double off = std::abs(ProgramSeconds(*setting, plan, *programs) / evaluation->plan.predicted.step_seconds - 1);
    far += off > 0.05 ? 1 : 0;
    sum += off;
    ++plans;
  }
  EXPECT_LT(sum / plans, 0.01);
  EXPECT_LT(far, plans / 20) << "plans whose two graphs differ by more than 5 %";
}

}  // namespace
}  // namespace motley::planner
