// Schedules against their formulas, data flow, collectives by ZeRO stage, and properties on random plans.

#include <cmath>
#include <map>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/graph/graph_writer.h"
#include "planner/graph/group_flows.h"
#include "planner/graph/pass_seconds.h"
#include "planner/pricing/evaluate.h"
#include "tests/planner/lowering/lowered.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

// (gtest's fixtures have a Run of their own.)
absl::StatusOr<Timeline> RunGraph(const StepGraph& graph) { return Run(graph); }

TEST(ClassStepsTest, OneDeviceTakesTheSumOfItsWork) {
  for (const auto schedule :
       {ScheduleFamily::kLayered, ScheduleFamily::kGPipe, ScheduleFamily::k1F1B, ScheduleFamily::kZeroBubble}) {
    const auto setting = MakeSetting(Nodes({{"T4"}}), WorkOf(MediumModel(4, true), 7));
    const Plan plan = PlanOf(*setting, schedule, {{{StageOf(*setting, 0, {{3, 3, 1}}, {{0, 3}}, 3, OpSet::All())}}});
    const auto evaluation = Evaluate(*setting, plan);
    ASSERT_TRUE(evaluation.ok()) << evaluation.status();
    const double busy = evaluation->plan.pipelines[0].stages[0].units[0].ranks[0].predicted.busy_seconds;
    EXPECT_NEAR(evaluation->plan.predicted.step_seconds, busy, 1e-9) << ScheduleName(schedule);
  }
}

// GPipe and 1F1B: (n + S - 1)(f + b). Narayanan et al., "Megatron-LM" (SC'21) section 2.2.
TEST(ClassStepsTest, GPipeAnd1F1BHaveThePublishedBubble) {
  for (const auto schedule : {ScheduleFamily::kGPipe, ScheduleFamily::k1F1B, ScheduleFamily::kLayered}) {
    for (const int64_t stages : {2, 3, 4}) {
      const Uniform u = UniformPipeline(schedule, stages, 1, 8);
      const double ideal = static_cast<double>(8 + stages - 1) * (u.forward + u.backward);
      const double step = LowerAndRun(*u.setting, u.plan).seconds();
      EXPECT_GE(step, ideal - 1e-9) << ScheduleName(schedule);
      EXPECT_LE(step, ideal + u.ends) << ScheduleName(schedule);
    }
  }
}

// Interleaved: the bubble shrinks by the number of ministages. The same, section 2.2.2.
TEST(ClassStepsTest, InterleavingDividesTheBubble) {
  for (const int64_t rounds : {2, 3}) {
    const Uniform u = UniformPipeline(ScheduleFamily::kInterleaved, 2, rounds, 8);
    const double ideal = (8 + 1.0 / static_cast<double>(rounds)) * (u.forward + u.backward);
    const double step = LowerAndRun(*u.setting, u.plan).seconds();
    EXPECT_GE(step, ideal - 1e-9);
    EXPECT_LE(step, ideal + u.ends);
  }
}

// ZB-H1: a bubble of (S - 1)(f + b_input - b_weight). Qi et al., "Zero Bubble Pipeline Parallelism" (ICLR'24) table 1.
TEST(ClassStepsTest, ZeroBubbleFillsWithTheWeights) {
  for (const int64_t stages : {2, 4}) {
    const Uniform u = UniformPipeline(ScheduleFamily::kZeroBubble, stages, 1, 8);
    const double input = u.backward / 2, weight = u.backward - input;
    const double ideal = 8 * (u.forward + u.backward) + static_cast<double>(stages - 1) * (u.forward + input - weight);
    const double step = LowerAndRun(*u.setting, u.plan).seconds();
    EXPECT_GE(step, ideal - 1e-9);
    EXPECT_LE(step, ideal + u.ends + u.forward);
  }
}

