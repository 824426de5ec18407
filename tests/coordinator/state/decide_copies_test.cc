#include "coordinator/state/decide_copies.h"

#include <gmock/gmock.h>

#include "tests/coordinator/state/copy_world.h"

namespace motley::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

bool Always(const NodeName&) { return true; }

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

// ---- histories ----

struct History {
  int nodes = 4;
  CopyPolicy policy;
  bool disks_are_lost = false;
};

// What anybody may do at any time, in some order.
void Live(CopyWorld& world, std::mt19937& random, const History& history, int operations) {
  const auto chance = [&](double probability) { return std::uniform_real_distribution<>()(random) < probability; };
  const auto mostly = [&](const NodeName&) { return chance(0.85); };
  for (int i = 0; i < operations; ++i) {
    const std::vector<NodeName> nodes = world.nodes();
    const NodeName& node = nodes[random() % nodes.size()];
    const size_t what = random() % 100;
    if (what < 25) {
      world.Save(mostly);
    } else if (what < 50) {
      world.Look(mostly, mostly);
    } else if (what < 85) {
      world.CopyOne();
    } else if (what < 92) {
      if (world.IsHere(node)) history.disks_are_lost&& chance(0.5) ? world.LoseDisk(node) : world.Leave(node);
    } else if (!world.IsHere(node)) {
      world.Return(node);
    }
  }
}

// Everybody is here and hears everything, and nothing is saved meanwhile.
void Settle(CopyWorld& world) {
  for (const NodeName& node : world.nodes()) {
    if (!world.IsHere(node)) world.Return(node);
  }
  for (int i = 0; i < 20; ++i) {
    world.Look(Always, Always);
    for (int c = 0; c < 20; ++c) world.CopyOne();
  }
}

std::vector<std::string> Broken(const CopyWorld::Decide& decide, const History& history, int histories, int operations = 60) {
  std::vector<std::string> broken;
  for (int seed = 0; seed < histories && broken.empty(); ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    CopyWorld world(history.nodes, history.policy, decide);
    Live(world, random, history, operations);
    broken = world.broken();
    if (!broken.empty() || history.disks_are_lost) continue;
    Settle(world);
    // What was safe on fewer nodes than train now goes when so many newer ones are.
    for (int64_t i = 0; i < history.policy.keep_latest; ++i) {
      world.Save(Always);
      Settle(world);
    }
    broken = world.broken();
    if (world.newest() != world.safe())
      broken.push_back(absl::StrCat("at rest ", world.newest(), " is not safe, but ", world.safe()));
    for (const NodeName& node : world.nodes()) {
      if (world.checkpoints_on(node) > static_cast<size_t>(history.policy.keep_latest))
        broken.push_back(absl::StrCat("at rest node ", node.value(), " has ", world.checkpoints_on(node), " checkpoints"));
    }
  }
  return broken;
}

TEST(CopyHistories, WhatIsSafeStaysAndTheRestGoes) {
  for (const int64_t copies : {0, 1, 2}) {
    for (const int64_t keep : {1, 2, 3}) {
      EXPECT_THAT(Broken(DecideCopies, {.policy = {copies, keep}}, 400), IsEmpty()) << copies << " copies, " << keep << " kept";
    }
  }
  EXPECT_THAT(Broken(DecideCopies, {.nodes = 2}, 1000), IsEmpty());
  EXPECT_THAT(Broken(DecideCopies, {.nodes = 1}, 100), IsEmpty());
  EXPECT_THAT(Broken(DecideCopies, {.disks_are_lost = true}, 1000), IsEmpty());
}

// A node that is killed with its disk, at any moment: the newest safe checkpoint is whole on the others, where it was on two
// nodes.
TEST(CopyHistories, OneDiskIsNotMissed) {
  int judged = 0;
  for (int seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    CopyWorld world(3, {}, DecideCopies);
    Live(world, random, {.nodes = 3}, 40);
    if (world.safe().empty()) continue;
    const std::string safe = world.safe();
    bool on_two = true;
    for (const HeldFile& file : world.HeadOf(safe).files) on_two &= world.Holders(safe, file.name) >= 2;
    if (!on_two) continue;  // it was safe on the one node that was here
    ++judged;
    world.LoseDisk(world.nodes()[random() % 3]);
    EXPECT_TRUE(world.IsIntact(safe)) << "history " << seed;
  }
  EXPECT_GT(judged, 300);
}

