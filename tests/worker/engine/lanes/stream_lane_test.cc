#include "worker/engine/lanes/stream_lane.h"

#include <atomic>
#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/program/launch_ahead.h"
#include "gtest/gtest.h"
#include "tests/common/base/patience.h"
#include "tests/worker/engine/lanes/fake_streams.h"
#include "worker/engine/lanes/compute_pacer.h"
#include "worker/engine/lanes/host_lane.h"
#include "worker/engine/lanes/queued_lane.h"

namespace motley::engine {
namespace {

absl::Status Nothing() { return absl::OkStatus(); }

class StreamLaneTest : public testing::Test {
 protected:
  void Begin() {
    first_.Begin();
    second_.Begin();
    thread_.Begin();
  }
  static LaneWork Do(std::function<void()> work) {
    return {[work = std::move(work)] {
      work();
      return absl::OkStatus();
    }};
  }

  // A peer that answers when it has heard from this rank, or when nobody waits any more.
  static LaneWork Receive(absl::Notification& answer) {
    return {[&answer] {
      const bool there = answer.WaitForNotificationWithTimeout(Patience(absl::Seconds(5)));
      return there ? absl::OkStatus() : absl::InternalError("no lane got on");
    }};
  }
  static constexpr int kLaunchesOfAPass = 60;
  // More than a card takes at once.
  void LaunchTooMuch(DeviceLane& compute) {
    for (int i = 0; i < 50; ++i) compute.Run({Nothing, /*flops=*/1e9});
    const absl::Time until = absl::Now() + Patience(absl::Seconds(5));
    const int64_t most = kMostUnfinishedPasses * kLaunchesOfAPass;
    while (static_cast<int64_t>(device_.pending()) < most * 4 / 5 && absl::Now() < until) std::this_thread::yield();
    EXPECT_LT(absl::Now(), until) << device_.pending() << " launches";
    absl::SleepFor(absl::Milliseconds(20));
  }
  // What the communicator's abort does at the first error.
  std::thread AbortAtFirstError(absl::Notification& aborted) {
    return std::thread([&] {
      while (errors_ == 0) absl::SleepFor(absl::Milliseconds(1));
      aborted.Notify();
    });
  }

