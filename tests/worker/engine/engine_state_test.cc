// State that waits in host memory in whole training runs: how long its copies take, what is refused, and what is never saved.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/worker/engine/engine_fixture.h"
#include "tests/worker/engine/equivalence/state_on_host.h"
#include "tests/worker/engine/equivalence/training_run.h"
#include "tests/worker/engine/fake_card.h"
#include "worker/engine/model/host_areas.h"

namespace motley::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;

constexpr OffloadKinds kAllState = {.parameters = true, .gradients = true, .optimizer = true};

class EngineStateTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    config_.training.steps = 2;
    config_.checkpoint.folder = (folder_ / "checkpoints").string();
    config_.checkpoint.interval = 1;
  }

  // Two ranks of unlike shares, the first of which owns nothing of some units.
  std::vector<RankAssignment> Ranks(const StateOnHost& how) {
    std::vector<RankAssignment> ranks = Assign(Llama(), {{{2, 2}, 0.3}, {{4}, 0.7}});
    for (RankAssignment& rank : ranks) {
      auto with = WithStateOnHost(rank, how);
      EXPECT_TRUE(with.ok()) << with.status();
      rank = *std::move(with);
    }
    return ranks;
  }

  // Steps in which rank 1's gradients overflow.
  Outcome TrainWithOverflow(const std::vector<RankAssignment>& ranks, std::function<bool(int64_t)> overflows) {
    return Train(ranks, {}, [&](int rank) {
      EngineOptions options;
      if (rank == 1) options.overflows = overflows;
      return options;
    });
  }

  void ExpectRefused(const std::vector<RankAssignment>& ranks, const std::string& text) {
    const absl::Status end = Train(ranks).ends[0].status();
    EXPECT_EQ(end.code(), absl::StatusCode::kFailedPrecondition) << end;
    EXPECT_THAT(std::string(end.message()), HasSubstr(text));
  }
};

// By instruction; 0: it copies no state.
int64_t CopiedBytes(const RankAssignment& rank, const Operation& op) {
  const HostAreas areas(rank, PrecisionOf(rank.config.training).value());
  const auto waits = [&areas](int32_t unit) { return areas.LayoutOf(unit); };
  if (const auto* parameters = std::get_if<PrefetchParameters>(&op)) return waits(parameters->unit).parameter;
  if (const auto* gradients = std::get_if<OffloadGradients>(&op)) return waits(gradients->unit).gradient;
  if (const auto* needs = std::get_if<PrefetchOptimizer>(&op)) return waits(needs->unit).StepNeeds();
  if (const auto* made = std::get_if<OffloadOptimizer>(&op)) return waits(made->unit).StepMakes();
  return 0;
}

TEST_F(EngineStateTest, CopiesTakeTheDeclaredLinksTime) {
  constexpr double kRate = 2e7;
  std::vector<RankAssignment> ranks = Ranks({kAllState});
  for (RankAssignment& rank : ranks) {
    rank.device.kind = DeviceKind::kEmulated;
    rank.device.host_link_bytes_per_second = kRate;
  }
  const Outcome outcome = TrainOk(ranks);
  int64_t copies = 0;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const std::vector<Instruction>& instructions = ranks[r].program.instructions;
    const std::vector<InstructionSpan>& spans = outcome.steps[r].back().spans;
    ASSERT_EQ(spans.size(), instructions.size());
    for (size_t i = 0; i < instructions.size(); ++i) {
      if (LaneOf(instructions[i].op) != Lane::kCopy) continue;
      const double seconds = static_cast<double>(CopiedBytes(ranks[r], instructions[i].op)) / kRate;
      EXPECT_NEAR(absl::ToDoubleSeconds(spans[i].end - spans[i].begin), seconds, 2e-9) << "rank " << r << ", instruction " << i;
      ++copies;
    }
  }
  EXPECT_GT(copies, 2 * 4 * 5);
}

TEST_F(EngineStateTest, MoreThanIsPlannedOfTheHostsMemoryIsRefused) {
  std::vector<RankAssignment> ranks = Ranks({kAllState});
  EXPECT_EQ(TrainOk(ranks).steps[0][0].host_memory_bytes, ranks[0].planned_host_bytes);
  ranks[0].planned_host_bytes -= 1;
  const auto end = Train(ranks).ends[0];
  EXPECT_EQ(end.status().code(), absl::StatusCode::kResourceExhausted) << end.status();
  EXPECT_THAT(std::string(end.status().message()), HasSubstr("n0/gpu0 (rank 0): what waits there needs "));
}

TEST_F(EngineStateTest, ASlotWithoutRoomForAUnitsStateIsRefused) {
  std::vector<RankAssignment> ranks = Ranks({{.optimizer = true}});
  ranks[0].program.slots = {8, 8};
  ExpectRefused(ranks, "(prefetch_optimizer): slot 0 has 8 bytes, what comes into it has ");
}

TEST_F(EngineStateTest, ProgramsThatDisagreeWhereParametersAreAreRefused) {
  std::vector<RankAssignment> ranks = Ranks({kAllState});
  const std::vector<RankAssignment> plain = Assign(Llama(), {{{2, 2}, 0.3}, {{4}, 0.7}});
  for (size_t r = 0; r < ranks.size(); ++r) ranks[r].evaluation = plain[r].evaluation;
  ExpectRefused(ranks, "program of rank 0: its parameters wait in host memory in training alone");
}

