// Ranks on devices with a cap: of plans that fill them nearly, and of plans whose profile counts too little.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>

#include "common/base/memory_shortage.h"
#include "planner/live/memory_limits.h"
#include "planner/live/planner.h"
#include "planner/plan/each_rank.h"
#include "tests/worker/engine/equivalence/equivalence.h"
#include "tests/worker/engine/equivalence/memory_predictions.h"
#include "tests/worker/engine/equivalence/plan_assignments.h"
#include "tests/worker/engine/fake_host.h"
#include "worker/engine/device/host_backend.h"
#include "worker/engine/engine.h"

namespace motley::engine {
namespace {

class MemoryCapsTest : public testing::Test {
 protected:
  MemoryCapsTest() { WriteTinyText(folder_); }
  ~MemoryCapsTest() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("memory_caps_test-" + std::to_string(getpid()));
};

// A plan may fill 0.95 of a device, which is what a job leaves by itself.
TEST_F(MemoryCapsTest, PlansThatFillACappedDeviceTrainToTheEnd) {
  constexpr double kFilled = 0.945;
  MemoryPredictions predictions;
  for (int n = 0; n < NumPlans(4, 20); ++n) {
    PlannedJob planned = DrawWideJob(20261129, n, folder_);
    if (n % 2 == 1) planned = Offloading(std::move(planned));
    const auto predicted = predictions.Of(planned);
    ASSERT_TRUE(predicted.ok()) << predicted.status() << ToText(planned);
    auto ranks = AssignmentsOf(planned.job.model, planned.job.config, planned.plan, FourSamples(planned.plan));
    ASSERT_TRUE(ranks.ok()) << ranks.status();
    for (size_t r = 0; r < ranks->size(); ++r) {
      (*ranks)[r].evaluation = Program();  // predicted is what training takes
      (*ranks)[r].device.memory_bytes = static_cast<int64_t>(static_cast<double>((*predicted)[r].total()) / kFilled);
    }
    EXPECT_TRUE(TrainAndKeep(*ranks, std::nullopt).ok()) << "plan " << n << "\n" << ToText(planned);
    if (n > 0) continue;
    for (RankAssignment& rank : *ranks) rank.device.memory_bytes /= 2;
    EXPECT_FALSE(TrainAndKeep(*ranks, std::nullopt).ok()) << "the cap is none";
  }
}

// One device, its profile, and plans of it as a coordinator has them made.
class WrongProfilesTest : public MemoryCapsTest {
 protected:
  WrongProfilesTest() {
    job_ = Widened(MakeTinyJob(ModelFamily::kGpt2, kTinySizes[2], DType::kFloat32, folder_));
    job_.config.planner.memory_reserve = 0.02;
    job_.config.data.validation_fraction = 0;
    job_.config.data.validation_samples = job_.config.data.validation_interval = 0;
    RankAssignment assignment = Assigned(OneDevicePlan(job_));
    Device().kind = DeviceKind::kEmulated;
    Device().id = assignment.device.id;
    Device().model = "A6000";
    Device().flops_per_second = 1e12;
    assignment.device = Device();
    FakeKv kv;
    FakeHost host(kv);
    HostBackend backend(std::make_shared<MemoryAccount>());
    auto profile = CreateEngine(host, {.backend = &backend})->ProfileCompute(assignment);
    EXPECT_TRUE(profile.ok()) << profile.status();
    if (profile.ok()) profile_ = *std::move(profile);
    profile_.device = Device().id;
    input_.model = job_.model;
    input_.config = job_.config;
    input_.epoch = Epoch(1);
    input_.predicts_links = true;
  }

  DeviceDescription& Device() {
    if (input_.devices.empty()) input_.devices.resize(1);
    return input_.devices[0];
  }
  RankAssignment Assigned(const planner::Plan& plan) const {
    auto ranks = AssignmentsOf(job_.model, job_.config, plan, FourSamples(plan));
    EXPECT_TRUE(ranks.ok()) << ranks.status();
    RankAssignment rank = ranks.ok() ? ranks->at(0) : RankAssignment();
    rank.evaluation = Program();
    return rank;
  }
  static int64_t PeakOf(const planner::Plan& plan) {
    int64_t peak = 0;
    planner::ForEachRank(plan, [&peak](const planner::RankPlan& rank) { peak = std::max(peak, rank.predicted.peak_bytes); });
    return peak;
  }
  // What a device without a limit is planned to hold.
  int64_t MostWanted() {
    Device().memory_bytes = int64_t{1} << 40;
    input_.compute = {profile_};
    const auto plan = planner::MakePlan(input_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? PeakOf(plan->plan) : 0;
  }
  // Plans and trains on a device with that cap until a plan runs; how often its limit was corrected before. -1: not within three.
  int Corrections(int64_t cap_bytes, const ComputeProfile& wrong) {
    constexpr int kMost = 3;
    Device().memory_bytes = cap_bytes;
    input_.compute = {wrong};
    for (int times = 0; times <= kMost; ++times) {
      const auto plan = planner::MakePlan(input_);
      EXPECT_TRUE(plan.ok()) << plan.status();
      if (!plan.ok()) return -1;
      RankAssignment rank = Assigned(plan->plan);
      rank.device.memory_bytes = cap_bytes;
      const absl::Status end = TrainAndKeep({rank}, std::nullopt).status();
      if (end.ok()) return times;
      const auto shortage = MemoryShortageOf(end);
      EXPECT_TRUE(shortage.has_value()) << end;
      if (!shortage) return -1;
      int64_t& usable = input_.compute[0].usable_bytes;
      usable = planner::CorrectedLimit(usable > 0 ? usable : cap_bytes, shortage->held_bytes, PeakOf(plan->plan));
    }
    return -1;
  }
  // Of devices that hold less and less of what would be wanted. Returns how many jobs ran out of memory first.
  int ExpectPlansThatRun(const char* what, const std::function<void(ComputePoint&)>& falsify) {
    const int64_t most = MostWanted();
    ComputeProfile wrong = profile_;
    for (UnitProfile* unit : {&wrong.embedding, &wrong.layer, &wrong.head}) {
      for (ComputePoint& point : unit->points) falsify(point);
    }
    int jobs = 0, corrected = 0, all = 0;
    for (const double part : {0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6}) {
      ++jobs;
      const int times = Corrections(static_cast<int64_t>(part * static_cast<double>(most)), wrong);
      EXPECT_GE(times, 0) << what << ", a device of " << part << " of " << most << " bytes";
      corrected += times > 0;
      all += std::max(0, times);
    }
    std::printf("%s: %d of %d jobs ran out of memory, %d corrections in all\n", what, corrected, jobs, all);
    return corrected;
  }

  TinyJob job_;
  planner::PlannerInput input_;
  ComputeProfile profile_;
};

TEST_F(WrongProfilesTest, SavedBytesATenthTooLowEndInAPlanThatRuns) {
  const int ran_out = ExpectPlansThatRun("saved bytes a tenth too low",
                                         [](ComputePoint& point) { point.saved_bytes = point.saved_bytes * 9 / 10; });
  EXPECT_GT(ran_out, 0) << "the profile was right";
}

// A reserve of 2 % has room for it in plans of this model.
TEST_F(WrongProfilesTest, WorkspaceAThirdTooLowEndsInAPlanThatRuns) {
  ExpectPlansThatRun("workspace a third too low", [](ComputePoint& point) {
    point.workspace_bytes = point.workspace_bytes * 2 / 3;
    point.forward_workspace_bytes = point.forward_workspace_bytes * 2 / 3;
  });
}

}  // namespace
}  // namespace motley::engine
