// Saves on two disks that are cut off: at each operation of each node, that node or both of them. What the nodes hold together is
// always a whole checkpoint, the new one as soon as the first node has given it its name.
#include <gmock/gmock.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/checkpoint/resume_folder.h"
#include "coordinator/state/decide_copies.h"
#include "coordinator/state/unite_checkpoints.h"
#include "coordinator/store/number_key.h"
#include "tests/common/checkpoint/local_fixture.h"

namespace motley::coordinator {
namespace {

namespace fs = std::filesystem;

class LocalSaves : public testing::Test {
 protected:
  // The same steps as worker/engine/local_saver: files, then rank 0's node, then the other one; then what is not needed goes.
  // `before` of a node may end it: it does nothing any more.
  struct Node {
    std::string root;
    std::function<absl::Status(const std::string&)> before = {};
    bool dead = false;
  };
  CheckpointFence FenceOf(Node& node, int64_t epoch) {
    CheckpointFence fence = LocalEpoch(epoch);
    fence.before = [&node](const std::string& operation) -> absl::Status {
      if (!node.dead && node.before) node.dead = !node.before(operation).ok();
      return node.dead ? absl::AbortedError("killed") : absl::OkStatus();
    };
    return fence;
  }
  void Save(int64_t step, int64_t epoch) {
    const auto manifest = disks_.Write(step, LocalEpoch(epoch));
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    const std::string text = ManifestToJson(*manifest);
    const std::string mark = key_.MarkOf(kOneUid, Epoch(epoch), step, ManifestDigest(text));
    for (Node* node : {&a_, &b_}) {
      if (node->dead) continue;
      const CheckpointFence fence = FenceOf(*node, epoch);
      const auto published = PublishLocalCheckpoint(node->root, *manifest, text, mark, fence);
      if (node == &a_ && !published.ok()) return;  // nobody is told anything
    }
    Drop(epoch);
  }
  // As the coordinator says it, which keeps one checkpoint and no copies.
  void Drop(int64_t epoch) {
    Holdings held;
    held.checkpoints = Unite(&held.unpublished);
    held.offers = {{NodeName("a"), {}}, {NodeName("b"), {}}};
    const CopyPlan plan = DecideCopies({held, {}, Epoch(epoch), /*copies=*/0, /*keep_latest=*/1, "", ""});
    for (Node* node : {&a_, &b_}) {
      const auto of_node = plan.drops.find(NodeName(node == &a_ ? "a" : "b"));
      if (node->dead || of_node == plan.drops.end()) continue;
      std::vector<LocalDrop> drops;
      for (const DroppedCheckpoint& each : of_node->second)
        drops.push_back({each.step, each.epoch.value(), each.manifest_digest});
      (void)DropLocalCheckpoints(node->root, drops, FenceOf(*node, epoch));
    }
  }
  std::vector<UnitedCheckpoint> Unite(std::map<NodeName, std::vector<UnpublishedFiles>>* unpublished = nullptr) {
    std::map<NodeName, HeldCheckpoints> held;
    for (const auto& [name, node] : {std::pair("a", &a_), std::pair("b", &b_)}) {
      const auto of_node = LookForHeldCheckpoints(node->root, kOneUid);
      EXPECT_TRUE(of_node.ok()) << of_node.status();
      if (of_node.ok()) held[NodeName(name)] = *of_node;
      if (of_node.ok() && unpublished != nullptr) (*unpublished)[NodeName(name)] = of_node->unpublished;
    }
    return UniteCheckpoints(held, [this](const HeldCheckpoint& checkpoint) {
      return key_.Marked(checkpoint.mark, kOneUid, checkpoint.epoch, checkpoint.step, checkpoint.manifest_digest);
    });
  }
  // The newest whole one; what it says is there is what was written.
  int64_t NewestStep() {
    for (const UnitedCheckpoint& checkpoint : Unite()) {
      if (!checkpoint.whole()) continue;
      ExpectVerifies(checkpoint);
      return checkpoint.head.step;
    }
    return -1;
  }
  void ExpectVerifies(const UnitedCheckpoint& checkpoint) {
    std::vector<std::string> folders;
    std::string text;
    for (const Node* node : {&a_, &b_}) {
      const std::string published = absl::StrCat(node->root, "/", checkpoint.head.name);
      folders.push_back(published);
      folders.push_back(absl::StrCat(
          node->root, "/", TemporaryCheckpointFolderName(checkpoint.head.step, checkpoint.head.epoch.value(), kOneUid)));
      const auto read = ReadSmallFile(published + "/manifest.json", int64_t{1} << 20);
      if (read.ok()) text = *read;
    }
    const auto manifest = ManifestFromJson(text, "manifest");
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    const auto lacking = BeginResumeFolder(resume_.path() + "/all", *manifest, text, folders);
    ASSERT_TRUE(lacking.ok()) << lacking.status();
    EXPECT_TRUE(lacking->empty());
    EXPECT_TRUE(VerifyCheckpoint(resume_.path() + "/all", *manifest).ok());
  }
  std::vector<std::string> Names(const Node& node) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(node.root)) names.push_back(entry.path().filename());
    return names;
  }

