#include "coordinator/client/say_while.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "absl/synchronization/notification.h"

namespace motley::client {
namespace {

// Keeps what is written, and says when a line is there.
class Lines : public std::stringbuf {
 public:
  void WaitForTwo() { two_.WaitForNotification(); }

 private:
  int sync() override {
    if (++lines_ == 2) two_.Notify();
    return 0;
  }
  int lines_ = 0;
  absl::Notification two_;
};

TEST(SayWhileTest, LongWaitsHaveLines) {
  Lines lines;
  std::ostream out(&lines);
  {
    const SayWhile say(out, "the plan is searched", absl::ZeroDuration(), absl::Milliseconds(1));
    lines.WaitForTwo();
  }
  EXPECT_THAT(lines.str(), testing::StartsWith("the plan is searched (0 s so far)\nthe plan is searched (0 s so far)\n"));
}

TEST(SayWhileTest, ShortOnesHaveNone) {
  std::ostringstream out;
  { const SayWhile say(out, "the plan is searched"); }
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace motley::client
