// A measured cluster of unequal devices, and the setting that its files make.
#pragma once

#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "planner/cluster/cluster_file.h"
#include "planner/cluster/cluster_text.h"
#include "planner/live/live_inputs.h"
#include "tests/planner/cluster_fixture.h"
#include "tests/planner/live/described.h"

namespace motley::planner {

// The way that the command line takes: through the texts.
inline std::unique_ptr<Setting> SettingFromTexts(const PlannerInput& input, PlanRequest request) {
  const LiveInputs live = Described(input);
  Workload workload;
  workload.model_name = "saved/config.json";
  workload.model = *ParseHfConfig(ToHfConfig(input.model), "config.json");
  workload.global_batch = input.config.training.global_batch_size;
  workload.seq_len = input.config.training.seq_len;
  const auto cluster = ParseCluster(ToToml(live.cluster), "cluster.toml");
  const auto book = LatencyBook::Parse(ToJson(live.profile), "profiles.json");
  EXPECT_TRUE(cluster.ok() && book.ok()) << cluster.status() << book.status() << ToToml(live.cluster);
  auto setting = Setting::Create(*cluster, workload, std::move(request), &*book);
  EXPECT_TRUE(setting.ok()) << setting.status();
  return *std::move(setting);
}

inline PlannerInput Mixed(int64_t batch = 32) {
  PlannerInput input = MakeInput(SmallModel(), MixedDevices(), batch);
  for (DeviceDescription& device : input.devices) device.link_bytes_per_second = 1e9;
  return input;
}

}  // namespace motley::planner
