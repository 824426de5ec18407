#include "worker/daemon/rank_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/base/temp_folder.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

class RankTrialTest : public testing::Test {
 protected:
  absl::Status Try(const std::string& script) {
    const std::string program = folder_.Write("motley-rank", "#!/bin/sh\n" + script);
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return TryRank(program);
  }

  const TempFolder folder_;
};

TEST_F(RankTrialTest, ARankThatStartsIsAskedByItsFlagAlone) { EXPECT_TRUE(Try("test \"$*\" = --check\n").ok()); }

TEST_F(RankTrialTest, ARankHasAFolderWhenTheWorkersIsGone) {
  const std::string before = std::filesystem::current_path();
  std::filesystem::create_directory(folder_ / "gone");
  std::filesystem::current_path(folder_ / "gone");
  std::filesystem::remove(folder_ / "gone");
  const absl::Status status = Try("exec /bin/pwd\n");
  std::filesystem::current_path(before);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(RankTrialTest, TheLoadersLineIsSaid) {
  const absl::Status status =
      Try("echo 'a line before'\n"
          "echo 'error while loading shared libraries: libtorch_cpu.so: cannot open shared object file: Permission denied' >&2\n"
          "exit 127\n");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "ranks cannot start here: " + (folder_ / "motley-rank") +
                                  " exited with status 127: error while loading shared libraries: libtorch_cpu.so: cannot open "
                                  "shared object file: Permission denied; jobs fail on its devices until that is mended");
}

TEST_F(RankTrialTest, ASignalIsSaid) {
  EXPECT_THAT(std::string(Try("kill -ILL $$\n").message()), HasSubstr("was killed by signal 4 (Illegal instruction); jobs fail"));
}

TEST_F(RankTrialTest, AProgramThatIsNotThereIsSaid) {
  EXPECT_THAT(std::string(TryRank(folder_ / "nowhere").message()), HasSubstr("ranks cannot start here: cannot run"));
}

TEST_F(RankTrialTest, OneThatDoesNotEndIsLeftWhenTheWorkerEnds) {
  const std::string program = folder_.Write("motley-rank", "#!/bin/sh\nexec sleep 1000\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(TryRank(program, stop.get_token()).ok());
}

TEST_F(RankTrialTest, EachBuildIsTriedOnce) {
  std::vector<OfferedDevice> devices(3);
  devices[0].rank_binary = devices[2].rank_binary = "/a/motley-rank";
  devices[1].rank_binary = "/a/motley-rank-2.7.1";
  EXPECT_EQ(RankBinaries(devices), (std::set<std::string>{"/a/motley-rank", "/a/motley-rank-2.7.1"}));
}

}  // namespace
}  // namespace motley::worker
