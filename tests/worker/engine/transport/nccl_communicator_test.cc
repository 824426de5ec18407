#include "worker/engine/transport/nccl_communicator.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/worker/engine/nccl/card_ranks.h"

namespace motley::engine {
namespace {

class NcclCommunicatorTest : public testing::Test {
 protected:
  void SetUp() override { TheFakeNccl().Reset(); }
  void TearDown() override { TheFakeNccl().Reset(); }
};

TEST_F(NcclCommunicatorTest, NothingOfAGroupGoesByTheHost) {
  WithCards(3, [](CardRank& one) {
    ASSERT_TRUE(one.connected.ok()) << one.connected.status();
    EXPECT_EQ(TransportName(one.communicator().TransportOf(0)), "nccl");
    for (const Lane lane : {Lane::kCollective, Lane::kSend, Lane::kReceive}) EXPECT_FALSE(one.communicator().Blocks(lane));
    CheckGroup<float>(one.communicator(), 0, EveryRank(3), DType::kFloat32, OwnersOf({0, 30, 70, 100}), 100, 1);
    CheckGroup<double>(one.communicator(), 0, EveryRank(3), DType::kFloat64, OwnersOf({0, 10, 20, 30}), 30, 2);
    CheckGroup<double>(one.communicator(), 0, EveryRank(3), DType::kFloat64, {{}, {{3, 5}, {7, 20}}, {}}, 30, 3);
    EXPECT_EQ(one.memory.asked(), 0);  // no stream was waited for
    EXPECT_TRUE(one.host->lines.empty());
    const auto scalars = one.communicator().GatherScalars({1.5 * one.rank});
    ASSERT_TRUE(scalars.ok());
    EXPECT_EQ((*scalars)[2], std::vector<double>{3.0});
    const auto texts = one.communicator().GatherStrings(std::to_string(one.rank));
    ASSERT_TRUE(texts.ok());
    EXPECT_EQ((*texts)[1], "1");
  });
  // Of each rank, twice: one call padded, one even, two grouped.
  EXPECT_EQ(TheFakeNccl().Calls(), 3 * 2 * (1 + 1 + 2));
}

// What steps will call is no kernel's first launch.
TEST_F(NcclCommunicatorTest, EachKindOfCollectiveRunsWhenAGroupIsMade) {
  WithCards(
      3,
      [](CardRank& one) {
        ASSERT_TRUE(one.connected.ok()) << one.connected.status();
        EXPECT_EQ(one.memory.asked(), 2 * 5 * 2);  // two groups, two types
      },
      [](CommunicatorOptions& options) {
        options.groups = {{0, 1, 2}, {2, 0, 1}};
        options.nccl.types = {DType::kBFloat16, DType::kFloat32};
      });
  EXPECT_EQ(TheFakeNccl().Calls(), 3 * 2 * 5 * 2);
}

// Each communicator has what was logged while it was made; a pair reads its own number of channels.
TEST_F(NcclCommunicatorTest, SaysOverWhatNcclGoes) {
  WithCards(
      2,
      [](CardRank& one) {
        ASSERT_TRUE(one.connected.ok()) << one.connected.status();
        const std::vector<TransportUse>& uses = one.communicator().transports();
        ASSERT_EQ(uses.size(), one.rank == 0 ? 3u : 0u);
        if (one.rank == 1) return;
        EXPECT_EQ(uses[0].nccl_links, (NcclLinks{{"sockets"}, {"eth0"}, 2}));
        EXPECT_EQ(uses[1].nccl_links, std::nullopt) << "its log says nothing";
        EXPECT_EQ(uses[2].nccl_links, (NcclLinks{{"sockets"}, {"eth0"}, 1}));
      },
      [](CommunicatorOptions& options) {
        options.groups = {{0, 1}, {0, 1}};
        (options.rank == 0 ? options.sends_to : options.receives_from) = {1 - options.rank};
        const auto made = std::make_shared<int>(0);
        options.nccl.new_links = [made](bool is_pair) -> std::optional<NcclLinks> {
          EXPECT_EQ(is_pair, *made == 2);
          if ((*made)++ == 1) return std::nullopt;
          return NcclLinks{{"sockets"}, {"eth0"}, is_pair ? 1 : 2};
        };
      });
}

// Half of the ranks have no card; one group has only cards, one none, one both.
TEST_F(NcclCommunicatorTest, AMixedJobGoesByGroup) {
  const std::vector<std::vector<int>> groups = {{0, 1}, {3, 2}, {2, 0, 1, 3}, {1}};
  const DeviceId n0("n0/gpu0"), n1("n1/gpu0"), n2("n2/gpu0"), n3("n3/gpu0");
  const std::vector<std::vector<TransportUse>> expected = {
      {{0, {n0, n1}, Transport::kNccl, "", {}},
       {{}, {n0, n1}, Transport::kNccl, "", {}},
       {{}, {n0, n3}, Transport::kTcp, "n3/gpu0 has no NCCL", {}}},
      {{3, {n1}, Transport::kNone, "", {}}},
      {{2, {n2, n0, n1, n3}, Transport::kTcp, "n2/gpu0, n3/gpu0 have no NCCL", {}}, {{}, {n2, n3}, Transport::kTcp, "", {}}},
      {{1, {n3, n2}, Transport::kTcp, "", {}}}};
  WithCards(
      4,
      [&](CardRank& one) {
        ASSERT_TRUE(one.connected.ok()) << one.connected.status();
        Communicator& communicator = one.communicator();
        const bool has_card = one.rank < 2;
        EXPECT_EQ(communicator.TransportOf(0), has_card ? Transport::kNccl : Transport::kNone);
        EXPECT_EQ(communicator.TransportOf(1), has_card ? Transport::kNone : Transport::kTcp);
        EXPECT_EQ(communicator.TransportOf(2), Transport::kTcp);
        EXPECT_EQ(communicator.TransportOf(3), Transport::kNone);
        EXPECT_TRUE(communicator.Blocks(Lane::kCollective));
        for (int round = 0; round < 5; ++round) {
          for (int g = 0; g < 3; ++g) {
            if (communicator.TransportOf(g) == Transport::kNone) continue;
            Owners owners(groups[g].size());
            owners[0] = {{0, 50}, {60, 70}};
            owners[1] = {{50, 60}};
            CheckGroup<float>(communicator, g, groups[g], DType::kFloat32, owners, 100, round);
          }
        }
        // A lane with host traffic blocks: its NCCL calls are waited for.
        if (has_card) EXPECT_GE(one.memory.asked(), 10);
        EXPECT_EQ(communicator.transports(), expected[one.rank]);
        ASSERT_TRUE(communicator.GatherScalars({0}).ok());
        const std::string line =
            "goes by TCP and not by NCCL: group 2 (n2/gpu0, n0/gpu0, n1/gpu0, n3/gpu0): n2/gpu0, n3/gpu0 have no NCCL; "
            "hand-overs from n0/gpu0 to n3/gpu0: n3/gpu0 has no NCCL";
        // The first member that knows NCCL says it for all.
        EXPECT_EQ(one.host->lines, one.rank == 0 ? std::vector<std::string>{line} : std::vector<std::string>{});
      },
      [&](CommunicatorOptions& options) {
        options.groups = groups;
        if (options.rank >= 2) options.nccl = {};
        if (options.rank == 0) options.sends_to = {1, 3};
        if (options.rank == 2) options.sends_to = {3};
        if (options.rank == 1) options.receives_from = {0};
        if (options.rank == 3) options.receives_from = {0, 2};
      });
}

TEST_F(NcclCommunicatorTest, HandsOverInBothDirectionsAtOnce) {
  constexpr int kWorld = 3, kRounds = 20;
  const FakeNcclBehaviour late{.in_progress_polls = 1, .latest_us = 200, .seed = 5};
  TheFakeNccl().Behave(&late);
  const auto values = [](int from, int to, int round) {
    return std::vector<int32_t>(1 + (from * 7 + to * 3 + round) % 50, from * 10'000 + to * 100 + round);
  };
  WithCards(
      kWorld,
      [&](CardRank& one) {
        ASSERT_TRUE(one.connected.ok()) << one.connected.status();
        Communicator& communicator = one.communicator();
        EXPECT_FALSE(communicator.Blocks(Lane::kSend));
        EXPECT_FALSE(communicator.Blocks(Lane::kReceive));
        std::thread sender([&] {
          for (int round = 0; round < kRounds; ++round) {
            for (int i = 1; i < kWorld; ++i) {
              const int to = (one.rank + i) % kWorld;
              EXPECT_EQ(communicator.TransportTo(to), Transport::kNccl);
              const std::vector<int32_t> sent = values(one.rank, to, round);
              ASSERT_EQ(communicator.Send(to, sent.data(), static_cast<int64_t>(sent.size() * 4)), absl::OkStatus());
            }
          }
        });
        for (int round = 0; round < kRounds; ++round) {
          for (int i = 1; i < kWorld; ++i) {
            const int from = (one.rank + kWorld - i) % kWorld;
            EXPECT_EQ(communicator.TransportFrom(from), Transport::kNccl);
            const std::vector<int32_t> expected = values(from, one.rank, round);
            std::vector<int32_t> received(expected.size());
            EXPECT_EQ(communicator.Receive(from, received.data(), static_cast<int64_t>(received.size() * 4)), absl::OkStatus());
            EXPECT_EQ(received, expected);
          }
        }
        EXPECT_EQ(communicator.Send((one.rank + 1) % kWorld, nullptr, 0), absl::OkStatus());  // nothing: no call
        sender.join();
      },
      EverybodyHandsOver);
}

// Kernels wait for peers on the card. Those of three lanes, each in an order of its own, must find room beside each other.
TEST_F(NcclCommunicatorTest, LanesTogetherFitOnTheWeakestMembersCard) {
  WithCards(
      3,
      [&](CardRank& one) {
        ASSERT_TRUE(one.connected.ok()) << one.connected.status();
        for (const char* label : {"group-0", "group-1", "hand-over-0-2"}) {
          const int ctas = TheFakeNccl().MostCtas(label);
          EXPECT_GE(ctas, 1) << label;
          EXPECT_LE(3 * ctas, 30) << label;
        }
        EXPECT_EQ(TheFakeNccl().MostCtas("hand-over-1-2"), 8) << "of 44 / 4 the power of two";
        ASSERT_TRUE(one.communicator().GatherScalars({0}).ok());
      },
      [](CommunicatorOptions& options) {
        EverybodyHandsOver(options);
        options.groups = {EveryRank(3), {0, 1}};
      });
}

TEST_F(NcclCommunicatorTest, PairsTakeLessOfALargeCardThanGroups) {
  WithCards(
      2,
      [&](CardRank& one) {
        ASSERT_TRUE(one.connected.ok()) << one.connected.status();
        EXPECT_EQ(TheFakeNccl().MostCtas("group-0"), 32);
        EXPECT_EQ(TheFakeNccl().MostCtas("hand-over-0-1"), 8);
        EXPECT_EQ(TheFakeNccl().MostCtas("hand-over-1-0"), 8);
        ASSERT_TRUE(one.communicator().GatherScalars({0}).ok());
      },
      [](CommunicatorOptions& options) {
        EverybodyHandsOver(options);
        options.nccl.multiprocessors = 132;
      });
}

// In a step the lane's earlier work would wait for it.
TEST_F(NcclCommunicatorTest, PairsAreConnectedBeforeTheFirstStep) {
  TheFakeNccl().Reset();
  WithCards(
      3,
      [&](CardRank& one) {
        ASSERT_TRUE(one.connected.ok()) << one.connected.status();
        EXPECT_EQ(TheFakeNccl().Calls(), 6 * 2);
        ASSERT_TRUE(one.communicator().GatherScalars({0}).ok());
      },
      EverybodyHandsOver);
}

TEST_F(NcclCommunicatorTest, VersionsThatDifferGoByTcpAndTheFirstMemberSaysSo) {
  NcclApi older = TheFakeNccl().library.api;
  older.ncclGetVersion = [](int* version) {
    *version = 22105;
    return ncclSuccess;
  };
  WithCards(
      3,
      [&](CardRank& one) {
        ASSERT_TRUE(one.connected.ok()) << one.connected.status();
        EXPECT_EQ(one.communicator().TransportOf(0), Transport::kTcp);
        EXPECT_EQ(one.communicator().TransportOf(1), one.rank == 1 ? Transport::kNone : Transport::kNccl);
        EXPECT_EQ(one.communicator().TransportTo(1), one.rank == 0 ? Transport::kTcp : Transport::kNone);
        EXPECT_EQ(one.communicator().Blocks(Lane::kSend), one.rank == 0);
        CheckGroup<float>(one.communicator(), 0, EveryRank(3), DType::kFloat32, OwnersOf({0, 30, 70, 100}), 100, 1);
        ASSERT_TRUE(one.communicator().GatherScalars({0}).ok());
        if (one.rank != 0) {
          EXPECT_TRUE(one.host->lines.empty());
          return;
        }
        ASSERT_EQ(one.host->lines.size(), 1);
        const std::string why =
            "NCCL 2.21.5 on n1/gpu0, 2.28.9 on n0/gpu0, n2/gpu0: ranks of different versions do not understand each other";
        EXPECT_EQ(one.host->lines[0].find("goes by TCP and not by NCCL: group 0 (n0/gpu0, n1/gpu0, n2/gpu0): " + why), 0)
            << one.host->lines[0];
        EXPECT_NE(one.host->lines[0].find("; hand-overs from n0/gpu0 to n1/gpu0: NCCL 2.21.5 on n1/gpu0"), std::string::npos);
      },
      [&](CommunicatorOptions& options) {
        options.groups = {EveryRank(3), {0, 2}};
        if (options.rank == 0) options.sends_to = {1};
        if (options.rank == 1) options.receives_from = {0};
        if (options.rank == 1) options.nccl.api = &older;
      });
}

TEST_F(NcclCommunicatorTest, AJobThatAsksForNcclIsRefusedWithWhatIsInTheWay) {
  WithCards(
      2,
      [](CardRank& one) {
        EXPECT_EQ(one.connected.status().code(), absl::StatusCode::kFailedPrecondition);
        EXPECT_NE(
            one.connected.status().message().find(
                "the job asks for NCCL, which cannot serve group 0 (n0/gpu0, n1/gpu0): n0/gpu0, n1/gpu0 are on one card (GPU-a)"),
            std::string::npos)
            << one.connected.status();
      },
      [](CommunicatorOptions& options) {
        options.nccl.required = true;
        options.device.card.uuid = "GPU-a";
      });
}

TEST_F(NcclCommunicatorTest, ALaterNcclServesRanksOnOneCard) {
  const FakeNcclBehaviour later{.version = 23004};
  TheFakeNccl().Behave(&later);
  WithCards(
      2,
      [](CardRank& one) {
        ASSERT_TRUE(one.connected.ok()) << one.connected.status();
        EXPECT_EQ(one.communicator().TransportOf(0), Transport::kNccl);
      },
      [](CommunicatorOptions& options) {
        options.nccl.required = true;
        options.device.card.uuid = "GPU-a";
      });
}

TEST_F(NcclCommunicatorTest, ARankAloneHasNoTraffic) {
  WithCards(1, [](CardRank& one) {
    ASSERT_TRUE(one.connected.ok()) << one.connected.status();
    EXPECT_FALSE(one.communicator().Blocks(Lane::kCollective));
    CheckGroup<float>(one.communicator(), 0, {0}, DType::kFloat32, OwnersOf({0, 100}), 100, 1);
  });
  EXPECT_EQ(TheFakeNccl().Calls(), 0);
}

TEST_F(NcclCommunicatorTest, CallsThatTheOptionsDoNotKnowAreNamedAndBreakNothing) {
  WithCards(2, [](CardRank& one) {
    ASSERT_TRUE(one.connected.ok()) << one.connected.status();
    std::vector<float> array(4);
    const absl::Status owners = one.communicator().AllGather(0, array.data(), DType::kFloat32, {{}});
    EXPECT_EQ(owners.message(), "all-gather: 1 owners for the 2 members of group 0");
    EXPECT_EQ(one.communicator().Send(5, array.data(), 4).code(), absl::StatusCode::kInternal);
    CheckGroup<float>(one.communicator(), 0, EveryRank(2), DType::kFloat32, OwnersOf({0, 60, 100}), 100, 1);
  });
}

// Host traffic behind the wrapper keeps the emulated links' schedule.
TEST_F(NcclCommunicatorTest, WhatGoesByTcpKeepsItsPace) {
  constexpr int64_t kElements = 250'000;  // 1 MB of float32 at 20 MB/s: 50 ms
  WithCards(
      2,
      [](CardRank& one) {
        ASSERT_TRUE(one.connected.ok()) << one.connected.status();
        Communicator& communicator = one.communicator();
        std::vector<float> array(kElements);
        // Later than the exchange that agrees on it, which uses the same links.
        const absl::Duration begin = CommonStart(communicator) + absl::Milliseconds(200);
        communicator.collective_pacer().Begin(begin);
        ASSERT_EQ(communicator.AllGather(0, array.data(), DType::kFloat32, OwnersOf({0, 0, kElements})), absl::OkStatus());
        communicator.collective_pacer().End(std::nullopt);
        const double seconds = absl::ToDoubleSeconds(communicator.collective_pacer().end() - begin);
        // By the emulated schedule, which the host's load does not move.
        EXPECT_LE(seconds, 1.05 * 0.05);
        if (one.rank == 0) EXPECT_GE(seconds, 0.999 * 0.05);
      },
      [](CommunicatorOptions& options) {
        options.device.link_bytes_per_second = 20e6;
        options.device.card.uuid = "GPU-a";  // one card for both: not by NCCL
      });
}

}  // namespace
}  // namespace motley::engine