TEST_F(EngineStateTest, StepsInTurnAreRefusedWhereSomethingGlobalDecides) {
  ExpectRefused(Ranks({.in_turn = true}), "which cannot clip; set training.max_norm to 0");
  config_.training.max_norm = 0;
  config_.training.dtype = "float32";
  config_.training.mixed_precision_param = "float16";
  ExpectRefused(Ranks({.in_turn = true}), "before it is known whether float16 overflowed");
}

// It has stepped a part of its units when it is known: nobody goes on from that.
TEST_F(EngineStateTest, AStepInTurnThatIsNotFiniteIsNeverSaved) {
  config_.training.max_norm = 0;
  config_.training.steps = 6;
  config_.training.dtype = "float32";
  config_.training.mixed_precision_param = "bfloat16";
  for (const OffloadKinds& kinds : {OffloadKinds::None(), kAllState}) {
    std::vector<RankAssignment> ranks = Ranks({.kinds = kinds, .in_turn = true});
    const Outcome outcome = TrainWithOverflow(ranks, [](int64_t step) { return step == 2; });
    for (const auto& end : outcome.ends) {
      EXPECT_EQ(end.status().code(), absl::StatusCode::kAborted) << end.status();
      EXPECT_THAT(std::string(end.status().message()), HasSubstr("applied in part, since units are stepped in turn, and is not"));
      EXPECT_THAT(std::string(end.status().message()), HasSubstr(" on n1/gpu0"));
    }
    EXPECT_THAT(outcome.checkpoints, ElementsAre(Key(1), Key(2)));
    // From the step before it goes on as if nothing had been.
    for (RankAssignment& rank : ranks) {
      rank.start_step = 2;
      rank.epoch = Epoch(2);
      rank.resume_from = outcome.checkpoints.at(2);
    }
    const Outcome again = TrainOk(ranks);
    std::filesystem::remove_all(config_.checkpoint.folder);
    for (RankAssignment& rank : ranks) rank.start_step = 0, rank.resume_from.clear();
    const Outcome whole = TrainOk(ranks);
    for (size_t i = 0; i < again.steps[0].size(); ++i) EXPECT_EQ(again.steps[0][i].loss, whole.steps[0][i + 2].loss);
    std::filesystem::remove_all(config_.checkpoint.folder);
  }
}

// A skipped step leaves on the host what was there.
TEST_F(EngineStateTest, SkippedStepsAreTheSame) {
  config_.training.steps = 5;
  config_.training.dtype = "float32";
  config_.training.mixed_precision_param = "float16";
  const auto overflows = [](int64_t step) { return step == 1 || step == 3; };
  std::vector<TrainingState> states;
  std::vector<std::vector<StepResult>> steps;
  for (const OffloadKinds& kinds :
       {OffloadKinds::None(), kAllState, OffloadKinds{.parameters = true}, OffloadKinds{.optimizer = true}}) {
    const std::vector<RankAssignment> ranks = kinds.any() ? Ranks({kinds}) : Assign(Llama(), {{{2, 2}, 0.3}, {{4}, 0.7}});
    const Outcome outcome = TrainWithOverflow(ranks, overflows);
    ASSERT_TRUE(outcome.ends[0].ok()) << outcome.ends[0].status();
    states.push_back(ReadState(outcome.checkpoints.at(5)).value());
    steps.push_back(outcome.steps[0]);
    std::filesystem::remove_all(config_.checkpoint.folder);
    EXPECT_TRUE(states.back() == states.front()) << InWords(kinds);
    ASSERT_EQ(steps.back().size(), 5u);
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(steps.back()[i].skipped, overflows(static_cast<int64_t>(i))) << i;
      EXPECT_EQ(steps.back()[i].loss, steps.front()[i].loss) << InWords(kinds) << ", step " << i;
    }
  }
}

// A card's block is pinned and given back, and its copies run in the copy lane's stream.
TEST_F(EngineStateTest, ACardCopiesToPinnedMemory) {
  std::vector<RankAssignment> ranks = Assign(Llama(), {{{4, 4}, 1.0}});
  ranks[0] = WithStateOnHost(ranks[0], {kAllState}).value();
  FakeCard card(1);
  int live = 0;
  const Outcome outcome = Train(
      ranks, [&](int, FakeHost& host, Engine&) { host.on_step = [&](const StepResult&) { live = card.bytes().live(); }; },
      [&](int) {
        EngineOptions options;
        options.backend = &card;
        return options;
      });
  ASSERT_TRUE(outcome.ends[0].ok()) << outcome.ends[0].status();
  EXPECT_GT(live, card.bytes().live()) << "while it trains";
  const auto& all = ranks[0].program.instructions;
  const auto copies = std::count_if(all.begin(), all.end(), [](const auto& i) { return LaneOf(i.op) == Lane::kCopy; });
  EXPECT_GE(card.bytes().copies(), 2 * copies);
  std::filesystem::remove_all(config_.checkpoint.folder);
  const Outcome host = TrainOk(ranks);
  for (size_t step = 0; step < 2; ++step) EXPECT_EQ(outcome.steps[0][step].loss, host.steps[0][step].loss);
}

}  // namespace
}  // namespace motley::engine
