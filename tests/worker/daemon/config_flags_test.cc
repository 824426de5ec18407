// Flags that stand for keys: those that are given count, the others leave what the file says.
#include "worker/daemon/config_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sysexits.h>

#include "tests/common/base/temp_folder.h"
#include "worker/daemon/flags.h"

namespace motley::worker {
namespace {

using ::testing::ElementsAre;

constexpr char kFile[] = R"(
[worker]
name = "all"
data_address = "127.0.0.3"
metrics = "127.0.0.1:7072"
cores = 3
stop_seconds = 7
[files]
roots = ["/data"]
[[device]]
kind = "cpu"
)";

FlagsResult Parse(std::vector<std::string> words) {
  words.insert(words.begin(), "motley-worker");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return ParseFlags(static_cast<int>(words.size()), argv.data());
}

class ConfigFlagsTest : public testing::Test {
 protected:
  const TempFolder folder_;
  const std::string file_ = folder_.Write("worker.toml", kFile);
};

TEST_F(ConfigFlagsTest, WhatIsNotGivenIsTheFiles) {
  const FlagsResult flags = Parse({"--config", file_});
  ASSERT_TRUE(flags.config);
  EXPECT_EQ(flags.config->name, "all");
  EXPECT_EQ(flags.config->data_address, "127.0.0.3");
  EXPECT_EQ(flags.config->metrics, "127.0.0.1:7072");
  EXPECT_EQ(flags.config->cores, 3);
  EXPECT_EQ(flags.config->stop_seconds, 7);
  EXPECT_THAT(flags.config->file_roots, ElementsAre("/data"));
  EXPECT_FALSE(flags.config->insecure);
}

TEST_F(ConfigFlagsTest, AHomeBehindAFlagIsNoFolder) {
  for (const char* flag : {"--identity=~/id", "--root=~/text", "--rank-binary=$HOME/rank"}) {
    const FlagsResult flags = Parse({"--config", file_, flag});
    EXPECT_FALSE(flags.config) << flag;
    EXPECT_EQ(flags.exit_code, EX_CONFIG) << flag;
  }
}

TEST_F(ConfigFlagsTest, WhatIsGivenReplacesTheFiles) {
  const FlagsResult flags = Parse({"--config",
                                   file_,
                                   "--node",
                                   "n7",
                                   "--coordinator",
                                   "127.0.0.1:1",
                                   "--data-address",
                                   "10.0.0.7",
                                   "--insecure",
                                   "--identity",
                                   "/home/me/n7",
                                   "--root",
                                   "/scratch/a",
                                   "--root",
                                   "/scratch/b",
                                   "--metrics",
                                   "127.0.0.1:0",
                                   "--cores",
                                   "5",
                                   "--stop-seconds",
                                   "100",
                                   "--rank-binary",
                                   "/opt/motley-rank"});
  ASSERT_TRUE(flags.config);
  EXPECT_EQ(flags.config->name, "n7");
  EXPECT_THAT(flags.config->coordinators, ElementsAre("127.0.0.1:1"));
  EXPECT_EQ(flags.config->data_address, "10.0.0.7");
  EXPECT_EQ(flags.config->identity, "/home/me/n7");
  EXPECT_THAT(flags.config->file_roots, ElementsAre("/scratch/a", "/scratch/b"));
  EXPECT_EQ(flags.config->metrics, "127.0.0.1:0");
  EXPECT_EQ(flags.config->cores, 5);
  EXPECT_EQ(flags.config->stop_seconds, 100);
  EXPECT_EQ(flags.config->rank_binary, "/opt/motley-rank");
  EXPECT_TRUE(flags.config->insecure);
  EXPECT_EQ(Parse({"--config", file_, "--no-metrics"}).config->metrics, "");
}

TEST_F(ConfigFlagsTest, NoFileIsNeededWhereTheCoordinatorIsNamed) {
  const FlagsResult flags = Parse({"--coordinator", "127.0.0.1:7073", "--node", "n1", "--root", "/data"});
  ASSERT_TRUE(flags.config);
  EXPECT_EQ(flags.config->name, "n1");
  EXPECT_EQ(Parse({}).exit_code, EX_USAGE);
  EXPECT_EQ(Parse({"--node", "n1"}).exit_code, EX_USAGE);
}

TEST_F(ConfigFlagsTest, CardsReplaceDevices) {
  const FlagsResult flags = Parse({"--config", file_, "--card", "3,gpu-8f6c", "--card", "0"});
  ASSERT_TRUE(flags.config);
  const std::vector<DeviceConfig>& devices = flags.config->devices;
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[0].index, 3);
  EXPECT_EQ(devices[1].uuid, "gpu-8f6c");
  EXPECT_FALSE(devices[1].index);
  EXPECT_EQ(devices[2].index, 0);
  EXPECT_EQ(devices[2].name, "gpu2");
  for (const DeviceConfig& device : devices) EXPECT_EQ(device.kind, DeviceKind::kCuda);
}

TEST_F(ConfigFlagsTest, WrongOnesAreRefusedLikeTheFiles) {
  for (const char* card : {"", "-1", "MIG-8f6c", "gpu0", "99999999999999999999"}) {
    EXPECT_EQ(Parse({"--config", file_, "--card", card}).exit_code, EX_USAGE) << card;
  }
  EXPECT_EQ(Parse({"--config", file_, "--cores", "many"}).exit_code, EX_USAGE);
  EXPECT_EQ(Parse({"--config", file_, "--cores", "-1"}).exit_code, EX_CONFIG);
  EXPECT_EQ(Parse({"--config", file_, "--root", "data"}).exit_code, EX_CONFIG);
  EXPECT_EQ(Parse({"--config", file_, "--data-address", "10.0.0.7"}).exit_code, EX_CONFIG)
      << "beyond loopback without --insecure";
  EXPECT_EQ(Parse({"--config", file_, "--metrics", "127.0.0.1:0", "--no-metrics"}).exit_code, EX_USAGE);
  EXPECT_EQ(Parse({"--config", file_, "--foreground"}).exit_code, EX_USAGE) << "of --join";
}

TEST_F(ConfigFlagsTest, FilesOfJobsLieWhereTheFlagSays) {
  const FlagsResult flags = Parse({"--config", file_, "--files", "/disk"});
  ASSERT_TRUE(flags.config);
  EXPECT_EQ(flags.config->files_local, "/disk");
  EXPECT_EQ(Parse({"--join", "token", "--coordinator", "127.0.0.1:1", "--files", "/disk"}).exit_code, EX_USAGE);
}

TEST_F(ConfigFlagsTest, JoinDoesNotDropFlagsSilently) {
  EXPECT_EQ(Parse({"--join", "token", "--coordinator", "127.0.0.1:1", "--cores", "2"}).exit_code, EX_USAGE);
  EXPECT_NE(Parse({"--join", "token", "--coordinator", "127.0.0.1:1", "--cores", "2", "--foreground"}).exit_code, EX_USAGE);
}

}  // namespace
}  // namespace motley::worker
