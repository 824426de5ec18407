#include "worker/daemon/host_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/common/base/temp_folder.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

RankAssignment OnHost(int number, const char* device, int64_t host_gib) {
  RankAssignment rank;
  rank.rank = number;
  rank.device.id = DeviceId(device);
  rank.planned_host_bytes = host_gib * kGiB;
  return rank;
}

TEST(HostRoomTest, TheRanksOfANodeTogetherFitOrNot) {
  const std::vector<RankAssignment> ranks = {OnHost(2, "n1/gpu0", 12), OnHost(3, "n1/gpu1", 0), OnHost(4, "n1/gpu2", 8)};
  EXPECT_EQ(PlannedHostBytes(ranks), 20 * kGiB);
  EXPECT_EQ(CheckHostRoom(ranks, {64 * kGiB, 20 * kGiB}, {}), absl::OkStatus());
  EXPECT_EQ(CheckHostRoom(ranks, {}, {}), absl::OkStatus()) << "nothing is known";
  const absl::Status short_of = CheckHostRoom(ranks, {64 * kGiB, 15 * kGiB}, {{7, "python3", 30 * kGiB}});
  EXPECT_EQ(short_of.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(short_of.message(),
            "the host memory of n1 has 15.0 GiB available, and ranks 2 (12.0 GiB), 4 (8.0 GiB) would keep 20.0 GiB there as "
            "planned; most is held by python3 (process 7) 30.0 GiB");
  EXPECT_EQ(StillOffered(51 * kGiB, {64 * kGiB, 15 * kGiB}), 12 * kGiB);
  EXPECT_EQ(StillOffered(10 * kGiB, {64 * kGiB, 15 * kGiB}), 10 * kGiB) << "never more than before";
}

TEST(HostRoomTest, WhoHoldsMostIsNamed) {
  TempFolder folder;
  EXPECT_TRUE(LargestProcesses(folder.path()).empty());
  for (int pid = 1; pid <= 6; ++pid) {
    folder.Write(absl::StrCat("proc/", pid, "/status"), absl::StrCat("Name:\tp", pid, "\nVmRSS:\t  ", pid << 20, " kB\n"));
  }
  folder.Write("proc/8/status", "Name:\tsmall\nVmRSS:\t  10 kB\n");
  folder.Write("proc/self/status", "Name:\tself\nVmRSS:\t  999999999 kB\n");
  const std::vector<CardProcess> largest = LargestProcesses(folder.path());
  ASSERT_EQ(largest.size(), 4u);
  EXPECT_EQ(largest[0].name, "p6");
  EXPECT_EQ(largest[0].bytes, 6 * kGiB);
  EXPECT_EQ(largest[3].pid, 3);
}

}  // namespace
}  // namespace motley::worker
