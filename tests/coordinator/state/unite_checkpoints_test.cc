#include "coordinator/state/unite_checkpoints.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace motley::coordinator {
namespace {

using ::testing::ElementsAre;

const NodeName kA("a"), kB("b"), kC("c");

// Of two ranks, the first one's file on node a and the other's on node b.
HeldCheckpoint Checkpoint(int64_t step, int64_t epoch, bool first_here, bool second_here, const std::string& digest = "d") {
  HeldCheckpoint held;
  held.name = absl::StrCat("step-", step, "-gen-", epoch);
  held.manifest_digest = absl::StrCat(digest, step);
  held.mark = "good";
  held.epoch = Epoch(epoch);
  held.step = step;
  held.files = {{"rank-0.bin", 100, first_here, "a"}, {"rank-1.bin", 200, second_here, "b"}};
  return held;
}

std::vector<UnitedCheckpoint> Unite(const std::map<NodeName, HeldCheckpoints>& held) {
  return UniteCheckpoints(held, [](const HeldCheckpoint& checkpoint) { return checkpoint.mark == "good"; });
}

TEST(UniteCheckpoints, FilesOfSeveralNodesMakeOneWhole) {
  const auto united = Unite({{kA, {{Checkpoint(40, 1, true, false)}, {}}}, {kB, {{Checkpoint(40, 1, false, true)}, {}}}});
  ASSERT_EQ(united.size(), 1u);
  EXPECT_TRUE(united[0].whole());
  EXPECT_EQ(WhatLacks(united[0]), "");
  EXPECT_THAT(united[0].manifests, ElementsAre(kA, kB));
  EXPECT_THAT(united[0].holders, ElementsAre(ElementsAre(kA), ElementsAre(kB)));
}

TEST(UniteCheckpoints, WhatLacksIsNamedWithItsNode) {
  const auto united = Unite({{kA, {{Checkpoint(40, 1, true, false)}, {}}}});
  ASSERT_EQ(united.size(), 1u);
  EXPECT_FALSE(united[0].whole());
  EXPECT_EQ(WhatLacks(united[0]), "rank-1.bin of node b");
  const auto none = Unite({{kC, {{Checkpoint(40, 1, false, false)}, {}}}});
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(WhatLacks(none[0]), "rank-0.bin of node a and 1 more");
}

// Its rank was killed between the others' rename and its own.
TEST(UniteCheckpoints, AFileWithoutANameCountsWhereAnotherManifestNamesIt) {
  HeldCheckpoints b;
  b.unpublished = {{Epoch(1), 40, {{"rank-1.bin", 200, true}}}};
  EXPECT_TRUE(Unite({{kA, {{Checkpoint(40, 1, true, false)}, {}}}, {kB, b}})[0].whole());
  b.unpublished = {{Epoch(1), 40, {{"rank-1.bin", 199, true}}}};
  EXPECT_FALSE(Unite({{kA, {{Checkpoint(40, 1, true, false)}, {}}}, {kB, b}})[0].whole()) << "cut off";
  b.unpublished = {{Epoch(2), 40, {{"rank-1.bin", 200, true}}}};
  EXPECT_FALSE(Unite({{kA, {{Checkpoint(40, 1, true, false)}, {}}}, {kB, b}})[0].whole()) << "of another generation";
  EXPECT_TRUE(Unite({{kB, b}}).empty()) << "no manifest anywhere: it was not published";
}

TEST(UniteCheckpoints, WithoutAMarkNothingCounts) {
  HeldCheckpoint forged = Checkpoint(90, 9, true, true);
  forged.mark = "";
  const auto united = Unite({{kA, {{forged, Checkpoint(40, 1, true, true)}, {}}}});
  ASSERT_EQ(united.size(), 1u);
  EXPECT_EQ(united[0].head.step, 40);
}

// As ListCheckpointFolders: of the newest generation the highest step.
TEST(UniteCheckpoints, TheNewestComesFirst) {
  const auto united = Unite(
      {{kA, {{Checkpoint(20, 2, true, true), Checkpoint(60, 1, true, true)}, {}}}, {kB, {{Checkpoint(30, 2, true, true)}, {}}}});
  ASSERT_EQ(united.size(), 3u);
  EXPECT_EQ(united[0].head.step, 30);
  EXPECT_EQ(united[1].head.step, 20);
  EXPECT_EQ(united[2].head.step, 60);
}

// A mark proves the digest and not what a node says beside it.
TEST(UniteCheckpoints, WhoSaysAnotherThingOfACheckpointSpoilsItForNobody) {
  HeldCheckpoint lie = Checkpoint(40, 1, true, true);
  lie.files[0].bytes = 7;
  lie.files.push_back({"rank-2.bin", 1, false, "a"});
  const auto united =
      Unite({{kA, {{lie}, {}}}, {kB, {{Checkpoint(40, 1, true, false)}, {}}}, {kC, {{Checkpoint(40, 1, false, true)}, {}}}});
  ASSERT_EQ(united.size(), 2u);
  const UnitedCheckpoint& honest = united[0].head.files.size() == 2 ? united[0] : united[1];
  const UnitedCheckpoint& lied = united[0].head.files.size() == 2 ? united[1] : united[0];
  EXPECT_TRUE(honest.whole());
  EXPECT_FALSE(lied.whole());
  EXPECT_THAT(honest.manifests, ElementsAre(kB, kC));
}

}  // namespace
}  // namespace motley::coordinator
