#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <sstream>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "tests/worker/engine/fake_host.h"
#include "tests/worker/engine/transport/strangers.h"
#include "worker/engine/transport/connect_communicator.h"

namespace motley::engine {
namespace {

// Connects `world` ranks over loopback and runs body(rank, communicator) on each, after before(rank).
template <typename Body>
void WithRanks(int world, const DeviceDescription& device, Body body, const std::function<void(int)>& before = nullptr) {
  FakeKv kv;
  OnRanks(world, [&](int rank) {
    if (before) before(rank);
    FakeHost host(kv);
    auto links = LinkClock::Map(-1);
    CommunicatorOptions options;
    options.rank = rank;
    options.device = device;
    for (int r = 0; r < world; ++r) {
      options.devices.emplace_back("n" + std::to_string(r) + "/gpu0");
      options.data_addresses.push_back("127.0.0.1");
    }
    auto communicator = ConnectCommunicator(options, host, **links);
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    body(rank, **communicator);
  });
}

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

// Small integers: sums are exact in any order.
template <typename T>
std::vector<T> Contribution(int rank, int64_t elements, int round) {
  std::vector<T> values(elements);
  for (int64_t i = 0; i < elements; ++i) values[i] = static_cast<T>((i * 7 + rank * 31 + round * 13) % 101);
  return values;
}

template <typename T>
void CheckRounds(int world, DType dtype, const DeviceDescription& device, int rounds, int64_t largest) {
  std::mt19937 random(world);
  std::vector<std::vector<int64_t>> bounds;
  for (int i = 0; i < rounds; ++i) bounds.push_back(RandomBounds(random, world, 1 + random() % largest));
  WithRanks(world, device, [&](int rank, Communicator& communicator) {
    for (int i = 0; i < rounds; ++i) {
      const std::vector<int64_t>& b = bounds[i];
      const int64_t elements = b.back();
      const std::vector<T> whole = Contribution<T>(0, elements, i);
      std::vector<T> array(elements, T(-1));
      std::copy(whole.begin() + b[rank], whole.begin() + b[rank + 1], array.begin() + b[rank]);
      ASSERT_EQ(communicator.AllGatherV(array.data(), dtype, b), absl::OkStatus());
      ASSERT_TRUE(array == whole) << "all-gather, round " << i << " on rank " << rank;

      std::vector<T> sum(elements, 0);
      for (int r = 0; r < world; ++r) {
        const std::vector<T> of_rank = Contribution<T>(r, elements, i);
        for (int64_t e = 0; e < elements; ++e) sum[e] += of_rank[e];
      }
      array = Contribution<T>(rank, elements, i);
      ASSERT_EQ(communicator.ReduceScatterV(array.data(), dtype, b), absl::OkStatus());
      ASSERT_TRUE(std::equal(array.begin() + b[rank], array.begin() + b[rank + 1], sum.begin() + b[rank]))
          << "reduce-scatter, round " << i << " on rank " << rank;
    }
  });
}

TEST(RingCommunicator, EqualsPlainSumsAtAnyShares) {
  for (int world = 1; world <= 5; ++world) CheckRounds<float>(world, DType::kFloat32, {}, 20, 300'000);
}

TEST(RingCommunicator, EqualsPlainSumsInFloat64OnPacedLinks) {
  DeviceDescription device;
  device.link_bytes_per_second = 200e6;
  device.link_latency = absl::Microseconds(50);
  for (int world : {2, 4}) CheckRounds<double>(world, DType::kFloat64, device, 10, 50'000);
}

TEST(RingCommunicator, PacedTimeIsTheBoundAndIndependentOfSkew) {
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
      // A common start: threads of a busy host wake up milliseconds apart.
      const auto starts = communicator.GatherScalars({absl::ToDoubleSeconds(SystemClock().Now())});
      ASSERT_TRUE(starts.ok());
      double latest = 0;
      for (const auto& start : *starts) latest = std::max(latest, start[0]);
      const absl::Duration begin = absl::Seconds(latest);
      communicator.pacer().Begin(begin);
      ASSERT_EQ(communicator.AllGatherV(array.data(), DType::kFloat32, bounds), absl::OkStatus());
      communicator.pacer().End(std::nullopt);
      const absl::Duration end = communicator.pacer().end();
      // By the emulated schedule, which the host's load does not move.
      EXPECT_LE(absl::ToDoubleSeconds(end - begin), 1.05 * bound) << largest;
      if (bounds[rank + 1] - bounds[rank] == least) {
        EXPECT_GE(absl::ToDoubleSeconds(end - begin), 0.999 * bound) << largest;
      }
      EXPECT_GE(SystemClock().Now(), end);
    });
  }
}

TEST(RingCommunicator, AnAddressThatIsNotOursIsNamed) {
  FakeKv kv;
  FakeHost host(kv);
  kv.Set("peer/1", "boot 0 4711 " + std::string(32, 'a'));
  auto links = LinkClock::Map(-1);
  CommunicatorOptions options;
  options.devices = {DeviceId("a/gpu0"), DeviceId("b/gpu0")};
  options.data_addresses = {"203.0.113.1", "203.0.113.2"};
  const absl::Status status = ConnectCommunicator(options, host, **links).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("203.0.113.1"), std::string::npos) << status;
}

