#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <sstream>

#include "common/base/fault.h"
#include "common/session/assignment.h"
#include "tests/worker/engine/transport/all_reduce_check.h"
#include "tests/worker/engine/transport/ranks.h"
#include "tests/worker/engine/transport/strangers.h"

namespace motley::engine {
namespace {

std::vector<int64_t> RandomBounds(std::mt19937& random, int world, int64_t elements) {
  std::vector<double> shares(world);
  for (double& share : shares) share = random() % 3 == 0 ? 0 : 1 + random() % 100;
  if (std::accumulate(shares.begin(), shares.end(), 0.0) == 0) shares[random() % world] = 1;  // one owner of everything
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<int64_t> bounds = {0};
  double before = 0;
  for (int r = 0; r < world; ++r) {
    before += shares[r];
    bounds.push_back(r == world - 1 ? elements : static_cast<int64_t>(before / sum * elements));
  }
  return bounds;
}

template <typename T>
void CheckRounds(int world, DType dtype, const DeviceDescription& device, int rounds, int64_t largest) {
  std::mt19937 random(world);
  std::vector<std::vector<int64_t>> bounds;
  for (int i = 0; i < rounds; ++i) bounds.push_back(RandomBounds(random, world, 1 + random() % largest));
  WithRanks(world, device, [&](int rank, Communicator& communicator) {
    for (int i = 0; i < rounds; ++i) {
      CheckGroup<T>(communicator, 0, EveryRank(world), dtype, OwnersOf(bounds[i]), bounds[i].back(), i);
    }
  });
}

TEST(TcpCommunicator, EqualsPlainSumsAtAnyShares) {
  for (int world = 1; world <= 5; ++world) CheckRounds<float>(world, DType::kFloat32, {}, 20, 300'000);
}

TEST(TcpCommunicator, EqualsPlainSumsInFloat64OnPacedLinks) {
  DeviceDescription device;
  device.link_bytes_per_second = 200e6;
  device.link_latency = absl::Microseconds(50);
  for (int world : {2, 4}) CheckRounds<double>(world, DType::kFloat64, device, 10, 50'000);
}

// A rank is in several groups, each with a ring of its own; members need not be in rank order.
TEST(TcpCommunicator, GroupsSumAmongTheirMembersAlone) {
  const std::vector<std::vector<int>> groups = {{0, 1}, {2, 3}, {0, 2}, {3, 1, 0}, {1}, EveryRank(4)};
  constexpr int kRounds = 10;
  std::mt19937 random(7);
  struct Case {
    int64_t elements;
    Owners owners;
  };
  std::vector<std::vector<Case>> cases(kRounds);
  for (std::vector<Case>& round : cases) {
    for (const std::vector<int>& members : groups) {
      const int64_t elements = 1 + static_cast<int64_t>(random() % 100'000);
      round.push_back({elements, RandomOwners(random, static_cast<int>(members.size()), elements)});
    }
  }
  DeviceDescription slow;
  slow.link_bytes_per_second = 500e6;
  for (const DeviceDescription& device : {DeviceDescription(), slow}) {
    WithRanks(
        4, device,
        [&](int rank, Communicator& communicator) {
          for (int i = 0; i < kRounds; ++i) {
            for (int g = 0; g < static_cast<int>(groups.size()); ++g) {
              if (std::count(groups[g].begin(), groups[g].end(), rank) == 0) continue;
              const Case& one = cases[i][g];
              CheckGroup<float>(communicator, g, groups[g], DType::kFloat32, one.owners, one.elements, i);
            }
            ASSERT_TRUE(communicator.GatherScalars({1}).ok());
          }
        },
        [&](CommunicatorOptions& options) { options.groups = groups; });
  }
}

// Each element is summed at one member, in one order, and given to the others.
TEST(TcpCommunicator, AnAllReduceIsTheSameOnAllMembers) {
  const std::vector<std::vector<int>> groups = {EveryRank(4), {0, 1}, {3, 1, 0}, {2}, {2, 3}};
  DeviceDescription slow;
  slow.link_bytes_per_second = 500e6;
  for (const DeviceDescription& device : {DeviceDescription(), slow}) {
    AllReduceCheck check;
    WithRanks(
        4, device, [&](int, Communicator& communicator) { CheckAllReduces(&check, communicator, groups); },
        [&](CommunicatorOptions& options) { options.groups = groups; });
  }
}

TEST(TcpCommunicator, CallsThatTheOptionsDoNotKnowAreNamed) {
  const auto expect_internal = [](const absl::Status& status, const std::string& what) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_NE(status.message().find(what), std::string::npos) << status;
  };
  WithRanks(
      2, {},
      [&](int rank, Communicator& communicator) {
        std::vector<float> array(4);
        const int foreign = 1 - rank;
        expect_internal(communicator.AllGather(foreign, array.data(), DType::kFloat32, {{}}),
                        "all-gather: rank " + std::to_string(rank) + " is in no group " + std::to_string(foreign));
        expect_internal(communicator.ReduceScatter(rank, array.data(), DType::kFloat32, {{}, {}}),
                        "reduce-scatter: 2 owners for the 1 members of group " + std::to_string(rank));
        expect_internal(communicator.ReduceScatter(rank, array.data(), DType::kBFloat16, {{}}), "not in bfloat16");
        expect_internal(communicator.AllReduce(foreign, array.data(), DType::kFloat32, 4), "all-reduce: rank ");
        expect_internal(communicator.Send(foreign, array.data(), 4), "sends to no rank " + std::to_string(foreign));
        expect_internal(communicator.Receive(7, array.data(), 4), "receives from no rank 7");
        EXPECT_TRUE(communicator.GatherScalars({0}).ok());  // nothing was sent, nothing is broken
      },
      [](CommunicatorOptions& options) {
        options.groups = {{0}, {1}};
      });
}

TEST(TcpCommunicator, GroupsAndPeersThatAreNoneAreNamed) {
  FakeKv kv;
  FakeHost host(kv);
  auto links = LinkClock::Map(-1);
  CommunicatorOptions options;
  options.devices = {DeviceId("a/gpu0"), DeviceId("b/gpu0")};
  options.groups = {{0, 1}, {0, 2}};
  EXPECT_EQ(ConnectCommunicator(options, host, **links).status().message(), "group 1 has rank 2 of 2 ranks");
  options.groups = {{0, 0}};
  EXPECT_EQ(ConnectCommunicator(options, host, **links).status().message(), "group 0 has rank 0 twice");
  options.groups = {};
  options.sends_to = {0};
  EXPECT_EQ(ConnectCommunicator(options, host, **links).status().message(), "rank 0 of 2 cannot hand over to or from rank 0");
}

TEST(TcpCommunicator, PacedTimeIsTheBoundAndIndependentOfSkew) {
  DeviceDescription device;
  device.link_bytes_per_second = 20e6;
  constexpr int64_t kElements = 500'000;  // 2 MB of float32: 100 ms
  for (double largest : {0.25, 0.5, 1.0}) {
    std::vector<int64_t> bounds = {0};
    for (int r = 1; r < 4; ++r) bounds.push_back(static_cast<int64_t>((largest + (1 - largest) * (r - 1) / 3) * kElements));
    bounds.push_back(kElements);
    int64_t least = kElements;
    for (int r = 0; r < 4; ++r) least = std::min(least, bounds[r + 1] - bounds[r]);
    const double bound = (kElements - least) * 4 / device.link_bytes_per_second;
    WithRanks(4, device, [&](int rank, Communicator& communicator) {
      std::vector<float> array(kElements);
      const absl::Duration begin = CommonStart(communicator);
      communicator.collective_pacer().Begin(begin);
      ASSERT_EQ(communicator.AllGather(0, array.data(), DType::kFloat32, OwnersOf(bounds)), absl::OkStatus());
      communicator.collective_pacer().End(std::nullopt);
      const absl::Duration end = communicator.collective_pacer().end();
      // By the emulated schedule, which the host's load does not move.
      EXPECT_LE(absl::ToDoubleSeconds(end - begin), 1.05 * bound) << largest;
      if (bounds[rank + 1] - bounds[rank] == least) {
        EXPECT_GE(absl::ToDoubleSeconds(end - begin), 0.999 * bound) << largest;
      }
      EXPECT_GE(SystemClock().Now(), end);
    });
  }
}

// The kernel would take all of it from those who are early.
TEST(TcpCommunicator, NothingIsOnItsWayToAMemberWhoIsNotThere) {
  DeviceDescription device;
  device.link_bytes_per_second = 20e6;
  constexpr int64_t kElements = 250'000;  // 1 MB of float32: 50 ms
  const double bound = kElements * 4 / device.link_bytes_per_second;
  const Owners owners = OwnersOf({0, kElements, kElements, kElements});  // the last to come owns all
  const absl::Duration late = absl::Milliseconds(200);
  WithRanks(3, device, [&](int rank, Communicator& communicator) {
    std::vector<float> array(kElements, 1);
    const absl::Duration begin = CommonStart(communicator);
    communicator.collective_pacer().Begin(rank == 0 ? begin + late : begin);
    ASSERT_EQ(communicator.ReduceScatter(0, array.data(), DType::kFloat32, owners), absl::OkStatus());
    communicator.collective_pacer().End(std::nullopt);
    if (rank != 0) return;
    EXPECT_EQ(array[kElements - 1], 3);
    const double seconds = absl::ToDoubleSeconds(communicator.collective_pacer().end() - begin - late);
    EXPECT_GE(seconds, 0.999 * bound);
    EXPECT_LE(seconds, 1.05 * bound);
  });
}

TEST(TcpCommunicator, AnAddressThatIsNotOursIsNamed) {
  FakeKv kv;
  FakeHost host(kv);
  kv.Set("peer/1", "0.1.0/2 boot 0 0 4711 " + std::string(32, 'a') + " 0 ");
  auto links = LinkClock::Map(-1);
  CommunicatorOptions options;
  options.devices = {DeviceId("a/gpu0"), DeviceId("b/gpu0")};
  options.data_addresses = {"203.0.113.1", "203.0.113.2"};
  const absl::Status status = ConnectCommunicator(options, host, **links).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("203.0.113.1"), std::string::npos) << status;
}

TEST(TcpCommunicator, APeerThatNeverComesIsNamed) {
  FakeKv kv;
  FakeHost host(kv);
  auto links = LinkClock::Map(-1);
  CommunicatorOptions options;
  options.devices = {DeviceId("a/gpu0"), DeviceId("b/gpu0")};
  options.data_addresses = {"127.0.0.1", "127.0.0.1"};
  options.introduction_timeout = absl::Milliseconds(50);
  const absl::Status status = ConnectCommunicator(options, host, **links).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(FaultOf(status), Fault::kPeer);
  EXPECT_NE(status.message().find("b/gpu0 did not come"), std::string::npos) << status;
}

// Whoever waits for a peer says so in its own words, which name the peer and what was seen, before its worker takes it for hung.
TEST(TcpCommunicator, MeetingEndsBeforeTheWorkersPatience) {
  const CommunicatorOptions options;
  EXPECT_LT(options.introduction_timeout + options.meeting_timeout, absl::Seconds(RankAssignment().first_progress_seconds));
}

// The listening ports that this process's network shows, as a port scan sees them.
std::set<int> ListeningPorts() {
  std::set<int> ports;
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string number, local, remote, state;
    fields >> number >> local >> remote >> state;
    if (state == "0A") ports.insert(std::stoi(local.substr(local.find(':') + 1), nullptr, 16));
  }
  return ports;
}

TEST(TcpCommunicator, StrangersOnEveryPortDoNotDisturbTheMeeting) {
  const std::set<int> foreign = ListeningPorts();  // of other programs: left alone
  std::atomic<bool> over = false;
  std::atomic<int> connected = 0;
  std::thread strangers([&] {
    std::map<int, std::vector<FileDescriptor>> open;
    while (!over) {
      for (const int port : ListeningPorts()) {
        if (foreign.contains(port) || open[port].size() >= 20) continue;
        // Every other one speaks; what it says would be a header.
        FileDescriptor stranger = ConnectAsStranger(port, open[port].size() % 2 == 0 ? "" : std::string(48, '\1'));
        if (stranger.get() < 0) continue;
        open[port].push_back(std::move(stranger));
        ++connected;
      }
    }
  });
  const auto body = [](int rank, Communicator& communicator) {
    const auto all = communicator.GatherScalars({1.0 * rank});
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_EQ((*all)[3], std::vector<double>{3.0});
  };
  // The last rank comes when the strangers have been at everybody else's port.
  WithRanks(4, {}, body, [&](const CommunicatorOptions& options) {
    while (options.rank == 3 && connected < 3 * 20) std::this_thread::yield();
  });
  over = true;
  strangers.join();
}

TEST(TcpCommunicator, GathersScalarsAndTexts) {
  WithRanks(3, {}, [&](int rank, Communicator& communicator) {
    const auto scalars = communicator.GatherScalars({1.0 * rank, 2.5});
    ASSERT_TRUE(scalars.ok());
    EXPECT_EQ((*scalars)[2], (std::vector<double>{2.0, 2.5}));
    const auto texts = communicator.GatherStrings(rank == 1 ? "" : std::string(1000 * (rank + 1), 'a' + rank));
    ASSERT_TRUE(texts.ok());
    EXPECT_EQ((*texts)[0], std::string(1000, 'a'));
    EXPECT_EQ((*texts)[1], "");
    EXPECT_EQ((*texts)[2], std::string(3000, 'c'));
  });
}

TEST(TcpCommunicator, AbortOfOneRankWakesAll) {
  WithRanks(3, {}, [&](int rank, Communicator& communicator) {
    ASSERT_TRUE(communicator.GatherScalars({0}).ok());
    if (rank == 0) {
      communicator.Abort("told to");
      EXPECT_EQ(communicator.GatherScalars({0}).status().code(), absl::StatusCode::kUnavailable);
      return;
    }
    const absl::Status status = communicator.GatherScalars({0}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  });
}

TEST(TcpCommunicator, AbortFromAnotherThreadEndsACallUnderWay) {
  WithRanks(2, {}, [&](int rank, Communicator& communicator) {
    if (rank == 1) {
      EXPECT_FALSE(communicator.GatherScalars({0}).ok());  // rank 0 never calls
      return;
    }
    std::thread other([&] { communicator.Abort("the compute lane failed"); });
    other.join();
  });
}

TEST(TcpCommunicator, HealthNamesAPeerThatIsLost) {
  WithRanks(2, {}, [&](int rank, Communicator& communicator) {
    ASSERT_TRUE(communicator.GatherScalars({0}).ok());
    if (rank == 1) return communicator.Abort("told to");
    absl::Status status;
    while (status.ok()) status = communicator.Health();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(FaultOf(status), Fault::kPeer);
    EXPECT_EQ(status.message(), "lost n1/gpu0: the other end closed the connection");
  });
}

TEST(TcpCommunicator, APeerThatLeavesInOrderIsNotLost) {
  FakeKv kv;
  std::atomic<bool> gone = false;
  OnRanks(2, [&](int rank) {
    FakeHost host(kv);
    auto links = LinkClock::Map(-1);
    CommunicatorOptions options;
    options.rank = rank;
    options.devices = {DeviceId("a/gpu0"), DeviceId("b/gpu0")};
    options.data_addresses = {"127.0.0.1", "127.0.0.1"};
    auto communicator = ConnectCommunicator(options, host, **links);
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    ASSERT_TRUE((*communicator)->GatherScalars({0}).ok());
    if (rank == 1) {
      communicator->reset();
      gone = true;
      return;
    }
    while (!gone) std::this_thread::yield();
    EXPECT_EQ((*communicator)->Health(), absl::OkStatus());
    // Whoever still wants something of it is told.
    EXPECT_EQ((*communicator)->GatherScalars({0}).status().code(), absl::StatusCode::kUnavailable);
  });
}

TEST(TcpCommunicator, SaysThatItIsTcp) {
  WithRanks(
      2, {},
      [](int rank, Communicator& communicator) {
        EXPECT_EQ(TransportName(communicator.TransportOf(0)), "tcp");
        EXPECT_EQ(TransportName(communicator.TransportOf(1)), "none");
        EXPECT_EQ(communicator.TransportTo(1 - rank), rank == 0 ? Transport::kTcp : Transport::kNone);
        EXPECT_EQ(communicator.TransportFrom(1 - rank), rank == 1 ? Transport::kTcp : Transport::kNone);
        EXPECT_TRUE(communicator.Blocks(Lane::kCollective));
      },
      [](CommunicatorOptions& options) {
        options.groups = {{0, 1}, {0}};
        if (options.rank == 0) options.sends_to = {1};
        if (options.rank == 1) options.receives_from = {0};
      });
}

TEST(TcpCommunicator, AFailureInOneGroupEndsTheOthers) {
  WithRanks(
      3, {},
      [](int rank, Communicator& communicator) {
        std::vector<float> array(100);
        const Owners owners = OwnersOf({0, 50, 100});
        if (rank == 0) return communicator.Abort("told to");
        // Rank 1 loses rank 0 in their group; rank 2 waits for rank 1 in another.
        const absl::Status status = communicator.AllGather(rank - 1, array.data(), DType::kFloat32, owners);
        EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
        EXPECT_EQ(FaultOf(status), Fault::kPeer);
        EXPECT_NE(status.message().find(rank == 1 ? "lost n0/gpu0" : "lost n1/gpu0"), std::string::npos) << status;
      },
      [](CommunicatorOptions& options) {
        options.groups = {{0, 1}, {1, 2}};
      });
}

TEST(TcpCommunicator, DifferentOperationsAreNoticed) {
  WithRanks(2, {}, [&](int rank, Communicator& communicator) {
    std::vector<float> array(100);
    // Rank 1 believes in other shares: a segment of another size arrives.
    const std::vector<int64_t> bounds = rank == 0 ? std::vector<int64_t>{0, 50, 100} : std::vector<int64_t>{0, 100, 100};
    const absl::Status status = communicator.AllGather(0, array.data(), DType::kFloat32, OwnersOf(bounds));
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    // Whoever sees the other shares knows that no network is to blame; the other one sees a connection close.
    if (status.message().find("different programs") != std::string::npos) EXPECT_EQ(FaultOf(status), Fault::kOurs) << status;
  });
}

}  // namespace
}  // namespace motley::engine
