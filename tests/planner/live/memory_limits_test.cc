// Devices on which a rank ran out of memory: plans count on less of it.
#include "planner/live/memory_limits.h"

#include <gmock/gmock.h>

#include "planner/live/planner.h"
#include "planner/live/ran_out.h"
#include "tests/planner/cluster_fixture.h"
#include "tests/planner/live/described.h"

namespace motley::planner {
namespace {

using testing::HasSubstr;

PlannerInput Input() { return MakeInput(SmallModel(), MixedDevices(), 32); }

// The devices of `input` that are alike on one node, the first two.
std::pair<size_t, size_t> Alike(const PlannerInput& input) {
  for (size_t d = 1; d < input.devices.size(); ++d) {
    const bool same = NodeOf(input.devices[d].id) == NodeOf(input.devices[d - 1].id) &&
                      input.devices[d].model == input.devices[d - 1].model &&
                      input.devices[d].memory_bytes == input.devices[d - 1].memory_bytes;
    if (same) return {d - 1, d};
  }
  ADD_FAILURE() << "no two devices are alike";
  return {0, 0};
}

TEST(MemoryLimits, AreWhatDevicesDeclareOrWhatTheyTurnedOutToHave) {
  PlannerInput input = Input();
  std::vector<int64_t> declared;
  for (const DeviceDescription& device : input.devices) declared.push_back(device.memory_bytes);
  EXPECT_EQ(MemoryLimits(input), declared);
  EXPECT_EQ(MemoryLimitsText(input), "");

  const auto [one, other] = Alike(input);
  input.compute[one].usable_bytes = declared[one] / 2;
  std::vector<int64_t> expected = declared;
  expected[one] = expected[other] = declared[one] / 2;
  EXPECT_EQ(MemoryLimits(input), expected) << "two of one card have the least of theirs";
  input.compute[other].usable_bytes = declared[one] / 4;
  expected[one] = expected[other] = declared[one] / 4;
  EXPECT_EQ(MemoryLimits(input), expected);
  EXPECT_THAT(MemoryLimitsText(input), HasSubstr(input.devices[other].id.value()));

  input.compute[one].usable_bytes = input.compute[other].usable_bytes = 2 * declared[one];
  EXPECT_EQ(MemoryLimits(input), declared) << "no more than it declares";
  input.devices[one].memory_bytes = 0;
  EXPECT_EQ(MemoryLimits(input)[one], 2 * declared[one]) << "of a device without a limit";
}

TEST(MemoryLimits, ThePlannerTakesThem) {
  PlannerInput input = Input();
  const size_t kinds = Described(input).cluster.kinds.size();
  const auto [one, other] = Alike(input);
  input.compute[one].usable_bytes = input.devices[one].memory_bytes / 2;
  const LiveInputs live = Described(input);
  EXPECT_EQ(live.cluster.kinds.size(), kinds) << "both are still one card";
  for (const size_t d : {one, other}) {
    EXPECT_EQ(live.cluster.kinds[live.cluster.devices[d].kind].memory_bytes, input.devices[one].memory_bytes / 2);
  }
  EXPECT_THAT(live.cluster.notes, testing::Contains(HasSubstr("ran out of memory")));
}

TEST(MemoryLimits, APlanFillsNoDeviceBeyondThem) {
  PlannerInput input = Input();
  const auto most = [&input] {
    int64_t peak = 0;
    const auto result = MakePlan(input);
    if (!result.ok()) ADD_FAILURE() << result.status();
    if (!result.ok()) return peak;
    for (const PipelinePlan& pipeline : result->plan.pipelines) {
      for (const StagePlan& stage : pipeline.stages) {
        for (const UnitPlan& unit : stage.units) {
          for (const RankPlan& rank : unit.ranks) peak = std::max(peak, rank.predicted.peak_bytes);
        }
      }
    }
    return peak;
  };
  const int64_t before = most();
  for (ComputeProfile& profile : input.compute) profile.usable_bytes = before * 9 / 10;
  EXPECT_LE(most(), before * 9 / 10);
}

TEST(CorrectedLimit, IsWhatWasHeld) {
  EXPECT_EQ(CorrectedLimit(1000, 800, 900), 800);
  EXPECT_EQ(CorrectedLimit(0, 800, 900), 800) << "of a device without a limit";
}

TEST(CorrectedLimit, IsAsMuchBelowThePlansPeakAsTheDeviceHeldMore) {
  EXPECT_EQ(CorrectedLimit(1000, 900, 450), 225);
  EXPECT_EQ(CorrectedLimit(1000, 1000, 900), 810);
}

TEST(CorrectedLimit, FallsByAtLeastATwentieth) {
  EXPECT_EQ(CorrectedLimit(1000, 990, 990), 950);
  EXPECT_EQ(CorrectedLimit(1000, 2000, 0), 950) << "no plan that says a peak";
  EXPECT_EQ(CorrectedLimit(1000, 0, 900), 950) << "nobody knows what was held";
  EXPECT_EQ(CorrectedLimit(0, 0, 900), 0) << "nothing is known";
  int64_t limit = 1000;
  for (int i = 0; i < 3; ++i) limit = CorrectedLimit(limit, 1000, 1000);
  EXPECT_EQ(limit, 856);
}

TEST(RanOut, SaysWhyAndWhatNeedsLess) {
  const std::vector<DeviceSetup> devices = {{"n1/gpu0", "A6000", 4e9, int64_t{64} << 20},
                                            {"n1/gpu1", "A6000", 4e9, int64_t{64} << 20}};
  const std::string text(
      RanOut(MakeInput(SmallModel(), devices, 32), "n1/gpu0 ran out of memory; the plan counted 5 MiB").message());
  EXPECT_THAT(text, testing::StartsWith(
                        "n1/gpu0 ran out of memory; the plan counted 5 MiB\nwhat needs less memory, the cheapest first:\n"));
  EXPECT_THAT(text, HasSubstr("1 more A6000 on n1: "));
  EXPECT_THAT(text, testing::Not(HasSubstr("memory_reserve"))) << "no reserve helps where memory was not there";
  EXPECT_THAT(std::string(RanOut(Input(), "full").message()), testing::StartsWith("full\n"));
}

TEST(RanOut, OfAHostSaysWhetherTheDevicesAloneHoldIt) {
  const std::string fits(RanOut(Input(), "n1's host", MemoryTier::kHost).message());
  EXPECT_THAT(fits, testing::StartsWith("n1's host\nwhat needs less memory, the cheapest first:\n  planner.offload=never: "));
  EXPECT_THAT(fits, HasSubstr(" s a step\n  more memory for the host, or less of it held by others"));
  PlannerInput small = Input();
  for (ComputeProfile& profile : small.compute) profile.usable_bytes = int64_t{1} << 20;
  const std::string lacks(RanOut(small, "n1's host", MemoryTier::kHost).message());
  EXPECT_THAT(lacks, testing::StartsWith("n1's host\n"));
  EXPECT_THAT(lacks, testing::Not(HasSubstr("planner.offload=never")));
}

}  // namespace
}  // namespace motley::planner
