// The issue loop with fake work: what every program that a lowering may write relies on.
#include "worker/engine/lanes/runner.h"

#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/common/program/program_builder.h"
#include "tests/common/program/program_texts.h"
#include "tests/common/program/wide_program_texts.h"
#include "tests/worker/engine/lanes/fake_streams.h"
#include "worker/engine/lanes/compute_pacer.h"
#include "worker/engine/lanes/host_lane.h"
#include "worker/engine/lanes/queued_lane.h"
#include "worker/engine/lanes/stream_lane.h"

namespace motley::engine {
namespace {

// Looks whether everything that an instruction waits for has ended; takes a random time.
class CheckedWork : public ProgramWork {
 public:
  CheckedWork(const Program& program, unsigned seed) : program_(program), ended_(program.instructions.size()), random_(seed) {
    for (size_t i = 0; i < ended_.size(); ++i) delays_us_.push_back(static_cast<int>(random_() % 200));
    for (auto& ended : ended_) ended = false;
  }

  absl::Status Do(size_t i, const Operation& op) override {
    for (const int32_t before : program_.instructions[i].after) early_ += !ended_[before];
    for (size_t j = 0; j < i; ++j) early_ += LaneOf(program_.instructions[j].op) == LaneOf(op) && !ended_[j];
    absl::SleepFor(absl::Microseconds(delays_us_[i]));
    if (static_cast<int>(i) == fails_at) return absl::InternalError("planted");
    ended_[i] = true;
    return absl::OkStatus();
  }
  std::optional<double> FlopsOf(const Operation&) const override { return std::nullopt; }

  int early() const { return early_; }
  bool all_ended() const {
    return std::all_of(ended_.begin(), ended_.end(), [](const std::atomic<bool>& ended) { return ended.load(); });
  }
  int fails_at = -1;

 private:
  const Program& program_;
  std::vector<std::atomic<bool>> ended_;
  std::mt19937 random_;
  std::vector<int> delays_us_;
  std::atomic<int> early_{0};
};

// What a device's lanes are. A card's compute lane is a stream; those of its transfers are streams or threads.
enum class Lanes { kThreads, kStreams, kTransfersAreThreads };

class Device {
 public:
  Device(const Clock& clock, Lanes kind, unsigned seed = 1) : lanes_(clock, nullptr), streams_(seed) {
    for (size_t i = 0; i < kNumLanes; ++i) {
      pacers_.push_back(std::make_unique<ComputePacer>(DeviceDescription(), clock));
      if (kind != Lanes::kThreads) stream_.push_back(streams_.MakeStream());
      DeviceStream* const stream = kind == Lanes::kThreads ? nullptr : stream_.back().get();
      if (kind == Lanes::kStreams) {
        lane_.push_back(std::make_unique<StreamLane>(lanes_, *stream));
      } else if (kind == Lanes::kTransfersAreThreads && i == static_cast<size_t>(Lane::kCompute)) {
        lane_.push_back(std::make_unique<QueuedLane>(lanes_, *stream, nullptr));
      } else {
        lane_.push_back(std::make_unique<HostLane>(lanes_, *pacers_.back(), nullptr, stream));
      }
      all_[i] = lane_.back().get();
    }
  }
  const std::array<DeviceLane*, kNumLanes>& lanes() const { return all_; }

 private:
  DeviceLanes lanes_;
  FakeStreamDevice streams_;
  std::vector<std::unique_ptr<ComputePacer>> pacers_;
  std::vector<std::unique_ptr<DeviceStream>> stream_;
  std::array<DeviceLane*, kNumLanes> all_{};
  std::vector<std::unique_ptr<DeviceLane>> lane_;
};

class RunnerTest : public testing::TestWithParam<Lanes> {
 protected:
  SystemClock clock_;
  Device device_{clock_, GetParam()};
};

TEST_P(RunnerTest, NothingRunsBeforeWhatItWaitsFor) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const Program program = BuildProgram({.num_layers = 3, .microbatches = {2, 1, 1}, .tied = seed % 2 == 0, .recompute = true});
    CheckedWork work(program, seed);
    EXPECT_EQ(RunProgram(program, device_.lanes(), work).status(), absl::OkStatus());
    EXPECT_EQ(work.early(), 0);
    EXPECT_TRUE(work.all_ended());
  }
}

TEST_P(RunnerTest, StagesSendReceiveAndCopyBesideTheirWork) {
  for (const char* text : {kFirstStage, kMiddleStage, kLastStage, kSlots, kCopies}) {
    const Program program = *ParseProgram(text);
    for (unsigned seed = 0; seed < 5; ++seed) {
      CheckedWork work(program, seed);
      EXPECT_EQ(RunProgram(program, device_.lanes(), work).status(), absl::OkStatus());
      EXPECT_EQ(work.early(), 0);
      EXPECT_TRUE(work.all_ended());
    }
  }
}

TEST_P(RunnerTest, ADependencyThatIsLeftOutIsSeen) {
  Program program = BuildProgram({.num_layers = 2, .microbatches = {1}});
  const Program whole = program;
  for (Instruction& instruction : program.instructions) instruction.after.clear();
  CheckedWork work(whole, 1);  // judges by the whole program, runs the broken one
  EXPECT_EQ(RunProgram(program, device_.lanes(), work).status(), absl::OkStatus());
  EXPECT_GT(work.early(), 0);
}

TEST_P(RunnerTest, SaysWhenEachInstructionRan) {
  const Program program = *ParseProgram(kMiddleStage);
  CheckedWork work(program, 7);
  const absl::Duration begin = clock_.Now();
  const std::vector<InstructionSpan> spans = *RunProgram(program, device_.lanes(), work);
  const absl::Duration end = clock_.Now();
  ASSERT_EQ(spans.size(), program.instructions.size());
  for (size_t i = 0; i < spans.size(); ++i) {
    EXPECT_LE(begin, spans[i].begin);
    EXPECT_LE(spans[i].begin, spans[i].end);
    EXPECT_LE(spans[i].end, end);
    for (const int32_t before : program.instructions[i].after) EXPECT_LE(spans[before].end, spans[i].begin) << i;
  }
}

TEST_P(RunnerTest, AnErrorAnywhereEndsTheRun) {
  const Program program = BuildProgram({.num_layers = 1, .microbatches = {1}});
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    Device device(clock_, GetParam());
    CheckedWork work(program, 3);
    work.fails_at = static_cast<int>(i);
    EXPECT_EQ(RunProgram(program, device.lanes(), work).status(), absl::InternalError("planted")) << i;
    EXPECT_FALSE(work.all_ended());
  }
}

INSTANTIATE_TEST_SUITE_P(Lanes, RunnerTest, testing::Values(Lanes::kThreads, Lanes::kStreams, Lanes::kTransfersAreThreads),
                         [](const auto& lanes) {
                           return lanes.param == Lanes::kThreads   ? "Threads"
                                  : lanes.param == Lanes::kStreams ? "Streams"
                                                                   : "TransfersAreThreads";
                         });

}  // namespace
}  // namespace motley::engine
