#include "worker/daemon/seen_epochs.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace motley::worker {
namespace {

using Seen = std::vector<SeenEpoch>;

TEST(SeenEpochs, TheNewestNumberAndItsTokenAreKept) {
  SeenEpochs seen;
  seen.UseKey("k");
  EXPECT_EQ(seen.Newest(JobId("a")), Epoch(0));
  seen.See(JobId("a"), Epoch(3), "three");
  seen.See(JobId("a"), Epoch(2), "two");
  EXPECT_EQ(seen.Newest(JobId("a")), Epoch(3));
  seen.See(JobId("a"), Epoch(3), "");
  EXPECT_EQ(seen.All(), (Seen{{JobId("a"), Epoch(3), "three", "k"}}));
  seen.See(JobId("a"), Epoch(4), "");
  EXPECT_EQ(seen.All(), (Seen{{JobId("a"), Epoch(4), "", "k"}})) << "a token holds for its number alone";
}

TEST(SeenEpochs, NumbersOfAnotherKeyFenceNothingAndAreNotForgotten) {
  SeenEpochs seen;
  seen.UseKey("old");
  seen.See(JobId("a"), Epoch(7), "seven");
  seen.UseKey("new");
  EXPECT_EQ(seen.Newest(JobId("a")), Epoch(0));
  seen.See(JobId("a"), Epoch(1), "one");
  EXPECT_EQ(seen.All(), (Seen{{JobId("a"), Epoch(1), "one", "new"}, {JobId("a"), Epoch(7), "seven", "old"}}));
  seen.UseKey("old");
  EXPECT_EQ(seen.Newest(JobId("a")), Epoch(7));
}

TEST(SeenEpochs, OfVeryManyJobsTheOnesSaidLongestAgoGo) {
  SeenEpochs seen;
  for (size_t i = 0; i <= kMostSeenEpochs; ++i) {
    seen.See(JobId(absl::StrCat("job-", i)), Epoch(5), "t");
    seen.See(JobId("job-0"), Epoch(5), "t");
  }
  EXPECT_EQ(seen.All().size(), kMostSeenEpochs);
  EXPECT_EQ(seen.Newest(JobId("job-0")), Epoch(5));
  EXPECT_EQ(seen.Newest(JobId("job-1")), Epoch(0));
}

}  // namespace
}  // namespace motley::worker
