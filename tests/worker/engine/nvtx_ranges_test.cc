// What Nsight Systems is told of a step: a range for each instruction, on its lane's thread.
#include <gtest/gtest.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/worker/engine/engine_fixture.h"
#include "tests/worker/engine/fake_card.h"
#include "worker/engine/device/nvtx_range.h"

namespace motley::engine {
namespace {

using torch::profiler::impl::ProfilerStubs;
using torch::profiler::impl::ProfilerVoidEventStub;

// In the place of PyTorch's library for cards.
class FakeNvtx : public ProfilerStubs {
 public:
  FakeNvtx() { torch::profiler::impl::registerCUDAMethods(this); }
  ~FakeNvtx() override { torch::profiler::impl::registerCUDAMethods(const_cast<ProfilerStubs*>(before_)); }

  void rangePush(const char* name) const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    EXPECT_EQ(open_[std::this_thread::get_id()]++, 0) << name << " within another range";
    ranges_[std::this_thread::get_id()].emplace_back(name);
  }
  void rangePop() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    EXPECT_EQ(--open_[std::this_thread::get_id()], 0);
  }
  bool enabled() const override { return true; }
  void record(c10::DeviceIndex*, ProfilerVoidEventStub*, int64_t*) const override {}
  float elapsed(const ProfilerVoidEventStub*, const ProfilerVoidEventStub*) const override { return 0; }
  void mark(const char*) const override {}
  void onEachDevice(std::function<void(int)>) const override {}
  void synchronize() const override {}

  // By thread.
  std::vector<std::vector<std::string>> Ranges() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [thread, open] : open_) EXPECT_EQ(open, 0) << "a range without an end";
    std::vector<std::vector<std::string>> ranges;
    for (const auto& [thread, names] : ranges_) ranges.push_back(names);
    return ranges;
  }

 private:
  const ProfilerStubs* const before_ = torch::profiler::impl::cudaStubs();
  mutable std::mutex mutex_;
  mutable std::map<std::thread::id, int> open_;
  mutable std::map<std::thread::id, std::vector<std::string>> ranges_;
};

class NvtxRangesTest : public EngineTest {
 protected:
  void TearDown() override {
    unsetenv("MOTLEY_NVTX");
    EngineTest::TearDown();
  }

  void TrainOnACard() {
    config_.training.steps = 2;  // and an evaluation behind the last
    assignments_ = Assign(Gpt2(), {{{2, 6}, 1.0}});
    FakeCard card(1);
    EngineOptions options;
    options.backend = &card;
    const Outcome outcome = Train(assignments_, {}, [&](int) { return options; });
    EXPECT_TRUE(outcome.ends[0].ok()) << outcome.ends[0].status();
  }

  std::vector<RankAssignment> assignments_;
};

TEST_F(NvtxRangesTest, EachInstructionIsARangeOfItsLanesThread) {
  FakeNvtx nvtx;
  setenv("MOTLEY_NVTX", "1", 1);
  TrainOnACard();

  const RankAssignment& rank = assignments_[0];
  std::map<Lane, std::vector<std::string>> expected;  // a lane runs in the program's order
  for (const Program* program : {&rank.program, &rank.program, &rank.evaluation}) {
    for (const Instruction& instruction : program->instructions) {
      expected[LaneOf(instruction.op)].push_back(NvtxName(instruction.op));
    }
  }
  std::set<std::vector<std::string>> of_lanes, of_threads;
  for (const auto& [lane, names] : expected) of_lanes.insert(names);
  for (const auto& names : nvtx.Ranges()) of_threads.insert(names);
  EXPECT_EQ(of_threads, of_lanes);
}

TEST_F(NvtxRangesTest, NobodyAskedForThem) {
  FakeNvtx nvtx;
  TrainOnACard();
  setenv("MOTLEY_NVTX", "0", 1);
  TrainOnACard();
  EXPECT_TRUE(nvtx.Ranges().empty());
}

TEST_F(NvtxRangesTest, WithoutTheLibraryForCardsThereAreNone) {
  setenv("MOTLEY_NVTX", "1", 1);
  EXPECT_FALSE(NvtxIsWanted());
  TrainOnACard();
}

TEST_F(NvtxRangesTest, NamesSayUnitMicrobatchAndPeer) {
  EXPECT_EQ(NvtxName(Forward{.unit = 3, .microbatch = 1, .segment = UnitSegment::kMlp}), "forward unit 3 microbatch 1 mlp");
  EXPECT_EQ(NvtxName(Backward{.unit = 0, .microbatch = 12}), "backward unit 0 microbatch 12");
  EXPECT_EQ(NvtxName(SendActivation{.unit = 2, .microbatch = 0, .peer = 5}), "send_activation unit 2 microbatch 0 peer 5");
  EXPECT_EQ(NvtxName(Gather{.unit = 4}), "gather unit 4");
  EXPECT_EQ(NvtxName(ReduceScalars{}), "reduce_scalars");
}

}  // namespace
}  // namespace motley::engine
