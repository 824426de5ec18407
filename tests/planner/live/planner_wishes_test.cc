// What a job may ask of the planner: a strategy, a plan by hand, a type, pins.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/live/job_request.h"
#include "planner/live/planner.h"
#include "planner/strategies/catalog.h"
#include "tests/planner/cluster_fixture.h"
#include "tests/planner/live/planned.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PlannerTest, UnknownStrategyNamesTheKnown) {
  PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 8);
  input.config.planner.strategy = "cefalo";
  const auto status = MakePlan(input).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("did you mean 'cephalo'?"));
}

TEST(PlannerTest, EvenIsEven) {
  PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 17);
  input.config.planner.strategy = "even";
  const auto result = MakePlan(input);
  ASSERT_TRUE(result.ok()) << result.status();
  for (size_t r = 0; r < 5; ++r) {
    EXPECT_EQ(UnitsOf(*result)[r].batch(), r < 2 ? 4 : 3);
    EXPECT_NEAR(UnitsOf(*result)[r].ranks[0].shard_ratio, 0.2, 1e-3);
  }
}

TEST(PlannerTest, PricesAPlanGivenByHand) {
  PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 6);
  // Batch 0 on one, share 0 on another, the rest derived; three devices left out.
  input.config.planner.plan_json = R"({"pipelines":[{"stages":[{"units":[
      {"ranks":[{"device":"n1/gpu0","shard_ratio":0}],"microbatches":[2,2,2]},
      {"ranks":[{"device":"n2/gpu0","shard_ratio":1}],"microbatches":[]}]}]}]})";
  const auto result = MakePlan(input);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->plan.strategy, "manual");
  EXPECT_EQ(result->programs.size(), 2u);
  EXPECT_EQ(result->plan.ownership->NumOwned(1, 0), 0);
  EXPECT_EQ(result->evaluations[1].microbatches.size(), 0u);
  input.config.training.global_batch_size = 7;
  EXPECT_EQ(MakePlan(input).status().code(), absl::StatusCode::kInvalidArgument);
  input.config.training.global_batch_size = 6;
  input.devices[0].memory_bytes = 3 << 20;
  EXPECT_THAT(std::string(MakePlan(input).status().message()), HasSubstr("n1/gpu0 (A6000) needs"));
  input.config.planner.plan_json = R"({"pipelines":[{"stages":[{"units":[
      {"ranks":[{"device":"n7/gpu0","shard_ratio":1}],"microbatches":[6]}]}]}]})";
  EXPECT_THAT(std::string(MakePlan(input).status().message()), HasSubstr("rank 0 (n7/gpu0): cluster live has no such device"));
  input.cluster_name = "cluster-of-j";
  EXPECT_THAT(std::string(MakePlan(input).status().message()), HasSubstr("(n7/gpu0): cluster of job j has no such device"));
}

TEST(PlannerTest, AJobMayAskForEveryStrategy) {
  PlannerInput input = MakeInput(SmallModel(true, 8), MixedDevices(), 8);
  const double best = StepOf(input, "auto");
  for (const CatalogEntry& entry : Catalog()) {
    input.config.planner.strategy = std::string(entry.name);
    EXPECT_EQ(CheckPlannerSection(input.config, input.model), absl::OkStatus());
    const auto result = MakePlan(input);
    ASSERT_TRUE(result.ok()) << entry.name << ": " << result.status();
    EXPECT_EQ(result->plan.strategy, entry.name);
    EXPECT_EQ(ValidateForEngine(result->plan, input.model), absl::OkStatus()) << entry.name;
    EXPECT_GE(result->plan.predicted.step_seconds, best * (1 - 1e-9)) << entry.name;
  }
  input.config.planner.strategy = "atuo";
  EXPECT_EQ(CheckPlannerSection(input.config, input.model).code(), absl::StatusCode::kInvalidArgument);
}

TEST(PlannerTest, AJobSaysWhatMayWaitOnTheHost) {
  PlannerSection section;
  EXPECT_EQ(RequestOf(section)->offload, OffloadKinds::All()) << "whatever runs";
  section.offload = "never";
  EXPECT_EQ(RequestOf(section)->offload, OffloadKinds::None());
  for (const std::string& word : WordsOf(OffloadKinds::All())) {
    section.offload = word;
    EXPECT_EQ(RequestOf(section)->offload, *ParseOffload(word));
  }
  section.offload = "weights";
  EXPECT_THAT(std::string(CheckPlannerWords(section).message()), HasSubstr("'weights' is not known"));
}

