#include "worker/daemon/outbox.h"

#include <gtest/gtest.h>

namespace motley::worker {
namespace {

v1::WorkerMessage LogLine(int number) {
  v1::WorkerMessage message;
  message.mutable_log()->set_unix_ms(number);
  return message;
}
v1::WorkerMessage Step(int number) {
  v1::WorkerMessage message;
  message.mutable_step_report()->mutable_record()->set_step(number);
  return message;
}
v1::WorkerMessage Event(int rank) {
  v1::WorkerMessage message;
  message.mutable_rank_event()->set_rank(rank);
  return message;
}

TEST(Outbox, KeepsOrder) {
  Outbox outbox;
  outbox.Push(Event(1));
  outbox.Push(Event(2));
  v1::WorkerMessage first = *outbox.Pop(absl::ZeroDuration());
  EXPECT_EQ(first.rank_event().rank(), 1);
  outbox.PutBack(first);
  EXPECT_EQ(outbox.Pop(absl::ZeroDuration())->rank_event().rank(), 1);
  EXPECT_EQ(outbox.Pop(absl::ZeroDuration())->rank_event().rank(), 2);
  EXPECT_FALSE(outbox.Pop(absl::ZeroDuration()).has_value());
}

TEST(Outbox, DropsLogsThenStepsAndNeverEvents) {
  Outbox outbox(3);
  outbox.Push(Event(1));
  outbox.Push(Step(1));
  outbox.Push(LogLine(1));
  outbox.Push(Step(2));   // the log goes
  outbox.Push(Event(2));  // the first step goes
  outbox.Push(Event(3));  // the second goes
  outbox.Push(Event(4));  // nothing may go
  EXPECT_EQ(outbox.dropped(), 3u);
  ASSERT_EQ(outbox.size(), 4u);
  for (int rank = 1; rank <= 4; ++rank) EXPECT_EQ(outbox.Pop(absl::ZeroDuration())->rank_event().rank(), rank);
}

}  // namespace
}  // namespace motley::worker
