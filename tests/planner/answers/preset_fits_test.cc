#include "planner/answers/preset_fits.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "planner/answers/fits.h"
#include "tests/planner/offline_fixture.h"

namespace motley::planner {
namespace {

Workload Asked() {
  Workload workload;
  workload.global_batch = 8;
  workload.seq_len = 1024;
  workload.dtype = DType::kFloat16;
  return workload;
}

TEST(PresetFitsTest, EveryPresetHasARowTheLargestThatRunsFirst) {
  std::string toml = kMixedToml;
  toml.replace(toml.find("nic_gbit"), 0, "host_memory_gib = 128\n");
  int calls = 0;
  const auto rows = FindPresetFits(*ParseCluster(toml, "test"), Asked(), {}, nullptr, [&calls](int done, int total) {
    EXPECT_EQ(done, ++calls);
    EXPECT_EQ(total, static_cast<int>(ModelPresets().size()));
  });
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), ModelPresets().size());
  EXPECT_EQ(calls, static_cast<int>(rows->size()));
  std::map<int, int> of_group;
  int before = 0;
  int64_t parameters = INT64_MAX, lacks = 0;
  for (const PresetFit& row : *rows) {
    const int group = row.runs_here.ok() ? 0 : row.fits.ok() ? 1 : 2;
    ++of_group[group];
    ASSERT_GE(group, before) << row.model;
    if (std::exchange(before, group) != group) parameters = INT64_MAX;
    if (group < 2) EXPECT_GE(std::exchange(parameters, row.parameters), row.parameters) << row.model;
    if (group < 2) EXPECT_GT(row.tokens_per_second(), 0) << row.model;
    if (group == 1) EXPECT_GT(row.host_bytes, 0) << row.model << ": what does not run here is offloaded";
    if (group == 2) EXPECT_LE(std::exchange(lacks, row.lacking_bytes), row.lacking_bytes) << row.model;
    if (group == 2) EXPECT_EQ(row.step_seconds, 0);
  }
  EXPECT_GT(of_group[0], 5);
  EXPECT_EQ(of_group[1], 0) << "what fits with offload runs";
  EXPECT_GT(of_group[2], 3);
}

TEST(PresetFitsTest, ARowSaysWhatTheEstimateSays) {
  const auto rows = FindPresetFits(*ParseCluster(kMixedToml, "test"), Asked(), {}, nullptr);
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (const char* name : {"gpt2-1.5b", "llama-7b", "llama2-70b"}) {
    Workload workload = *LoadModel(name);
    workload.global_batch = 8;
    workload.seq_len = 1024;
    workload.dtype = DType::kFloat16;
    const QuickFit report = FindQuickFit(*MakeSetting(workload));
    for (const PresetFit& row : *rows) {
      if (row.model != name) continue;
      EXPECT_EQ(row.fits.ok(), report.why_not.ok()) << name;
      EXPECT_EQ(row.runs_here.ok(), report.runs_here.ok()) << name;
      EXPECT_EQ(row.lacking_bytes, report.lacking_bytes) << name;
    }
  }
}

// What fits first may use the hosts where a plan that runs here does not: a row is of one plan.
TEST(PresetFitsTest, WhatRunsHereLiesOnTheCards) {
  Workload asked = Asked();
  asked.global_batch = 64;
  asked.seq_len = 2048;
  asked.dtype = DType::kFloat32;
  const char* toml = R"(name = "lab"
[defaults]
nic_gbit_per_second = 10
host_memory_gib = 128
[[node]]
name = "a"
gpus = [{card = "RTX-2080-Ti", count = 3}]
[[node]]
name = "b"
gpus = [{card = "V100-16GB", count = 2}]
[[node]]
name = "c"
gpus = ["A10"]
)";
  const auto rows = FindPresetFits(*ParseCluster(toml, "test"), asked, {}, nullptr);
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (const PresetFit& row : *rows) EXPECT_TRUE(!row.runs_here.ok() || row.host_bytes == 0) << row.model;
}

TEST(PresetFitsTest, ASequenceBeyondAPresetsPositionsIsThose) {
  Workload asked = Asked();
  asked.seq_len = 4096;
  const auto rows = FindPresetFits(*ParseCluster(kMixedToml, "test"), asked, {}, nullptr);
  ASSERT_TRUE(rows.ok()) << rows.status();
  std::set<int64_t> lengths;
  for (const PresetFit& row : *rows) lengths.insert(row.seq_len);
  EXPECT_TRUE(lengths.contains(1024) && lengths.contains(4096));
  EXPECT_EQ(*lengths.rbegin(), 4096);
}

}  // namespace
}  // namespace motley::planner