TEST(PlannerTest, APlanThatTheEngineDoesNotRunIsRefusedByName) {
  PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 8);
  input.config.planner.plan_json = R"({"schedule":"1f1b","pipelines":[
      {"stages":[{"ministages":[[0,LAST]],"units":[
          {"ranks":[{"device":"n1/gpu0","shard_ratio":1,"offload":["parameters"]}],"microbatches":[4]}]}]},
      {"stages":[{"ministages":[[0,LAST]],"units":[{"ranks":[{"device":"n1/gpu1","shard_ratio":1}],"microbatches":[4]}]}]}]})";
  input.config.planner.plan_json =
      absl::StrReplaceAll(input.config.planner.plan_json, {{"LAST", absl::StrCat(input.model.num_layers - 1)}});
  EXPECT_THAT(std::string(CheckPlannerSection(input.config, input.model).message()),
              HasSubstr("it offloads parameters with 2 pipelines, the engine runs"));
  input.config.planner.plan_json = R"({"schedule":"1f1b","pipelines":[{"stages":[{"units":[
      {"ranks":[{"device":"n1/gpu0","shard_ratio":1}],"microbatches":[8]}]}]}]})";
  EXPECT_EQ(CheckPlannerSection(input.config, input.model), absl::OkStatus());
  EXPECT_EQ(MakePlan(input)->plan.schedule, ScheduleFamily::kLayered);
}

// What is known at the step's end alone decides nothing where units are stepped before.
TEST(PlannerTest, StepsInTurnNeedAJobThatNeitherClipsNorSkips) {
  PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 8);
  input.config.planner.plan_json = R"({"schedule":"layered","optimizer_steps":"in_turn","pipelines":[{"stages":[{"units":[
      {"ranks":[{"device":"n1/gpu0","shard_ratio":1}],"microbatches":[8]}]}]}]})";
  const auto refused = [&] { return std::string(CheckPlannerSection(input.config, input.model).message()); };
  EXPECT_THAT(refused(), HasSubstr("planner.plan_json: plan: optimizer_steps is in_turn, but training.max_norm is 1, which clips "
                                   "by the norm of all gradients; set training.max_norm to 0, or say at_end in the plan"));
  input.config.training.max_norm = 0;
  EXPECT_THAT(refused(), Not(HasSubstr("training")));
  input.config.training.mixed_precision_param = "float16";
  EXPECT_THAT(refused(), HasSubstr("in_turn, but the job computes in float16, whose loss scale skips a step for any gradient; "
                                   "compute in bfloat16 or float32, or say at_end in the plan"));
  input.config.training.mixed_precision_param = "bfloat16";
  EXPECT_THAT(refused(), Not(HasSubstr("float16")));
}

// The strategies know, too, and what is planned so is what a job may ask for by hand.
TEST(PlannerTest, AJobThatNeitherClipsNorSkipsMayBePlannedWithStepsInTurn) {
  PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 8);
  const auto may = [&] { return SettingOf(input)->setting->limits().steps_in_turn; };
  EXPECT_FALSE(may());
  input.config.training.max_norm = 0;
  EXPECT_TRUE(may());
  input.config.training.mixed_precision_param = "float16";
  EXPECT_FALSE(may());
}

TEST(PlannerTest, AGivenPlanMaySplitTheBackwardAndRecomputeOperators) {
  PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 8);
  input.config.planner.plan_json = R"({"schedule":"zero_bubble","pipelines":[{"stages":[{"units":[
      {"ranks":[{"device":"n1/gpu0","shard_ratio":1,"recompute":"norm1,activation"}],"microbatches":[5,3]}]}]}]})";
  EXPECT_EQ(CheckPlannerSection(input.config, input.model), absl::OkStatus());
  const auto planned = MakePlan(input);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_TRUE(planned->plan.predicted.as_run);
  const std::string program = ToText(planned->programs[0]);
  EXPECT_THAT(program, HasSubstr("recompute block=1 mb=0 buffer=1 ops=norm1,activation"));
  EXPECT_THAT(program, HasSubstr("backward_weight block=1 mb=1"));
}

