// Saves whose files lie on the disks of the ranks' nodes: each node is a folder here, with nothing in common.
#include "worker/engine/local_saver.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/held_checkpoints.h"
#include "common/checkpoint/needed_blocks.h"
#include "common/checkpoint/resume_folder.h"
#include "tests/worker/engine/engine_fixture.h"

namespace motley::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A mark is 32 hexadecimal digits.
constexpr char kMark[] = "0123456789abcdef0123456789abcdef";
const JobUid kUid(std::string(32, '1'));

class LocalSaverTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    config_.checkpoint.storage = "local";
    config_.checkpoint.interval = 5;
    config_.checkpoint.keep_latest_k = 10;
  }
  std::string RootOf(const std::string& node) const { return (folder_ / node / "checkpoints").string(); }
  // Rank r on node `nodes[r]`, whose folder is its own.
  std::vector<RankAssignment> OnNodes(std::vector<RankAssignment> ranks, const std::vector<std::string>& nodes) const {
    std::vector<DeviceId> devices;
    for (size_t r = 0; r < ranks.size(); ++r) devices.emplace_back(nodes[r] + "/gpu" + std::to_string(r));
    for (size_t r = 0; r < ranks.size(); ++r) {
      ranks[r].job_uid = kUid;
      ranks[r].devices = devices;
      ranks[r].device.id = devices[r];
      ranks[r].config.checkpoint.folder = RootOf(nodes[r]);
    }
    return ranks;
  }
  HeldCheckpoints HeldBy(const std::string& node) const {
    const auto held = LookForHeldCheckpoints(RootOf(node), kUid);
    EXPECT_TRUE(held.ok()) << held.status();
    return held.ok() ? *held : HeldCheckpoints();
  }
  // What a worker makes for its ranks: own files as links, of the others' what these ranks read.
  std::string Bring(const std::vector<RankAssignment>& ranks, const std::string& node, const std::string& name,
                    const std::vector<std::string>& nodes) const {
    const std::string own = RootOf(node) + "/" + name, folder = (folder_ / node / "resume" / name).string();
    const auto text = ReadSmallFile(RootOf(nodes[0]) + "/" + name + "/" + kManifestName, int64_t{1} << 30);
    const auto manifest = ManifestFromJson(*text, name);
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    const auto lacks = BeginResumeFolder(folder, *manifest, *text, {own});
    EXPECT_TRUE(lacks.ok()) << lacks.status();
    std::vector<int32_t> here;
    for (const RankAssignment& rank : ranks) {
      if (NodeOf(rank.device.id).value() == node) here.push_back(rank.rank);
    }
    const auto needed = NeededBlocks(*manifest, ranks[0].ownership, here);
    for (const size_t f : *lacks) {
      const CheckpointFile& file = manifest->files[f];
      auto made = ResumeFile::Make(folder, file);
      EXPECT_TRUE(made.ok()) << made.status();
      const auto whole = ReadSmallFile(RootOf(file.node) + "/" + name + "/" + file.name, int64_t{1} << 30);
      EXPECT_TRUE(whole.ok()) << whole.status();
      for (const int64_t block : needed[f]) {
        const auto begin = static_cast<size_t>(block * kCheckpointBlockBytes);
        EXPECT_TRUE(made->Put(block, whole->substr(begin, kCheckpointBlockBytes)).ok());
      }
      EXPECT_TRUE(made->Finish().ok());
    }
    return folder;
  }
};

TEST_F(LocalSaverTest, EveryNodeHasTheManifestAndItsOwnFilesAlone) {
  const auto ranks = OnNodes(Assign(Gpt2(), {{{3, 1}, 0.5}, {{2}, 0.2}, {{2}, 0.3}}), {"a", "b", "b"});
  const Outcome outcome = TrainOk(ranks);
  EXPECT_EQ(outcome.checkpoints.size(), 3u);
  const HeldCheckpoints a = HeldBy("a"), b = HeldBy("b");
  ASSERT_EQ(a.checkpoints.size(), 3u);
  ASSERT_EQ(b.checkpoints.size(), 3u);
  EXPECT_TRUE(a.unpublished.empty() && b.unpublished.empty());
  const HeldCheckpoint &of_a = a.checkpoints[0], &of_b = b.checkpoints[0];
  EXPECT_EQ(of_a.step, 12);
  EXPECT_EQ(of_a.manifest_digest, of_b.manifest_digest);
  EXPECT_EQ(of_a.mark, kMark);
  EXPECT_EQ(of_b.mark, kMark);
  ASSERT_EQ(of_a.files.size(), 3u);
  for (size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(of_a.files[r].here, r == 0);
    EXPECT_EQ(of_b.files[r].here, r != 0);
    EXPECT_EQ(of_a.files[r].node, r == 0 ? "a" : "b");
  }
}

