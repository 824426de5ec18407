#include "planner/live/planner.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/live/job_request.h"
#include "tests/planner/cluster_fixture.h"
#include "tests/planner/live/planned.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

// The input with these devices alone, as if their collectives had not been measured without the others.
PlannerInput Restrict(const PlannerInput& input, const std::vector<size_t>& indices) {
  PlannerInput result = input;
  result.devices.clear();
  result.compute.clear();
  for (const size_t i : indices) {
    result.devices.push_back(input.devices[i]);
    result.compute.push_back(input.compute[i]);
  }
  return result;
}

TEST(PlannerTest, CephaloBeatsTheEvenSplitOnAMixedCluster) {
  const PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 32);
  EXPECT_LT(StepOf(input, "cephalo"), 0.6 * StepOf(input, "even"));
}

TEST(PlannerTest, ReachesTheSumOfTheDevicesSpeeds) {
  // Stand-alone: each device at its own rate, no collectives. 10.4 GFLOP/s in all; quantisation and the ends cost the rest.
  PlannerInput input = MakeInput(SmallModel(true, 12), MixedDevices(), 128);
  for (DeviceDescription& d : input.devices) d.memory_bytes = 0;
  input.collectives.barrier_seconds = 0;
  const auto result = MakePlan(input);
  ASSERT_TRUE(result.ok()) << result.status();
  double rates = 0;
  for (size_t i = 0; i < input.devices.size(); ++i) {
    PlannerInput alone = Restrict(input, {i});
    alone.config.training.global_batch_size = 32;
    rates += MakePlan(alone)->plan.predicted.tokens_per_second;
  }
  EXPECT_GT(result->plan.predicted.tokens_per_second, 0.9 * rates);
}

TEST(PlannerTest, IsDeterministicAndComplete) {
  const PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 32);
  const auto a = MakePlan(input), b = MakePlan(input);
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(ToJson(a->plan), ToJson(b->plan));
  EXPECT_TRUE(Validate(a->plan, input.model).ok());
  EXPECT_EQ(a->explanation, b->explanation);
  EXPECT_FALSE(a->plan.predicted.binding_constraint.empty());
  EXPECT_THAT(a->explanation, HasSubstr("no plan can be faster than"));
  EXPECT_THAT(a->explanation, HasSubstr("what each kind of device does"));
  EXPECT_THAT(a->explanation, HasSubstr("% of usable), of it context 64.0 KiB\n"));
  EXPECT_EQ(a->card_contexts, std::vector<int64_t>(a->programs.size(), 1 << 16));
  int64_t samples = 0;
  std::set<int64_t> firsts;
  for (const Program& program : a->evaluations) {
    for (const Microbatch& m : program.microbatches) {
      samples += m.samples;
      EXPECT_LE(m.end(), 8);
      EXPECT_TRUE(firsts.insert(m.first).second) << m.first;
    }
  }
  EXPECT_EQ(samples, 8);
  for (const UnitPlan& unit : UnitsOf(*a)) {
    EXPECT_GT(unit.ranks[0].predicted.busy_seconds, 0);
    EXPECT_GT(unit.ranks[0].predicted.peak_bytes, 0);
  }
}

TEST(PlannerTest, NeverPlansIntoTheReserve) {
  for (const double reserve : {0.0, 0.1, 0.3}) {
    PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 32);
    input.config.planner.memory_reserve = reserve;
    const auto result = MakePlan(input);
    ASSERT_TRUE(result.ok()) << result.status();
    for (const UnitPlan& unit : UnitsOf(*result)) {
      for (const DeviceDescription& d : input.devices) {
        if (d.id != unit.ranks[0].device) continue;
        EXPECT_LE(static_cast<double>(unit.ranks[0].predicted.peak_bytes), (1 - reserve) * static_cast<double>(d.memory_bytes))
            << d.id;
      }
    }
  }
}

