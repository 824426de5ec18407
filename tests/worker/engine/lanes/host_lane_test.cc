#include "worker/engine/lanes/host_lane.h"

#include <atomic>
#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace motley::engine {
namespace {

// Every piece of work takes `flops` seconds of the schedule and none of the host.
class DeclaredPacer : public LanePacer {
 public:
  void Begin(absl::Duration ready) override { start_ = std::max(end_, ready); }
  void End(std::optional<double> flops) override { end_ = start_ + absl::Seconds(flops.value_or(0)); }
  absl::Duration begin() const override { return start_; }
  absl::Duration end() const override { return end_; }

 private:
  absl::Duration start_, end_;
};

class HostLaneTest : public testing::Test {
 protected:
  void Ok(HostLane& lane, std::function<void()> work, double seconds = 0) {
    lane.Run({[work = std::move(work)] {
                work();
                return absl::OkStatus();
              },
              seconds});
  }

  FakeClock clock_;
  std::atomic<int> errors_{0};
  DeviceLanes lanes_{clock_, [this](const absl::Status&) { ++errors_; }};
  DeclaredPacer first_pacer_, second_pacer_;
  HostLane first_{lanes_, first_pacer_, nullptr}, second_{lanes_, second_pacer_, nullptr};
};

TEST_F(HostLaneTest, WorkRunsInOrder) {
  std::vector<int> seen;
  for (int i = 0; i < 100; ++i) Ok(first_, [&seen, i] { seen.push_back(i); });
  EXPECT_EQ(first_.Finish(), absl::OkStatus());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[i], i);
}

TEST_F(HostLaneTest, AnEventIsWaitedForAndItsTimeIsPassedOn) {
  absl::Notification go;
  std::atomic<bool> ran = false;
  first_.Begin();
  Ok(
      first_, [&] { go.WaitForNotification(); }, 3);
  const LaneEventPtr event = first_.Record();
  Ok(
      first_, [] {}, 10);  // after the event
  second_.Begin();
  Ok(
      second_, [] {}, 1);
  second_.Wait(event);
  Ok(
      second_, [&] { ran = true; }, 2);
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_FALSE(ran);
  go.Notify();
  EXPECT_EQ(second_.Finish(), absl::OkStatus());
  EXPECT_EQ(first_.Finish(), absl::OkStatus());
  EXPECT_TRUE(ran);
  EXPECT_EQ(second_pacer_.end() - clock_.Now(), absl::Seconds(3 + 2));
  EXPECT_EQ(first_pacer_.end() - clock_.Now(), absl::Seconds(13));
}

TEST_F(HostLaneTest, AStepBeginsNoEarlierThanNow) {
  first_.Begin();
  Ok(
      first_, [] {}, 1);
  EXPECT_EQ(first_.Finish(), absl::OkStatus());
  clock_.Advance(absl::Seconds(100));
  first_.Begin();
  Ok(
      first_, [] {}, 1);
  EXPECT_EQ(first_.Finish(), absl::OkStatus());
  EXPECT_EQ(first_pacer_.end() - clock_.Now(), absl::Seconds(1));
}

TEST_F(HostLaneTest, TheFirstErrorEndsAllLanes) {
  std::atomic<int> later = 0;
  const LaneEventPtr never = [&] {
    first_.Run({[] { return absl::AbortedError("first"); }, std::nullopt});
    Ok(first_, [&] { ++later; });
    return first_.Record();
  }();
  second_.Wait(never);
  Ok(second_, [&] { ++later; });
  EXPECT_EQ(second_.Finish(), absl::AbortedError("first"));
  EXPECT_EQ(first_.Finish(), absl::AbortedError("first"));
  second_.Run({[] { return absl::InternalError("second"); }, std::nullopt});
  EXPECT_EQ(second_.Finish(), absl::AbortedError("first"));
  EXPECT_EQ(later, 0);
  EXPECT_EQ(errors_, 1);
}

TEST_F(HostLaneTest, ALaneThatWaitsForeverEnds) {
  auto third = std::make_unique<HostLane>(lanes_, first_pacer_, nullptr);
  absl::Notification go;
  Ok(first_, [&] { go.WaitForNotification(); });
  third->Wait(first_.Record());
  third.reset();
  go.Notify();
  EXPECT_EQ(first_.Finish(), absl::OkStatus());
}

}  // namespace
}  // namespace motley::engine
