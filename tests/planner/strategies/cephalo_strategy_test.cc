// even, fsdp and cephalo: their plans keep the language's rules, fit, and differ as the papers say.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/pricing/evaluate.h"
#include "planner/strategies/catalog.h"
#include "tests/planner/offline_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

// The evaluated plan; fails the test where there is none or it does not fit.
Plan Evaluated(const Setting& setting, absl::StatusOr<Plan> plan) {
  if (!plan.ok()) {
    ADD_FAILURE() << plan.status();
    return {};
  }
  EXPECT_TRUE(Validate(*plan, setting.workload.model).ok()) << Validate(*plan, setting.workload.model);
  const auto evaluation = Evaluate(setting, *std::move(plan));
  if (!evaluation.ok()) {
    ADD_FAILURE() << evaluation.status();
    return {};
  }
  EXPECT_TRUE(evaluation->does_not_fit.empty()) << evaluation->does_not_fit[0];
  return evaluation->plan;
}

const std::vector<UnitPlan>& UnitsOf(const Plan& plan) { return plan.pipelines.at(0).stages.at(0).units; }

TEST(EvenStrategyTest, GivesEqualBatchesAndShards) {
  const auto setting = MakeSetting(SmallWorkload(26));
  const Plan plan = Evaluated(*setting, PlanEven(*setting));
  EXPECT_EQ(plan.schedule, ScheduleFamily::kLayered);
  std::vector<int64_t> batches;
  for (const UnitPlan& unit : UnitsOf(plan)) {
    batches.push_back(unit.batch());
    EXPECT_DOUBLE_EQ(unit.ranks[0].shard_ratio, 0.25);
  }
  EXPECT_EQ(batches, (std::vector<int64_t>{7, 7, 6, 6}));
}

TEST(FsdpStrategyTest, UsesOneMicrobatchSizeForAll) {
  const auto setting = MakeSetting(SmallWorkload(32));
  const Plan plan = Evaluated(*setting, PlanFsdp(*setting));
  EXPECT_EQ(plan.schedule, ScheduleFamily::k1F1B);
  const int64_t m = UnitsOf(plan)[0].microbatches[0];
  EXPECT_EQ(m & (m - 1), 0);
  for (const UnitPlan& unit : UnitsOf(plan)) EXPECT_EQ(unit.microbatches, UnitsOf(plan)[0].microbatches);
}

TEST(FsdpStrategyTest, HonoursZeroStageAndPublishedShardsEverything) {
  for (const int zero_stage : {0, 1, 2, 3}) {
    PlanRequest request;
    request.zero_stage = zero_stage;
    const auto setting = MakeSetting(SmallWorkload(32), request);
    EXPECT_EQ(Evaluated(*setting, PlanFsdp(*setting)).pipelines.at(0).stages.at(0).zero_stage, std::max(zero_stage, 1));
  }
  PlanRequest published;
  published.fidelity = Fidelity::kPublished;
  const auto setting = MakeSetting(SmallWorkload(32), published);
  EXPECT_EQ(Evaluated(*setting, PlanFsdp(*setting)).pipelines.at(0).stages.at(0).zero_stage, 3);
}

TEST(FsdpStrategyTest, SaysWhatIsMissing) {
  const auto setting = MakeSetting(LargeWorkload(8, 8));
  const absl::Status status = PlanFsdp(*setting).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("fsdp"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("iB of its "));
}

TEST(CephaloStrategyTest, BeatsEqualBatchesOnMixedCards) {
  for (const double billions : {1.0, 3.0, 4.0}) {
    const auto setting = MakeSetting(LargeWorkload(billions, 64));
    const Plan cephalo = Evaluated(*setting, PlanCephalo(*setting));
    const auto even = PlanEven(*setting);
    if (!even.ok()) continue;
    EXPECT_LT(cephalo.predicted.step_seconds, Evaluated(*setting, even).predicted.step_seconds) << billions;
  }
}

TEST(CephaloStrategyTest, FitsWhereEqualShardsDoNot) {
  const auto setting = MakeSetting(LargeWorkload(5.4, 8));
  EXPECT_FALSE(PlanEven(*setting).ok());
  const Plan plan = Evaluated(*setting, PlanCephalo(*setting));
  EXPECT_GT(UnitsOf(plan)[0].ranks[0].shard_ratio, 0.3);
}