  SystemClock clock_;
  std::atomic<int> errors_{0};
  std::atomic<bool> ill_{false};
  DeviceLanes lanes_{clock_, [this](const absl::Status&) { ++errors_; },
                     [this] { return ill_ ? absl::UnavailableError("a peer is gone") : absl::OkStatus(); }};
  FakeStreamDevice device_{1};
  std::unique_ptr<DeviceStream> first_stream_ = device_.MakeStream(), second_stream_ = device_.MakeStream(),
                                third_stream_ = device_.MakeStream();
  ComputePacer pacer_{DeviceDescription(), clock_};
  StreamLane first_{lanes_, *first_stream_}, second_{lanes_, *second_stream_};
  HostLane thread_{lanes_, pacer_, nullptr, third_stream_.get()};
  std::unique_ptr<DeviceStream> computing_ = device_.MakeStream(kLaunchesOfAPass);
};

TEST_F(StreamLaneTest, TheIssuerWaitsForNothing) {
  Begin();
  absl::Notification go;
  std::vector<int> seen;
  first_.Run(Do([&] { go.WaitForNotification(); }));
  for (int i = 0; i < 100; ++i) first_.Run(Do([&seen, i] { seen.push_back(i); }));
  const LaneEventPtr event = first_.Record();
  second_.Wait(event);
  second_.Run(Do([&] { EXPECT_EQ(seen.size(), 100); }));
  EXPECT_FALSE(*event->Fired());
  go.Notify();
  EXPECT_EQ(second_.Finish(), absl::OkStatus());
  EXPECT_EQ(first_.Finish(), absl::OkStatus());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[i], i);
}

TEST_F(StreamLaneTest, StreamsAndThreadsWaitForEachOther) {
  for (int round = 0; round < 50; ++round) {
    Begin();
    std::vector<int> seen;
    first_.Run(Do([&] { seen.push_back(0); }));
    thread_.Wait(first_.Record());
    thread_.Run(Do([&] { seen.push_back(1); }));
    second_.Wait(thread_.Record());
    second_.Run(Do([&] { seen.push_back(2); }));
    thread_.Wait(second_.Record());
    thread_.Run(Do([&] { seen.push_back(3); }));
    for (DeviceLane* lane : std::vector<DeviceLane*>{&first_, &second_, &thread_}) ASSERT_EQ(lane->Finish(), absl::OkStatus());
    EXPECT_EQ(seen, std::vector<int>({0, 1, 2, 3}));
  }
}

// Two devices, each with a thread that waits for the other's peer: whoever gave all lanes their work himself would wait for ever.
TEST_F(StreamLaneTest, AStreamThatWaitsForAThreadHoldsNobodyUp) {
  QueuedLane queued(lanes_, *first_stream_, nullptr), other(lanes_, *second_stream_, nullptr);
  absl::Notification go;
  bool seen = false;
  for (DeviceLane* lane : std::vector<DeviceLane*>{&queued, &other, &thread_}) lane->Begin();
  thread_.Run(Do([&] { go.WaitForNotification(); }));  // a peer that comes when it has heard from `other`
  queued.Wait(thread_.Record());
  queued.Run(Do([&] { seen = true; }));
  const LaneEventPtr event = queued.Record();
  other.Run(Do([&] { go.Notify(); }));
  other.Wait(event);
  other.Run(Do([&] { EXPECT_TRUE(seen); }));
  EXPECT_EQ(other.Finish(), absl::OkStatus());
  EXPECT_EQ(queued.Finish(), absl::OkStatus());
  EXPECT_TRUE(*event->Fired());
}

TEST_F(StreamLaneTest, WorkThatReadsBackRunsWhenAllBeforeItHasEnded) {
  Begin();
  std::atomic<bool> made = false, run = false;
  first_.Run(Do([&] { made = true; }));
  second_.Wait(first_.Record());
  second_.Run({[&] {
                 run = true;
                 return absl::OkStatus();
               },
               std::nullopt, nullptr, /*reads_back=*/true});
  EXPECT_TRUE(made);  // when Run returns, what the work reads is there
  EXPECT_EQ(second_.Finish(), absl::OkStatus());
  EXPECT_TRUE(run);
  EXPECT_EQ(first_.Finish(), absl::OkStatus());
}

TEST_F(StreamLaneTest, SpansAreOnTheClock) {
  const absl::Duration before = clock_.Now();
  Begin();
  InstructionSpan a, b;
  first_.Run({[] {
                absl::SleepFor(absl::Milliseconds(5));
                return absl::OkStatus();
              },
              std::nullopt, &a});
  second_.Wait(first_.Record());
  second_.Run({Nothing, std::nullopt, &b});
  EXPECT_EQ(first_.Finish(), absl::OkStatus());
  EXPECT_EQ(second_.Finish(), absl::OkStatus());
  const absl::Duration after = clock_.Now();
  EXPECT_LE(before, a.begin);
  EXPECT_GE(a.end - a.begin, absl::Milliseconds(5));
  EXPECT_LE(a.end, b.begin);
  EXPECT_LE(b.end, after);
}

TEST_F(StreamLaneTest, AnErrorOfTheDeviceEndsAllLanes) {
  Begin();
  std::atomic<int> later = 0;
  first_.Run({[] { return absl::InternalError("a kernel failed"); }});
  first_.Run(Do([&] { ++later; }));
  thread_.Wait(first_.Record());
  thread_.Run(Do([&] { ++later; }));
  second_.Wait(thread_.Record());
  second_.Run(Do([&] { ++later; }));
  EXPECT_EQ(first_.Finish(), absl::InternalError("a kernel failed"));
  EXPECT_EQ(second_.Finish(), absl::InternalError("a kernel failed"));
  EXPECT_EQ(thread_.Finish(), absl::InternalError("a kernel failed"));
  EXPECT_EQ(later, 0);
  EXPECT_EQ(errors_, 1);
}

TEST_F(StreamLaneTest, APeerThatIsGoneEndsTheWaitForAStream) {
  Begin();
  absl::Notification aborted;
  first_.Run(Do([&] { aborted.WaitForNotification(); }));  // a collective whose peer is gone
  ill_ = true;
  std::thread abort = AbortAtFirstError(aborted);
  EXPECT_EQ(first_.Finish(), absl::UnavailableError("a peer is gone"));
  abort.join();
  EXPECT_EQ(second_.Finish(), absl::UnavailableError("a peer is gone"));
}

// What the peer waits for must find a place behind all that waits for the peer.
TEST_F(StreamLaneTest, ComputeThatWaitsLeavesOthersRoomToLaunch) {
  QueuedLane compute(lanes_, *computing_, nullptr), receive(lanes_, *first_stream_, nullptr),
      send(lanes_, *second_stream_, nullptr);
  for (DeviceLane* lane : std::vector<DeviceLane*>{&compute, &receive, &send}) lane->Begin();
  absl::Notification answer;
  receive.Run(Receive(answer));
  compute.Wait(receive.Record());
  LaunchTooMuch(compute);
  send.Run(Do([&] { answer.Notify(); }));
  for (DeviceLane* lane : std::vector<DeviceLane*>{&compute, &receive, &send}) EXPECT_EQ(lane->Finish(), absl::OkStatus());
}

TEST_F(StreamLaneTest, APeerThatIsGoneIsNoticedWhereComputeHasAllItsLaunches) {
  QueuedLane compute(lanes_, *computing_, nullptr), receive(lanes_, *first_stream_, nullptr);
  for (DeviceLane* lane : std::vector<DeviceLane*>{&compute, &receive}) lane->Begin();
  absl::Notification aborted;
  std::thread abort = AbortAtFirstError(aborted);
  receive.Run(Receive(aborted));
  compute.Wait(receive.Record());
  LaunchTooMuch(compute);
  ill_ = true;
  EXPECT_EQ(compute.Finish(), absl::UnavailableError("a peer is gone"));
  abort.join();
  EXPECT_EQ(receive.Finish(), absl::UnavailableError("a peer is gone"));
}

TEST_F(StreamLaneTest, APeerThatIsGoneIsNoticedWhereAThreadIsAwaited) {
  QueuedLane stuck(lanes_, *first_stream_, nullptr), other(lanes_, *second_stream_, nullptr);
  for (DeviceLane* lane : std::vector<DeviceLane*>{&stuck, &other, &thread_}) lane->Begin();
  absl::Notification aborted;
  std::thread abort = AbortAtFirstError(aborted);
  thread_.Run(Receive(aborted));  // in a call
  stuck.Wait(thread_.Record());
  other.Wait(stuck.Record());
  ill_ = true;
  EXPECT_EQ(thread_.Finish(), absl::UnavailableError("a peer is gone"));
  abort.join();
  EXPECT_EQ(other.Finish(), absl::UnavailableError("a peer is gone"));
  EXPECT_EQ(stuck.Finish(), absl::UnavailableError("a peer is gone"));
}

}  // namespace
}  // namespace motley::engine
