// Plans of several stages, in every schedule and ZeRO stage: the curve and the state of one device.
#include <random>

#include "tests/worker/engine/engine_fixture.h"
#include "tests/worker/engine/fake_card.h"
#include "tests/worker/engine/nccl/open_fake_nccl.h"

namespace motley::engine {
namespace {

using planner::LayerRange;
using planner::ScheduleFamily;

struct Stage {
  std::vector<LayerRange> layers;
  std::vector<Device> devices;
  int zero_stage = 3;
  int64_t in_flight = 0;
};

class PipelineTest : public EngineTest {
 protected:
  planner::Plan PlanOf(ScheduleFamily schedule, const std::vector<Stage>& stages) const {
    planner::Plan plan;
    plan.strategy = "hand";
    plan.epoch = Epoch(1);
    plan.global_batch = config_.training.global_batch_size;
    plan.seq_len = config_.training.seq_len;
    plan.dtype = *ParseDType(config_.training.dtype);
    plan.schedule = schedule;
    plan.pipelines.emplace_back();
    int device = 0;
    for (const Stage& s : stages) {
      planner::StagePlan stage;
      stage.ministages = s.layers;
      stage.zero_stage = s.zero_stage;
      stage.in_flight = s.in_flight;
      for (const Device& d : s.devices) {
        planner::RankPlan rank;
        rank.device = DeviceId("n" + std::to_string(device++) + "/gpu0");
        rank.shard_ratio = d.share;
        rank.recompute = planner::ParseOpSet(d.recompute).value();
        stage.units.push_back({{rank}, d.microbatches});
      }
      plan.pipelines[0].stages.push_back(std::move(stage));
    }
    return plan;
  }
  std::vector<RankAssignment> AssignStages(const ModelShape& model, ScheduleFamily schedule,
                                           const std::vector<Stage>& stages) const {
    const planner::Plan plan = PlanOf(schedule, stages);
    return AssignPlan(model, plan, FourSamples(plan));
  }

  void ExpectLikeOneDevice(const ModelShape& model, ScheduleFamily schedule, const std::vector<Stage>& stages) {
    SCOPED_TRACE(testing::Message() << planner::ScheduleName(schedule) << ", " << stages.size() << " stages, tied "
                                    << model.tie_embeddings);
    auto& alone = alone_[model.tie_embeddings];
    if (alone.empty()) alone = TrainOk(Assign(model, {{{8}, 1.0}})).steps[0];
    const Outcome together = TrainOk(AssignStages(model, schedule, stages));
    for (const auto& of_rank : together.steps) ExpectSameCurve(of_rank, alone, 1e-10);
  }

  void SetUp() override {
    EngineTest::SetUp();
    config_.training.steps = 5;
    config_.data.validation_interval = 2;
  }