// ZB-V: where forward and the two halves of the backward take as long, the one bubble is the fill of a ministage a stage, half of
// ZB-H1's. Qi et al., "Zero Bubble Pipeline Parallelism" (ICLR'24) section 6.
TEST(ClassStepsTest, ZeroBubbleVHasHalfTheBubble) {
  for (const int64_t stages : {2, 3, 6}) {
    const int64_t microbatches = 2 * stages, wide = 16384;  // layers beside which the ends are nothing
    const auto bubble = [=](const Uniform& u) {
      const Costs& costs = u.setting->costs;
      const double busy = static_cast<double>(microbatches) * (u.forward + u.backward) +
                          costs.OptimizerSeconds(0, static_cast<double>(costs.TotalElements() / stages));
      return (LowerAndRun(*u.setting, u.plan).seconds() - busy) / (static_cast<double>(stages - 1) * u.forward);
    };
    const Uniform v = UniformPipeline(ScheduleFamily::kZeroBubbleV, stages, 2, microbatches, wide);
    ASSERT_NEAR(v.backward, 2 * v.forward, 0.01 * v.forward);
    const double of_v = bubble(v), of_h1 = bubble(UniformPipeline(ScheduleFamily::kZeroBubble, stages, 1, microbatches, wide));
    std::printf("%d stages: bubbles in (S - 1) forwards, ZB-V %.4f, ZB-H1 %.4f\n", static_cast<int>(stages), of_v, of_h1);
    EXPECT_NEAR(of_v, 0.5, 0.02);
    EXPECT_NEAR(of_h1, 1, 0.02);
  }
}

TEST(ClassStepsTest, ZeroBubbleVIsEstimated) {
  for (const int64_t stages : {2, 3, 6}) {
    for (const int64_t microbatches : {int64_t{1}, stages, 2 * stages, 4 * stages}) {
      const Uniform u = UniformPipeline(ScheduleFamily::kZeroBubbleV, stages, 2, microbatches);
      const auto price = EstimatePlan(*u.setting, u.plan);
      ASSERT_TRUE(price.ok()) << price.status();
      const double off = price->step_seconds / LowerAndRun(*u.setting, u.plan).seconds() - 1;
      EXPECT_LT(std::abs(off), 0.05) << stages << " stages, " << microbatches << " microbatches: " << off;
    }
  }
}

// Zorse section 3.1.1: interleaved layered passes start the next stage after a ministage, not after a stage.
TEST(ClassStepsTest, LayeredMinistagesShortenTheFill) {
  const Uniform one = UniformPipeline(ScheduleFamily::kLayered, 3, 1, 4),
                four = UniformPipeline(ScheduleFamily::kLayered, 3, 4, 4);
  EXPECT_LT(LowerAndRun(*four.setting, four.plan).seconds(), LowerAndRun(*one.setting, one.plan).seconds());
}