TEST_F(LocalSaverTest, ResumedWithTheSameAndWithAnotherPlanItIsTheSameRun) {
  const std::vector<Device> plan = {{{3, 1}, 0.8}, {{4}, 0.2}};
  const Outcome whole = TrainOk(OnNodes(Assign(Gpt2(), plan), {"a", "b"}));
  const std::string name = fs::path(whole.checkpoints.at(5)).filename();
  const std::vector<std::pair<std::vector<Device>, std::vector<std::string>>> rests = {
      {plan, {"a", "b"}}, {{{{2}, 0.3}, {{6}, 0.7}}, {"a", "b"}}, {{{{2}, 0.1}, {{3}, 0.2}, {{2, 1}, 0.7}}, {"b", "a", "c"}}};
  for (const auto& [devices, nodes] : rests) {
    std::vector<RankAssignment> rest = OnNodes(Assign(Gpt2(), devices), nodes);
    for (RankAssignment& rank : rest) {
      rank.start_step = 5;
      rank.epoch = Epoch(2);
      rank.resume_from = Bring(rest, NodeOf(rank.device.id).value(), name, {"a", "b"});
      rank.config.checkpoint.interval = 0;
    }
    const Outcome resumed = TrainOk(rest);
    ExpectSameCurve(resumed.steps[1], {whole.steps[0].begin() + 5, whole.steps[0].end()}, 1e-10);
    for (const std::string& node : nodes) fs::remove_all(fs::path(RootOf(node)) / "step-00000012-gen-2");
  }
}

// Without the coordinator's word there is no name, and nothing stays behind.
TEST_F(LocalSaverTest, WhatTheCoordinatorRefusesHasNoNameAnywhere) {
  config_.training.steps = 3;
  const auto ranks = OnNodes(Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}}), {"a", "b"});
  const Outcome outcome = Train(ranks, [](int, FakeHost& host, Engine&) { host.newest = false; });
  for (const auto& end : outcome.ends) EXPECT_EQ(end.status().code(), absl::StatusCode::kFailedPrecondition) << end.status();
  for (const char* node : {"a", "b"}) EXPECT_TRUE(fs::is_empty(RootOf(node))) << node;
}

// Its disk is not the others'.
TEST_F(LocalSaverTest, ANodeThatCannotWriteIsBlamedAndTheOthersForget) {
  config_.training.steps = 7;
  const auto ranks = OnNodes(Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}}), {"a", "b"});
  // A file has the name of the folder in which b's rank would write.
  fs::create_directories(RootOf("b"));
  std::ofstream(fs::path(RootOf("b")) / (".tmp-step-00000005-gen-1-job-" + kUid.value())) << "in the way";
  const Outcome outcome = Train(ranks);
  EXPECT_EQ(outcome.checkpoints.count(5), 0u);
  for (const auto& entry : fs::directory_iterator(RootOf("a")))
    EXPECT_EQ(entry.path().filename().string().find(".tmp-"), std::string::npos);
  const bool said = outcome.failed_checkpoints.count(5) > 0;
  const std::string why = said ? outcome.failed_checkpoints.at(5) : std::string(outcome.ends[1].status().message());
  EXPECT_THAT(why, HasSubstr("checkpoint on b/gpu1"));
}

// Of two ranks on one node one may be at the next try while the other still forgets the last one.
TEST_F(LocalSaverTest, ForgettingLeavesWhatIsNotTheRanksOwn) {
  config_.training.steps = 3;
  const auto ranks = OnNodes(Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}}), {"a", "a"});
  const fs::path temporary = fs::path(RootOf("a")) / (".tmp-step-00000003-gen-1-job-" + kUid.value());
  fs::create_directories(temporary);
  std::ofstream(temporary / "rank-7.bin") << "another's";
  const Outcome outcome = Train(ranks, [](int, FakeHost& host, Engine&) { host.newest = false; });
  for (const auto& end : outcome.ends) EXPECT_FALSE(end.ok());
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(temporary)) left.push_back(entry.path().filename());
  EXPECT_THAT(left, testing::ElementsAre("rank-7.bin"));
}

TEST(IsFirstOfNode, IsByTheNodesOfAllRanks) {
  RankAssignment rank;
  for (const char* id : {"a/gpu0", "b/gpu0", "a/gpu1", "b/gpu1"}) rank.devices.emplace_back(id);
  const bool first[] = {true, true, false, false};
  for (rank.rank = 0; rank.rank < 4; ++rank.rank) EXPECT_EQ(IsFirstOfNode(rank), first[rank.rank]);
}

}  // namespace
}  // namespace motley::engine
