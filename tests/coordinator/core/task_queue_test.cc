#include "coordinator/core/task_queue.h"

#include <gtest/gtest.h>

#include <string>

#include "coordinator/core/loop.h"

namespace motley::coordinator {
namespace {

class TaskQueueTest : public testing::Test {
 protected:
  void Push(TaskKind kind, const std::string& name) {
    queue_.Push(kind, [this, name] { ran_ += name; });
  }
  std::string RunAll() {
    while (!queue_.empty()) queue_.Pop()();
    return ran_;
  }
  TaskQueue queue_;
  std::string ran_;
};

TEST_F(TaskQueueTest, PeopleDoNotWaitBehindACrowdOfWorkers) {
  for (int i = 0; i < 10000; ++i) Push(TaskKind::kWorkers, "w");
  Push(TaskKind::kPeople, "P");
  Push(TaskKind::kPeople, "p");
  EXPECT_LE(RunAll().find('P'), 1u);
  EXPECT_LE(ran_.find('p'), 3u);
}

TEST_F(TaskQueueTest, NorWorkersBehindACrowdOfPeople) {
  for (int i = 0; i < 6; ++i) Push(TaskKind::kPeople, "p");
  for (int i = 0; i < 3; ++i) Push(TaskKind::kWorkers, "w");
  EXPECT_EQ(RunAll(), "pwpwpwppp");
}

TEST_F(TaskQueueTest, TasksOfAKindKeepTheirOrder) {
  for (const char* name : {"1", "2", "3"}) Push(TaskKind::kWorkers, name);
  for (const char* name : {"a", "b"}) Push(TaskKind::kOwn, name);
  Push(TaskKind::kPeople, "x");
  EXPECT_EQ(RunAll(), "ax1b23");
}

TEST(TaskThread, ATickComesBetweenTheTasksOfACrowd) {
  TaskThread thread;
  int ticks = 0, ran = 0, ticks_in_the_crowd = 0;
  for (int i = 0; i < 1000; ++i) {
    thread.Post(
        [&] {
          if (++ran == 1000) ticks_in_the_crowd = ticks;
        },
        TaskKind::kWorkers);
  }
  thread.Start([&ticks] {
    ++ticks;
    return absl::InfiniteDuration();
  });
  thread.Stop();
  EXPECT_EQ(ran, 1000);
  EXPECT_GE(ticks_in_the_crowd, 10);
}

}  // namespace
}  // namespace motley::coordinator
