// One job that goes from layout to layout, each time from the checkpoint of the one before, trains like one device. What waits in
// host memory changes with the layout; of every third nothing does.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/plan/each_rank.h"
#include "tests/worker/engine/equivalence/equivalence.h"
#include "tests/worker/engine/equivalence/plan_assignments.h"
#include "tests/worker/engine/equivalence/random_plans.h"

namespace motley::engine {
namespace {

constexpr int64_t kLayouts = 15;
constexpr double kTolerance = 1e-10;

class ReplansTest : public testing::TestWithParam<ModelFamily> {
 protected:
  ReplansTest() : job_(WithHeads(MakeTinyJob(GetParam(), {5, 8}, DType::kFloat64, folder_), 6)) {
    WriteTinyText(folder_);
    job_.config.training.steps = kLayouts;
    if (GetParam() == ModelFamily::kLlama) job_.config.training.max_norm = 0;  // units may be stepped in turn
  }
  ~ReplansTest() override { std::filesystem::remove_all(folder_); }

  // From `start_step` on, of which `resume_from` is, to the last. Checkpoints go into a folder of the layout's own.
  Checkpoints Train(const planner::Plan& plan, const std::string& name, int64_t start_step, const std::string& resume_from) {
    auto assignments = AssignmentsOf(job_.model, job_.config, plan, FourSamples(plan));
    EXPECT_TRUE(assignments.ok()) << assignments.status();
    if (!assignments.ok()) return {};
    for (RankAssignment& assignment : *assignments) {
      assignment.config.checkpoint.folder = (folder_ / name).string();
      assignment.start_step = start_step;
      assignment.resume_from = resume_from;
    }
    auto kept = TrainAndKeep(*assignments, std::nullopt);
    EXPECT_TRUE(kept.ok()) << kept.status();
    return kept.ok() ? *std::move(kept) : Checkpoints();
  }

  const std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / absl::StrCat("replans_test-", getpid());
  TinyJob job_;
};

void ExpectNear(double value, double expected, const std::string& what) {
  EXPECT_LE(std::abs(value / expected - 1), kTolerance) << what << ": " << value << ", one device's " << expected;
}

TEST_P(ReplansTest, TheCurveIsOneDevices) {
  const Checkpoints one = Train(OneDevicePlan(job_), "one", 0, "");
  ASSERT_EQ(one.steps.size(), static_cast<size_t>(kLayouts));
  std::string resume_from;
  bool any_wide = false, any_whole = false;
  std::set<std::string> offloads;
  for (int64_t n = 0; n < kLayouts; ++n) {
    planner::Plan plan = RandomEnginePlan(static_cast<uint64_t>(n), UnitWidths::kUpToFour).Draw(job_, 1 + n % 3);
    if (n % 3 != 2) DrawOffload(job_, static_cast<uint64_t>(n), &plan);
    for (const std::string& word : OffloadWords(plan)) offloads.insert(word);
    planner::ForEachUnit(plan, [&](const planner::UnitPlan& unit) { (unit.ranks.size() > 1 ? any_wide : any_whole) = true; });
    const Checkpoints run = Train(plan, absl::StrCat("layout-", n), n, resume_from);
    ASSERT_EQ(run.steps.size(), static_cast<size_t>(kLayouts - n)) << planner::ToText(plan);
    for (size_t i = 0; i < run.steps.size(); ++i) {
      const StepResult& step = run.steps[i];
      const StepResult& expected = one.steps[static_cast<size_t>(n) + i];
      const std::string where = absl::StrCat(" of step ", step.step, ", layout ", n);
      EXPECT_EQ(step.step, expected.step);
      ExpectNear(step.loss, expected.loss, absl::StrCat("loss", where));
      ExpectNear(step.grad_norm, expected.grad_norm, absl::StrCat("gradient norm", where));
    }
    resume_from = run.folders.at(n + 1);
  }
  EXPECT_TRUE(any_wide && any_whole);
  // Steps in turn leave gradients nothing to wait for.
  for (const std::string word : {"activations", "parameters", "optimizer"}) EXPECT_TRUE(offloads.contains(word)) << word;
  EXPECT_TRUE(offloads.contains(job_.config.training.max_norm == 0 ? "in turn" : "gradients"));
}

INSTANTIATE_TEST_SUITE_P(Families, ReplansTest, testing::Values(ModelFamily::kGpt2, ModelFamily::kLlama),
                         [](const auto& info) { return info.param == ModelFamily::kGpt2 ? "Gpt2" : "Llama"; });

}  // namespace
}  // namespace motley::engine
