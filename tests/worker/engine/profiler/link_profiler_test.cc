#include "worker/engine/profiler/link_profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "tests/worker/engine/transport/ranks.h"
#include "worker/engine/device/host_backend.h"
#include "worker/engine/transport/link_rates.h"

namespace motley::engine {
namespace {

// Ranks by node, one after the other.
std::vector<DeviceId> Devices(const std::vector<int>& ranks_of_node) {
  std::vector<DeviceId> devices;
  for (size_t n = 0; n < ranks_of_node.size(); ++n) {
    for (int g = 0; g < ranks_of_node[n]; ++g) devices.emplace_back("n" + std::to_string(n) + "/gpu" + std::to_string(g));
  }
  return devices;
}

struct Measured {
  std::vector<std::vector<MeasuredLink>> links;  // by rank
  double seconds = 0;                            // of rank 0
};

// `rates` by rank; empty: nothing is paced.
Measured Profile(const std::vector<DeviceId>& devices, const std::vector<LinkRates>& rates, absl::Duration latency) {
  Measured measured;
  measured.links.resize(devices.size());
  WithRanks(
      static_cast<int>(devices.size()), {},
      [&](int rank, Communicator& communicator) {
        const absl::Time begin = absl::Now();
        HostBackend backend;
        auto links = ProfileLinks(LinkPlan{devices, {}}, backend, communicator);
        ASSERT_TRUE(links.ok()) << links.status();
        measured.links[rank] = *links;
        if (rank == 0) measured.seconds = absl::ToDoubleSeconds(absl::Now() - begin);
      },
      [&](CommunicatorOptions& options) {
        options.devices = devices;
        options.sends_to = options.receives_from = LinkPeers(LinkPlan{devices, {}}, options.rank);
        options.device.link_latency = latency;
        if (rates.empty()) return;
        options.device.link_bytes_per_second = rates[options.rank].device_bytes_per_second;
        options.device.node_link_bytes_per_second = rates[options.rank].node_bytes_per_second;
      });
  return measured;
}

// The quickest of three: what else the host does is in the seconds, too.
Measured ProfileQuickly(const std::vector<DeviceId>& devices, const std::vector<LinkRates>& rates, absl::Duration latency,
                        double seconds) {
  Measured quickest = Profile(devices, rates, latency);
  for (int again = 0; again < 2 && quickest.seconds >= seconds; ++again) {
    if (Measured next = Profile(devices, rates, latency); next.seconds < quickest.seconds) quickest = std::move(next);
  }
  return quickest;
}

void ExpectDeclared(const std::vector<DeviceId>& devices, const std::vector<LinkRates>& rates, double latency,
                    const std::vector<MeasuredLink>& links) {
  double worst = 0;
  for (const MeasuredLink& link : links) {
    const double declared = SlowestOnPath(devices, rates, link.from, link.to);
    EXPECT_NEAR(link.bytes_per_second / declared, 1, 0.1) << link.from << " to " << link.to;
    EXPECT_NEAR(link.latency_seconds, latency, 0.2 * latency + 2e-4) << link.from << " to " << link.to;
    worst = std::max(worst, std::abs(link.bytes_per_second / declared - 1));
  }
  std::printf("%zu links, off by %.2f %% at most\n", links.size(), 100 * worst);
}

TEST(LinkProfiler, MeasuresWhatIsDeclared) {
  const std::vector<DeviceId> devices = Devices({2, 2, 1});
  const std::vector<LinkRates> rates = {{8e6, 3e6}, {4e6, 3e6}, {20e6, 50e6}, {30e6, 50e6}, {10e6, 0}};
  const Measured measured = ProfileQuickly(devices, rates, absl::Milliseconds(1), 5);
  EXPECT_EQ(measured.links[0].size(), 2u * (3 + 2));
  ExpectDeclared(devices, rates, 1e-3, measured.links[0]);
  std::printf("5 devices on 3 nodes: %.2f s\n", measured.seconds);
  EXPECT_LT(measured.seconds, 5);
}

// As slow as the demo's links are after their dilation, and as far apart.
TEST(LinkProfiler, EightNodesTakeFiveSeconds) {
  const std::vector<DeviceId> devices = Devices({1, 1, 1, 1, 1, 1, 1, 1});
  std::vector<LinkRates> rates;
  for (int r = 0; r < 8; ++r) rates.push_back({3e6 * (1 + r % 3), r < 4 ? 0.6e6 : 2e6});
  const Measured measured = ProfileQuickly(devices, rates, absl::Microseconds(100), 5);
  EXPECT_EQ(measured.links[0].size(), 8u * 7);
  ExpectDeclared(devices, rates, 1e-4, measured.links[0]);
  std::printf("8 devices on 8 nodes: %.2f s\n", measured.seconds);
  EXPECT_LT(measured.seconds, 5);
}

// A latency that is longer than the time in which bytes of near links are told from it.
TEST(LinkProfiler, FarLinksAreMeasured) {
  const std::vector<DeviceId> devices = Devices({2, 1});
  for (const double rate : {1e5, 200e6}) {
    const std::vector<LinkRates> rates(3, {1e9, rate});
    const Measured measured = Profile(devices, rates, absl::Milliseconds(30));
    ExpectDeclared(devices, rates, 30e-3, measured.links[0]);
  }
}

TEST(LinkProfiler, EveryRankKnowsItsTurn) {
  for (const std::vector<int>& ranks_of_node : std::vector<std::vector<int>>{
           {1}, {2}, {3}, {5}, {1, 1}, {1, 2}, {4, 1}, {2, 3}, {1, 1, 1}, {3, 1, 1}, {1, 3, 1}, {2, 1, 2}}) {
    const std::vector<DeviceId> devices = Devices(ranks_of_node);
    const Measured measured = Profile(devices, {}, absl::ZeroDuration());
    size_t pairs = ranks_of_node.size() * (ranks_of_node.size() - 1) / 2;
    for (const int ranks : ranks_of_node) pairs += ranks > 1;
    for (const std::vector<MeasuredLink>& links : measured.links) {
      ASSERT_EQ(links.size(), 2 * pairs);
      for (size_t i = 0; i < links.size(); ++i) {
        EXPECT_GT(links[i].bytes_per_second, 0);
        EXPECT_GE(links[i].latency_seconds, 0);
        EXPECT_EQ(links[i].bytes_per_second, measured.links[0][i].bytes_per_second);
        EXPECT_EQ(links[i].to, measured.links[0][i].to);
      }
    }
  }
}

// The lost rank is at its turn, or waits for it.
TEST(LinkProfiler, ALostPeerEndsIt) {
  for (const int lost : {1, 3}) {
    const std::vector<DeviceId> devices = Devices({2, 1, 1});
    WithRanks(
        4, {},
        [&](int rank, Communicator& communicator) {
          if (rank == lost) {
            EXPECT_TRUE(communicator.GatherScalars({0}).ok());  // the first turn's barrier
            return;
          }
          HostBackend backend;
          const absl::Status status = ProfileLinks(LinkPlan{devices, {}}, backend, communicator).status();
          EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
          communicator.Abort("as the engine does");
        },
        [&](CommunicatorOptions& options) {
          options.devices = devices;
          options.sends_to = options.receives_from = LinkPeers(LinkPlan{devices, {}}, options.rank);
        });
  }
}

void ExpectEveryPairOnce(const std::vector<int>& ranks_of_node) {
  const std::vector<DeviceId> devices = Devices(ranks_of_node);
  std::set<std::pair<NodeName, NodeName>> met;
  size_t inside = 0;
  for (const std::vector<RankPair>& turn : LinkTurns(LinkPlan{devices, {}})) {
    std::set<NodeName> busy;
    for (const auto& [a, b] : turn) {
      const NodeName one = NodeOf(devices[a]), other = NodeOf(devices[b]);
      EXPECT_TRUE(busy.insert(one).second) << one.value();
      if (one == other) {
        ++inside;
      } else {
        EXPECT_TRUE(busy.insert(other).second) << other.value();
        EXPECT_TRUE(met.insert(std::minmax(one, other)).second) << one.value() << " and " << other.value();
      }
    }
  }
  const size_t nodes = ranks_of_node.size();
  EXPECT_EQ(met.size(), nodes * (nodes - 1) / 2);
  EXPECT_EQ(inside, static_cast<size_t>(std::count_if(ranks_of_node.begin(), ranks_of_node.end(), [](int n) { return n > 1; })));
}

TEST(LinkProfiler, ManyNodesMeetInRounds) {
  for (int nodes = 1; nodes < 40; ++nodes) ExpectEveryPairOnce(std::vector<int>(nodes, 1 + nodes % 3));
  EXPECT_EQ(LinkTurns(LinkPlan{Devices(std::vector<int>(8, 2)), {}}).size(), 36u) << "each pair alone";
  EXPECT_EQ(LinkTurns(LinkPlan{Devices(std::vector<int>(60, 2)), {}}).size(), 60u) << "59 rounds, and one inside the nodes";
}

using testing::ElementsAre;
using testing::Pair;

TEST(LinkProfiler, ChosenPairsOfANodeTakeTurns) {
  const LinkPlan plan{Devices({3, 2}), {{0, 1}, {0, 2}, {3, 4}}};
  EXPECT_THAT(LinkTurns(plan),
              ElementsAre(ElementsAre(Pair(0, 1)), ElementsAre(Pair(3, 4)), ElementsAre(Pair(0, 2)), ElementsAre(Pair(0, 3))));
  EXPECT_THAT(LinkPeers(plan, 0), ElementsAre(1, 2, 3));
  EXPECT_THAT(LinkPeers(plan, 4), ElementsAre(3));
  LinkPlan many{Devices(std::vector<int>(20, 3)), {}};
  for (int n = 0; n < 20; ++n) many.inside.insert(many.inside.end(), {{3 * n, 3 * n + 1}, {3 * n, 3 * n + 2}});
  const auto turns = LinkTurns(many);
  ASSERT_EQ(turns.size(), 2u + 19);
  for (const auto& turn : {turns[0], turns[1]}) EXPECT_EQ(turn.size(), 20u) << "one pair of each node";
}

}  // namespace
}  // namespace motley::engine
