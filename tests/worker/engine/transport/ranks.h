// Ranks as threads of one process, connected over loopback, each on a node of its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "tests/worker/engine/fake_host.h"
#include "worker/engine/transport/connect_communicator.h"

namespace motley::engine {

// One group of all, unless `adjust` says otherwise.
using AdjustOptions = std::function<void(CommunicatorOptions&)>;

// Connects `world` ranks and runs body(rank, communicator) on each. adjust(options) comes first, on the rank's thread.
template <typename Body>
void WithRanks(int world, const DeviceDescription& device, Body body, const AdjustOptions& adjust = nullptr) {
  FakeKv kv;
  OnRanks(world, [&](int rank) {
    FakeHost host(kv);
    auto links = LinkClock::Map(-1);
    CommunicatorOptions options;
    options.rank = rank;
    options.device = device;
    options.groups = {EveryRank(world)};
    for (int r = 0; r < world; ++r) {
      options.devices.emplace_back("n" + std::to_string(r) + "/gpu0");
      options.data_addresses.push_back("127.0.0.1");
    }
    if (adjust) adjust(options);
    auto communicator = ConnectCommunicator(options, host, **links);
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    body(rank, **communicator);
  });
}

// Every rank hands over to every other.
inline void EverybodyHandsOver(CommunicatorOptions& options) {
  for (const int r : EveryRank(static_cast<int>(options.devices.size()))) {
    if (r == options.rank) continue;
    options.sends_to.insert(r);
    options.receives_from.insert(r);
  }
}

// The same on every rank, by the schedule: threads of a busy host wake up milliseconds apart.
inline absl::Duration CommonStart(Communicator& communicator) {
  const auto starts = communicator.GatherScalars({absl::ToDoubleSeconds(SystemClock().Now())});
  EXPECT_TRUE(starts.ok()) << starts.status();
  double latest = 0;
  for (const auto& start : *starts) latest = std::max(latest, start[0]);
  return absl::Seconds(latest);
}

// Pieces of [0, elements) for members drawn by lot, each of which may get several or none; some belong to nobody.
inline Owners RandomOwners(std::mt19937& random, int members, int64_t elements) {
  Owners owners(members);
  const int nobody = random() % 2 == 0 ? members : -1;
  for (int64_t begin = 0; begin < elements;) {
    const int64_t end = std::min<int64_t>(elements, begin + 1 + static_cast<int64_t>(random() % (elements / 4 + 1)));
    const int owner = static_cast<int>(random() % (members + 1));
    if (owner != nobody) owners[owner % members].push_back({begin, end});
    begin = end;
  }
  return owners;
}

// Small integers: sums are exact in any order.
template <typename T>
std::vector<T> Contribution(int rank, int64_t elements, int round) {
  std::vector<T> values(elements);
  for (int64_t i = 0; i < elements; ++i) values[i] = static_cast<T>((i * 7 + rank * 31 + round * 13) % 101);
  return values;
}

// One all-gather and one reduce-scatter of a group, against copies and plain sums.
template <typename T>
void CheckGroup(Communicator& communicator, int group, const std::vector<int>& members, DType dtype, const Owners& owners,
                int64_t elements, int round) {
  const int rank = communicator.rank();
  const auto mine = owners.begin() + (std::find(members.begin(), members.end(), rank) - members.begin());
  const std::vector<T> whole = Contribution<T>(0, elements, round);
  std::vector<T> array(elements, T(-1)), gathered(elements, T(-1));
  const auto copy = [&whole](const std::vector<ElementRange>& ranges, std::vector<T>& to) {
    for (const ElementRange& range : ranges) {
      std::copy(whole.begin() + range.begin, whole.begin() + range.end, to.begin() + range.begin);
    }
  };
  copy(*mine, array);
  for (const auto& ranges : owners) copy(ranges, gathered);
  ASSERT_EQ(communicator.AllGather(group, array.data(), dtype, owners), absl::OkStatus());
  ASSERT_TRUE(array == gathered) << "all-gather of group " << group << ", round " << round << " on rank " << rank;

  std::vector<T> sum(elements, 0);
  for (const int r : members) {
    const std::vector<T> of_rank = Contribution<T>(r, elements, round);
    for (int64_t e = 0; e < elements; ++e) sum[e] += of_rank[e];
  }
  array = Contribution<T>(rank, elements, round);
  ASSERT_EQ(communicator.ReduceScatter(group, array.data(), dtype, owners), absl::OkStatus());
  for (const ElementRange& range : *mine) {
    ASSERT_TRUE(std::equal(array.begin() + range.begin, array.begin() + range.end, sum.begin() + range.begin))
        << "reduce-scatter of group " << group << ", round " << round << " on rank " << rank;
  }
}

}  // namespace motley::engine
