#include "planner/strategies/auto/auto_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "planner/answers/plan_answer.h"
#include "planner/pricing/evaluate.h"
#include "planner/strategies/catalog.h"
#include "planner/util/infinity.h"
#include "tests/planner/offline_fixture.h"
#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::unique_ptr<Setting> Lab(const std::vector<std::pair<std::string, std::string>>& nodes, PlanRequest request = {}) {
  std::string toml = "name = \"lab\"\n[defaults]\nnic_gbit_per_second = 10\n";
  for (const auto& [name, gpus] : nodes) toml += "[[node]]\nname = \"" + name + "\"\ngpus = [" + gpus + "]\n";
  return MakeSetting(SmallWorkload(), std::move(request), toml);
}

std::vector<std::string> NodesOf(const Setting& setting) {
  std::vector<std::string> nodes;
  for (const ClusterPart& part : PartsOf(setting)) nodes.push_back(part.nodes);
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

TEST(AutoParts, EverySetOfAFewNodes) {
  const auto lab = Lab({{"a", "\"A6000\""}, {"b", "\"L4\""}, {"c", "\"P40\""}});
  EXPECT_THAT(NodesOf(*lab), ElementsAre("a", "a, b", "a, c", "b", "b, c", "c"));
  const std::vector<ClusterPart> parts = PartsOf(*lab);
  for (size_t i = 1; i < parts.size(); ++i) EXPECT_LE(parts[i - 1].bound_seconds, parts[i].bound_seconds);
}

TEST(AutoParts, OfAlikeNodesTheFirstOnes) {
  EXPECT_THAT(NodesOf(*Lab({{"a", "\"L4\""}, {"b", "\"L4\""}, {"c", "\"P40\""}})), ElementsAre("a", "a, b", "a, c", "c"));
  EXPECT_THAT(NodesOf(*Lab({{"a", "\"L4\", \"L4\""}})), IsEmpty());
}

TEST(AutoParts, OfManyNodesTheirKinds) {
  std::vector<std::pair<std::string, std::string>> nodes;
  for (const char* name : {"a", "b", "c", "d"}) nodes.emplace_back(name, "\"L4\"");
  for (const char* name : {"e", "f", "g", "h"}) nodes.emplace_back(name, "\"P40\"");
  EXPECT_THAT(NodesOf(*Lab(nodes)), ElementsAre("a, b, c, d", "e, f, g, h"));
}

TEST(AutoParts, HasWhatIsPinned) {
  const auto lab = Lab({{"a", "\"L4\""}, {"b", "\"L4\""}, {"c", "\"P40\""}}, {.pins = {{"stage0", "b"}}});
  EXPECT_THAT(NodesOf(*lab), ElementsAre("a, b", "b", "b, c"));
}

// A part is the setting that the same command has with the others excluded.
TEST(AutoParts, IsTheSameQuestionWithTheOthersExcluded) {
  const std::vector<std::pair<std::string, std::string>> nodes = {{"a", "\"A6000\""}, {"b", "\"L4\", \"L4\""}, {"c", "\"P40\""}};
  const auto lab = Lab(nodes), excluded = Lab(nodes, {.exclude = {"a"}});
  const Setting part = lab->Part({1, 2, 3});
  EXPECT_EQ(part.num_devices(), excluded->num_devices());
  EXPECT_EQ(part.costs.num_kinds(), 2);
  EXPECT_EQ(FindLowerBound(part).seconds, FindLowerBound(*excluded).seconds);
  const CatalogEntry automatic = *FindInCatalog("auto");
  const auto one = PlanAndEvaluate(part, automatic), other = PlanAndEvaluate(*excluded, automatic);
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  EXPECT_EQ(one->plan.predicted.step_seconds, other->plan.predicted.step_seconds);
}

// Infinite: there is no plan.
double PlannedSeconds(const Workload& workload, const std::string& toml, std::vector<std::string> exclude) {
  const auto setting = MakeSetting(workload, {.exclude = std::move(exclude), .runnable = true}, toml);
  const auto priced = PlanAndEvaluate(*setting, *FindInCatalog("auto"));
  return priced.ok() ? priced->plan.predicted.step_seconds : kInfinity;
}

// Counted, not timed: `--verbose` shows it.
TEST(AutoParts, SaysWhatTheSearchSpent) {
  const auto lab = Lab({{"a", "\"A6000\""}, {"b", "\"L4\", \"L4\""}, {"c", "\"P40\""}});
  const auto spent = [&] {
    const auto priced = PlanAndEvaluate(*lab, *FindInCatalog("auto"));
    std::vector<std::string> notes;
    for (const std::string& note : priced->plan.predicted.notes) {
      if (note.starts_with("found with ")) notes.push_back(note);
    }
    return notes;
  };
  const std::vector<std::string> notes = spent();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0],
              testing::MatchesRegex(".* [1-9][0-9]* search nodes: [1-9][0-9]* for pipelines in turn, .* for climbing.*"));
  EXPECT_EQ(notes, spent());
}

// Where both ends of a pipeline hold a large tied table, they want to be near each other: most divisions of the whole have them
// on two nodes.
TEST(AutoParts, NoPartBeatsTheWhole) {
  Workload tied = *LoadModel("llama3.2-1b");
  tied.global_batch = 8;
  tied.seq_len = 2048;
  tied.dtype = DType::kFloat16;
  const std::string toml = R"(name = "lab"
[defaults]
nic_gbit_per_second = 10
[[node]]
name = "a"
gpus = [{card = "RTX-3090", count = 2}]
[[node]]
name = "b"
gpus = [{card = "RTX-2080-Ti", count = 4}]
[[node]]
name = "c"
gpus = ["RTX-4090"]
[[node]]
name = "d"
gpus = [{card = "P40", count = 2}]
)";
  const double whole = PlannedSeconds(tied, toml, {});
  for (const std::vector<std::string>& exclude :
       std::vector<std::vector<std::string>>{{"a", "d"}, {"d"}, {"a"}, {"a", "c", "d"}, {"a", "b", "d"}, {"c", "d"}}) {
    EXPECT_LE(whole, PlannedSeconds(tied, toml, exclude) * 1.002) << exclude.front();
  }
}

// The state leaves little for activations: what fits as it is searched must fit as it runs.
TEST(AutoParts, NoPartBeatsTheWholeWhereMemoryIsShort) {
  Workload large = *LoadModel("llama-3b");
  large.global_batch = 4;
  large.seq_len = 2048;
  large.dtype = DType::kFloat32;
  std::string toml = "name = \"lab\"\n[defaults]\nnic_gbit_per_second = 3\n";
  char name = 'a';
  for (const char* gpus : {"{card = \"T4\", count = 4}", "\"A10\"", "{card = \"V100-16GB\", count = 2}", "\"RTX-3080\"",
                           "\"RTX-3080\"", "\"P100\""}) {
    toml += std::string("[[node]]\nname = \"") + name++ + "\"\ngpus = [" + gpus + "]\n";
  }
  const double whole = PlannedSeconds(large, toml, {});
  ASSERT_LT(whole, kInfinity);
  EXPECT_LE(whole, PlannedSeconds(large, toml, {"d", "f"}) * 1.002);
}

}  // namespace
}  // namespace motley::planner
