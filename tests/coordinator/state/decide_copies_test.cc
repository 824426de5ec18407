#include "coordinator/state/decide_copies.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_folders.h"

namespace motley::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// Checkpoints of two ranks, on the nodes a and b; the holders of each file are given.
class DecideCopiesTest : public testing::Test {
 protected:
  inline static const NodeName kA{"a"}, kB{"b"}, kC{"c"};
  DecideCopiesTest() { held_.offers = {{kA, {}}, {kB, {}}}; }
  void Add(int64_t step, std::set<NodeName> first, std::set<NodeName> second, std::set<NodeName> manifests = {kA, kB}) {
    UnitedCheckpoint united;
    united.head.name = CheckpointFolderName(step, 1);
    united.head.manifest_digest = absl::StrCat("d", step);
    united.head.epoch = Epoch(1);
    united.head.step = step;
    united.head.files = {{"rank-0.bin", 100, false, "a"}, {"rank-1.bin", 200, false, "b"}};
    united.manifests = std::move(manifests);
    united.holders = {std::move(first), std::move(second)};
    held_.checkpoints.push_back(std::move(united));
  }
  CopyPlan Plan() {
    CopyScene scene{held_, training_, epoch_, copies_, keep_, safe_, copying_, under_way_};
    scene.damaged = damaged_;
    scene.leaving = leaving_;
    scene.failed = failed_;
    scene.go_back = go_back_;
    return DecideCopies(scene);
  }
  static DroppedCheckpoint Dropped(int64_t step) { return {Epoch(1), step, absl::StrCat("d", step)}; }

  Holdings held_;
  std::set<NodeName> training_ = {kA, kB};
  Epoch epoch_{1};
  int64_t copies_ = 1, keep_ = 2;
  std::string safe_, copying_;
  bool under_way_ = false;
  std::set<std::string> damaged_;
  std::set<NodeName> leaving_, failed_;
  GoBack go_back_;
};

TEST_F(DecideCopiesTest, EachNodeTakesWhatTheOtherWrote) {
  Add(40, {kA}, {kB});
  const CopyPlan plan = Plan();
  EXPECT_EQ(plan.safe, "");
  EXPECT_EQ(plan.copy, CheckpointFolderName(40, 1));
  EXPECT_THAT(plan.files, ElementsAre(Pair(kA, ElementsAre("rank-1.bin")), Pair(kB, ElementsAre("rank-0.bin"))));
  EXPECT_THAT(plan.drops, IsEmpty());
}

TEST_F(DecideCopiesTest, WhereEachFileIsOnTwoNodesItIsSafeAndOldOnesGo) {
  Add(80, {kA, kB}, {kA, kB});
  Add(60, {kA, kB}, {kA, kB});
  Add(40, {kA, kB}, {kA, kB});
  Add(20, {kA}, {kB});
  safe_ = CheckpointFolderName(60, 1);
  const CopyPlan plan = Plan();
  EXPECT_EQ(plan.safe, CheckpointFolderName(80, 1));
  EXPECT_EQ(plan.safe_nodes, 2);
  EXPECT_EQ(plan.copy, "");
  EXPECT_THAT(plan.drops,
              ElementsAre(Pair(kA, ElementsAre(Dropped(40), Dropped(20))), Pair(kB, ElementsAre(Dropped(40), Dropped(20)))));
  keep_ = 0;
  EXPECT_THAT(Plan().drops, IsEmpty()) << "all are kept";
}

TEST_F(DecideCopiesTest, WithoutCopiesWhatIsPublishedIsSafe) {
  copies_ = 0;
  Add(80, {kA}, {kB});
  const CopyPlan plan = Plan();
  EXPECT_EQ(plan.safe, CheckpointFolderName(80, 1));
  EXPECT_EQ(plan.safe_nodes, 1);
  EXPECT_EQ(plan.copy, "");
}

// Saves faster than copies: those between the one under way and the newest go.
TEST_F(DecideCopiesTest, WhatIsUnderWayEndsBeforeTheNewestBegins) {
  Add(80, {kA}, {kB});
  Add(70, {kA}, {kB});
  Add(60, {kA, kB}, {kB});
  Add(40, {kA, kB}, {kA, kB});
  safe_ = CheckpointFolderName(40, 1);
  copying_ = CheckpointFolderName(60, 1);
  const CopyPlan plan = Plan();
  EXPECT_EQ(plan.copy, copying_);
  EXPECT_THAT(plan.files, ElementsAre(Pair(kA, ElementsAre("rank-1.bin"))));
  EXPECT_THAT(plan.drops, ElementsAre(Pair(kA, ElementsAre(Dropped(70))), Pair(kB, ElementsAre(Dropped(70)))));
  held_.checkpoints[2].holders[1].clear();
  EXPECT_EQ(Plan().copy, CheckpointFolderName(80, 1)) << "nobody has it any more";
}

