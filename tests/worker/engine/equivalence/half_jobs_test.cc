// Mixed precision under strategies' own plans: near one device in the same type, away from float32, and half the bytes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>

#include "planner/answers/plan_answer.h"
#include "planner/strategies/catalog.h"
#include "tests/worker/engine/equivalence/counting_communicator.h"
#include "tests/worker/engine/equivalence/equivalence.h"
#include "tests/worker/engine/equivalence/plan_assignments.h"
#include "tests/worker/engine/fake_host.h"

namespace motley::engine {
namespace {

constexpr TinySize kSize = {5, 8};
constexpr int kDevices = 4;

class HalfJobsTest : public testing::TestWithParam<std::tuple<ModelFamily, DType>> {
 protected:
  void SetUp() override { WriteTinyText(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  TinyJob Job(DType compute) const {
    TinyJob job = MakeTinyJob(std::get<0>(GetParam()), kSize, compute, folder_);
    job.config.training.steps = kHalfSteps;
    return job;
  }
  DType half() const { return std::get<1>(GetParam()); }

  // Of devices of three speeds, each on a node of its own. For zorse the network is so slow that it makes stages.
  static planner::Plan PlanOf(const std::string& strategy, const TinyJob& job) {
    planner::Plan wide = OneDevicePlan(job);
    std::vector<planner::UnitPlan>& units = wide.pipelines[0].stages[0].units;
    for (int d = 1; d < kDevices; ++d) {
      units.push_back(units[0]);
      units.back().ranks[0].device = DeviceId("n" + std::to_string(d) + "/gpu0");
    }
    auto setting = SettingOfThreads(job.model, wide);
    EXPECT_TRUE(setting.ok()) << setting.status();
    planner::PlanRequest request;
    request.strategy = strategy;
    request.runnable = true;
    planner::Cluster cluster = (*setting)->cluster;
    for (planner::ClusterNode& node : cluster.nodes) {
      if (strategy == "zorse") node.nic_bytes_per_second = 1e5;
    }
    auto runnable = planner::Setting::Create(cluster, (*setting)->workload, request, nullptr);
    EXPECT_TRUE(runnable.ok()) << runnable.status();
    auto found = planner::PlanAndEvaluate(**runnable, *planner::FindInCatalog(strategy));
    EXPECT_TRUE(found.ok()) << strategy << ": " << found.status();
    found->plan.dtype = PrecisionOf(job.config.training)->compute;
    return found->plan;
  }

  // Bytes that all ranks' calls carried in a step.
  CountedBytes BytesOfAStep(TinyJob job, const planner::Plan& plan) {
    job.config.training.steps = 1;
    job.config.checkpoint.folder.clear();
    const auto assignments = *AssignmentsOf(job.model, job.config, plan, FourSamples(plan));
    CountedBytes sum;
    std::mutex mutex;
    FakeKv kv;
    OnRanks(static_cast<int>(assignments.size()), [&](int rank) {
      FakeHost host(kv);
      const auto mine = TrainCounting(assignments[rank], host);
      ASSERT_TRUE(mine.ok()) << mine.status();
      const std::lock_guard lock(mutex);
      sum.Add(*mine);
    });
    return sum;
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("half_jobs_test-" + std::to_string(getpid()));
};

TEST_P(HalfJobsTest, StrategiesTrainLikeOneDevice) {
  Equivalence equivalence;
  const TinyJob job = Job(half());
  bool handed_over = false;
  for (const std::string strategy : {"even", "cephalo", "zorse"}) {
    PlannedJob planned{job, PlanOf(strategy, job)};
    handed_over |= planned.plan.pipelines[0].stages.size() > 1;
    EXPECT_EQ(equivalence.Complaint(planned, 1), "") << strategy << "\n" << ToText(planned);
  }
  EXPECT_TRUE(handed_over) << "no plan has stages";
}

TEST_P(HalfJobsTest, TheLossIsNotFloat32s) {
  Equivalence equivalence;
  const auto mixed = equivalence.OneDevice(Job(half())), whole = equivalence.OneDevice(Job(DType::kFloat32));
  ASSERT_TRUE(mixed.ok() && whole.ok()) << mixed.status() << whole.status();
  ASSERT_EQ(mixed->steps.size(), whole->steps.size());
  // Float16's differ in the fifth digit, and a step's may round to the same float32 by chance.
  size_t same = 0;
  for (size_t i = 0; i < mixed->steps.size(); ++i) {
    same += static_cast<float>(mixed->steps[i].loss) == static_cast<float>(whole->steps[i].loss);
    EXPECT_NEAR(mixed->steps[i].loss / whole->steps[i].loss, 1, 2e-2) << i;
  }
  EXPECT_LE(same, mixed->steps.size() / 10);
}

TEST_P(HalfJobsTest, WeightsAndHandOversAreHalfTheBytes) {
  for (const std::string strategy : {"cephalo", "zorse"}) {
    planner::Plan plan = PlanOf(strategy, Job(half()));
    const CountedBytes mixed = BytesOfAStep(Job(half()), plan);
    plan.dtype = DType::kFloat32;
    const CountedBytes whole = BytesOfAStep(Job(DType::kFloat32), plan);
    EXPECT_GT(whole.gathered + whole.handed_over, 0) << strategy;
    EXPECT_EQ(2 * mixed.gathered, whole.gathered) << strategy;
    EXPECT_EQ(2 * mixed.handed_over, whole.handed_over) << strategy;
    EXPECT_EQ(mixed.reduced, whole.reduced) << strategy << ": gradients are float32";
  }
}

std::string CaseName(const testing::TestParamInfo<std::tuple<ModelFamily, DType>>& info) {
  return (std::get<0>(info.param) == ModelFamily::kGpt2 ? "Gpt2" : "Llama") + std::string(DTypeName(std::get<1>(info.param)));
}
INSTANTIATE_TEST_SUITE_P(Jobs, HalfJobsTest,
                         testing::Combine(testing::Values(ModelFamily::kGpt2, ModelFamily::kLlama),
                                          testing::Values(DType::kBFloat16, DType::kFloat16)),
                         CaseName);

}  // namespace
}  // namespace motley::engine
