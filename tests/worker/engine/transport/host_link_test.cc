#include "worker/engine/transport/host_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "worker/engine/base/monotonic.h"

namespace motley::engine {
namespace {

constexpr int64_t kChunk = 10'000'000;  // bytes: 10 ms
using Span = std::pair<double, double>;

class HostLinkTest : public testing::Test {
 protected:
  static constexpr double kRate = 1e9;

  static DeviceDescription DeviceOf(double rate, int root, DeviceKind kind = DeviceKind::kEmulated) {
    DeviceDescription device;
    device.kind = kind;
    device.host_link_bytes_per_second = rate;
    device.host_root = root;
    return device;
  }
  // Of rank 0 or 1, which are on one node.
  HostLink LinkOf(int rank, int root = -1, double rate = kRate) const {
    return HostLink(DeviceOf(rate, root), {DeviceId("a/gpu0"), DeviceId("a/gpu1"), DeviceId("b/gpu0")}, rank, *clock_);
  }
  // When it began and ended by the schedule, in chunks since the start.
  Span Copied(HostLink& link, int64_t bytes, Direction direction = Direction::kEgress) const {
    return Copied(link, bytes, start_, direction);
  }
  static Span Copied(HostLink& link, int64_t bytes, absl::Duration start, Direction direction = Direction::kEgress) {
    link.pacer().Begin(start);
    EXPECT_EQ(link.Copy(direction, bytes, [](int64_t, int64_t) { return absl::OkStatus(); }), absl::OkStatus());
    link.pacer().End(std::nullopt);
    const auto chunks = [&](absl::Duration at) { return absl::ToDoubleMilliseconds(at - start) / 10; };
    return {chunks(link.pacer().begin()), chunks(link.pacer().end())};
  }

  const std::unique_ptr<LinkClock> clock_ = *LinkClock::Map(-1);
  // Times that are over: nothing sleeps.
  const absl::Duration start_ = absl::Nanoseconds(MonotonicNs()) - absl::Seconds(60);
};

TEST_F(HostLinkTest, ACopyTakesTheLinksTimeAndTheNextComesBehindIt) {
  HostLink link = LinkOf(0);
  EXPECT_EQ(Copied(link, kChunk * 5 / 2), Span(0, 2.5));
  EXPECT_EQ(Copied(link, kChunk), Span(2.5, 3.5));
  EXPECT_EQ(Copied(link, kChunk, start_ + absl::Milliseconds(200)), Span(0, 1));
  EXPECT_GT(link.lateness_seconds(), 0) << "all of it was to be over a minute ago";
}

// A card says its link's rate, which plans take: its copies take what they take.
TEST_F(HostLinkTest, ACardsCopiesAreNotPaced) {
  HostLink link(DeviceOf(kRate, 0, DeviceKind::kCuda), {DeviceId("a/gpu0")}, 0, *clock_);
  int parts = 0;
  const auto count = [&](int64_t, int64_t bytes) {
    EXPECT_EQ(bytes, 10 * kChunk);
    ++parts;
    return absl::OkStatus();
  };
  EXPECT_EQ(link.Copy(Direction::kEgress, 10 * kChunk, count), absl::OkStatus());
  EXPECT_EQ(parts, 1);
}

TEST_F(HostLinkTest, EveryByteIsCopiedOnceAndAnErrorEndsIt) {
  HostLink link = LinkOf(0);
  std::vector<std::pair<int64_t, int64_t>> parts;
  int beats = 0;
  link.set_progress([&] { ++beats; });
  link.pacer().Begin(start_);
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

TEST_F(HostLinkTest, BothDirectionsAreApart) {
  HostLink one = LinkOf(0, 3), other = LinkOf(1, 3);
  EXPECT_EQ(Copied(one, kChunk), Span(0, 1));
  EXPECT_EQ(Copied(other, kChunk, Direction::kIngress), Span(0, 1));
}

TEST_F(HostLinkTest, DevicesShareTheirRootAndNothingElse) {
  HostLink own = LinkOf(0), others = LinkOf(1), root = LinkOf(0, 0), same = LinkOf(1, 0), another = LinkOf(1, 1);
  EXPECT_EQ(Copied(own, kChunk), Span(0, 1));
  EXPECT_EQ(Copied(others, kChunk), Span(0, 1));
  EXPECT_EQ(Copied(root, kChunk), Span(0, 1)) << "a root is no device's own link";
  EXPECT_EQ(Copied(another, kChunk), Span(0, 1));
  EXPECT_EQ(Copied(same, kChunk), Span(1, 2));
  // Nor the links to other ranks.
  EXPECT_EQ(clock_->Reserve(LinkClock::kNic, Direction::kEgress, 100, 1000).end_ns, 1100);
  EXPECT_EQ(clock_->Reserve(LinkClock::kMaxDeviceLinks - 1, Direction::kEgress, 100, 1000).end_ns, 1100);
}

// Each waits with its next chunk until the other has its own: as they do where a chunk takes its time.
TEST_F(HostLinkTest, TwoThatCopyAtOnceHaveHalfOfItEach) {
  constexpr int kChunks = 8;
  std::barrier both(2);
  std::array<absl::Duration, 2> ends;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      HostLink link = LinkOf(rank, 5);
      link.pacer().Begin(start_);
      const auto together = [&](int64_t, int64_t) {
        both.arrive_and_wait();
        return absl::OkStatus();
      };
      EXPECT_EQ(link.Copy(Direction::kEgress, kChunks * kChunk, together), absl::OkStatus());
      link.pacer().End(std::nullopt);
      ends[rank] = link.pacer().end() - start_;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(std::max(ends[0], ends[1]), absl::Milliseconds(20 * kChunks));
  EXPECT_EQ(std::min(ends[0], ends[1]), absl::Milliseconds(20 * kChunks - 10));
}

TEST_F(HostLinkTest, WithoutADeclaredSpeedACopyTakesWhatItTakes) {
  HostLink link = LinkOf(0, -1, 0);
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