// The job may have gone on from the one behind it.
TEST_F(DecideCopiesTest, TheNewestWholeOneStaysBehindOneThatIsNot) {
  Add(80, {kA}, {});
  Add(70, {kA}, {kB});
  Add(60, {kA}, {kB});
  const CopyPlan plan = Plan();
  EXPECT_EQ(plan.copy, CheckpointFolderName(70, 1));
  EXPECT_THAT(plan.drops, ElementsAre(Pair(kA, ElementsAre(Dropped(60))), Pair(kB, ElementsAre(Dropped(60)))));
}

// Its node is away: what was safe is not judged by who is here.
TEST_F(DecideCopiesTest, WhatWasSafeStaysUntilSoManyNewerAre) {
  held_.offers = {{kA, {}}, {kC, {}}};
  training_ = {kA, kC};
  epoch_ = Epoch(2);
  Add(80, {kA}, {kA}, {kA});
  Add(60, {kA}, {kA}, {kA});
  Add(40, {kA}, {}, {kA});
  safe_ = CheckpointFolderName(80, 1);
  const CopyPlan plan = Plan();
  EXPECT_EQ(plan.safe, safe_);
  EXPECT_EQ(plan.copy, safe_) << "is repaired";
  EXPECT_THAT(plan.files, ElementsAre(Pair(kC, UnorderedElementsAre("rank-0.bin", "rank-1.bin"))));
  EXPECT_THAT(plan.drops, IsEmpty());
}

// One that is away for a moment must not make what lies on one node safe, and what lies on two superfluous.
TEST_F(DecideCopiesTest, WhoIsAwayIsMissing) {
  held_.offers.erase(kB);
  keep_ = 1;
  Add(60, {kA}, {kA}, {kA});
  Add(40, {kA}, {kA}, {kA});
  safe_ = CheckpointFolderName(40, 1);
  EXPECT_EQ(Plan().safe, safe_);
  EXPECT_THAT(Plan().drops, IsEmpty());
  for (HeldFile& file : held_.checkpoints[0].head.files) file.node = "a";
  EXPECT_EQ(Plan().safe, CheckpointFolderName(60, 1)) << "it was saved by the one that is here";
  EXPECT_EQ(Plan().safe_nodes, 1);
}

// It did not write the checkpoint, and has no manifest of it.
TEST_F(DecideCopiesTest, ANewcomerTakesWhatEarlierGenerationsSaved) {
  held_.offers[kC] = {};
  training_ = {kA, kB, kC};
  Add(40, {kA}, {kB});
  EXPECT_FALSE(Plan().files.contains(kC)) << "of its own generation it would have it";
  epoch_ = Epoch(2);
  held_.offers[kA].room_bytes = held_.offers[kB].room_bytes = 1000;
  held_.offers[kC].room_bytes = 5000;
  EXPECT_THAT(Plan().files, ElementsAre(Pair(kC, ElementsAre("rank-1.bin", "rank-0.bin")))) << "the roomiest; the largest first";
}

TEST_F(DecideCopiesTest, WithoutRoomItIsSaid) {
  Add(40, {kA}, {kB});
  held_.offers[kA].room_bytes = 199;
  held_.offers[kB].room_bytes = 100;
  const CopyPlan plan = Plan();
  EXPECT_EQ(plan.safe, "");
  EXPECT_THAT(plan.files, ElementsAre(Pair(kB, ElementsAre("rank-0.bin"))));
  EXPECT_THAT(plan.lacks, HasSubstr("no other node of the job is here with room for rank-1.bin of node b (200 bytes)"));
}

