// Hand-overs as ranks see them, through the communicator.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/base/fault.h"
#include "tests/worker/engine/transport/expect_lost.h"
#include "tests/worker/engine/transport/ranks.h"

namespace motley::engine {
namespace {

constexpr double kRate = 20e6;
constexpr int64_t kBytes = 2'000'000;  // 100 ms at kRate
const absl::Duration kBound = absl::Seconds(kBytes / kRate);

DeviceDescription SlowLinks() {
  DeviceDescription device;
  device.link_bytes_per_second = kRate;
  return device;
}

std::string Bytes(int64_t size, int seed) {
  std::string bytes(size, '\0');
  for (int64_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((i * 131 + seed * 17) % 251);
  return bytes;
}

// The call on its lane's schedule, ready at `ready`; when it ended.
template <typename Call>
absl::Duration TimedEnd(TransferPacer& pacer, absl::Duration ready, Call call) {
  pacer.Begin(ready);
  EXPECT_EQ(call(), absl::OkStatus());
  pacer.End(std::nullopt);
  EXPECT_GE(SystemClock().Now(), pacer.end());
  return pacer.end();
}

// Rank 0 hands over to rank 1, each ready so long after a common start. After that start, when each of them ended.
struct Ends {
  absl::Duration sender, receiver;
};
Ends HandOverOnce(const DeviceDescription& device, int64_t bytes, absl::Duration sender_ready, absl::Duration receiver_ready) {
  Ends ends;
  WithRanks(
      2, device,
      [&](int rank, Communicator& communicator) {
        std::string data = Bytes(bytes, rank);
        const absl::Duration start = CommonStart(communicator);
        if (rank == 0) {
          ends.sender = TimedEnd(communicator.send_pacer(), start + sender_ready,
                                 [&] { return communicator.Send(1, data.data(), bytes); }) -
                        start;
        } else {
          ends.receiver = TimedEnd(communicator.receive_pacer(), start + receiver_ready,
                                   [&] { return communicator.Receive(0, data.data(), bytes); }) -
                          start;
          EXPECT_TRUE(data == Bytes(bytes, 0));
        }
      },
      EverybodyHandsOver);
  return ends;
}

// The quickest of five at most, until one takes `most`: a thread of a busy host that comes late to a piece moves the schedule.
Ends QuickestHandOver(const DeviceDescription& device, absl::Duration sender_ready, absl::Duration receiver_ready,
                      absl::Duration most) {
  Ends quickest;
  for (int i = 0; i < 5; ++i) {
    const Ends ends = HandOverOnce(device, kBytes, sender_ready, receiver_ready);
    EXPECT_EQ(ends.sender, ends.receiver);
    if (i == 0 || ends.sender < quickest.sender) quickest = ends;
    if (quickest.sender <= most) break;
  }
  return quickest;
}

TEST(HandOver, BothDirectionsBesideCollectives) {
  std::mt19937 random(11);
  std::vector<int64_t> sizes = {0, 1, 400'000};
  for (int i = 0; i < 20; ++i) sizes.push_back(static_cast<int64_t>(random() % 300'000));
  for (const double rate : {0.0, 200e6}) {
    DeviceDescription device;
    device.link_bytes_per_second = rate;
    WithRanks(
        3, device,
        [&](int rank, Communicator& communicator) {
          std::atomic<int64_t> progress = 0;
          communicator.set_progress([&] { ++progress; });
          const int next = (rank + 1) % 3, before = (rank + 2) % 3;
          std::thread sends([&] {
            for (size_t i = 0; i < sizes.size(); ++i) {
              for (const int peer : {next, before}) {
                const std::string data = Bytes(sizes[i], rank + static_cast<int>(i));
                ASSERT_EQ(communicator.Send(peer, data.data(), sizes[i]), absl::OkStatus());
              }
            }
          });
          std::thread receives([&] {
            for (size_t i = 0; i < sizes.size(); ++i) {
              for (const int peer : {before, next}) {
                std::string data(sizes[i], 'x');
                ASSERT_EQ(communicator.Receive(peer, data.data(), sizes[i]), absl::OkStatus());
                ASSERT_TRUE(data == Bytes(sizes[i], peer + static_cast<int>(i))) << i << " from " << peer;
              }
            }
          });
          std::mt19937 same(5);
          for (int i = 0; i < 10; ++i) {
            const int64_t elements = 1 + static_cast<int64_t>(same() % 50'000);
            CheckGroup<float>(communicator, 0, EveryRank(3), DType::kFloat32, RandomOwners(same, 3, elements), elements, i);
          }
          sends.join();
          receives.join();
          EXPECT_GT(progress, 0);
        },
        EverybodyHandsOver);
  }
}

TEST(HandOver, TakesItsBytesOverTheSlowestLink) {
  DeviceDescription device;
  device.link_bytes_per_second = 10 * kRate;
  device.node_link_bytes_per_second = kRate;
  const Ends ends = QuickestHandOver(device, absl::ZeroDuration(), absl::ZeroDuration(), 1.05 * kBound);
  EXPECT_GE(ends.sender, 0.999 * kBound);
  EXPECT_LE(ends.sender, 1.05 * kBound);
}

TEST(HandOver, WhoeverIsEarlyWaitsForTheOther) {
  const absl::Duration late = absl::Milliseconds(60);
  for (const bool sender_is_late : {true, false}) {
    const Ends ends = QuickestHandOver(SlowLinks(), sender_is_late ? late : absl::ZeroDuration(),
                                       sender_is_late ? absl::ZeroDuration() : late, late + 1.05 * kBound);
    EXPECT_GE(ends.sender, late + 0.999 * kBound);
    EXPECT_LE(ends.sender, late + 1.05 * kBound);
  }
}

TEST(HandOver, OfNothingIsARendezvous) {
  const absl::Duration late = absl::Milliseconds(30);
  const Ends ends = HandOverOnce(SlowLinks(), 0, absl::ZeroDuration(), late);
  EXPECT_EQ(ends.sender, ends.receiver);
  EXPECT_LE(absl::AbsDuration(ends.sender - late), absl::Microseconds(1));
}

// Rank 0 owns all of an array and hands over, both through its NIC: together they need all their bytes' time, and in equal shares
// the smaller one is done when both have moved as much.
constexpr int64_t kSharedElements = 1'500'000, kSharedBytes = 1'500'000;
struct SharedEnds {
  absl::Duration ring, hand_over;
};
SharedEnds ShareTheNic() {
  DeviceDescription device;
  device.node_link_bytes_per_second = kRate;
  SharedEnds ends;
  WithRanks(
      2, device,
      [&](int rank, Communicator& communicator) {
        std::vector<float> array(kSharedElements);
        std::string data(kSharedBytes, 'x');
        const absl::Duration start = CommonStart(communicator);
        std::thread other([&] {
          if (rank == 1) {
            EXPECT_EQ(communicator.Receive(0, data.data(), kSharedBytes), absl::OkStatus());
          } else {
            ends.hand_over =
                TimedEnd(communicator.send_pacer(), start, [&] { return communicator.Send(1, data.data(), kSharedBytes); }) -
                start;
          }
        });
        const absl::Duration end = TimedEnd(communicator.collective_pacer(), start, [&] {
          return communicator.AllGather(0, array.data(), DType::kFloat32, OwnersOf({0, kSharedElements, kSharedElements}));
        });
        other.join();
        if (rank == 0) ends.ring = end - start;
      },
      EverybodyHandsOver);
  return ends;
}

// That both have half of it shows where both begin together: a busy machine lets one begin late, and the other has the NIC alone
// meanwhile. So one try of five has to show it; that no try is faster than the NIC holds for each.
TEST(HandOver, SharesTheNicWithACollective) {
  const absl::Duration both = absl::Seconds((kSharedElements * 4 + kSharedBytes) / kRate),
                       alone = absl::Seconds(kSharedBytes / kRate);
  SharedEnds ends;
  bool shared = false;
  for (int i = 0; i < 5 && !shared; ++i) {
    ends = ShareTheNic();
    const absl::Duration last = std::max(ends.ring, ends.hand_over);
    EXPECT_GE(last, 0.999 * both);
    shared = last <= 1.1 * both && ends.hand_over >= 1.5 * alone && ends.hand_over <= 0.65 * both;
  }
  EXPECT_TRUE(shared) << "in the last try the ring took " << ends.ring << ", and the hand-over " << ends.hand_over;
}

TEST(HandOver, APeerThatIsGoneIsNamedToWhoeverWaitsForIt) {
  for (const bool sends : {true, false}) {
    WithRanks(
        2, {},
        [&](int rank, Communicator& communicator) {
          char byte = 0;
          if (rank == 1) return;
          const absl::Status status = sends ? communicator.Send(1, &byte, 1) : communicator.Receive(1, &byte, 1);
          ExpectLost(status, sends ? "sending to n1/gpu0: lost n1/gpu0" : "receiving from n1/gpu0: lost n1/gpu0");
        },
        EverybodyHandsOver);
  }
}

TEST(HandOver, APeerThatGoesInTheMiddleIsNamed) {
  for (const bool sends : {true, false}) {
    WithRanks(
        2, SlowLinks(),
        [&](int rank, Communicator& communicator) {
          std::string data(100 * kBytes, 'x');  // ten seconds: nobody waits for all of it
          if (rank == 1) communicator.set_progress([&] { communicator.Abort("told to"); });
          const bool sender = sends == (rank == 0);
          const int64_t size = static_cast<int64_t>(data.size());
          const absl::Status status =
              sender ? communicator.Send(1 - rank, data.data(), size) : communicator.Receive(1 - rank, data.data(), size);
          ExpectLost(status, rank == 0 ? "lost n1/gpu0" : "told to");
        },
        EverybodyHandsOver);
  }
}

// Of a rank's lanes the one that is woken may speak first.
TEST(HandOver, WhatAnEarlierErrorEndedSaysWhomThatOneLost) {
  WithRanks(
      2, {},
      [](int rank, Communicator& communicator) {
        if (rank == 1) return;
        std::vector<float> array(2);
        ExpectLost(communicator.AllGather(0, array.data(), DType::kFloat32, OwnersOf({0, 1, 2})), "all-gather: lost n1/gpu0: ");
        char byte = 0;
        ExpectLost(communicator.Receive(1, &byte, 1), "receiving from n1/gpu0: an earlier all-gather failed: lost n1/gpu0: ");
      },
      EverybodyHandsOver);
}

TEST(HandOver, AbortEndsBothDirectionsAndTheCollective) {
  WithRanks(
      2, {},
      [](int rank, Communicator& communicator) {
        if (rank == 1) {
          EXPECT_FALSE(communicator.GatherScalars({0}).ok());  // until rank 0 is gone
          return;
        }
        char sent = 0, received = 0;
        std::thread sends([&] { ExpectLost(communicator.Send(1, &sent, 1), "sending to n1/gpu0: the compute lane failed"); });
        std::thread receives(
            [&] { ExpectLost(communicator.Receive(1, &received, 1), "receiving from n1/gpu0: the compute lane failed"); });
        std::thread aborts([&] { communicator.Abort("the compute lane failed"); });
        std::vector<float> array(2);
        ExpectLost(communicator.AllGather(0, array.data(), DType::kFloat32, OwnersOf({0, 1, 2})), "the compute lane failed");
        for (std::thread* thread : {&sends, &receives, &aborts}) thread->join();
      },
      EverybodyHandsOver);
}

TEST(HandOver, OtherSizesAreNoticedOnBothSides) {
  WithRanks(
      2, {},
      [](int rank, Communicator& communicator) {
        std::string data(20, 'x');
        const absl::Status status = rank == 0 ? communicator.Send(1, data.data(), 10) : communicator.Receive(0, data.data(), 20);
        EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
        EXPECT_EQ(FaultOf(status), Fault::kOurs) << status;
        for (const char* text : {"hand-over 1 of 10 bytes", "hand-over 1 of 20 bytes", "different programs"}) {
          EXPECT_NE(status.message().find(text), std::string::npos) << status;
        }
      },
      EverybodyHandsOver);
}

}  // namespace
}  // namespace motley::engine
