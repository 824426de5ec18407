// A cluster and a model as files, for tests of the commands that plan without a coordinator.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/model/model.h"
#include "tests/common/base/temp_folder.h"
#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {

inline constexpr char kCluster[] = R"(name = "mixed"
[defaults]
nic_gbit_per_second = 50
[[node]]
name = "n1"
gpus = ["A6000", "L4"]
[[node]]
name = "n2"
gpus = [{card = "P40", count = 2}]
)";

class OfflineTest : public testing::Test {
 protected:
  OfflineTest() {
    cluster_ = folder_.Write("mixed.toml", kCluster);
    ModelShape model = *ModelFlavor("gpt2", "debug");
    model.num_layers = 4;
    model.hidden_size = 512;
    model.head_dim = 512 / model.num_heads;
    model.intermediate_size = 2048;
    model.max_positions = 256;
    model_ = folder_.Write("config.json", ToHfConfig(model));
  }

  static Ran Run(const std::vector<std::string>& arguments) { return MotleyAlone(arguments); }
  std::vector<std::string> With(const std::string& command, const std::vector<std::string>& more) const {
    std::vector<std::string> all = {command,          "--cluster", cluster_,    "--model", model_,
                                    "--global-batch", "24",        "--seq-len", "128"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Ran Plan(const std::vector<std::string>& more) const { return Run(With("plan", more)); }
  // A plan file of `strategy`.
  std::string PlanFile(const std::string& name, const std::string& strategy) {
    const Ran ran = Plan({"--strategy", strategy, "-o", "json"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return folder_.Write(name, ran.out);
  }

  TempFolder folder_;
  std::string cluster_, model_;
};

}  // namespace motley::client