// Virtual stages 0 1 1 0: both ends of the model on the first stage, and nothing is sent where the V turns.
TEST(ClassStepsTest, VirtualStagesInAV) {
  const auto setting = MakeSetting(Nodes({{"T4"}, {"T4"}}), WorkOf(MediumModel(4, true), 6));
  const Plan plan =
      PlanOf(*setting, ScheduleFamily::kLayered,
             {{{StageOf(*setting, 0, {{2, 2, 2}}, {{0, 0}, {3, 3}}, 0), StageOf(*setting, 1, {{3, 3}}, {{1, 1}, {2, 2}}, 0)}}});
  const auto view = ViewOf(*setting, plan);
  ASSERT_TRUE(view.ok()) << view.status();
  std::vector<int64_t> stages, layers;
  for (const Element& element : view->pipelines[0].elements) {
    stages.push_back(element.stage);
    layers.push_back(element.first_layer);
  }
  EXPECT_THAT(stages, ::testing::ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(layers, ::testing::ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(view->stages[0].embedding && view->stages[0].head);
  EXPECT_FALSE(view->stages[0].tied_copy);
  EXPECT_FALSE(view->stages[1].embedding || view->stages[1].head);
  EXPECT_EQ(view->stages[0].from_previous, 3);
  EXPECT_EQ(view->stages[1].from_next, 2);

  const auto graph = LowerPlan(*setting, plan, nullptr);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto timeline = RunGraph(*graph);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  const auto count = [&](TaskKind kind) {
    return std::count_if(graph->tasks.begin(), graph->tasks.end(), [kind](const Task& task) { return task.kind == kind; });
  };
  // Each way one border forward and one back; of both stages' microbatches every pair that shares samples.
  EXPECT_EQ(count(TaskKind::kSend), 4 * 4);
  EXPECT_EQ(count(TaskKind::kAllReduce), 0) << "a tied embedding beside its head has one gradient";
}

TEST(ClassStepsTest, ActivationsReachWhoeverStandsForTheSamples) {
  // 3 units send to 2: every sample crosses once each way, whatever the microbatches.
  const auto setting = MakeSetting(Nodes({{"T4", "T4", "A10G"}, {"V100-16GB", "T4"}}), WorkOf(MediumModel(4, false), 24));
  Plan plan = PlanOf(*setting, ScheduleFamily::kGPipe,
                     {{{StageOf(*setting, 0, {{3, 2}, {3, 2}, {7, 7}}, {{0, 1}}, 0),
                        StageOf(*setting, 3, {{4, 4, 4, 4, 1}, {5, 2}}, {{2, 3}}, 0)}}});
  const Lowered lowered = LowerAndRun(*setting, plan);
  std::map<std::string, double> bytes;
  for (const Task& task : lowered.graph.tasks) {
    if (task.kind != TaskKind::kSend) continue;
    for (const LinkLoad& load : task.loads) bytes[setting->links.Name(load.resource)] += load.bytes;
  }
  const auto crossing = static_cast<double>(setting->costs.BoundaryBytes(24));
  double out = 0;
  for (const auto& [name, sum] : bytes) {
    if (name.find("NIC of n0 out") != std::string::npos || name.find("NIC of n1 in") != std::string::npos)
      out = std::max(out, sum);
  }
  EXPECT_NEAR(out, crossing, 1);
}

TEST(ClassStepsTest, SamplesAreDealtInOrderOfCompletion) {
  const auto setting = MakeSetting(Nodes({{"A100-40GB", "T4"}}), WorkOf(MediumModel(4, false), 12));
  const Plan plan = PlanOf(*setting, ScheduleFamily::kGPipe, {{{StageOf(*setting, 0, {{2, 2, 2, 2}, {2, 2}}, {{0, 3}}, 0)}}});
  const auto view = ViewOf(*setting, plan);
  ASSERT_TRUE(view.ok());
  ASSERT_EQ(view->actors.size(), 2u);
  // The fast card's first microbatches come before the slow one's first; each sample once.
  EXPECT_EQ(view->actors[0].begin[0], 0);
  EXPECT_LT(view->actors[0].begin[1], view->actors[1].begin[0]);
  std::vector<int64_t> begins = view->actors[0].begin;
  begins.insert(begins.end(), view->actors[1].begin.begin(), view->actors[1].begin.end());
  EXPECT_THAT(begins, testing::UnorderedElementsAre(0, 2, 4, 6, 8, 10));
}

TEST(ClassStepsTest, CollectivesByZeroStage) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4"}}), WorkOf(MediumModel(4, false), 8));
  const auto lower = [&](ScheduleFamily schedule, int zero) {
    return LowerAndRun(*setting, PlanOf(*setting, schedule, {{{StageOf(*setting, 0, {{2, 2}, {2, 2}}, {{0, 3}}, zero)}}}));
  };
  const double ring = setting->links.SecondsAlone(setting->links.Ring(Collective::kAllGather, std::vector<int>{0, 1},
                                                                      static_cast<double>(setting->costs.TotalElements() * 4)));
  // 1: reduces, gathers the stepped parameters. 2: reduces every microbatch. 3: gathers twice a microbatch.
  for (int zero = 1; zero <= 3; ++zero) {
    const Lowered once = lower(ScheduleFamily::k1F1B, zero);
    EXPECT_EQ(once.Count(TaskKind::kAllReduce), 0);
    EXPECT_NEAR(once.Seconds(TaskKind::kReduceScatter), (zero == 1 ? 1 : 2) * ring, 0.05 * ring + 1e-3) << zero;
    EXPECT_NEAR(once.Seconds(TaskKind::kGather), zero == 3 ? 4 * ring : ring, 0.05 * ring + 1e-3) << zero;
  }
  const Lowered layered = lower(ScheduleFamily::kLayered, 3);
  EXPECT_EQ(layered.Count(TaskKind::kGather), 6 + 4);  // the last two units stay at the turn
  EXPECT_EQ(layered.Count(TaskKind::kReduceScatter), 6);
}

TEST(ClassStepsTest, OffloadedMinistagesAreFetchedTwiceAndSteppedInTurn) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4"}, {"T4", "T4"}}), WorkOf(MediumModel(8, false), 8));
  std::vector<StagePlan> stages;
  const auto dealt = DealLayers(8, 2, 4);
  for (int s = 0; s < 2; ++s) {
    StagePlan stage = StageOf(*setting, 2 * s, {{2, 2}, {2, 2}}, dealt[s], 2, OpSet::All());
    for (UnitPlan& unit : stage.units) unit.ranks[0].offload.parameters = unit.ranks[0].offload.activations = true;
    stages.push_back(stage);
  }
  Plan plan = PlanOf(*setting, ScheduleFamily::kLayered, {{stages}});
  plan.optimizer_steps = OptimizerSteps::kInTurn;
  const Lowered lowered = LowerAndRun(*setting, plan);
  // Zorse table 1: every ministage twice, but three of each stage's five blocks stay at the turn.
  EXPECT_EQ(lowered.Count(TaskKind::kGather), 2 * (5 + 2));
  EXPECT_EQ(lowered.Count(TaskKind::kOptimizer), 2 * 5);  // one actor a stage, a step a unit
  // The first optimizer step does not wait for the whole backward.
  Picoseconds first_step = lowered.timeline.end, last_backward = 0;
  for (size_t t = 0; t < lowered.graph.tasks.size(); ++t) {
    if (lowered.graph.tasks[t].kind == TaskKind::kOptimizer) first_step = std::min(first_step, lowered.timeline.spans[t].begin);
    if (lowered.graph.tasks[t].kind == TaskKind::kBackward)
      last_backward = std::max(last_backward, lowered.timeline.spans[t].end);
  }
  EXPECT_LT(first_step, last_backward);
}