TEST(CephaloStrategyTest, PublishedGivesEveryDeviceSamplesAndRecomputesAll) {
  PlanRequest request;
  request.fidelity = Fidelity::kPublished;
  const auto setting = MakeSetting(SmallWorkload(12), request);
  const Plan plan = Evaluated(*setting, PlanCephalo(*setting));
  ASSERT_EQ(UnitsOf(plan).size(), 4u);
  for (const UnitPlan& unit : UnitsOf(plan)) {
    EXPECT_GE(unit.batch(), 1);
    EXPECT_EQ(unit.ranks[0].recompute, OpSet::All());
    EXPECT_FALSE(unit.ranks[0].offload.activations);  // the cluster does not describe its hosts
  }
}

TEST(CephaloStrategyTest, PublishedOffloadsWhereHostsAreKnown) {
  PlanRequest request;
  request.fidelity = Fidelity::kPublished;
  const auto setting = MakeSetting(SmallWorkload(12), request, R"(name = "hosts"
[defaults]
nic_gbit_per_second = 50
host_memory_gib = 256
host_link_gb_per_second = 12
[[node]]
name = "n1"
gpus = ["A6000", "L4"]
)");
  const Plan plan = Evaluated(*setting, PlanCephalo(*setting));
  for (const UnitPlan& unit : UnitsOf(plan)) EXPECT_TRUE(unit.ranks[0].offload.activations);
}

// Two cards of one memory and unlike speed. Where a batch is small all fits on the cards, and offload gains nothing. A large one
// is what the slow card's memory makes of it, until inputs wait on the host.
TEST(CephaloStrategyTest, InputsWaitOnTheHostWhereThatPays) {
  const auto seconds_of = [](int64_t batch, OffloadKinds kinds, bool* offloads) {
    PlanRequest request;
    request.runnable = true;
    request.offload = kinds;
    const auto setting = MakeSetting(SmallWorkload(batch), request, R"(name = "hosts"
[defaults]
nic_gbit_per_second = 50
host_memory_gib = 256
host_link_gb_per_second = 200
[[card]]
name = "small"
like = "RTX-4090"
memory_gib = 8
[[card]]
name = "slow"
like = "P40"
memory_gib = 8
[[node]]
name = "n1"
gpus = ["small", "slow"]
)");
    const Plan plan = Evaluated(*setting, PlanCephalo(*setting));
    *offloads = UnitsOf(plan)[0].ranks[0].offload.activations;
    return plan.predicted.step_seconds;
  };
  bool offloads = true;
  seconds_of(4, OffloadKinds::All(), &offloads);
  EXPECT_FALSE(offloads);
  const double without = seconds_of(512, OffloadKinds::None(), &offloads);
  EXPECT_FALSE(offloads);
  EXPECT_LT(seconds_of(512, OffloadKinds::All(), &offloads), 0.99 * without);
  EXPECT_TRUE(offloads);
}

TEST(CephaloStrategyTest, ListsExcludedAndUnusedDevices) {
  PlanRequest request;
  request.exclude = {"n2/gpu1"};
  const auto setting = MakeSetting(SmallWorkload(12), request);
  const Plan plan = Evaluated(*setting, PlanCephalo(*setting));
  ASSERT_FALSE(plan.unused.empty());
  EXPECT_EQ(plan.unused[0].device.value(), "n2/gpu1");
  EXPECT_EQ(UnitsOf(plan).size() + plan.unused.size(), 4u);
}

TEST(CephaloStrategyTest, RefusesPinsToStagesThatItDoesNotHave) {
  PlanRequest request;
  request.pins = {{"stage1", "n2"}};
  const auto setting = MakeSetting(SmallWorkload(12), request);
  for (const auto plan : {&PlanCephalo, &PlanEven, &PlanFsdp}) {
    const absl::Status status = plan(*setting).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("stage1"));
  }
}

TEST(CephaloStrategyTest, TheSameSettingGivesTheSamePlan) {
  const auto setting = MakeSetting(LargeWorkload(3, 64));
  const auto first = PlanCephalo(*setting), second = PlanCephalo(*setting);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(ToJson(*first), ToJson(*second));
}

}  // namespace
}  // namespace motley::planner