  std::map<bool, std::vector<StepResult>> alone_;  // by tied: one device's curve
};

TEST_F(PipelineTest, TwoStagesOfOneRankRunGPipe) {
  for (const ModelShape& model : {Llama(), Gpt2()}) {
    ExpectLikeOneDevice(model, ScheduleFamily::kGPipe, {{{{0, 0}}, {{{4, 4}, 1.0}}}, {{{1, 2}}, {{{4, 4}, 1.0}}}});
  }
}

TEST_F(PipelineTest, StagesOfUnlikeWidthsInEverySchedule) {
  const std::vector<Device> wide = {{{2, 1}, 0.7}, {{2, 2}, 0.3, "full"}, {{1}, 0.0}};
  for (const ModelShape& model : {Llama(), Gpt2()}) {
    for (const ScheduleFamily schedule : {ScheduleFamily::kLayered, ScheduleFamily::kGPipe, ScheduleFamily::k1F1B}) {
      for (int zero_stage = 0; zero_stage <= 3; ++zero_stage) {
        ExpectLikeOneDevice(model, schedule,
                            {{{{0, 0}}, wide, zero_stage},
                             {{{1, 1}}, {{{3, 3, 2}, 1.0}}, zero_stage},
                             {{{2, 2}}, {{{4, 1}, 0.5}, {{3}, 0.5}}, 3 - zero_stage}});
      }
    }
  }
}

TEST_F(PipelineTest, MinistagesRoundRobin) {
  ModelShape deep = Llama();
  deep.num_layers = 5;
  for (const ScheduleFamily schedule : {ScheduleFamily::kLayered, ScheduleFamily::kInterleaved}) {
    for (const int zero_stage : {1, 2, 3}) {
      ExpectLikeOneDevice(deep, schedule,
                          {{{{0, 0}, {2, 2}}, {{{1, 1, 1, 1}, 0.5}, {{1, 1, 1, 1}, 0.5}}, zero_stage},
                           {{{1, 1}, {3, 4}}, {{{2, 2, 2, 2}, 1.0}}, zero_stage}});
    }
  }
}

TEST_F(PipelineTest, OneStageInEveryZeroStage) {
  for (const ModelShape& model : {Llama(), Gpt2()}) {
    for (const ScheduleFamily schedule : {ScheduleFamily::kLayered, ScheduleFamily::kGPipe, ScheduleFamily::k1F1B}) {
      for (int zero_stage = 0; zero_stage <= 3; ++zero_stage) {
        ExpectLikeOneDevice(model, schedule, {{{{0, 2}}, {{{2, 2, 1}, 0.5}, {{3}, 0.5}, {{}, 0.0}}, zero_stage}});
      }
    }
  }
}

TEST_F(PipelineTest, RanksWithProgramsOfUnlikePlansAreNamed) {
  std::vector<RankAssignment> ranks =
      AssignStages(Llama(), ScheduleFamily::kGPipe, {{{{0, 0}}, {{{4, 4}, 1.0}}}, {{{1, 2}}, {{{4, 4}, 1.0}}}});
  ranks[0].programs_digest = "aa";
  ranks[1].programs_digest = "bb";
  for (const auto& end : Train(ranks).ends) {
    EXPECT_EQ(end.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(std::string(end.status().message()).find("n1/gpu0 were given programs of another plan than n0/gpu0"),
              std::string::npos)
        << end.status();
  }
}

// Two cards that are not there and a CPU behind them: each group and pair is reported once, by its first member.
TEST_F(PipelineTest, RanksThatAreReadyReportTheirTransports) {
  config_.training.steps = 1;
  std::vector<RankAssignment> ranks =
      AssignStages(Llama(), ScheduleFamily::kGPipe, {{{{0, 1}}, {{{4}, 0.5}, {{4}, 0.5}}}, {{{2, 2}}, {{{4, 4}, 1.0}}}});
  std::vector<std::unique_ptr<FakeCard>> cards(ranks.size());
  for (int r = 0; r < 2; ++r) {
    cards[r] = std::make_unique<FakeCard>(r, &TheFakeNccl().library.api);
    ranks[r].device.card.uuid = "GPU-" + std::to_string(r);
  }
  const Outcome outcome = Train(ranks, {}, [&](int rank) { return EngineOptions{.backend = cards[rank].get()}; });
  std::map<std::vector<DeviceId>, int> pairs, groups;
  for (size_t r = 0; r < ranks.size(); ++r) {
    ASSERT_TRUE(outcome.ends[r].ok()) << outcome.ends[r].status();
    for (const TransportUse& use : outcome.transports[r]) {
      EXPECT_EQ(use.devices[0], ranks[r].device.id) << "its first member";
      ++(use.group ? groups : pairs)[use.devices];
      const bool with_cpu = std::count(use.devices.begin(), use.devices.end(), ranks[2].device.id) > 0;
      if (use.devices.size() == 1) {
        EXPECT_EQ(use.transport, Transport::kNone);
        continue;
      }
      EXPECT_EQ(use.transport, with_cpu ? Transport::kTcp : Transport::kNccl);
      EXPECT_EQ(use.why_not_nccl, with_cpu ? "n2/gpu0 has no NCCL" : "");
    }
  }
  const DeviceId n0("n0/gpu0"), n1("n1/gpu0"), n2("n2/gpu0");
  EXPECT_EQ((groups[{n0, n1}]), 1);
  EXPECT_EQ(pairs, (std::map<std::vector<DeviceId>, int>{{{n0, n2}, 1}, {{n1, n2}, 1}, {{n2, n0}, 1}, {{n2, n1}, 1}}));
}

// Checkpoints know no layout: thirty changes of plan in one run, on the curve of one device.
TEST_F(PipelineTest, ReplansBetweenLayoutsStayOnTheCurve) {
  constexpr int kReplans = 30;
  config_.training.steps = 2 * (kReplans + 1);
  config_.data.validation_interval = 0;
  const std::vector<std::pair<ScheduleFamily, std::vector<Stage>>> layouts = {
      {ScheduleFamily::kLayered, {{{{0, 2}}, {{{4, 1}, 0.7}, {{3}, 0.3}}}}},
      {ScheduleFamily::k1F1B, {{{{0, 1}}, {{{2, 2}, 0.5}, {{4}, 0.5}}, 2}, {{{2, 2}}, {{{4, 4}, 1.0}}}}},
      {ScheduleFamily::kGPipe, {{{{0, 0}}, {{{8}, 1.0}}}, {{{1, 1}}, {{{3, 3, 2}, 1.0}}}, {{{2, 2}}, {{{5}, 0.0}, {{3}, 1.0}}}}},
      {ScheduleFamily::k1F1B, {{{{0, 2}}, {{{2, 2}, 0.3}, {{3}, 0.3}, {{1}, 0.4}}, 0}}},
      {ScheduleFamily::kLayered, {{{{0, 0}}, {{{4}, 0.5}, {{4}, 0.5}}, 3}, {{{1, 2}}, {{{3}, 0.9}, {{5}, 0.1}, {{}, 0.0}}, 3}}},
      {ScheduleFamily::kGPipe, {{{{0, 2}}, {{{8}, 1.0}}, 1}}},
  };
  const Outcome alone = TrainOk(Assign(Gpt2(), {{{8}, 1.0}}));
  config_.checkpoint.folder = (folder_ / "checkpoints").string();
  std::mt19937 random(5);
  std::string resume_from;
  int64_t step = 0;
  for (int i = 0; i <= kReplans; ++i) {
    const auto& [schedule, stages] = layouts[random() % layouts.size()];
    std::vector<RankAssignment> ranks = AssignStages(Gpt2(), schedule, stages);
    for (RankAssignment& rank : ranks) {
      rank.epoch = Epoch(i + 1);
      rank.start_step = step;
      rank.resume_from = resume_from;
    }
    const Outcome outcome = Train(ranks, [](int rank, FakeHost& host, Engine& engine) {
      host.on_step = [rank, &engine](const StepResult&) {
        if (rank == 0) engine.RequestStop(/*save=*/true);
      };
    });
    for (const auto& end : outcome.ends) ASSERT_TRUE(end.ok()) << end.status();
    const std::vector<StepResult>& steps = outcome.steps.back();
    ASSERT_EQ(steps.size(), 2u);
    ExpectSameCurve(steps, {alone.steps[0].begin() + step, alone.steps[0].begin() + step + 2}, 1e-10);
    step += 2;
    resume_from = outcome.checkpoints.at(step);
  }
}

}  // namespace
}  // namespace motley::engine