// Each is a mistake that somebody could make; the histories find it.
TEST(CopyHistories, PlantedMistakesAreFound) {
  const std::vector<std::pair<const char*, CopyWorld::Decide>> mistakes = {
      {"keeps one less",
       [](CopyScene scene) {
         scene.keep_latest -= 1;
         return DecideCopies(scene);
       }},
      {"makes one copy less",
       [](CopyScene scene) {
         scene.copies -= 1;
         return DecideCopies(scene);
       }},
      {"forgets what was safe",
       [](CopyScene scene) {
         scene.safe.clear();
         return DecideCopies(scene);
       }},
      {"says what is being copied is safe",
       [](CopyScene scene) {
         CopyPlan plan = DecideCopies(scene);
         if (!plan.copy.empty()) plan.safe = plan.copy;
         return plan;
       }},
      {"deletes the newest",
       [](CopyScene scene) {
         CopyPlan plan = DecideCopies(scene);
         if (scene.held.checkpoints.empty()) return plan;
         const UnitedCheckpoint& newest = scene.held.checkpoints.front();
         for (const NodeName& node : newest.manifests)
           plan.drops[node].push_back({newest.head.epoch, newest.head.step, newest.head.manifest_digest});
         return plan;
       }},
      {"deletes what is not whole on the nodes that are here",
       [](CopyScene scene) {
         CopyPlan plan = DecideCopies(scene);
         for (const UnitedCheckpoint& each : scene.held.checkpoints) {
           if (each.whole()) continue;
           for (const NodeName& node : each.manifests)
             plan.drops[node].push_back({each.head.epoch, each.head.step, each.head.manifest_digest});
         }
         return plan;
       }},
      {"deletes what has no name",
       [](CopyScene scene) {
         CopyPlan plan = DecideCopies(scene);
         for (const auto& [node, left] : scene.held.unpublished) {
           for (const UnpublishedFiles& files : left) plan.drops[node].push_back({files.epoch, files.step, ""});
         }
         return plan;
       }},
      {"deletes copies on the second node",
       [](CopyScene scene) {
         CopyPlan plan = DecideCopies(scene);
         for (const UnitedCheckpoint& each : scene.held.checkpoints) {
           if (each.head.name == plan.safe && each.manifests.size() > 1)
             plan.drops[*each.manifests.rbegin()].push_back({each.head.epoch, each.head.step, each.head.manifest_digest});
         }
         return plan;
       }},
      {"copies nothing",
       [](CopyScene scene) {
         CopyPlan plan = DecideCopies(scene);
         plan.files.clear();
         return plan;
       }},
      {"copies to one node alone",
       [](CopyScene scene) {
         CopyPlan plan = DecideCopies(scene);
         while (plan.files.size() > 1) plan.files.erase(plan.files.begin());
         std::erase_if(plan.files, [](const auto& to) { return to.first == NodeName("d"); });
         return plan;
       }},
      {"takes who is here for all that there are",
       [](CopyScene scene) {
         Holdings held = scene.held;
         for (UnitedCheckpoint& checkpoint : held.checkpoints) {
           for (HeldFile& file : checkpoint.head.files) file.node = held.offers.begin()->first.value();
         }
         return DecideCopies({held, scene.training, scene.epoch, scene.copies, scene.keep_latest, scene.safe, scene.copying});
       }},
      {"deletes nothing",
       [](CopyScene scene) {
         CopyPlan plan = DecideCopies(scene);
         plan.drops.clear();
         return plan;
       }},
  };
  for (const auto& [name, decide] : mistakes) EXPECT_THAT(Broken(decide, {}, 2000), testing::Not(IsEmpty())) << name;
}

}  // namespace
}  // namespace motley::coordinator