TEST(PlannerTest, FastDeviceWithLittleMemoryComputesAndSlowOneStores) {
  PlannerInput input = MakeInput(SmallModel(true, 8), {{"a/gpu0", "fast", 8e9, 7 << 20}, {"b/gpu0", "big", 1e9, 64 << 20}}, 16);
  const auto result = MakePlan(input);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto& units = UnitsOf(*result);
  EXPECT_GT(units[0].batch(), units[1].batch());
  EXPECT_LT(units[0].ranks[0].shard_ratio, units[1].ranks[0].shard_ratio);
}

TEST(PlannerTest, SkewIsAvoidedWhereItCosts) {
  PlannerInput input =
      MakeInput(SmallModel(true, 8), {{"a/gpu0", "x", 2e9, 64 << 20}, {"b/gpu0", "x", 2e9, 32 << 20}}, 4, 1e8, 10);
  const auto result = MakePlan(input);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(UnitsOf(*result)[0].ranks[0].shard_ratio, 0.5, 0.01);
  input = MakeInput(SmallModel(true, 8), {{"a/gpu0", "x", 2e9, 64 << 20}, {"b/gpu0", "x", 2e9, 32 << 20}}, 64, 1e12, 1);
  EXPECT_GT(UnitsOf(*MakePlan(input))[0].ranks[0].shard_ratio, 0.6);
}

TEST(PlannerTest, UselessDeviceStaysUnusedWithTheReason) {
  std::vector<DeviceSetup> devices = MixedDevices();
  devices.push_back({"n4/gpu0", "tiny", 1e9, 1 << 20});
  devices.push_back({"n5/gpu0", "snail", 1e5, int64_t{64} << 20});
  const auto result = MakePlan(MakeInput(SmallModel(), devices, 64, 1e12));
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->plan.unused.size(), 2u);
  EXPECT_EQ(result->plan.unused[0].device, DeviceId("n4/gpu0"));
  EXPECT_THAT(result->plan.unused[0].because, HasSubstr("more than its usable memory"));
  EXPECT_EQ(result->plan.unused[1].device, DeviceId("n5/gpu0"));
  EXPECT_EQ(UnitsOf(*result).size(), 5u);
  EXPECT_THAT(result->explanation, HasSubstr("unused n5/gpu0"));
}

TEST(PlannerTest, OneDeviceAloneWhereTheNetworkCostsMoreThanTheOthersSave) {
  const std::vector<DeviceSetup> devices = {{"a/gpu0", "x", 1e9}, {"b/gpu0", "y", 2e9}, {"c/gpu0", "x", 1e9}};
  const auto alone = MakePlan(MakeInput(SmallModel(), devices, 8, 1e5));
  ASSERT_TRUE(alone.ok()) << alone.status();
  ASSERT_EQ(UnitsOf(*alone).size(), 1u);
  EXPECT_EQ(UnitsOf(*alone)[0].ranks[0].device, DeviceId("b/gpu0"));
  EXPECT_EQ(UnitsOf(*alone)[0].batch(), 8);
  ASSERT_EQ(alone->plan.unused.size(), 2u);
  EXPECT_THAT(alone->plan.unused[0].because, HasSubstr("the network would cost more than it saves"));
  // Exactly what planning for it alone says.
  const auto only = MakePlan(MakeInput(SmallModel(), {devices[1]}, 8));
  EXPECT_DOUBLE_EQ(alone->plan.predicted.step_seconds, only->plan.predicted.step_seconds);
  EXPECT_EQ(UnitsOf(*MakePlan(MakeInput(SmallModel(), devices, 8, 1e10))).size(), 3u);
  // Where it does not fit alone, the network is paid for.
  PlannerInput tight = MakeInput(SmallModel(), devices, 8, 1e5);
  for (DeviceDescription& d : tight.devices) d.memory_bytes = 4 << 20;
  const auto together = MakePlan(tight);
  ASSERT_TRUE(together.ok()) << together.status();
  EXPECT_GT(UnitsOf(*together).size(), 1u);
}

