// Copies to host memory and back in whole training runs: how long they take by the schedule, and what is refused.
#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <span>
#include <variant>

#include "common/base/fault.h"
#include "common/base/memory_shortage.h"
#include "common/program/host_slots.h"
#include "tests/worker/engine/engine_fixture.h"
#include "tests/worker/engine/equivalence/planned_job.h"
#include "tests/worker/engine/fake_card.h"
#include "worker/engine/base/memory.h"
#include "worker/engine/device/host_backend.h"

namespace motley::engine {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kInputBytes = 2 * 16 * 16 * 8;  // samples, tokens, columns of float64

class EngineOffloadTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    config_.training.steps = 2;
  }

  // One device, four microbatches of two samples, all layers recomputed; what waits on the host.
  RankAssignment Offloading(const OffloadKinds& kinds = {.activations = true}) const {
    planner::Plan plan;
    plan.strategy = "hand";
    plan.epoch = Epoch(1);
    plan.global_batch = config_.training.global_batch_size;
    plan.seq_len = config_.training.seq_len;
    plan.dtype = PrecisionOf(config_.training)->compute;
    planner::StagePlan stage;
    stage.ministages = {{0, Gpt2().num_layers - 1}};
    planner::RankPlan rank;
    rank.device = DeviceId("n0/gpu0");
    rank.shard_ratio = 1;
    rank.recompute = planner::OpSet::All();
    rank.offload = kinds;
    stage.units = {{{rank}, {2, 2, 2, 2}}};
    plan.pipelines = {{{stage}}};
    return AssignPlan(Gpt2(), plan, FourSamples(plan))[0];
  }
};

bool IsCopy(const Operation& op) { return LaneOf(op) == Lane::kCopy; }

TEST_F(EngineOffloadTest, ACopyTakesTheDeclaredLinksTime) {
  constexpr double kRate = 4e6;
  RankAssignment assignment = Offloading();
  assignment.device.kind = DeviceKind::kEmulated;
  assignment.device.host_link_bytes_per_second = kRate;
  const Outcome outcome = TrainOk({assignment});
  ASSERT_EQ(outcome.steps[0].size(), 2u);
  const std::vector<Instruction>& instructions = assignment.program.instructions;
  for (const StepResult& step : outcome.steps[0]) {
    ASSERT_EQ(step.spans.size(), instructions.size());
    double copies = 0;
    for (size_t i = 0; i < instructions.size(); ++i) {
      if (!IsCopy(instructions[i].op)) continue;
      const absl::Duration taken = step.spans[i].end - step.spans[i].begin;
      EXPECT_EQ(taken, absl::Nanoseconds(std::llround(kInputBytes / kRate * 1e9))) << "instruction " << i;
      copies += absl::ToDoubleSeconds(taken);
    }
    EXPECT_GT(copies, 0);
    EXPECT_NEAR(step.lanes.busy[static_cast<size_t>(Lane::kCopy)], copies, 1e-9);
    EXPECT_GT(step.lanes.copy, 0) << "what compute waits for it";
  }
}

TEST_F(EngineOffloadTest, MoreThanIsPlannedOfTheHostsMemoryIsRefused) {
  RankAssignment assignment = Offloading();
  const int64_t planned = assignment.planned_host_bytes;
  EXPECT_EQ(planned, AssignHostSlots(assignment.program).count * kInputBytes);
  EXPECT_EQ(TrainOk({assignment}).steps[0][0].host_memory_bytes, planned);
  assignment.planned_host_bytes = planned - 1;
  const auto end = Train({assignment}).ends[0];
  EXPECT_EQ(end.status().code(), absl::StatusCode::kResourceExhausted) << end.status();
  EXPECT_THAT(std::string(end.status().message()),
              HasSubstr("n0/gpu0 (rank 0): what waits there needs " + std::to_string(planned) + " bytes of the host's memory, " +
                        std::to_string(planned - 1) + " are planned"));
}

// What the host has is found out when the block is made, before the first step.
TEST_F(EngineOffloadTest, AHostThatHasLessThanIsPlannedIsAShortage) {
  RankAssignment assignment = Offloading();
  const int64_t planned = assignment.planned_host_bytes;
  assignment.device.node_host_memory_bytes = planned;
  TrainOk({assignment});
  assignment.device.node_host_memory_bytes = planned - 1;
  const auto end = Train({assignment}).ends[0];
  EXPECT_EQ(end.status().code(), absl::StatusCode::kResourceExhausted) << end.status();
  EXPECT_EQ(FaultOf(end.status()), Fault::kMemory);
  EXPECT_EQ(MemoryShortageOf(end.status()), (MemoryShortage{.tier = MemoryTier::kHost,
                                                            .held_bytes = planned - 1,
                                                            .asked_bytes = planned,
                                                            .planned_bytes = planned,
                                                            .where = "making room in the host's memory"}));
}