TEST(PlannerTest, DevicesWithoutTheTypeAreNamedWithThoseThatHaveIt) {
  PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 8);
  const auto card = [](const char* id, const char* model, int capability) {
    DeviceDescription device;
    device.id = DeviceId(id);
    device.model = model;
    device.kind = DeviceKind::kCuda;
    device.card.compute_capability = capability;
    return device;
  };
  const std::vector<DeviceDescription> cards = {card("n1/gpu0", "P40", 61), card("n2/gpu0", "V100", 70),
                                                card("n3/gpu0", "A100", 80)};
  const auto complaint = [&](const std::vector<DeviceDescription>& devices, const char* type) {
    input.config.training.mixed_precision_param = type;
    return std::string(CheckComputeType(devices, input.config).message());
  };
  EXPECT_EQ(
      complaint(cards, "bfloat16"),
      "training.mixed_precision_param is bfloat16, which these devices do not have: n1/gpu0 (P40, sm_61), n2/gpu0 (V100, "
      "sm_70); those that have it: n3/gpu0 (A100, sm_80). Leave them out with planner.exclude, or compute in float16 or float32");
  EXPECT_THAT(complaint({cards[0]}, "bfloat16"), HasSubstr("no other device is there"));
  EXPECT_EQ(complaint(cards, "float16"), "");
  EXPECT_THAT(complaint({card("n1/gpu0", "M60", 52)}, "float16"), HasSubstr("n1/gpu0 (M60, sm_52)"));
  EXPECT_EQ(complaint(cards, ""), "");
  for (const char* type : {"bfloat16", "float16"}) {
    EXPECT_EQ(complaint(input.devices, type), "") << "devices on the host have every type";
  }
}

TEST(PlannerTest, PinsHoldWhereTheirDeviceIs) {
  std::vector<DeviceSetup> devices = MixedDevices();
  devices.push_back({"n5/gpu0", "snail", 1e5, int64_t{64} << 20});
  PlannerInput input = MakeInput(SmallModel(), devices, 64, 1e12);
  const auto uses = [](const absl::StatusOr<PlanResult>& result, const char* device) {
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() && std::any_of(UnitsOf(*result).begin(), UnitsOf(*result).end(),
                                      [&](const UnitPlan& unit) { return unit.ranks[0].device == DeviceId(device); });
  };
  EXPECT_FALSE(uses(MakePlan(input), "n5/gpu0"));
  input.config.planner.pins = "stage0=n5";
  EXPECT_TRUE(uses(MakePlan(input), "n5/gpu0"));
  input.config.planner.pins = "stage0=n9";  // its node is not there today
  EXPECT_EQ(MakePlan(input).status().code(), absl::StatusCode::kNotFound) << "pins are required unless the job says otherwise";
  input.config.planner.pins_required = false;
  const auto without = MakePlan(input);
  EXPECT_FALSE(uses(without, "n5/gpu0"));
  EXPECT_THAT(without->explanation, HasSubstr("planned without pin stage0=n9: not there now"));
  EXPECT_THAT(without->dropped_pins, testing::ElementsAre("stage0=n9: not there now"));
}

TEST(PlannerTest, PinsThatAreNotRequiredAndCannotBeKeptAreDropped) {
  PlannerInput input = MakeInput(SmallModel(), {{"n1/gpu0", "x"}}, 8);
  input.config.planner.pins = "stage0=n2, stage1=n1";
  EXPECT_FALSE(MakePlan(input).ok());
  input.config.planner.pins_required = false;
  const auto kept = MakePlan(input);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_THAT(kept->dropped_pins, testing::ElementsAre("stage0=n2: not there now", "stage1=n1: too few devices for that stage"));
  // Both are there, and the strategy makes one stage.
  input = MakeInput(SmallModel(), {{"n1/gpu0", "x"}, {"n2/gpu0", "x"}}, 8);
  input.config.planner.pins = "stage0=n1, stage1=n2";
  EXPECT_FALSE(MakePlan(input).ok());
  input.config.planner.pins_required = false;
  const auto unpinned = MakePlan(input);
  ASSERT_TRUE(unpinned.ok()) << unpinned.status();
  ASSERT_EQ(unpinned->dropped_pins.size(), 2u);
  EXPECT_THAT(unpinned->dropped_pins[1], HasSubstr("stage1=n2: "));
}

}  // namespace
}  // namespace motley::planner