TEST(PlannerTest, NoEvaluationWhereTheJobWantsNone) {
  for (const bool no_fraction : {true, false}) {
    PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 32);
    if (no_fraction) input.config.data.validation_fraction = 0;
    if (!no_fraction) input.config.data.validation_samples = 0;
    const auto result = MakePlan(input);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->evaluations.size(), result->programs.size());
    for (const Program& program : result->evaluations) EXPECT_TRUE(program.instructions.empty());
  }
}

TEST(PlannerTest, EvaluationFillsTheMemoryAndNoMore) {
  PlannerInput input = MakeInput(SmallModel(), {{"a/gpu0", "x", 1e9, 16 << 20}}, 8);
  int64_t fits = 0;
  for (int64_t samples = 8; samples <= (1 << 20) && fits + 8 >= samples / 2; samples *= 2) {
    input.config.data.validation_samples = samples;
    const auto result = MakePlan(input);
    if (result.ok()) {
      fits = samples;
      continue;
    }
    EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(result.status().message()), HasSubstr("lower data.validation_samples"));
  }
  // Between a quarter and the whole of 16 MiB in samples of 32 tokens: 8 KiB of activation, 512 bytes of tokens and targets.
  EXPECT_GE(fits * (8192 + 512), 4 << 20);
  EXPECT_LE(fits * (8192 + 512), 16 << 20);
}

TEST(PlannerTest, RecomputesOnlyWhenMemoryAsksForIt) {
  const std::vector<DeviceSetup> roomy = {{"a/gpu0", "x", 1e9, int64_t{1} << 30}};
  EXPECT_EQ(UnitsOf(*MakePlan(MakeInput(SmallModel(), roomy, 8)))[0].ranks[0].recompute, OpSet::None());
  PlannerInput tight = MakeInput(SmallModel(true, 8), {{"a/gpu0", "x", 1e9, 16 << 20}}, 24);
  const auto result = MakePlan(tight);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(UnitsOf(*result)[0].ranks[0].recompute, OpSet::All());
  tight.config.planner.recompute = "none";
  EXPECT_EQ(MakePlan(tight).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(PlannerTest, SaysWhatIsMissingWhereNothingFits) {
  PlannerInput input = MakeInput(SmallModel(true, 32), {{"a/gpu0", "x", 1e9, 8 << 20}, {"b/gpu0", "x", 1e9, 7 << 20}}, 4);
  for (const std::string strategy : {"cephalo", "even"}) {
    input.config.planner.strategy = strategy;
    const auto status = MakePlan(input).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()), testing::AllOf(HasSubstr("/gpu0"), HasSubstr(" are missing"), HasSubstr("lack"),
                                                              HasSubstr("what would fit, the cheapest first:")))
        << strategy;
  }
  input.config.planner.strategy = "cephalo";
  input.config.training.global_batch_size = 4000;  // boundaries alone
  EXPECT_THAT(std::string(MakePlan(input).status().message()), HasSubstr("of 4000 samples"));
  for (DeviceDescription& d : input.devices) d.memory_bytes = 1 << 20;
  EXPECT_THAT(std::string(MakePlan(input).status().message()), HasSubstr("23.0 MiB are missing"));
}

// Never stricter than planning itself, and decided without a profile.
TEST(PlannerTest, WhatCannotFitIsKnownFromShapesAlone) {
  int refused = 0;
  for (const int64_t layers : {2, 8, 32, 128}) {
    for (const int64_t mib : {1, 8, 64}) {
      PlannerInput input =
          MakeInput(SmallModel(true, layers), {{"a/gpu0", "x", 1e9, mib << 20}, {"b/gpu0", "x", 1e9, mib << 20}}, 2);
      const absl::Status could = CheckCouldFit(input.devices, input.model, input.config);
      if (could.ok()) continue;
      ++refused;
      EXPECT_EQ(could.code(), absl::StatusCode::kResourceExhausted);
      EXPECT_THAT(std::string(could.message()), testing::AllOf(HasSubstr("2 devices"), HasSubstr("iB are missing. ")));
      EXPECT_FALSE(MakePlan(input).ok()) << layers << " layers, " << mib << " MiB";
      input.devices[1].memory_bytes = 0;
      EXPECT_EQ(CheckCouldFit(input.devices, input.model, input.config), absl::OkStatus()) << "one without a limit";
    }
  }
  EXPECT_GE(refused, 4);
}

