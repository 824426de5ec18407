// Small clusters from their files' text, for tests of strategies.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/cluster/cluster_file.h"
#include "planner/plan/each_rank.h"
#include "planner/pricing/evaluate.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct NodeText {
  std::string name, cards;  // "n1", "{card = \"T4\", count = 2}"
};

inline std::string ClusterText(const std::vector<NodeText>& nodes, double nic_gbit_per_second = 100) {
  std::string text = "name = \"test\"\n";
  for (const NodeText& node : nodes) {
    absl::StrAppend(&text, "[[node]]\nname = \"", node.name, "\"\ngpus = [", node.cards,
                    "]\nnic_gbit_per_second = ", nic_gbit_per_second, "\n");
  }
  return text;
}

inline std::string Cards(const std::string& card, int count) {
  return absl::StrCat("{card = \"", card, "\", count = ", count, "}");
}

inline std::unique_ptr<Setting> SettingOf(const std::string& cluster, const std::string& model, int64_t batch, int64_t seq_len,
                                          PlanRequest request = {}, DType dtype = DType::kFloat16) {
  Workload workload = LoadModel(model).value();
  workload.global_batch = batch;
  workload.seq_len = seq_len;
  workload.dtype = dtype;
  return Setting::Create(ParseCluster(cluster, "test.toml").value(), workload, std::move(request), nullptr).value();
}

inline std::unique_ptr<Setting> PresetSetting(const std::string& cluster, const std::string& model, int64_t batch,
                                              int64_t seq_len, PlanRequest request = {}, DType dtype = DType::kFloat16) {
  Workload workload = LoadModel(model).value();
  workload.global_batch = batch;
  workload.seq_len = seq_len;
  workload.dtype = dtype;
  return Setting::Create(LoadCluster(cluster).value(), workload, std::move(request), nullptr).value();
}

inline PlanRequest Published() {
  PlanRequest request;
  request.fidelity = Fidelity::kPublished;
  return request;
}

// The plan keeps the language's rules and fits, and every device is a rank once or is left out with a reason.
inline void ExpectFitsAndNamesEveryDevice(const Setting& setting, const Plan& plan) {
  EXPECT_TRUE(Validate(plan, setting.workload.model).ok());
  const absl::StatusOr<Evaluation> evaluation = Evaluate(setting, plan);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_THAT(evaluation->does_not_fit, testing::IsEmpty());
  size_t devices = plan.unused.size();
  ForEachRank(plan, [&](const RankPlan&) { ++devices; });
  EXPECT_EQ(devices, static_cast<size_t>(setting.num_devices()));
  for (const UnusedDevice& unused : plan.unused) EXPECT_FALSE(unused.because.empty());
}

}  // namespace motley::planner
