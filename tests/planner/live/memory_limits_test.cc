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

}  // namespace
}  // namespace motley::planner
