// What a live cluster's cards take beside a plan's tensors.
#include <gtest/gtest.h>

#include <string>

#include "common/device/device_table.h"
#include "planner/cluster/cluster_file.h"
#include "planner/cluster/cluster_text.h"
#include "planner/live/live_inputs.h"
#include "tests/planner/cluster_fixture.h"
#include "tests/planner/live/described.h"

namespace motley::planner {
namespace {

PlannerInput MixedCards() { return MakeInput(SmallModel(), MixedDevices(), 32); }

TEST(CardContexts, ACardsContextIsTheMostThatWasMeasuredOfItsKindOrTheFloor) {
  PlannerInput input = MixedCards();
  constexpr int64_t kMiB = int64_t{1} << 20;
  for (size_t d = 0; d < input.devices.size(); ++d) {
    input.devices[d].kind = DeviceKind::kCuda;
    input.compute[d].context_bytes = 500 * kMiB;
  }
  input.compute[3].context_bytes = 520 * kMiB;  // the second of two P40
  LiveInputs live = Described(input);
  ASSERT_EQ(live.cluster.kinds.size(), 4u);
  EXPECT_EQ(live.profile.cards[2].context_bytes, 520 * kMiB);
  // Tables alone: nobody saw what the driver has.
  input.compute[3].context_bytes = input.compute[2].context_bytes = 5 * kMiB;
  live = Described(input);
  EXPECT_EQ(live.profile.cards[2].context_bytes, std::nullopt);
}

// Measured rates are no peak: a card that reaches half of its data sheet would be used fully.
TEST(CardContexts, UtilizationIsAPartOfTheDataSheetsPeak) {
  PlannerInput input = MixedCards();
  for (DeviceDescription& device : input.devices) device.kind = DeviceKind::kCuda;
  input.devices[0].model = "H200";
  input.devices[1].model = "a card that nobody knows";
  const auto peak = [&](int device) {
    const auto read = ParseCluster(ToToml(Described(input).cluster), "cluster.toml");
    EXPECT_TRUE(read.ok()) << read.status();
    const int kind = read->devices[device].kind;
    EXPECT_LT(read->FlopsPerSecond(kind, DType::kFloat32), 1e13) << "as measured";
    return read->PeakFlops(kind, DType::kFloat32) / 1e12;
  };
  EXPECT_NEAR(peak(0), FindGpu("H200")->fp32_flops / 1e12, 0.01);
  EXPECT_LT(peak(1), 10);
  EXPECT_GT(peak(1), 0) << "declared";
  input.devices[1].flops_per_second = 0;
  EXPECT_EQ(peak(1), 0) << "nobody says what it could do";
  input.config.training.mixed_precision_param = "bfloat16";
  EXPECT_NEAR(peak(0), FindGpu("H200")->bf16_flops / 1e12, 0.01);
}

TEST(CardContexts, ACardIsToldWhatNcclFindsAroundItAndAFileKeepsIt) {
  PlannerInput input = MixedCards();
  const auto path_of = [&](int device) {
    const LiveInputs live = Described(input);
    const auto read = ParseCluster(ToToml(live.cluster), "cluster.toml");
    EXPECT_TRUE(read.ok()) << read.status();
    const NcclPath path = live.cluster.kinds[live.cluster.devices[device].kind].nccl;
    EXPECT_EQ(read->kinds[read->devices[device].kind].nccl, path);
    return path;
  };
  const auto give = [&](size_t device) -> CardDescription& {
    input.devices[device].kind = DeviceKind::kCuda;
    CardDescription& card = input.devices[device].card;
    card.nccl_version = 23007;
    card.uuid = "GPU-" + std::to_string(device);
    card.bus = "0000:0" + std::to_string(device) + ":00.0";
    return card;
  };
  EXPECT_EQ(path_of(2), NcclPath::kNone);
  give(2);
  EXPECT_EQ(path_of(2), NcclPath::kNone) << "there is no other";
  give(3).p2p_peers = {"0000:02:00.0"};
  EXPECT_EQ(path_of(2), NcclPath::kPcie) << "both are of one kind";
  give(0).p2p_peers = {"0000:02:00.0"};
  EXPECT_EQ(path_of(0), NcclPath::kHost) << "that bus is another node's";
  EXPECT_EQ(path_of(1), NcclPath::kNone);
  input.devices[0].card.nccl_version = 22809;
  EXPECT_EQ(path_of(0), NcclPath::kNone);
}

}  // namespace
}  // namespace motley::planner
