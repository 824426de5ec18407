// What jobs are planned with, in numbers: predicted seconds and peaks of the demo's cluster, of the plans that the comparison
// with PyTorch trains, and of the unit tests' clusters. A change of the planner that means to change no plan changes no line of
// golden_plans.txt; one that does shows here what it changes.
//
// MOTLEY_UPDATE_GOLDEN=1 writes the file anew.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/device/device_table.h"
#include "gtest/gtest.h"
#include "planner/live/planner.h"
#include "tests/common/base/folders.h"
#include "tests/planner/cluster_fixture.h"
#include "tests/planner/hand_plan.h"

namespace motley::planner {
namespace {

// Six digits: the last ones may differ between compilers, plans may not.
std::string Numbers(const Plan& plan) {
  std::string text =
      absl::StrFormat("  %.6g s a step, bound by %s\n", plan.predicted.step_seconds, plan.predicted.binding_constraint);
  for (const UnitPlan& unit : plan.pipelines[0].stages[0].units) {
    const RankPlan& rank = unit.ranks[0];
    absl::StrAppend(
        &text, absl::StrFormat("  %s: %s recompute %s shard %.4f busy %.6g s peak %d\n", rank.device.value(),
                               unit.microbatches.empty() ? "-" : absl::StrJoin(unit.microbatches, "+"), ToText(rank.recompute),
                               rank.shard_ratio, rank.predicted.busy_seconds, rank.predicted.peak_bytes));
  }
  for (const UnusedDevice& unused : plan.unused)
    absl::StrAppend(&text, "  ", unused.device.value(), " unused: ", unused.because, "\n");
  return text;
}

std::string Answer(const absl::StatusOr<PlanResult>& result) {
  return result.ok() ? Numbers(result->plan) : absl::StrCat("  ", std::string(result.status().message()), "\n");
}

void AddStrategies(const std::string& name, PlannerInput input, std::string* out) {
  for (const char* strategy : {"even", "cephalo"}) {
    for (const char* recompute : {"auto", "none", "full"}) {
      input.config.planner.strategy = strategy;
      input.config.planner.recompute = recompute;
      absl::StrAppend(out, name, ", ", strategy, ", recompute ", recompute, "\n", Answer(MakePlan(input)));
    }
  }
}

// The demo's five cards at the demo's scale (deploy/demo/setting.py), times by formula.
PlannerInput DemoInput(int64_t batch) {
  constexpr double kDilation = 8000, kMemoryScale = 0.0125;
  std::vector<DeviceSetup> setups;
  for (const auto& [id, card] : std::vector<std::pair<std::string, std::string>>{
           {"a/gpu0", "A6000"}, {"a/gpu1", "L4"}, {"b/gpu0", "L4"}, {"b/gpu1", "P40"}, {"c/gpu0", "P100"}}) {
    const absl::StatusOr<GpuSpec> spec = FindGpu(card);
    EXPECT_TRUE(spec.ok()) << spec.status();
    if (!spec.ok()) continue;
    setups.push_back(
        {id, card, spec->fp32_flops / kDilation, static_cast<int64_t>(static_cast<double>(spec->memory_bytes) * kMemoryScale)});
  }
  return MakeInput(*ModelFlavor("gpt2", "text-small"), setups, batch, 60e6);
}

struct HandWritten {
  const char* name;
  std::vector<std::vector<int64_t>> microbatches;
  std::vector<double> shares;
  std::vector<bool> recompute;
};

// Those of tests/oracle/plans.py.
const std::vector<HandWritten>& HandPlans() {
  static const auto* const plans = new std::vector<HandWritten>{
      {"even batches, even shards", {{3}, {3}, {3}, {3}}, {.25, .25, .25, .25}, {false, false, false, false}},
      {"uneven batches and shards", {{5}, {4}, {2}, {1}}, {.45, .30, .15, .10}, {false, false, false, false}},
      {"a device with batch 0", {{6}, {4}, {2}, {}}, {.25, .25, .25, .25}, {false, false, false, false}},
      {"a device with share 0", {{3}, {3}, {3}, {3}}, {.50, .30, .20, .0}, {false, false, false, false}},
      {"a device that only stores", {{6}, {4}, {2}, {}}, {.1, .1, .1, .7}, {false, false, false, false}},
      {"a device that only computes", {{2}, {2}, {2}, {6}}, {.4, .3, .3, .0}, {false, false, false, false}},
      {"one device holds everything", {{3}, {3}, {3}, {3}}, {.0, 1.0, .0, .0}, {false, false, false, false}},
      {"one device computes everything", {{}, {}, {12}, {}}, {.25, .25, .25, .25}, {false, false, false, false}},
      {"one device does both", {{12}, {}, {}, {}}, {1.0, .0, .0, .0}, {false, false, false, false}},
      {"smaller last microbatch", {{2, 2, 1}, {3, 1}, {2}, {1}}, {.4, .3, .2, .1}, {false, false, false, false}},
      {"microbatches of one", {{1, 1, 1, 1, 1}, {1, 1, 1}, {1, 1}, {1, 1}}, {.25, .25, .25, .25}, {false, false, false, false}},
      {"recompute everywhere", {{3, 2}, {4}, {2}, {1}}, {.4, .3, .2, .1}, {true, true, true, true}},
      {"recompute on some devices", {{3, 2}, {4}, {2}, {1}}, {.1, .2, .3, .4}, {true, false, true, false}},
  };
  return *plans;
}

void AddHandPlans(const ModelShape& model, const std::string& name, std::string* out) {
  std::vector<DeviceSetup> devices = MixedDevices();
  devices.pop_back();
  PlannerInput input = MakeInput(model, devices, 12);
  for (const HandWritten& hand : HandPlans()) {
    std::vector<DeviceDuty> duties;
    for (size_t r = 0; r < hand.shares.size(); ++r) duties.push_back({r, 0, 1, hand.recompute[r], hand.shares[r]});
    Plan plan = HandPlan(input, "by hand", duties);
    for (size_t r = 0; r < hand.shares.size(); ++r) plan.pipelines[0].stages[0].units[r].microbatches = hand.microbatches[r];
    input.config.planner.plan_json = ToJson(plan);
    absl::StrAppend(out, name, ", ", hand.name, "\n", Answer(MakePlan(input)));
  }
}

std::string AllPlans() {
  std::string text;
  for (const int64_t batch : {5, 71}) AddStrategies(absl::StrCat("demo, batch ", batch), DemoInput(batch), &text);
  for (const bool tied : {true, false}) {
    AddHandPlans(SmallModel(tied), tied ? "oracle, tied" : "oracle, not tied", &text);
    AddStrategies(tied ? "mixed, tied" : "mixed, not tied", MakeInput(SmallModel(tied), MixedDevices(), 32), &text);
  }
  AddStrategies("mixed, twelve layers", MakeInput(SmallModel(true, 12), MixedDevices(), 128), &text);
  AddStrategies("mixed, slow links and skew", MakeInput(SmallModel(), MixedDevices(), 32, 1e7, 2.0), &text);
  AddStrategies("mixed, memory for few samples", MakeInput(SmallModel(true, 12), MixedDevices(), 512), &text);
  AddStrategies("one device", MakeInput(SmallModel(), {MixedDevices()[0]}, 7), &text);
  return text;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(GoldenPlans, AreWhatTheyWere) {
  const std::string path = absl::StrCat(SourceFolder(), "/tests/planner/live/golden_plans.txt");
  const std::string text = AllPlans();
  if (std::getenv("MOTLEY_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  const std::vector<std::string> was = absl::StrSplit(ReadFile(path), '\n'), is = absl::StrSplit(text, '\n');
  ASSERT_GT(was.size(), 100u) << path;
  std::string plan;
  for (size_t i = 0; i < std::max(was.size(), is.size()); ++i) {
    const std::string before = i < was.size() ? was[i] : "(nothing)", now = i < is.size() ? is[i] : "(nothing)";
    if (!before.empty() && before.front() != ' ') plan = before;
    ASSERT_EQ(now, before) << "line " << i + 1 << ", of: " << plan;
  }
}

}  // namespace
}  // namespace motley::planner
