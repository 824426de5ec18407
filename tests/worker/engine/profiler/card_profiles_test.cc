// Profiles of collectives and links on cards that are not there: streams that are late, arrays in the card's memory.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/worker/engine/engine_fixture.h"
#include "tests/worker/engine/fake_card.h"
#include "tests/worker/engine/nccl/card_ranks.h"
#include "worker/engine/profiler/collective_profiler.h"

namespace motley::engine {
namespace {

class ProfilesOnStreamsTest : public EngineTest {
 protected:
  // `cards` by rank: whether it has one. All are of one node.
  std::vector<CollectiveProfile> Profile(const std::vector<bool>& cards, const NcclApi* nccl,
                                         const std::vector<std::pair<int, int>>& pairs = {}) {
    std::vector<Device> devices(cards.size());
    devices[0] = {{8}, 1.0};
    std::vector<RankAssignment> assignments = Assign(Gpt2(), devices);
    std::vector<CollectiveProfile> profiles(cards.size());
    FakeKv kv;
    OnRanks(static_cast<int>(cards.size()), [&](int rank) {
      FakeHost host(kv);
      RankAssignment& assignment = assignments[rank];
      assignment.link_pairs = pairs;
      assignment.program = assignment.evaluation = Program();
      for (int r = 0; r < assignment.world(); ++r) assignment.devices[r] = DeviceId("n/gpu" + std::to_string(r));
      assignment.device.id = assignment.devices[rank];
      assignment.device.card.uuid = cards[rank] ? "GPU-" + std::to_string(rank) : "";
      std::unique_ptr<FakeCard> card = cards[rank] ? std::make_unique<FakeCard>(rank + 1, nccl) : nullptr;
      EngineOptions options;
      options.backend = card.get();
      const auto profile = CreateEngine(host, options)->ProfileCollectives(assignment);
      ASSERT_TRUE(profile.ok()) << profile.status();
      profiles[rank] = *profile;
      if (card != nullptr) EXPECT_EQ(card->bytes().live(), 0);
    });
    return profiles;
  }

  static std::set<std::pair<int, int>> Pairs(const CollectiveProfile& profile) {
    std::set<std::pair<int, int>> pairs;
    for (const MeasuredLink& link : profile.links) {
      EXPECT_GT(link.bytes_per_second, 0);
      EXPECT_TRUE(pairs.emplace(link.from, link.to).second);
    }
    return pairs;
  }
  static void ExpectPoints(const CollectiveProfile& profile) {
    const size_t skews = profile.devices.size() == 2 ? 2 : 3;  // of two, even is one half
    EXPECT_EQ(profile.points.size(), 2 * skews);
    for (const CollectivePoint& point : profile.points) {
      EXPECT_GT(point.all_gather_seconds, 0);
      EXPECT_GT(point.reduce_scatter_seconds, 0);
    }
  }
};

TEST_F(ProfilesOnStreamsTest, CardsMeasureByNccl) {
  const auto profiles = Profile({true, true, true}, &TheFakeNccl().library.api, {{0, 1}, {0, 2}});
  for (const CollectiveProfile& profile : profiles) {
    ExpectPoints(profile);
    EXPECT_EQ(Pairs(profile), (std::set<std::pair<int, int>>{{0, 1}, {1, 0}, {0, 2}, {2, 0}}));
    ASSERT_EQ(profile.overlap.size(), 3u);
    for (size_t r = 0; r < 3; ++r) {
      EXPECT_GE(profile.overlap[r].compute, 1);
      EXPECT_GE(profile.overlap[r].collectives, 1);
      EXPECT_EQ(profile.overlap[r].compute, profiles[0].overlap[r].compute) << "all ranks know all";
    }
  }
}

TEST_F(ProfilesOnStreamsTest, WithoutNcclTheyMeasureThroughTheHost) {
  const auto profiles = Profile({true, true}, nullptr);
  ExpectPoints(profiles[0]);
  EXPECT_EQ(Pairs(profiles[0]), (std::set<std::pair<int, int>>{{0, 1}, {1, 0}}));
  EXPECT_TRUE(profiles[0].overlap.empty()) << "a thread's time is not a stream's";
}

// One end may have a stream for its calls where the other has none.
TEST_F(ProfilesOnStreamsTest, CardsBesideACpuMeasureEachPairByItsOwnWay) {
  const auto profiles = Profile({true, true, true, false}, &TheFakeNccl().library.api, {{0, 1}, {1, 2}, {1, 3}});
  for (const CollectiveProfile& profile : profiles) {
    ExpectPoints(profile);
    EXPECT_EQ(Pairs(profile), (std::set<std::pair<int, int>>{{0, 1}, {1, 0}, {1, 2}, {2, 1}, {1, 3}, {3, 1}}));
  }
}

// What waits in a stream for a rank that is gone is ended, on the others and on itself.
TEST_F(ProfilesOnStreamsTest, ALostPeerEndsThem) {
  const std::vector<RankAssignment> assignments = Assign(Gpt2(), {{{8}, 1.0}, {}});
  WithCards(2, [&](CardRank& one) {
    ASSERT_TRUE(one.connected.ok()) << one.connected.status();
    if (one.rank == 1) TheFakeNccl().DieInNextCall("group-0", 1);
    FakeCard card(one.rank + 1, &TheFakeNccl().library.api);
    const absl::Status status = ProfileRing(assignments[one.rank], card, one.communicator()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(card.bytes().live(), 0);
  });
  TheFakeNccl().Reset();
}

}  // namespace
}  // namespace motley::engine
