#include "worker/engine/profiler/unit_time.h"

#include <gtest/gtest.h>

namespace motley::engine {
namespace {

constexpr size_t kSeries = 3;  // whole passes, halves, a part

class UnitTimeTest : public ::testing::Test {
 protected:
  // A unit's first run has ended after a second; after it there is time for so many more.
  UnitTime Left(double runs) {
    UnitTime unit(profile_, clock_.Now() + absl::Seconds(1 + runs));
    clock_.Advance(absl::Seconds(1));
    unit.RunTook(absl::Seconds(1));
    return unit;
  }
  std::string Said(UnitTime& unit) {
    unit.SayLeftOut("layer");
    return profile_.CutShortText();
  }

  FakeClock clock_;
  ProfileTime profile_{clock_};
};

TEST_F(UnitTimeTest, WithoutAnEndEverythingFits) {
  UnitTime unit(profile_, profile_.EndOf(0.5));
  unit.RunTook(absl::Hours(1));
  clock_.Advance(absl::Hours(100));
  EXPECT_TRUE(unit.OthersFit(kSeries));
  EXPECT_EQ(unit.RepeatsThatFit(0, kSeries, 100), 100);
  EXPECT_TRUE(unit.NextSizeFits(2, kSeries));
  unit.SizeTook(1, absl::Hours(1));
  EXPECT_TRUE(unit.AgainFits(1));
  EXPECT_EQ(Said(unit), "");
}

// The others of this size take 4 runs, the second size 12 of its own.
TEST_F(UnitTimeTest, RepeatedRunsAreLeftOutFirst) {
  UnitTime all = Left(4 + 12 + 3);
  EXPECT_TRUE(all.OthersFit(kSeries));
  EXPECT_EQ(all.RepeatsThatFit(0, kSeries, 3), 3);
  EXPECT_EQ(Said(all), "");
  UnitTime two = Left(4 + 12 + 2.5);
  EXPECT_TRUE(two.OthersFit(kSeries));
  EXPECT_EQ(two.RepeatsThatFit(0, kSeries, 3), 2);
  EXPECT_EQ(Said(two), "cut short after 2 s, not measured: layer: repeated runs");
}

TEST_F(UnitTimeTest, ThenHalvesAndPart) {
  UnitTime unit = Left(4 + 12 + 0.5);
  EXPECT_FALSE(unit.OthersFit(kSeries));
  EXPECT_EQ(unit.RepeatsThatFit(0, 1, 3), 3) << "the whole passes alone have time enough";
  EXPECT_TRUE(unit.NextSizeFits(2, 1));
  EXPECT_EQ(Said(unit), "cut short after 1 s, not measured: layer: halves and part");
}

TEST_F(UnitTimeTest, ThenTheRunThatCounts) {
  UnitTime unit = Left(4);
  EXPECT_FALSE(unit.OthersFit(kSeries));
  EXPECT_EQ(unit.RepeatsThatFit(0, 1, 3), 0) << "the second size needs the rest";
  EXPECT_TRUE(unit.NextSizeFits(2, 1));
  unit.SizeTook(1, absl::Seconds(1));
  EXPECT_EQ(unit.RepeatsThatFit(0, 1, 3), 3) << "it has two sizes";
}

TEST_F(UnitTimeTest, ThenTheSecondSize) {
  UnitTime unit = Left(3.5);
  EXPECT_FALSE(unit.NextSizeFits(2, 1));
  unit.SizeTook(1, absl::Seconds(4));
  EXPECT_FALSE(unit.AgainFits(1));
  EXPECT_EQ(Said(unit), "cut short after 1 s, not measured: layer: disturbed microbatches again, microbatches from 2");
}

TEST_F(UnitTimeTest, ALateUnitMeasuresTheLeast) {
  UnitTime unit = Left(-100);
  EXPECT_FALSE(unit.OthersFit(kSeries));
  EXPECT_EQ(unit.RepeatsThatFit(0, 1, 100), 0);
  EXPECT_EQ(unit.RepeatsThatFit(1, kSeries, 100), 1) << "a series that is begun says something";
  EXPECT_FALSE(unit.NextSizeFits(2, 1));
}

TEST(ProfileTime, AShareIsOfWhatIsLeft) {
  FakeClock clock;
  ProfileTime time(clock);
  EXPECT_EQ(time.EndOf(0.5), absl::InfiniteDuration());
  time.set_limit(absl::Seconds(60));
  clock.Advance(absl::Seconds(20));
  EXPECT_EQ(time.EndOf(0.25), clock.Now() + absl::Seconds(10));
  clock.Advance(absl::Seconds(50));
  EXPECT_EQ(time.EndOf(0.25), clock.Now()) << "none";
  EXPECT_EQ(time.spent(), absl::Seconds(70));
}

}  // namespace
}  // namespace motley::engine
