#include "worker/daemon/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/common/base/temp_folder.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

// A machine's files of memory.
class HostMemoryTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) { folder_.Write(path, text); }
  void Machine(int64_t total_gib, int64_t available_gib) {
    Write("proc/meminfo", absl::StrCat("MemTotal:       ", total_gib << 20,
                                       " kB\nMemFree:         1000 kB\nMemAvailable:   ", available_gib << 20, " kB\n"));
  }
  HostMemory Read() { return ReadHostMemory(folder_.path()); }

  TempFolder folder_;
};

TEST_F(HostMemoryTest, WithoutGroupsItIsTheMachines) {
  EXPECT_EQ(Read().total_bytes, 0) << "no file says it";
  Machine(64, 40);
  EXPECT_EQ(Read().total_bytes, 64 * kGiB);
  EXPECT_EQ(Read().available_bytes, 40 * kGiB);
  Write("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(Read().available_bytes, 40 * kGiB) << "the top has no limit";
}

TEST_F(HostMemoryTest, TheTightestGroupAboveCounts) {
  Machine(64, 40);
  Write("proc/self/cgroup", "0::/user.slice/job\n");
  Write("sys/fs/cgroup/user.slice/job/memory.max", "max\n");
  Write("sys/fs/cgroup/user.slice/job/memory.current", absl::StrCat(kGiB));
  EXPECT_EQ(Read().available_bytes, 40 * kGiB);
  Write("sys/fs/cgroup/user.slice/memory.max", absl::StrCat(16 * kGiB, "\n"));
  Write("sys/fs/cgroup/user.slice/memory.current", absl::StrCat(10 * kGiB, "\n"));
  Write("sys/fs/cgroup/user.slice/memory.stat", absl::StrCat("anon ", 6 * kGiB, "\ninactive_file ", 4 * kGiB, "\n"));
  EXPECT_EQ(Read().total_bytes, 16 * kGiB);
  EXPECT_EQ(Read().available_bytes, 10 * kGiB) << "files that are cached go when somebody needs the room";
  Write("sys/fs/cgroup/user.slice/memory.current", absl::StrCat(30 * kGiB, "\n"));
  EXPECT_EQ(Read().available_bytes, 0);
}

TEST_F(HostMemoryTest, AContainersGroupIsAtTheTopOfItsMount) {
  Machine(64, 40);
  Write("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/0abc\n0::/\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", absl::StrCat(8 * kGiB, "\n"));
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", absl::StrCat(2 * kGiB, "\n"));
  Write("sys/fs/cgroup/memory/memory.stat", absl::StrCat("total_inactive_file ", kGiB, "\n"));
  EXPECT_EQ(Read().total_bytes, 8 * kGiB);
  EXPECT_EQ(Read().available_bytes, 7 * kGiB);
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Read().available_bytes, 40 * kGiB) << "version 1 says no limit so";
}

TEST(HostMemory, AlikeNodesOfferTheSame) {
  EXPECT_EQ(OfferedByDefault({512 * kGiB, 500 * kGiB}), 384 * kGiB) << "0.8, in sixteenths of the machine's";
  EXPECT_EQ(OfferedByDefault({512 * kGiB, 490 * kGiB}), 384 * kGiB);
  EXPECT_EQ(OfferedByDefault({8 * kGiB, 4 * kGiB}), 3 * kGiB);
  EXPECT_EQ(OfferedByDefault({2 * kGiB, kGiB / 4}), 0) << "steps of a quarter of a GiB at least";
  EXPECT_EQ(OfferedByDefault({}), 0);
}

TEST(HostMemory, MoreThanThereIsIsRefused) {
  EXPECT_TRUE(CheckHostMemory(64 * kGiB, {64 * kGiB, kGiB}).ok());
  EXPECT_TRUE(CheckHostMemory(64 * kGiB, {}).ok()) << "nobody knows";
  const absl::Status status = CheckHostMemory(65 * kGiB, {64 * kGiB, kGiB});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("worker.host_memory_bytes offers 65.0 GiB (69793218560), and this machine"));
}

}  // namespace
}  // namespace motley::worker
