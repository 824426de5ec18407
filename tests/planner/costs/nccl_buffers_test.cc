#include "planner/costs/nccl_buffers.h"

#include <gtest/gtest.h>

#include "planner/costs/costs.h"
#include "planner/costs/memory_model.h"
#include "tests/planner/costs/costs_fixture.h"

namespace motley::planner {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Of a connection past the host's memory (src/transport/p2p.cc): 4 MiB + 512 KiB + 4800 KiB and the heads' 4 KiB are 9.19 MiB for
// the receiver, in blocks of 2 MiB 10; the sender has its heads, 2.
constexpr int64_t kBothEnds = 12;

TEST(NcclBuffers, AGroupOverPcieHasFourChannelsToAndFromItsNeighbours) {
  const NcclSite site{NcclPath::kPcie, 4, 1};
  // Arrays 2, a pool of 16 chunks of 128 KiB for each channel.
  EXPECT_EQ(NcclGroupBytes(site, 2), (2 + 4 * 2 + 4 * 1 * kBothEnds) * kMiB);
  EXPECT_EQ(NcclGroupBytes(site, 3), (2 + 4 * 2 + 4 * 2 * kBothEnds) * kMiB);
  EXPECT_EQ(NcclGroupBytes(site, 4), NcclGroupBytes(site, 3)) << "ring and tree have two neighbours";
  EXPECT_EQ(NcclGroupBytes(site, 1), 0);
}

// NCCL's issue 2363 saw a pool of 536,870,912 bytes with 64 channels over NVLink: 8 MiB a channel. Its issue 864 saw 1.6 GB for a
// communicator of a node of eight.
TEST(NcclBuffers, AGroupOverNvlinkHasAllChannelsThatACardMayGiveAndMulticast) {
  const NcclSite site{NcclPath::kNvlink, 8, 1};
  EXPECT_EQ(NcclGroupBytes(site, 2), (2 + 32 * 8 + 32 * 1 * kBothEnds) * kMiB);
  // 16 channels, up and down, 8 steps of 128 KiB, for each member.
  EXPECT_EQ(NcclGroupBytes(site, 8), (2 + 32 * 8 + 32 * 2 * kBothEnds + 16 * 2 * 8) * kMiB);
}

TEST(NcclBuffers, ThroughTheHostsMemoryOnlyThePoolIsOnTheCard) {
  const NcclSite site{NcclPath::kHost, 4, 1};
  EXPECT_EQ(NcclGroupBytes(site, 4), (2 + 4 * 2) * kMiB);
  EXPECT_EQ(NcclPairBytes(site, true), (2 + 4 * 2) * kMiB);
}

// Of a connection over a network (src/transport/net.cc): 4 MiB + 4800 KiB, in blocks of 2 MiB 10, at both ends.
TEST(NcclBuffers, AcrossNodesEachPeerIsSentToAndReceivedFrom) {
  const NcclSite site{NcclPath::kHost, 1, 3};
  EXPECT_EQ(NcclGroupBytes(site, 2), (2 + 4 * 2 + 4 * (1 * 2 * 10 + 2)) * kMiB);
  EXPECT_EQ(NcclGroupBytes(site, 3), (2 + 4 * 2 + 4 * (2 * 2 * 10 + 2)) * kMiB);
  // The ring's neighbour, three of the tree, those 1, 2, 4, 8 away.
  EXPECT_EQ(NcclGroupBytes({NcclPath::kHost, 1, 16}, 16), (2 + 4 * 2 + 4 * (8 * 2 * 10 + 2)) * kMiB);
  // What does not fit a node has both.
  const NcclSite nodes_of_two{NcclPath::kPcie, 2, 2};
  EXPECT_EQ(NcclGroupBytes(nodes_of_two, 4), (2 + 4 * 2 + 4 * kBothEnds + 4 * (1 * 2 * 10 + 2)) * kMiB);
}

TEST(NcclBuffers, AReceiverHasTheBuffersOfAPair) {
  const NcclSite pcie{NcclPath::kPcie, 2, 1}, nvlink{NcclPath::kNvlink, 2, 1};
  EXPECT_EQ(NcclPairBytes(pcie, true), (2 + 4 * 2 + 4 * kBothEnds + 4 * 10) * kMiB);
  EXPECT_EQ(NcclPairBytes(pcie, false), (2 + 4 * 2 + 4 * kBothEnds + 4 * 2) * kMiB);
  EXPECT_EQ(NcclPairBytes(nvlink, true), (2 + 8 * 8 + 8 * kBothEnds + 8 * 10) * kMiB);
}

TEST(NcclBuffers, MembersThatAreKnownCountWhereTheyAre) {
  const NcclSite site{NcclPath::kNvlink, 8, 2};
  // Of 8 MiB a channel the pool is in a node that NVLink joins; over a network chunks are of 128 KiB, as NCCL's are.
  EXPECT_EQ(NcclGroupBytes(NcclSpread{NcclPath::kNvlink, 2, 1}), (2 + 32 * 8 + 32 * 1 * kBothEnds) * kMiB);
  EXPECT_EQ(NcclGroupBytes(NcclSpread{NcclPath::kNvlink, 2, 2}), (2 + 32 * 2 + 32 * 1 * kBothEnds + 4 * (1 * 2 * 10 + 2)) * kMiB);
  const NcclSpread inside{NcclPath::kNvlink, 2, 1}, across{NcclPath::kHost, 1, 2};
  EXPECT_EQ(NcclPairBytes(across, true), (2 + 4 * 2 + 4 * (1 * 2 * 10 + 2)) * kMiB);
  EXPECT_EQ(NcclPairBytes(across, false), NcclPairBytes(across, true)) << "both ends have buffers";
  EXPECT_EQ(NcclPairBytes(site, true), NcclPairBytes(inside, true)) << "a search takes the most";
  EXPECT_EQ(NcclGroupBytes(NcclSpread{}), 0) << "alone";
}

TEST(NcclBuffers, ARankHasThoseOfItsGroupsAndOfBothDirectionsOfEachNeighbour) {
  const NcclSite site{NcclPath::kPcie, 4, 1};
  constexpr int64_t kKernels = 128 * kMiB;
  const int64_t both_ways = NcclPairBytes(site, true) + NcclPairBytes(site, false);
  RankDuty duty;
  EXPECT_EQ(NcclBytes(site, duty, false), 0) << "alone";
  duty.num_stages = 3;
  EXPECT_EQ(NcclBytes(site, duty, false), kKernels + 2 * both_ways);
  duty.head = true;
  EXPECT_EQ(NcclBytes(site, duty, false), kKernels + both_ways);
  EXPECT_EQ(NcclBytes(site, duty, true), kKernels + both_ways + NcclGroupBytes(site, 2)) << "the embedding is in another stage";
  duty.group_size = 4;
  duty.tp_share = 0.5;
  EXPECT_EQ(NcclBytes(site, duty, false), kKernels + both_ways + NcclGroupBytes(site, 4) + NcclGroupBytes(site, 2));
  EXPECT_EQ(NcclBytes({NcclPath::kNone, 4, 1}, duty, false), 0);
}

TEST(NcclBuffers, TheLedgersContextHasThemWhereTheCardsUseNccl) {
  Cluster cluster = ClusterOf({"L4", "A6000"});
  const Workload workload = WorkloadOf("gpt2-124m", DType::kBFloat16);
  const auto context_of = [&](int kind, int64_t members) {
    const auto costs = Costs::Create(cluster, workload, nullptr);
    RankDuty duty;
    duty.kind = kind;
    duty.layers = 12;
    duty.group_size = members;
    return MemoryOf(costs.value(), duty, {1}).context;
  };
  EXPECT_EQ(context_of(0, 2), 768 * kMiB);
  cluster.kinds[0].nccl = cluster.kinds[1].nccl = NcclPath::kPcie;
  EXPECT_EQ(context_of(0, 1), 768 * kMiB);
  EXPECT_EQ(context_of(0, 2), 768 * kMiB + (128 + 2 + 4 * 2 + 4 * kBothEnds) * kMiB);
  EXPECT_EQ(SiteOf(cluster, 0).local_cards, 2);
  EXPECT_EQ(SiteOf(cluster, 0).nodes, 1);
}

}  // namespace
}  // namespace motley::planner