TEST(ClassStepsTest, TiedEmbeddingOfTwoStagesIsSummedOnce) {
  for (const bool tied : {false, true}) {
    const auto setting = MakeSetting(Nodes({{"T4"}, {"T4"}}), WorkOf(MediumModel(4, tied), 4));
    const Lowered lowered =
        LowerAndRun(*setting, PlanOf(*setting, ScheduleFamily::k1F1B,
                                     {{{StageOf(*setting, 0, {{2, 2}}, {{0, 1}}), StageOf(*setting, 1, {{2, 2}}, {{2, 3}})}}}));
    EXPECT_EQ(lowered.Count(TaskKind::kReduceScatter), tied ? 1 : 0);
    EXPECT_EQ(lowered.Count(TaskKind::kGather), tied ? 1 : 0);
  }
}

TEST(ClassStepsTest, PipelinesSumWhatTheyShare) {
  const auto setting = MakeSetting(Nodes({{"T4"}, {"T4"}, {"A10G"}}), WorkOf(MediumModel(4, false), 8));
  const PipelinePlan two{{StageOf(*setting, 0, {{2, 2}}, {{0, 1}}, 1), StageOf(*setting, 1, {{2, 2}}, {{2, 3}}, 1)}};
  const PipelinePlan one{{StageOf(*setting, 2, {{2, 2}}, {{0, 3}}, 1)}};
  Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B, {two, one});
  plan.pipelines_zero_stage = 1;
  const Lowered shared = LowerAndRun(*setting, plan);
  EXPECT_EQ(shared.Count(TaskKind::kAllReduce), 0);
  // A ring of two carries half of the array each way.
  for (const TaskKind kind : {TaskKind::kReduceScatter, TaskKind::kGather}) {
    double loads = 0;
    for (const Task& task : shared.graph.tasks) {
      if (task.kind != kind) continue;
      double most = 0;
      for (const LinkLoad& load : task.loads) most = std::max(most, load.bytes);
      loads += most;
    }
    EXPECT_NEAR(loads, static_cast<double>(setting->costs.TotalElements() * 4) / 2, 4);
  }
}

TEST(ClassStepsTest, UnequalTensorParallelWaitsForTheSlowestAndItsSums) {
  const auto setting = MakeSetting(Nodes({{"A10G", "T4"}}), WorkOf(MediumModel(4, false), 4));
  StagePlan stage = StageOf(*setting, 0, {{}, {}}, {{0, 3}}, 0);
  stage.units = {{{stage.units[0].ranks[0], stage.units[1].ranks[0]}, {2, 2}}};
  stage.units[0].ranks[0].tp_share = 0.75;
  stage.units[0].ranks[1].tp_share = 0.25;
  const Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B, {{{stage}}});
  const auto evaluation = Evaluate(*setting, plan);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  const std::vector<RankPlan>& ranks = evaluation->plan.pipelines[0].stages[0].units[0].ranks;
  const double slowest = std::max(ranks[0].predicted.busy_seconds, ranks[1].predicted.busy_seconds);
  const double sum = setting->links.SecondsAlone(
      setting->links.Ring(Collective::kAllReduce, std::vector<int>{0, 1}, static_cast<double>(setting->costs.BoundaryBytes(2))));
  // Two microbatches; 2 a layer each way, one for the embedding, one for the head.
  EXPECT_GE(evaluation->plan.predicted.step_seconds, slowest + 2 * (4 * 4 + 2) * sum - 1e-9);
  EXPECT_LE(evaluation->plan.predicted.step_seconds,
            ranks[0].predicted.busy_seconds + ranks[1].predicted.busy_seconds + 2 * 19 * sum);
  EXPECT_EQ(LowerAndRun(*setting, plan).graph.actors.size(), 1u);
}