// So much of it a card's driver pins.
TEST_F(EngineOffloadTest, WhatADriverDoesNotPinIsAShortage) {
  const RankAssignment assignment = Offloading();
  FakeCard card(1);
  static_cast<FakeDeviceMemory*>(card.memory())->set_most_host_bytes(assignment.planned_host_bytes - 1);
  const auto end = Train({assignment}, {}, [&](int) { return EngineOptions{.backend = &card}; }).ends[0];
  const auto shortage = MemoryShortageOf(end.status());
  ASSERT_TRUE(shortage.has_value()) << end.status();
  EXPECT_EQ(shortage->tier, MemoryTier::kHost);
  EXPECT_EQ(shortage->held_bytes, assignment.planned_host_bytes - 1);
  EXPECT_EQ(shortage->asked_bytes, assignment.planned_host_bytes);
}

TEST_F(EngineOffloadTest, ASlotWithoutRoomForWhatComesIsRefused) {
  RankAssignment assignment = Offloading();
  assignment.program.slots[1] = kInputBytes - 8;
  const auto end = Train({assignment}).ends[0];
  EXPECT_EQ(end.status().code(), absl::StatusCode::kFailedPrecondition) << end.status();
  EXPECT_THAT(std::string(end.status().message()),
              HasSubstr("(prefetch_activation): slot 1 has " + std::to_string(kInputBytes - 8) +
                        " bytes, what comes into it has " + std::to_string(kInputBytes)));
}

// Steps that are skipped leave nothing behind either.
TEST_F(EngineOffloadTest, BothTiersHoldAsMuchAfterEveryStep) {
  config_.training.steps = 12;
  config_.training.dtype = "float32";
  config_.training.mixed_precision_param = "float16";
  InstallCounting();
  HostBackend counts_apart(std::make_shared<MemoryAccount>());
  const Outcome outcome = Train({Offloading(OffloadKinds::All())}, {}, [&](int) {
    EngineOptions options;
    options.backend = &counts_apart;
    options.overflows = [](int64_t step) { return step % 4 == 2; };
    return options;
  });
  ASSERT_TRUE(outcome.ends[0].ok()) << outcome.ends[0].status();
  ASSERT_EQ(outcome.steps[0].size(), 12u);
  const StepResult& second = outcome.steps[0][1];  // the first one makes buffers and slots
  EXPECT_GT(second.held_memory_bytes, 0);
  for (const StepResult& step : std::span(outcome.steps[0]).subspan(1)) {
    EXPECT_EQ(step.skipped, step.step % 4 == 3) << step.step;
    EXPECT_EQ(step.held_memory_bytes, second.held_memory_bytes) << step.step;
    EXPECT_EQ(step.host_memory_bytes, second.host_memory_bytes) << step.step;
    // What two lanes hold at once differs by what has not left yet.
    EXPECT_NEAR(step.peak_memory_bytes, second.peak_memory_bytes, 2 * kInputBytes) << step.step;
  }
}

// A card's block is pinned, is given back, and the card does the copies: in the copy lane's stream.
TEST_F(EngineOffloadTest, ACardCopiesToPinnedMemory) {
  const RankAssignment assignment = Offloading();
  FakeCard card(1);
  int live = 0;
  const Outcome outcome = Train(
      {assignment}, [&](int, FakeHost& host, Engine&) { host.on_step = [&](const StepResult&) { live = card.bytes().live(); }; },
      [&](int) {
        EngineOptions options;
        options.backend = &card;
        return options;
      });
  ASSERT_TRUE(outcome.ends[0].ok()) << outcome.ends[0].status();
  EXPECT_GT(live, card.bytes().live()) << "while it trains";
  const auto& instructions = assignment.program.instructions;
  const auto copies = std::count_if(instructions.begin(), instructions.end(), [](const Instruction& i) { return IsCopy(i.op); });
  EXPECT_GE(card.bytes().copies(), 2 * copies);
  const Outcome host = TrainOk({assignment});
  for (size_t step = 0; step < 2; ++step) EXPECT_EQ(outcome.steps[0][step].loss, host.steps[0][step].loss);
}

}  // namespace
}  // namespace motley::engine
