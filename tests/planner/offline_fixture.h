// Settings for the tests of offline planning, from a cluster file's text.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "planner/cluster/cluster_file.h"
#include "planner/setting/setting.h"
#include "tests/planner/cluster_fixture.h"

namespace motley::planner {

// Four cards of three kinds on two nodes; hosts are not described.
inline constexpr char kMixedToml[] = R"(name = "mixed"
[defaults]
nic_gbit_per_second = 50
[[node]]
name = "n1"
gpus = ["A6000", "L4"]
[[node]]
name = "n2"
gpus = [{card = "P40", count = 2}]
)";

// About 13 million parameters; trains anywhere.
inline Workload SmallWorkload(int64_t batch = 24) {
  Workload workload;
  workload.model_name = "small";
  workload.model = SmallModel(true, 4);
  workload.model.hidden_size = 512;
  workload.model.head_dim = 128;
  workload.model.intermediate_size = 2048;
  workload.global_batch = batch;
  workload.seq_len = 128;
  return workload;
}

inline std::unique_ptr<Setting> MakeSetting(Workload workload, PlanRequest request = {}, const std::string& toml = kMixedToml) {
  auto setting = Setting::Create(*ParseCluster(toml, "test"), std::move(workload), std::move(request), nullptr);
  if (!setting.ok()) throw std::runtime_error(std::string(setting.status().message()));
  return *std::move(setting);
}

// A model of `billions` parameters in layers of 0.2 billion, sequence 512.
inline Workload LargeWorkload(double billions, int64_t batch = 8) {
  Workload workload = *LoadModel("llama-7b");
  workload.model.num_layers = static_cast<int64_t>(billions / 0.2);
  workload.global_batch = batch;
  workload.seq_len = 512;
  return workload;
}

}  // namespace motley::planner
