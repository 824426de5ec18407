#include "coordinator/core/counted_time.h"

#include <gtest/gtest.h>

#include "common/base/files.h"
#include "tests/common/base/temp_folder.h"

namespace motley::coordinator {
namespace {

constexpr absl::Duration kDay = absl::Hours(24);

class CountedTimeTest : public testing::Test {
 protected:
  CountedTime Open(const std::string& boot) {
    CountedTime time(Path(), clock_);
    time.Load(boot);
    return time;
  }
  std::string Path() const { return folder_.path() + "/coordinator.time"; }
  TempFolder folder_;
  FakeClock clock_;
};

TEST_F(CountedTimeTest, TheWallClockAddsNothing) {
  CountedTime time = Open("one");
  EXPECT_EQ(time.AgeOf("a"), absl::ZeroDuration());
  clock_.MoveWall(200 * kDay);
  EXPECT_EQ(time.AgeOf("a"), absl::ZeroDuration());
  clock_.MoveWall(-400 * kDay);
  clock_.Advance(kDay);
  EXPECT_EQ(time.AgeOf("a"), kDay);
  EXPECT_EQ(time.AgeOf("b", absl::Hours(2)), absl::Hours(2)) << "it was that old when it was first asked for";
}

TEST_F(CountedTimeTest, AStopIsCountedWhereTheMachineWasNotStartedAnew) {
  {
    CountedTime time = Open("one");
    (void)time.AgeOf("a");
    clock_.Advance(kDay);
    ASSERT_TRUE(time.Save().ok());
  }
  clock_.Advance(3 * kDay);
  clock_.MoveWall(200 * kDay);
  EXPECT_EQ(Open("one").AgeOf("a"), 4 * kDay);
  CountedTime anew = Open("two");
  EXPECT_EQ(anew.AgeOf("a"), kDay) << "nobody counted meanwhile";
  EXPECT_TRUE(anew.has_gap());
  EXPECT_FALSE(anew.wall_went_back());
  anew.IsAtLeast("a", absl::Hours(30));
  EXPECT_EQ(anew.AgeOf("a"), absl::Hours(30));
  anew.IsAtLeast("a", absl::Hours(29));
  EXPECT_EQ(anew.AgeOf("a"), absl::Hours(30));
  EXPECT_EQ(Open("").AgeOf("a"), kDay) << "a kernel that does not say which start it is";
  clock_.Advance(kDay);
  EXPECT_EQ(anew.AgeOf("a"), kDay + absl::Hours(30));
}

TEST_F(CountedTimeTest, AClockThatStandsBackAfterAStartOfTheMachineIsSeen) {
  {
    CountedTime time = Open("one");
    ASSERT_TRUE(time.Save().ok());
  }
  clock_.MoveWall(-kDay);
  EXPECT_FALSE(Open("one").wall_went_back()) << "the steady clock counted";
  EXPECT_TRUE(Open("two").wall_went_back());
}

TEST_F(CountedTimeTest, AFileThatWasAlteredIsNotBelieved) {
  {
    CountedTime time = Open("one");
    (void)time.AgeOf("a", 30 * kDay);
    (void)time.AgeOf("job/b/1", kDay), (void)time.AgeOf("job/c/1", kDay);
    time.Keep("job/", [](const std::string& thing) { return thing == "job/c/1"; });
    ASSERT_TRUE(time.Save().ok());
  }
  EXPECT_EQ(Open("one").AgeOf("a"), 30 * kDay);
  EXPECT_EQ(Open("one").AgeOf("job/c/1"), kDay);
  EXPECT_EQ(Open("one").AgeOf("job/b/1"), absl::ZeroDuration()) << "it was not kept";
  std::string text = *ReadSmallFile(Path(), 4096);
  text[text.find("counted ") + 8] = '9';
  for (const std::string& altered : {text, std::string(), std::string("sha256 ")}) {
    ASSERT_TRUE(ReplaceFileDurably(Path(), altered).ok());
    EXPECT_EQ(Open("one").AgeOf("a"), absl::ZeroDuration());
  }
}

TEST_F(CountedTimeTest, ItIsWrittenNowAndThen) {
  CountedTime time = Open("one");
  time.SaveNowAndThen();
  EXPECT_TRUE(FileExists(Path()));
  ASSERT_TRUE(RemoveTree(Path()).ok());
  clock_.Advance(absl::Minutes(59));
  time.SaveNowAndThen();
  EXPECT_FALSE(FileExists(Path()));
  clock_.Advance(absl::Minutes(1));
  time.SaveNowAndThen();
  EXPECT_TRUE(FileExists(Path()));
}

}  // namespace
}  // namespace motley::coordinator
