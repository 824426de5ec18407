// What a machine that joins finds in its files afterwards.
#include "worker/daemon/join_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace motley::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

JoinedNode NewMember() {
  return {"n1", {"coordinator.lab:7073"}, "/var/lib/motley/worker", "10.0.0.7", {"/data", "/checkpoints"}};
}

// As the worker will read it.
WorkerConfig ReadBack(const JoinedNode& node) {
  const std::string text = WorkerToml(node);
  const auto config = ParseWorkerConfig(text, "worker.toml");
  EXPECT_TRUE(config.ok()) << config.status() << "\n" << text;
  if (!config.ok()) return {};
  EXPECT_EQ(Validate(*config), absl::OkStatus()) << text;
  return *config;
}

TEST(JoinFiles, TheWorkerTakesItsConfiguration) {
  const WorkerConfig config = ReadBack(NewMember());
  EXPECT_EQ(config.name, "n1");
  EXPECT_EQ(config.coordinators, std::vector<std::string>{"coordinator.lab:7073"});
  EXPECT_EQ(config.identity, "/var/lib/motley/worker");
  EXPECT_EQ(IdentityFolderOf(config), "/var/lib/motley/worker");
  EXPECT_EQ(config.data_address, "10.0.0.7");
  EXPECT_EQ(config.file_roots, NewMember().roots);
  EXPECT_TRUE(config.devices.empty());
  EXPECT_TRUE(UsesTls(config));
}

TEST(JoinFiles, NoRootsAreAnEmptyList) {
  JoinedNode node = NewMember();
  node.roots.clear();
  EXPECT_TRUE(ReadBack(node).file_roots.empty());
}

TEST(JoinFiles, OddRootsComeBackAsTheyAre) {
  JoinedNode node = NewMember();
  for (const char* root : {"/a \"quoted\" one", "/back\\slash", "/back\\n", "/ends in \\", "/\xc3\xa4\xe6\x95\xb0\xe6\x8d\xae",
                           "/it's # no comment", "/[x] = {y}", "/%h", "/$HOME", "/ two  blanks ", "/'''\"\"\""}) {
    node.roots = {root, "/data"};
    EXPECT_EQ(ReadBack(node).file_roots, node.roots) << root;
  }
}

// JSON writes them as a pair of surrogates, which TOML does not take.
TEST(JoinFiles, RootsBeyondTheBasicPlaneComeBackToo) {
  JoinedNode node = NewMember();
  node.roots = {"/\xf0\x9f\x93\xa6"};
  EXPECT_EQ(ReadBack(node).file_roots, node.roots);
}

TEST(JoinFiles, OnlyTrafficThatLeavesTheMachineIsInsecure) {
  JoinedNode node = NewMember();
  EXPECT_TRUE(ReadBack(node).insecure);
  EXPECT_THAT(WorkerToml(node), HasSubstr("not encrypted"));
  for (const char* loopback : {"127.0.0.1", "127.0.0.2", "::1"}) {
    node.data_address = loopback;
    EXPECT_FALSE(ReadBack(node).insecure) << loopback;
    EXPECT_THAT(WorkerToml(node), Not(HasSubstr("insecure"))) << loopback;
  }
  node.data_address = "fd00::7";
  EXPECT_TRUE(ReadBack(node).insecure);
}

TEST(JoinFiles, TheUnitMayWriteToTheRoots) {
  const std::string text = UnitDropIn({"/data", "/two words", "/50%", "/a\"b", "/back\\slash"});
  EXPECT_THAT(text, HasSubstr("\n[Service]\nReadWritePaths="));
  EXPECT_THAT(text, HasSubstr("/data\"\n"));
  EXPECT_THAT(text, HasSubstr("/two words\"\n")) << "one path, not two";
  EXPECT_THAT(text, HasSubstr("/50%%\"\n")) << "no specifier";
  EXPECT_THAT(text, HasSubstr("/a\\\"b\"\n"));
  EXPECT_THAT(text, HasSubstr("/back\\\\slash\"\n"));
  EXPECT_THAT(UnitDropIn({}), Not(HasSubstr("ReadWritePaths")));
}

std::string WordsOfCheckKept(const WorkerConfig& there, const JoinedNode& node) {
  const absl::Status status = CheckKept(there, node, "/etc/motley/worker.toml");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/etc/motley/worker.toml is there already"));
  return std::string(status.message());
}

TEST(JoinFiles, AConfigurationOfTheSameNodeMayStay) {
  const WorkerConfig own = ReadBack(NewMember());
  EXPECT_EQ(CheckKept(own, NewMember(), "w.toml"), absl::OkStatus());
  WorkerConfig changed = own;
  changed.file_roots = {"/other"}, changed.data_address = "10.0.0.8", changed.stop_seconds = 5;
  EXPECT_EQ(CheckKept(changed, NewMember(), "w.toml"), absl::OkStatus()) << "what its owner chose is his";
  WorkerConfig usual = own;
  usual.identity.clear();
  EXPECT_EQ(CheckKept(usual, NewMember(), "w.toml"), absl::OkStatus()) << "the folder that is meant without one";
}

TEST(JoinFiles, SeveralMachinesMayBeTheCoordinator) {
  JoinedNode node = NewMember();
  node.coordinators.push_back("standby.lab:7073");
  EXPECT_EQ(ReadBack(node).coordinators, node.coordinators);
  EXPECT_EQ(CheckKept(ReadBack(node), NewMember(), "w.toml"), absl::OkStatus()) << "more were written there by hand";
}

TEST(JoinFiles, AnothersIsRefusedByItsKey) {
  const WorkerConfig own = ReadBack(NewMember());
  WorkerConfig other = own;
  other.name = "n2";
  EXPECT_THAT(WordsOfCheckKept(other, NewMember()), HasSubstr("worker.name = 'n2', not 'n1'"));
  other = own;
  other.coordinators = {"elsewhere:7073"};
  EXPECT_THAT(WordsOfCheckKept(other, NewMember()),
              HasSubstr("worker.coordinator = 'elsewhere:7073', not 'coordinator.lab:7073'"));
  other = own;
  other.identity = "/srv/identity";
  EXPECT_THAT(WordsOfCheckKept(other, NewMember()), HasSubstr("worker.identity = '/srv/identity', not '/var/lib/motley/worker'"));
  other.identity.clear();
  JoinedNode elsewhere = NewMember();
  elsewhere.identity = "/srv/identity";
  EXPECT_THAT(WordsOfCheckKept(other, elsewhere), HasSubstr("worker.identity = '/var/lib/motley/worker', not '/srv/identity'"));
}

}  // namespace
}  // namespace motley::worker