TEST(ClassStepsTest, WhatOverlapDoesNotHideIsAdded) {
  Cluster cluster = Nodes({{"T4", "T4"}}, 12e9, 3e9);
  const Workload workload = WorkOf(MediumModel(8, false), 16);
  const auto step = [&](double efficiency) {
    cluster.overlap_efficiency = efficiency;
    const auto setting = MakeSetting(cluster, workload);
    const Lowered lowered =
        LowerAndRun(*setting, PlanOf(*setting, ScheduleFamily::kLayered, {{{StageOf(*setting, 0, {{8}, {8}}, {{0, 7}})}}}));
    return std::pair(lowered.seconds(), lowered.Seconds(TaskKind::kGather) + lowered.Seconds(TaskKind::kReduceScatter));
  };
  const auto [full, transfers] = step(1);
  const auto [half, half_transfers] = step(0.5);
  const auto [none, none_transfers] = step(0);
  EXPECT_NEAR(half_transfers, transfers, 0.01 * transfers);
  EXPECT_NEAR(none_transfers, transfers, 0.01 * transfers);
  EXPECT_GT(half, full);
  EXPECT_GT(none, half);
  EXPECT_LE(none, full + transfers * 1.01);
}

TEST(ClassStepsTest, UnequalMicrobatchesNeverDeadlock) {
  // Stage 1 needs eight samples at once; 1F1B's limit would let stage 0 send four.
  const auto setting = MakeSetting(Nodes({{"T4", "T4"}, {"A10G"}}), WorkOf(MediumModel(4, false), 16));
  const Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B,
                           {{{StageOf(*setting, 0, {std::vector<int64_t>(8, 1), std::vector<int64_t>(8, 1)}, {{0, 1}}, 1),
                              StageOf(*setting, 2, {{8, 8}}, {{2, 3}}, 0)}}});
  const auto view = ViewOf(*setting, plan);
  ASSERT_TRUE(view.ok());
  const auto graph = GraphOfView(*setting, *view, plan);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(RunGraph(*graph).ok());
  const auto walked = MakeTrainingSchedule(*view, plan);
  ASSERT_TRUE(walked.ok()) << walked.status();
  EXPECT_GE(MostInFlight(walked->schedule.pipelines[0].stages[0], 0), 4);  // and the ledger knows
  const auto evaluation = Evaluate(*setting, plan);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  const MemoryByPurpose by_formula = MemoryOf(setting->costs, DutyOf(*view, view->ranks[0]), std::vector<int64_t>(8, 1));
  EXPECT_GT(evaluation->plan.pipelines[0].stages[0].units[0].ranks[0].predicted.peak_bytes, by_formula.total());
}

TEST(ClassStepsTest, FiveHundredRanksAreFewActors) {
  std::vector<std::vector<std::string>> nodes(64, std::vector<std::string>(8, "A100-40GB"));
  for (size_t n = 32; n < 64; ++n) nodes[n].assign(8, "V100-16GB");
  const auto setting = MakeSetting(Nodes(nodes), WorkOf(MediumModel(32, false), 2048));
  std::vector<StagePlan> stages;
  const auto dealt = DealLayers(32, 4, 2);
  for (int s = 0; s < 4; ++s) {
    stages.push_back(
        StageOf(*setting, 128 * s, std::vector<std::vector<int64_t>>(128, {2, 2, 2, 2, 2, 2, 2, 2}), dealt[s], 2, OpSet::All()));
  }
  const Lowered lowered = LowerAndRun(*setting, PlanOf(*setting, ScheduleFamily::kLayered, {{stages}}));
  EXPECT_EQ(lowered.graph.actors.size(), 4u);
  EXPECT_EQ(lowered.graph.actors[0].count, 128);
  EXPECT_THAT(lowered.graph.actors[0].name, HasSubstr("and 127 like it"));
  EXPECT_LT(lowered.graph.tasks.size(), 1000u);
  // Of a thousand links a few can bind.
  for (const Task& task : lowered.graph.tasks) EXPECT_LE(task.loads.size(), 16u);
}