  TwoDisks disks_;
  TempFolder resume_;
  Node a_{disks_.big.path()}, b_{disks_.small.path()};
  const NumberKey key_{std::string(64, 'a'), "store"};
};

// How many operations a save has on a node: found by counting.
TEST_F(LocalSaves, CutOffAnywhereTheNodesHoldTheNewestThatWasPublished) {
  enum class Who { kA, kB, kBoth };
  int cuts = 0;
  for (const Who who : {Who::kA, Who::kB, Who::kBoth}) {
    for (int cut = 0;; ++cut, ++cuts) {
      for (Node* node : {&a_, &b_}) {
        for (const std::string& name : Names(*node)) fs::remove_all(fs::path(node->root) / name);
        node->dead = false, node->before = {};
      }
      Save(10, 1);
      ASSERT_EQ(NewestStep(), 10);
      int done = 0;
      bool named = false, was_cut = false;
      const auto count = [&](Node& node) {
        return [&, here = &node](const std::string& operation) -> absl::Status {
          const bool counts = who == Who::kBoth || (who == Who::kA) == (here == &a_);
          if (counts && done++ == cut) {
            was_cut = true;
            if (who == Who::kBoth) a_.dead = b_.dead = true;
            return absl::AbortedError(operation);
          }
          return absl::OkStatus();
        };
      };
      a_.before = count(a_), b_.before = count(b_);
      Save(20, 1);
      named = fs::exists(fs::path(a_.root) / CheckpointFolderName(20, 1));
      EXPECT_EQ(NewestStep(), named ? 20 : 10) << "cut " << cut << " of " << static_cast<int>(who);
      if (!was_cut) break;
      // The job goes on, as another generation, and what was left behind goes with its next save.
      for (Node* node : {&a_, &b_}) node->dead = false, node->before = {};
      Save(30, 2);
      EXPECT_EQ(NewestStep(), 30);
      for (const Node* node : {&a_, &b_}) EXPECT_THAT(Names(*node), testing::ElementsAre(CheckpointFolderName(30, 2)));
    }
  }
  EXPECT_GT(cuts, 20);
}

// A disk that comes back with what another store's job wrote under the same names.
TEST_F(LocalSaves, AnOldDiskBringsNothingBack) {
  Save(10, 1);
  const NumberKey other(std::string(64, 'b'), "store");
  for (const UnitedCheckpoint& checkpoint : Unite()) {
    const HeldCheckpoint& head = checkpoint.head;
    EXPECT_FALSE(other.Marked(head.mark, kOneUid, head.epoch, head.step, head.manifest_digest));
  }
  const auto held = LookForHeldCheckpoints(a_.root, kOtherUid);
  ASSERT_TRUE(held.ok());
  EXPECT_TRUE(held->checkpoints.empty());
}

}  // namespace
}  // namespace motley::coordinator