// What it has brought already takes the room that it asked for.
TEST_F(DecideCopiesTest, WhatIsUnderWayIsNotDroppedForItsOwnRoom) {
  Add(80, {kA}, {kB});
  Add(60, {kA}, {kB});
  held_.offers[kA].room_bytes = held_.offers[kB].room_bytes = 50;
  copying_ = CheckpointFolderName(60, 1);
  under_way_ = true;
  EXPECT_EQ(Plan().copy, copying_);
  EXPECT_THAT(Plan().drops, IsEmpty());
  EXPECT_EQ(Plan().lacks, "");
  under_way_ = false;
  EXPECT_NE(Plan().copy, copying_) << "it cannot be begun";
}

TEST_F(DecideCopiesTest, WhereItFailedOthersAreAskedFirst) {
  held_.offers[kC] = {};
  Add(40, {kA}, {kA, kB}, {kA, kB, kC});
  EXPECT_TRUE(Plan().files.contains(kB));
  failed_ = {kB};
  EXPECT_THAT(Plan().files, ElementsAre(Pair(kC, ElementsAre("rank-0.bin"))));
  failed_ = {kB, kC};
  EXPECT_TRUE(Plan().files.contains(kB)) << "nobody else is there";
}

// It is drained: what only it has goes to others first.
TEST_F(DecideCopiesTest, WhoLeavesCountsNoMore) {
  held_.offers[kC] = {};
  Add(40, {kA, kB}, {kA, kB}, {kA, kB, kC});
  EXPECT_EQ(Plan().safe_nodes, 2);
  leaving_ = {kB};
  const CopyPlan plan = Plan();
  EXPECT_EQ(plan.safe, "");
  EXPECT_THAT(plan.files, ElementsAre(Pair(kC, UnorderedElementsAre("rank-0.bin", "rank-1.bin"))));
}

TEST_F(DecideCopiesTest, WhereAllLeaveNothingIsSafe) {
  keep_ = 1;
  Add(60, {kA}, {kB});
  Add(40, {kA, kB}, {kA, kB});
  safe_ = CheckpointFolderName(40, 1);
  leaving_ = {kA, kB};
  EXPECT_EQ(Plan().safe, safe_);
  EXPECT_THAT(Plan().drops, IsEmpty());
}

// It neither counts nor comes back, and goes when it is not needed to go on.
TEST_F(DecideCopiesTest, WhatWasGivenUpGoesBehindOneThatWasSavedSince) {
  keep_ = 1;
  Add(80, {kA, kB}, {kA, kB});
  Add(60, {kA, kB}, {kA, kB});
  go_back_ = {Epoch(1), 70};
  epoch_ = Epoch(2);
  EXPECT_EQ(Plan().safe, CheckpointFolderName(60, 1));
  EXPECT_THAT(Plan().drops, IsEmpty());
  Add(70, {kA, kB}, {kA, kB});
  UnitedCheckpoint& since = held_.checkpoints.back();
  since.head.epoch = Epoch(2), since.head.name = CheckpointFolderName(70, 2);
  std::rotate(held_.checkpoints.begin(), held_.checkpoints.end() - 1, held_.checkpoints.end());
  EXPECT_EQ(Plan().safe, CheckpointFolderName(70, 2));
  EXPECT_THAT(Plan().drops,
              ElementsAre(Pair(kA, ElementsAre(Dropped(80), Dropped(60))), Pair(kB, ElementsAre(Dropped(80), Dropped(60)))));
}

TEST_F(DecideCopiesTest, WhatIsDamagedIsNeitherCopiedNorSafe) {
  Add(80, {kA, kB}, {kA, kB});
  Add(60, {kA}, {kB});
  damaged_ = {CheckpointFolderName(80, 1)};
  const CopyPlan plan = Plan();
  EXPECT_EQ(plan.safe, "");
  EXPECT_EQ(plan.copy, CheckpointFolderName(60, 1));
  EXPECT_THAT(plan.drops, IsEmpty());
}

TEST_F(DecideCopiesTest, WhatHasNoNameGoesBehindASafeOne) {
  Add(60, {kA, kB}, {kA, kB});
  const UnpublishedFiles counts{Epoch(1), 60, {{"rank-1.bin", 200, true}}}, older{Epoch(1), 50, {{"rank-1.bin", 200, true}}};
  held_.unpublished[kB] = {counts, older};
  EXPECT_THAT(Plan().drops, IsEmpty()) << "its ranks may be writing";
  epoch_ = Epoch(2);
  EXPECT_THAT(Plan().drops, ElementsAre(Pair(kB, ElementsAre(DroppedCheckpoint{Epoch(1), 50, ""}))));
}

}  // namespace
}  // namespace motley::coordinator
