// Steps and their ranges on cards that nobody profiled: what the device table and the links alone say.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "planner/answers/plan_answer.h"
#include "planner/cluster/cluster_file.h"
#include "planner/costs/workload.h"
#include "planner/setting/setting.h"
#include "planner/strategies/catalog.h"

namespace motley::planner {
namespace {

struct Job {
  std::string model = "gpt2-124m";
  DType dtype = DType::kFloat32;
  int64_t batch = 4, seq_len = 1024;
};

PlanPrediction PredictionOf(const std::string& cluster, const Job& job) {
  Workload workload = LoadModel(job.model).value();
  workload.dtype = job.dtype;
  workload.global_batch = job.batch;
  workload.seq_len = job.seq_len;
  PlanRequest request;
  request.strategy = "even";
  const auto setting = Setting::Create(ParseCluster(cluster, "lab.toml").value(), workload, request, nullptr);
  EXPECT_TRUE(setting.ok()) << setting.status();
  const auto evaluation = PlanAndEvaluate(**setting, *FindInCatalog("even"));
  EXPECT_TRUE(evaluation.ok()) << evaluation.status();
  return evaluation->plan.predicted;
}

// How many times as high as low a range is, in deviations.
double HalfWidth(const PlanPrediction& predicted) { return std::log(predicted.high_seconds / predicted.step_seconds); }

std::string Node(const std::string& card, int count, const std::string& more = "") {
  return "[[node]]\n" + more + "gpus = [{card = \"" + card + "\", count = " + std::to_string(count) + "}]\n";
}

// A public measurement: 0.51 s on one Titan RTX, 0.657 on two, 0.505 on two with NVLink, each with 4 samples.
TEST(ColdStart, TwoCardsThatDoNotReachEachOtherAreSlowerThanOne) {
  const double one = PredictionOf(Node("Titan-RTX", 1), {}).step_seconds;
  const double two = PredictionOf(Node("Titan-RTX", 2), {.batch = 8}).step_seconds;
  const double joined = PredictionOf(Node("Titan-RTX", 2, "device_link_gb_per_second = 50\n"), {.batch = 8}).step_seconds;
  EXPECT_GT(two, 1.2 * one);
  EXPECT_LT(two, 1.4 * one);
  EXPECT_LT(joined, 1.03 * one);
}

// A 4090's share beside an A100 follows what both reach of their peaks.
TEST(ColdStart, AGeForceIsNotPricedAsIfItReachedHalfOfItsHalvedPeak) {
  const Job job = {.model = "llama-0.5b", .dtype = DType::kBFloat16, .batch = 4, .seq_len = 2048};
  const double server = PredictionOf(Node("A100-80GB", 1), job).step_seconds;
  const double desktop = PredictionOf(Node("RTX-4090", 1), job).step_seconds;
  EXPECT_LT(desktop, 1.5 * server) << "by their peaks it would be 1.9 times as long";
  EXPECT_GT(desktop, 1.1 * server);
}

TEST(ColdStart, TheRangeFollowsWhatDecides) {
  const Job large = {.model = "llama-1.1b", .dtype = DType::kBFloat16, .batch = 2, .seq_len = 2048};
  const double compared = HalfWidth(PredictionOf(Node("A100-80GB", 1), large));
  EXPECT_GT(compared, 0.2);
  EXPECT_LT(compared, 0.4);
  EXPECT_GT(HalfWidth(PredictionOf(Node("L4", 1), large)), 1.4 * compared) << "a card of which no run was compared";
  Job small = {.dtype = DType::kBFloat16, .batch = 16};
  EXPECT_GT(HalfWidth(PredictionOf(Node("A100-80GB", 1), small)), 1.1 * compared) << "a small model passes over memory more";
  Job spread = large;
  const std::string slow = "nic_gbit_per_second = 1\ncount = 2\n";
  EXPECT_GT(HalfWidth(PredictionOf(Node("A100-80GB", 1, slow), spread)), 1.5 * compared) << "most of it waits for the network";
}

}  // namespace
}  // namespace motley::planner