TEST(RingCommunicator, APeerThatNeverComesIsNamed) {
  FakeKv kv;
  FakeHost host(kv);
  auto links = LinkClock::Map(-1);
  CommunicatorOptions options;
  options.devices = {DeviceId("a/gpu0"), DeviceId("b/gpu0")};
  options.data_addresses = {"127.0.0.1", "127.0.0.1"};
  options.connect_timeout = absl::Milliseconds(50);
  const absl::Status status = ConnectCommunicator(options, host, **links).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(FaultOf(status), Fault::kPeer);
  EXPECT_NE(status.message().find("b/gpu0 did not come"), std::string::npos) << status;
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

TEST(RingCommunicator, StrangersOnEveryPortDoNotDisturbTheMeeting) {
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
  WithRanks(4, {}, body, [&](int rank) {
    while (rank == 3 && connected < 3 * 20) std::this_thread::yield();
  });
  over = true;
  strangers.join();
}

TEST(RingCommunicator, GathersScalarsAndTexts) {
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

TEST(RingCommunicator, AbortOfOneRankWakesAll) {
  WithRanks(3, {}, [&](int rank, Communicator& communicator) {
    ASSERT_TRUE(communicator.GatherScalars({0}).ok());
    if (rank == 0) {
      communicator.Abort("told to");
      EXPECT_EQ(communicator.GatherScalars({0}).status().code(), absl::StatusCode::kUnavailable);
      return;
    }
    const absl::Time begin = absl::Now();
    const absl::Status status = communicator.GatherScalars({0}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
  });
}

TEST(RingCommunicator, AbortFromAnotherThreadEndsACallUnderWay) {
  WithRanks(2, {}, [&](int rank, Communicator& communicator) {
    if (rank == 1) {
      EXPECT_FALSE(communicator.GatherScalars({0}).ok());  // rank 0 never calls
      return;
    }
    std::thread other([&] { communicator.Abort("the compute lane failed"); });
    other.join();
  });
}

TEST(RingCommunicator, DifferentOperationsAreNoticed) {
  WithRanks(2, {}, [&](int rank, Communicator& communicator) {
    std::vector<float> array(100);
    // Rank 1 believes in other shares: a segment of another size arrives.
    const std::vector<int64_t> bounds = rank == 0 ? std::vector<int64_t>{0, 50, 100} : std::vector<int64_t>{0, 100, 100};
    const absl::Status status = communicator.AllGatherV(array.data(), DType::kFloat32, bounds);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    // Whoever sees the other shares knows that no network is to blame; the other one sees a connection close.
    if (status.message().find("different programs") != std::string::npos) EXPECT_EQ(FaultOf(status), Fault::kOurs) << status;
  });
}

}  // namespace
}  // namespace motley::engine