// Where state may be offloaded, a node's host memory counts once, whatever it has of devices.
TEST(PlannerTest, WhatCouldFitCountsTheHostsWhereStateMayBeOffloaded) {
  PlannerInput input = MakeInput(SmallModel(true, 32), {{"a/gpu0", "x", 1e9, 1 << 20}, {"a/gpu1", "x", 1e9, 1 << 20}}, 2);
  for (DeviceDescription& device : input.devices) device.node_host_memory_bytes = int64_t{1} << 20;
  const auto could = [&input](const char* offload) {
    input.config.planner.offload = offload;
    return CheckCouldFit(input.devices, input.model, input.config);
  };
  EXPECT_THAT(std::string(could("never").message()), testing::Not(HasSubstr("hosts")));
  EXPECT_THAT(std::string(could("activations").message()), testing::Not(HasSubstr("hosts"))) << "those are no state";
  EXPECT_THAT(std::string(could("auto").message()), HasSubstr("what their hosts offer 1.0 MiB; "));
  for (DeviceDescription& device : input.devices) device.node_host_memory_bytes = int64_t{1} << 40;
  EXPECT_EQ(could("auto"), absl::OkStatus());
  EXPECT_EQ(could("never").code(), absl::StatusCode::kResourceExhausted);
}

// Units that are stepped in turn leave no gradients: what may be planned so is not refused.
TEST(PlannerTest, WhatCouldFitCountsNoGradientsWhereUnitsMayStepInTurn) {
  PlannerInput input = MakeInput(SmallModel(true, 32), {{"a/gpu0", "x", 1e9, 1 << 20}, {"b/gpu0", "x", 1e9, 1 << 20}}, 2);
  const auto state = [&input] {
    const std::string text(CheckCouldFit(input.devices, input.model, input.config).message());
    const size_t at = text.find("state is ");
    return at == std::string::npos ? 0.0 : std::stod(text.substr(at + std::string("state is ").size()));
  };
  const double clipped = state();
  input.config.training.max_norm = 0;
  EXPECT_NEAR(state() / clipped, 3.0 / 4, 0.01);
}

// Links so slow that gathering parameters costs more than waiting for the stage before.
TEST(PlannerTest, AutoPlansPipelinesForJobs) {
  PlannerInput input = MakeInput(SmallModel(true, 8), MixedDevices(), 32, 3e6);
  input.config.planner.strategy = "auto";
  const auto result = MakePlan(input);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->plan.pipelines[0].stages.size(), 1u);
  EXPECT_LT(result->plan.predicted.step_seconds, 0.9 * StepOf(input, "cephalo"));
}

// Its arrays are whole where they are: nothing is assembled beside them.
TEST(PlannerTest, ADeviceAloneNeedsNoBuffersBesideItsState) {
  const auto result = MakePlan(MakeInput(SmallModel(), {{"a/gpu0", "x"}}, 4));
  ASSERT_TRUE(result.ok()) << result.status();
  const Program& program = result->programs[0];
  for (const auto* buffers : {&program.parameter_buffers, &program.gradient_buffers}) {
    for (const UnitBuffer& buffer : *buffers) EXPECT_GE(buffer.home_of, 0);
  }
  EXPECT_EQ(UnitsOf(*result)[0].ranks[0].predicted.memory.gathered, 0);
}

}  // namespace
}  // namespace motley::planner