TEST(ClassStepsTest, LinksThatCannotBindMakeNoDifference) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4", "T4"}, {"A10G", "A10G"}}), WorkOf(MediumModel(4, false), 8));
  GraphWriter writer(setting->links);
  writer.AddActor({});
  writer.AddActor({});
  const Flow ring = setting->links.Ring(Collective::kAllGather, std::vector<int>{0, 1, 2, 3, 4}, 1e8);
  const Flow send = setting->links.PointToPoint(0, 3, 1e7);
  writer.AddTransfer(TaskKind::kGather, {LaneIndex(0, Lane::kCollective)}, writer.AddFlow(ring), 2, {});
  writer.AddTransfer(TaskKind::kSend, {LaneIndex(1, Lane::kSend)}, writer.AddFlow(send), 1, {-1});
  StepGraph graph = writer.Finish();
  const auto kept = RunGraph(graph);
  EXPECT_LT(graph.tasks[0].loads.size(), ring.loads.size());
  for (const auto& [task, flow, times] : {std::tuple(size_t{0}, &ring, 2.0), std::tuple(size_t{1}, &send, 1.0)}) {
    graph.tasks[task].loads = flow->loads;
    for (LinkLoad& load : graph.tasks[task].loads) load.bytes *= times;
  }
  const auto all = RunGraph(graph);
  ASSERT_TRUE(kept.ok() && all.ok());
  for (size_t t = 0; t < 2; ++t) EXPECT_NEAR(static_cast<double>(kept->spans[t].end), static_cast<double>(all->spans[t].end), 10);
}

// Merging is exact where neighbours' microbatches line up, and else off by the fill of one microbatch.
TEST(ClassStepsTest, RandomPlansRunAboveTheirWorkAndMergingChangesLittle) {
  RandomPlans random(11);
  double distance = 0;
  int plans = 0;
  for (int i = 0; i < 150; ++i) {
    const auto setting = random.NextSetting();
    const Plan plan = random.Next(*setting);
    if (!Validate(plan, setting->workload.model).ok()) continue;
    SCOPED_TRACE(ToJson(plan));
    const auto merged = ViewOf(*setting, plan), apart = ViewOf(*setting, plan, {.merge = false});
    ASSERT_TRUE(merged.ok() && apart.ok());
    const auto together = RunGraph(*GraphOfView(*setting, *merged, plan)), alone = RunGraph(*GraphOfView(*setting, *apart, plan)),
               again = RunGraph(*GraphOfView(*setting, *merged, plan));
    ASSERT_TRUE(together.ok()) << together.status();
    ASSERT_TRUE(alone.ok()) << alone.status();
    EXPECT_EQ(together->end, again->end);
    EXPECT_NEAR(ToSeconds(alone->end), ToSeconds(together->end), 0.2 * ToSeconds(together->end));
    distance += std::abs(ToSeconds(alone->end) / ToSeconds(together->end) - 1);
    ++plans;
    const auto evaluation = Evaluate(*setting, plan);
    ASSERT_TRUE(evaluation.ok()) << evaluation.status();
    for (const PipelinePlan& pipeline : evaluation->plan.pipelines) {
      for (const StagePlan& stage : pipeline.stages) {
        for (const UnitPlan& unit : stage.units) {
          for (const RankPlan& rank : unit.ranks)
            EXPECT_LE(rank.predicted.busy_seconds, evaluation->plan.predicted.step_seconds * (1 + 1e-9));
        }
      }
    }
  }
  ASSERT_GT(plans, 100);
  EXPECT_LT(distance / plans, 0.015);
}

TEST(ClassStepsTest, UnknownAndRepeatedDevicesAreNamed) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4"}}), WorkOf(MediumModel(4, false), 4));
  Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B, {{{StageOf(*setting, 0, {{2}, {2}}, {{0, 3}})}}});
  plan.pipelines[0].stages[0].units[1].ranks[0].device = DeviceId("n9/gpu3");
  EXPECT_THAT(LowerPlan(*setting, plan, nullptr).status().message(), HasSubstr("n9/gpu3 is not in the cluster boxes"));
  plan.pipelines[0].stages[0].units[1].ranks[0].device = DeviceId("n0/gpu0");
  EXPECT_THAT(LowerPlan(*setting, plan, nullptr).status().message(), HasSubstr("n0/gpu0 is there twice"));
}

}  // namespace
}  // namespace motley::planner
