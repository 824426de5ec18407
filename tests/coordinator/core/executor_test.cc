// Work beside the loop: what may never end holds up nothing.
#include <gtest/gtest.h>

#include <memory>

#include "absl/synchronization/notification.h"
#include "coordinator/core/loop.h"

namespace motley::coordinator {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

TEST(BackgroundExecutorTest, WhatRanApartIsContinuedOnTheLoop) {
  TaskThread loop;
  loop.Start();
  BackgroundExecutor executor(loop);
  absl::Notification worked, done;
  executor.RunApart([&] { worked.Notify(); }, [&] { done.Notify(); });
  EXPECT_TRUE(done.WaitForNotificationWithTimeout(kPatience));
  EXPECT_TRUE(worked.HasBeenNotified());
}

TEST(BackgroundExecutorTest, ASearchWithoutEndHoldsUpTheEndOfNobody) {
  const auto begun = std::make_shared<absl::Notification>(), go_on = std::make_shared<absl::Notification>(),
             ended = std::make_shared<absl::Notification>();
  const auto work = [begun, go_on, ended] {
    begun->Notify();
    go_on->WaitForNotification();
    ended->Notify();
  };
  {
    TaskThread loop;
    loop.Start();
    BackgroundExecutor executor(loop);
    executor.Run(work, [] { ADD_FAILURE() << "nobody is there any more"; });
    executor.Run([] {}, [] { ADD_FAILURE() << "its turn comes later"; });
    EXPECT_TRUE(begun->WaitForNotificationWithTimeout(kPatience));
  }
  go_on->Notify();
  EXPECT_TRUE(ended->WaitForNotificationWithTimeout(kPatience));
}

TEST(BackgroundExecutorTest, WhatNeverEndsHoldsUpNeitherTheOthersNorTheEnd) {
  const auto begun = std::make_shared<absl::Notification>(), share_answers = std::make_shared<absl::Notification>(),
             ended = std::make_shared<absl::Notification>();
  {
    TaskThread loop;
    loop.Start();
    BackgroundExecutor executor(loop);
    executor.RunApart(
        [begun, share_answers, ended] {
          begun->Notify();  // what has not begun when all ends is dropped
          share_answers->WaitForNotification();
          ended->Notify();
        },
        [] { ADD_FAILURE() << "nobody is there any more"; });
    EXPECT_TRUE(begun->WaitForNotificationWithTimeout(kPatience));
    absl::Notification planned, tried, apart;
    executor.Run([] {}, [&] { planned.Notify(); });
    executor.RunAside([] {}, [&] { tried.Notify(); });
    executor.RunApart([] {}, [&] { apart.Notify(); });
    for (absl::Notification* each : {&planned, &tried, &apart}) EXPECT_TRUE(each->WaitForNotificationWithTimeout(kPatience));
  }
  share_answers->Notify();
  EXPECT_TRUE(ended->WaitForNotificationWithTimeout(kPatience));
}

// As when a coordinator ends while a job is planned: the loop goes from one step of that to the next until it stops itself.
TEST(BackgroundExecutorTest, WhatTheLoopAsksForAfterTheStopIsDropped) {
  const auto dropped = [] { ADD_FAILURE() << "asked for after the stop"; };
  absl::Notification asked;
  TaskThread loop;
  BackgroundExecutor executor(loop);
  executor.Stop();
  executor.Stop();
  loop.Post([&] {
    executor.Run(dropped, dropped);
    executor.RunAside(dropped, dropped);
    executor.RunApart(dropped, dropped);
    asked.Notify();
  });
  loop.Start();
  EXPECT_TRUE(asked.WaitForNotificationWithTimeout(kPatience));
  loop.Stop();
}

}  // namespace
}  // namespace motley::coordinator
