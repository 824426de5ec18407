#include "worker/engine/transport/host_link.h"

#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <thread>
#include <vector>

#include "worker/engine/base/monotonic.h"

namespace motley::engine {
namespace {

constexpr double kRate = 1e9;
constexpr int64_t kChunk = 10'000'000;  // bytes: 10 ms

const std::vector<DeviceId> kDevices = {DeviceId("a/gpu0"), DeviceId("a/gpu1"), DeviceId("b/gpu0")};

DeviceDescription Device(double rate, int root = -1) {
  DeviceDescription device;
  device.host_link_bytes_per_second = rate;
  device.host_root = root;
  return device;
}

absl::Status Nothing(int64_t, int64_t) { return absl::OkStatus(); }

// Times that are over: nothing sleeps.
absl::Duration LongAgo() { return absl::Nanoseconds(MonotonicNs()) - absl::Seconds(60); }

// When it began and ended by the schedule, in chunks since `start`.
std::pair<double, double> Copied(HostLink& link, absl::Duration start, int64_t bytes, Direction direction = Direction::kEgress) {
  link.pacer().Begin(start);
  EXPECT_EQ(link.Copy(direction, bytes, Nothing), absl::OkStatus());
  link.pacer().End(std::nullopt);
  const auto chunks = [&](absl::Duration at) { return absl::ToDoubleMilliseconds(at - start) / 10; };
  return {chunks(link.pacer().begin()), chunks(link.pacer().end())};
}

using Span = std::pair<double, double>;

TEST(HostLink, ACopyTakesTheLinksTimeAndTheNextComesBehindIt) {
  const auto clock = LinkClock::Map(-1);
  HostLink link(Device(kRate), kDevices, 0, **clock);
  const absl::Duration start = LongAgo();
  EXPECT_EQ(Copied(link, start, kChunk * 5 / 2), Span(0, 2.5));
  EXPECT_EQ(Copied(link, start, kChunk), Span(2.5, 3.5));
  EXPECT_EQ(Copied(link, start + absl::Milliseconds(200), kChunk), Span(0, 1));
  EXPECT_GT(link.lateness_seconds(), 0) << "all of it was to be over a minute ago";
}

TEST(HostLink, EveryByteIsCopiedOnceAndAnErrorEndsIt) {
  const auto clock = LinkClock::Map(-1);
  HostLink link(Device(kRate), kDevices, 0, **clock);
  std::vector<std::pair<int64_t, int64_t>> parts;
  int beats = 0;
  link.set_progress([&] { ++beats; });
  link.pacer().Begin(LongAgo());
  EXPECT_EQ(link.Copy(Direction::kEgress, 2 * kChunk + 1,
                      [&](int64_t offset, int64_t bytes) {
                        parts.emplace_back(offset, bytes);
                        return absl::OkStatus();
                      }),
            absl::OkStatus());
  EXPECT_EQ(parts, (std::vector<std::pair<int64_t, int64_t>>{{0, kChunk}, {kChunk, kChunk}, {2 * kChunk, 1}}));
  EXPECT_EQ(beats, 3);
  const absl::Status error = absl::InternalError("planted");
  EXPECT_EQ(link.Copy(Direction::kEgress, 2 * kChunk, [&](int64_t, int64_t) { return error; }), error);
}

TEST(HostLink, BothDirectionsAreApart) {
  const auto clock = LinkClock::Map(-1);
  HostLink one(Device(kRate, 3), kDevices, 0, **clock), other(Device(kRate, 3), kDevices, 1, **clock);
  const absl::Duration start = LongAgo();
  EXPECT_EQ(Copied(one, start, kChunk), Span(0, 1));
  EXPECT_EQ(Copied(other, start, kChunk, Direction::kIngress), Span(0, 1));
}

TEST(HostLink, DevicesShareTheirRootAndNothingElse) {
  const auto clock = LinkClock::Map(-1);
  const absl::Duration start = LongAgo();
  HostLink own(Device(kRate), kDevices, 0, **clock), others(Device(kRate), kDevices, 1, **clock);
  HostLink root(Device(kRate, 0), kDevices, 0, **clock), same(Device(kRate, 0), kDevices, 1, **clock),
      another(Device(kRate, 1), kDevices, 1, **clock);
  EXPECT_EQ(Copied(own, start, kChunk), Span(0, 1));
  EXPECT_EQ(Copied(others, start, kChunk), Span(0, 1));
  EXPECT_EQ(Copied(root, start, kChunk), Span(0, 1)) << "a root is no device's own link";
  EXPECT_EQ(Copied(another, start, kChunk), Span(0, 1));
  EXPECT_EQ(Copied(same, start, kChunk), Span(1, 2));
  // Nor the links to other ranks.
  EXPECT_EQ((*clock)->Reserve(LinkClock::kNic, Direction::kEgress, 100, 1000).end_ns, 1100);
  EXPECT_EQ((*clock)->Reserve(LinkClock::kMaxDeviceLinks - 1, Direction::kEgress, 100, 1000).end_ns, 1100);
}

// Each waits with its next chunk until the other has its own: as they do where a chunk takes its time.
TEST(HostLink, TwoThatCopyAtOnceHaveHalfOfItEach) {
  constexpr int kChunks = 8;
  const auto clock = LinkClock::Map(-1);
  const absl::Duration start = LongAgo();
  std::barrier both(2);
  std::array<absl::Duration, 2> ends;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      HostLink link(Device(kRate, 5), kDevices, rank, **clock);
      link.pacer().Begin(start);
      const auto together = [&](int64_t, int64_t) {
        both.arrive_and_wait();
        return absl::OkStatus();
      };
      EXPECT_EQ(link.Copy(Direction::kEgress, kChunks * kChunk, together), absl::OkStatus());
      link.pacer().End(std::nullopt);
      ends[rank] = link.pacer().end() - start;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(std::max(ends[0], ends[1]), absl::Milliseconds(20 * kChunks));
  EXPECT_EQ(std::min(ends[0], ends[1]), absl::Milliseconds(20 * kChunks - 10));
}

TEST(HostLink, WithoutADeclaredSpeedACopyTakesWhatItTakes) {
  const auto clock = LinkClock::Map(-1);
  HostLink link(Device(0), kDevices, 0, **clock);
  const absl::Duration start = absl::Nanoseconds(MonotonicNs());
  std::vector<int64_t> parts;
  link.pacer().Begin(start);
  EXPECT_EQ(link.Copy(Direction::kEgress, 5 * kChunk,
                      [&](int64_t, int64_t bytes) {
                        parts.push_back(bytes);
                        return absl::OkStatus();
                      }),
            absl::OkStatus());
  link.pacer().End(std::nullopt);
  EXPECT_EQ(parts, std::vector<int64_t>{5 * kChunk});
  EXPECT_EQ(link.pacer().begin(), start);
  EXPECT_LE(link.pacer().end(), absl::Nanoseconds(MonotonicNs()));
  EXPECT_EQ(link.lateness_seconds(), 0);
}

}  // namespace
}  // namespace motley::engine
