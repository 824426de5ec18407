#include "planner/setting/least_lack.h"

#include <gtest/gtest.h>

#include "planner/answers/plan_answer.h"
#include "planner/strategies/catalog.h"
#include "planner/util/lack_of_memory.h"
#include "tests/planner/offline_fixture.h"

namespace motley::planner {
namespace {

// What all cards together lack, the fullest lacks a card's part of.
TEST(LeastLackTest, NoStrategySaysLessThanThePlainDifference) {
  const std::string toml = "name = \"rig\"\n[[node]]\nname = \"rig\"\ngpus = [{card = \"RTX-3090\", count = 3}]\n";
  Workload workload = *LoadModel("llama2-13b");
  workload.global_batch = 24;
  workload.seq_len = 2048;
  workload.dtype = DType::kBFloat16;
  for (const CatalogEntry& strategy : Catalog()) {
    for (const bool runnable : {false, true}) {
      PlanRequest request;
      request.runnable = runnable;
      request.strategy = std::string(strategy.name);
      request.budget_nodes = 20'000;
      const auto setting = MakeSetting(workload, request, toml);
      const int64_t plain = setting->costs.TotalElements() * 16 - 3 * setting->UsableBytes(0);
      EXPECT_EQ(LeastLack(*setting), (plain + 2) / 3);
      const absl::Status status = PlanAndEvaluate(*setting, strategy).status();
      ASSERT_TRUE(LackingBytes(status).has_value()) << strategy.name << ": " << status;
      EXPECT_GE(*LackingBytes(status), LeastLack(*setting)) << strategy.name << ": " << status;
      EXPECT_EQ(std::string(status.message()).find("would help"), std::string::npos) << status << ": nobody tried it";
    }
  }
}

TEST(LeastLackTest, HostsTakeStateWherePlansMayOffload) {
  std::string toml = kMixedToml;
  const Workload workload = LargeWorkload(12);
  EXPECT_GT(LeastLack(*MakeSetting(workload)), 0);
  toml.replace(toml.find("nic_gbit"), 0, "host_memory_gib = 512\n");
  EXPECT_EQ(LeastLack(*MakeSetting(workload, {}, toml)), 0);
  PlanRequest request;
  request.offload = {.activations = true};
  EXPECT_GT(LeastLack(*MakeSetting(workload, request, toml)), 0) << "no state may wait there";
  request.offload = {.optimizer = true};
  EXPECT_EQ(LeastLack(*MakeSetting(workload, request, toml)), 0);
  request.runnable = true;
  EXPECT_EQ(LeastLack(*MakeSetting(workload, request, toml)), 0) << "the engine offloads it";
  EXPECT_EQ(LeastLack(*MakeSetting(SmallWorkload())), 0);
  EXPECT_EQ(OneDeviceLacks(*MakeSetting(SmallWorkload()), 3 << 20, "n/gpu0", " here").message(), "n/gpu0 lacks 3.0 MiB here");
}

// Of each element 16 bytes; what may not wait is on devices however roomy the hosts are.
TEST(LeastLackTest, HostsTakeNoMoreThanMayWait) {
  std::string toml = kMixedToml;
  toml.replace(toml.find("nic_gbit"), 0, "host_memory_gib = 512\n");
  Workload workload = SmallWorkload();
  workload.dtype = DType::kFloat16;
  const auto bytes_of_element = [&](const OffloadKinds& kinds, Fidelity fidelity) {
    PlanRequest request;
    request.offload = kinds;
    request.fidelity = fidelity;
    const auto setting = MakeSetting(workload, request, toml);
    const int64_t elements = setting->costs.TotalElements(), bytes = StateOnDevices(*setting);
    EXPECT_EQ(bytes % elements, 0);
    return bytes / elements;
  };
  EXPECT_EQ(bytes_of_element({.activations = true}, Fidelity::kTuned), 16);
  EXPECT_EQ(bytes_of_element({.optimizer = true}, Fidelity::kTuned), 16 - 8);
  EXPECT_EQ(bytes_of_element({.parameters = true}, Fidelity::kTuned), 16 - 4 - 4) << "a cast on the host is none of them";
  EXPECT_EQ(bytes_of_element(OffloadKinds::All(), Fidelity::kTuned), 0);
  EXPECT_EQ(bytes_of_element({.optimizer = true}, Fidelity::kPublished), 16 - 12) << "with the master copy";
  EXPECT_EQ(bytes_of_element({.parameters = true}, Fidelity::kPublished), 16 - 2 - 2) << "gradients go ministage by ministage";
}

// In a job whose steps nothing global decides, units that are stepped in turn leave no gradients, with offload and without.
TEST(LeastLackTest, GradientsOfUnitsThatMayStepInTurnAreNoState) {
  for (const bool runnable : {false, true}) {
    PlanRequest request;
    request.runnable = runnable;
    request.offload = OffloadKinds::None();
    const auto at_end = MakeSetting(SmallWorkload(), request);
    request.steps_in_turn = true;
    const auto in_turn = MakeSetting(SmallWorkload(), request);
    EXPECT_EQ(StateOnDevices(*at_end) - StateOnDevices(*in_turn), 4 * at_end->costs.TotalElements());
  }
}

}  // namespace
}  // namespace motley::planner
