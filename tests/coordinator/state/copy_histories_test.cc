// Histories of a job's checkpoints on disks that come and go, and the mistakes that they find.
#include <gmock/gmock.h>

#include "absl/strings/str_join.h"
#include "tests/coordinator/state/copy_world.h"

namespace motley::coordinator {
namespace {

using ::testing::IsEmpty;

bool Always(const NodeName&) { return true; }

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

// What may happen with two nodes: a crash before the second gives its folder the name, a question that one does not answer, a
// deletion that one does not hear, a copy, and each of them going or coming back.
using Happening = std::function<void(CopyWorld&)>;
std::vector<Happening> HappeningsOfTwo() {
  const NodeName a("a"), b("b");
  const auto only = [](const NodeName& which) { return [which](const NodeName& node) { return node == which; }; };
  const auto toggle = [](const NodeName& node) {
    return [node](CopyWorld& world) { world.IsHere(node) ? world.Leave(node) : world.Return(node); };
  };
  return {[](CopyWorld& world) { world.Save(Always); },
          [=](CopyWorld& world) { world.Save(only(a)); },
          [](CopyWorld& world) { world.Look(Always, Always); },
          [=](CopyWorld& world) { world.Look(only(a), Always); },
          [=](CopyWorld& world) { world.Look(only(b), Always); },
          [=](CopyWorld& world) { world.Look(Always, only(b)); },
          [](CopyWorld& world) { world.CopyOne(); },
          toggle(a),
          toggle(b)};
}

// All orders of so many of these; how many there were. Stops at the first that breaks something.
int64_t AllOrders(const CopyWorld& world, const std::vector<Happening>& happenings, int depth, std::vector<size_t>& order,
                  std::vector<std::string>& broken) {
  if (depth == 0) return 1;
  int64_t orders = 0;
  for (size_t what = 0; what < happenings.size() && broken.empty(); ++what) {
    CopyWorld next = world;
    happenings[what](next);
    order.push_back(what);
    broken = next.broken();
    if (!broken.empty()) broken.push_back(absl::StrCat("in the order ", absl::StrJoin(order, " ")));
    orders += AllOrders(next, happenings, depth - 1, order, broken);
    order.pop_back();
  }
  return orders;
}

TEST(CopyHistories, AllOrdersOfTwoNodes) {
  constexpr int kLength = 6;
  std::vector<size_t> order;
  std::vector<std::string> broken;
  const std::vector<Happening> happenings = HappeningsOfTwo();
  EXPECT_EQ(AllOrders(CopyWorld(2, {1, 1}, DecideCopies), happenings, kLength, order, broken), 531'441);
  EXPECT_THAT(broken, IsEmpty());
  // That the orders are long enough to find something.
  const auto deletes_the_safe = [](CopyScene scene) {
    CopyPlan plan = DecideCopies(scene);
    for (const UnitedCheckpoint& each : scene.held.checkpoints) {
      if (each.head.name == scene.safe)
        plan.drops[*each.manifests.begin()].push_back({each.head.epoch, each.head.step, each.head.manifest_digest});
    }
    return plan;
  };
  AllOrders(CopyWorld(2, {1, 1}, deletes_the_safe), happenings, kLength, order, broken);
  EXPECT_THAT(broken, testing::Not(IsEmpty()));
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
