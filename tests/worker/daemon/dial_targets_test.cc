#include "worker/daemon/dial_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::worker {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(DialTargets, NumbersAndSocketsStandForThemselves) {
  const SystemClock clock;
  const absl::Notification never;
  const std::vector<std::string> addresses = {"10.0.0.1:7073", "[fd00::1]:7073", "unix:/run/motley/workers.sock"};
  const std::vector<DialTargets> found = LookUp(addresses, clock, absl::Seconds(20), never);
  ASSERT_EQ(found.size(), 3u);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_THAT(found[i].targets, ElementsAre(addresses[i]));
    EXPECT_EQ(found[i].trouble, "");
  }
}

TEST(DialTargets, ANameStandsForItsNumbers) {
  const SystemClock clock;
  const absl::Notification never;
  const std::vector<DialTargets> found = LookUp({"localhost:7073"}, clock, absl::Seconds(20), never);
  EXPECT_THAT(found[0].targets, Contains("127.0.0.1:7073"));
  EXPECT_THAT(found[0].targets, Each(AnyOf("127.0.0.1:7073", "[::1]:7073")));
}

// Whether the name service says no or nothing.
TEST(DialTargets, ANameThatNobodyKnowsIsSaid) {
  const SystemClock clock;
  const absl::Notification never;
  const std::vector<DialTargets> found = LookUp({"hub.invalid:7073", "127.0.0.1:1"}, clock, absl::Seconds(1), never);
  EXPECT_THAT(found[0].targets, IsEmpty());
  EXPECT_THAT(found[0].trouble, HasSubstr("the name hub.invalid is not known here ("));
  EXPECT_THAT(found[0].trouble, HasSubstr("/etc/hosts"));
  EXPECT_THAT(found[1].targets, ElementsAre("127.0.0.1:1")) << "the others are known all the same";
}

}  // namespace
}  // namespace motley::worker
