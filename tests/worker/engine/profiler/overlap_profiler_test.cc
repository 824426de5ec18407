#include "worker/engine/profiler/overlap_profiler.h"

#include <gtest/gtest.h>

#include "tests/worker/engine/lanes/clocked_stream.h"
#include "worker/engine/lanes/compute_pacer.h"

namespace motley::engine {
namespace {

// Pieces one after another from 0 on.
std::vector<LaneTime> Pieces(const std::vector<int>& seconds) {
  ClockedStream stream([&seconds](int number) { return absl::Seconds(seconds[number]); });
  const SystemClock clock;
  ComputePacer pacer(DeviceDescription(), clock);
  LaneTimer timer(&stream, pacer);
  std::vector<LaneTime> times;
  for (size_t i = 0; i < seconds.size(); ++i) {
    times.push_back(timer.Measure(std::nullopt, [] { return absl::OkStatus(); }));
  }
  EXPECT_EQ(timer.Await(), absl::OkStatus());
  return times;
}

TEST(Slowdown, CountsWhatRanBesideTheOthers) {
  const std::vector<LaneTime> others = Pieces({4, 4, 4});  // until 12
  // The last three ran when the others had ended.
  EXPECT_DOUBLE_EQ(*Slowdown(Pieces({3, 4, 5, 2, 1, 1}), 2, others), 2);
  EXPECT_DOUBLE_EQ(*Slowdown(Pieces({5, 5}), 2, others), 2.5);
}

TEST(Slowdown, IsNeverASpeedup) {
  EXPECT_EQ(Slowdown(Pieces({1, 1, 1}), 2, Pieces({4})), 1);
  EXPECT_EQ(Slowdown(Pieces({9}), 2, Pieces({4})), std::nullopt) << "none ran beside the others alone";
  EXPECT_EQ(Slowdown(Pieces({9}), 2, {}), std::nullopt);
}

}  // namespace
}  // namespace motley::engine
