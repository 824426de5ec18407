#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/plan/plan.h"
#include "tests/planner/plan_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string JsonComplaint(const std::string& json) { return std::string(PlanFromJson(json).status().message()); }

TEST(PlanJsonTest, RoundTripsExactly) {
  for (const Plan& plan : {OneStagePlan(SmallModel()), FullPlan(), Plan()}) {
    const std::string json = ToJson(plan);
    const auto parsed = PlanFromJson(json);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(ToJson(*parsed), json);
    EXPECT_EQ(ToJson(*PlanFromJson(ToJson(plan, 2))), json);
  }
  const Plan plan = FullPlan(), parsed = *PlanFromJson(ToJson(plan));
  EXPECT_EQ(parsed.predicted.step_seconds, 0.1 + 0.2) << "to the last bit";
  EXPECT_EQ(parsed.pipelines[0].stages[0].units[0].ranks[0].predicted.memory,
            plan.pipelines[0].stages[0].units[0].ranks[0].predicted.memory);
  EXPECT_EQ(parsed.pipelines[0].stages[0].units[0].ranks[0].predicted.most,
            plan.pipelines[0].stages[0].units[0].ranks[0].predicted.most);
  EXPECT_EQ(parsed.pipelines[0].stages[0].units[0].ranks[0].predicted.waits,
            plan.pipelines[0].stages[0].units[0].ranks[0].predicted.waits);
  EXPECT_EQ(parsed.pipelines[0].stages[0].units[0].ranks[1].tp_share, 0.25);
  EXPECT_TRUE(parsed.pipelines[0].stages[1].units[0].ranks[0].offload.optimizer);
  EXPECT_FALSE(parsed.pipelines[0].stages[1].units[0].ranks[0].offload.activations);
  EXPECT_EQ(parsed.pipelines[1].stages[0].zero_stage, 1);
  EXPECT_EQ(parsed.unused[1].because, "excluded\nby the user");
  EXPECT_EQ(parsed.predicted.notes, plan.predicted.notes);
  EXPECT_EQ(PlanFromJson(ToJson(OneStagePlan(SmallModel())))->epoch, Epoch(3));
}

TEST(PlanJsonTest, StepsAndWhatWaitsInHostMemory) {
  Plan plan = OneStagePlan(SmallModel());
  EXPECT_EQ(ToJson(plan).find("optimizer_steps"), std::string::npos);
  EXPECT_EQ(ToJson(plan).find("prefetch"), std::string::npos);
  plan.pipelines[0].stages[0].prefetch = 3;
  plan.optimizer_steps = OptimizerSteps::kInTurn;
  RankPlan& rank = plan.pipelines[0].stages[0].units[0].ranks[0];
  rank.offload = OffloadKinds::All();
  const auto parsed = PlanFromJson(ToJson(plan));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->optimizer_steps, OptimizerSteps::kInTurn);
  EXPECT_EQ(parsed->pipelines[0].stages[0].units[0].ranks[0].offload, OffloadKinds::All());
  EXPECT_EQ(parsed->pipelines[0].stages[0].prefetch, 3);
  EXPECT_EQ(ToJson(*parsed), ToJson(plan));
  EXPECT_THAT(JsonComplaint(R"({"optimizer_steps":"now","pipelines":[]})"),
              HasSubstr("optimizer_steps 'now' is not known; use at_end or in_turn"));
}

TEST(PlanJsonTest, MicrobatchesInFlight) {
  const Plan plan = InTurnPlan();
  const auto parsed = PlanFromJson(ToJson(plan));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->pipelines[0].stages[0].in_flight, 3);
  EXPECT_EQ(parsed->pipelines[0].stages[1].in_flight, 0) << "not given: the schedule's own";
  EXPECT_EQ(ToJson(*parsed), ToJson(plan));
  EXPECT_THAT(JsonComplaint(R"({"pipelines":[{"stages":[{"in_flight":2.5,"units":[]}]}]})"),
              HasSubstr("plan.pipelines[0].stages[0].in_flight: must be an integer"));
}

TEST(PlanJsonTest, ReadsVersionOne) {
  const auto plan = PlanFromJson(R"({"schema_version": 1, "strategy": "cephalo", "epoch": 3, "global_batch": 6, "seq_len": 32,
    "dtype": "float32", "schedule": "layered", "pipelines": [{"stages": [{"ministages": [[0, 3]], "units": [
      {"ranks": [{"device": "n1/gpu0", "device_model": "L4", "recompute": "none", "shard_ratio": 0.25,
                  "predicted": {"busy_seconds": 0.4, "peak_bytes": 1000}}], "microbatches": [2, 2, 2]},
      {"ranks": [{"device": "n2/gpu0", "shard_ratio": 0.75}], "microbatches": []}], "placement": []}]}],
    "unused": [], "predicted": {"step_seconds": 0.4, "tokens_per_second": 480, "binding_constraint": "all-gather"}})");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->schema_version, 1);
  EXPECT_EQ(plan->pipelines[0].stages[0].zero_stage, 3);
  EXPECT_EQ(plan->pipelines[0].stages[0].units[0].ranks[0].tp_share, 1);
  EXPECT_EQ(Validate(*plan, SmallModel()), absl::OkStatus());
}

TEST(PlanJsonTest, PlacementsOfOlderPlansAreMadeAnew) {
  const auto json = [](const std::string& version) {
    return R"({"schema_version": )" + version + R"(, "pipelines": [{"stages": [{"ministages": [[0, 3]], "units": [
        {"ranks": [{"device": "n1/gpu0", "shard_ratio": 0.25}], "microbatches": [2]},
        {"ranks": [{"device": "n2/gpu0", "shard_ratio": 0.75}], "microbatches": []}],
        "placement": [[0, 1, 4], [0, 1, 4], [0, 1, 4], [0, 1, 4], [0, 1, 4], [0, 1, 4]]}]}]})";
  };
  const auto old = PlanFromJson(json("3"));
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_FALSE(old->ownership);
  EXPECT_EQ(old->pipelines[0].stages[0].units[1].ranks[0].shard_ratio, 0.75);
  EXPECT_THAT(JsonComplaint(json("4")), HasSubstr("stages[0]: placement: the plan's own `ownership` says it since schema"));
}

TEST(PlanJsonTest, OwnersAreNamedAndLikeBlocksStandOnce) {
  const auto json = [](const std::string& ownership, const std::string& share = "") {
    return R"({"global_batch": 2, "seq_len": 32, "pipelines": [{"stages": [{"ministages": [[0, 1]], "units": [
      {"ranks": [{"device": "a/0")" +
           share + R"(}], "microbatches": [1]}, {"ranks": [{"device": "a/1"}], "microbatches": [1]}]}]}],
      "ownership": )" +
           ownership + "}";
  };
  const auto plan = PlanFromJson(json(R"([{"blocks": [[0, 0], [3, 3]], "ranges": [["a/1", 0, 6]]},
               {"blocks": [[1, 2]], "ranges": [["a/1", 0, 1], ["a/0", 1, 4], ["a/1", 4, 6]]}])"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->ownership->Of(2), (OwnedRanges{{1, 0, 1}, {0, 1, 4}, {1, 4, 6}}));
  EXPECT_EQ(plan->ownership->Of(3), (OwnedRanges{{1, 0, 6}}));
  EXPECT_DOUBLE_EQ(plan->pipelines[0].stages[0].units[0].ranks[0].shard_ratio, 0.25);
  EXPECT_EQ(*PlanFromJson(ToJson(*plan))->ownership, *plan->ownership);
  EXPECT_THAT(ToJson(*plan), Not(HasSubstr("shard_ratio")));

  const std::string good = R"({"blocks": [[0, 3]], "ranges": [["a/0", 0, 6]]})";
  EXPECT_THAT(JsonComplaint(json("[" + good + "]", R"(, "shard_ratio": 0.5)")),
              HasSubstr("plan.ownership: stands beside shard_ratio, which says the same; leave out one of them"));
  EXPECT_THAT(JsonComplaint(json("[" + good + "," + good + "]")), HasSubstr("ownership[1].blocks[0]: block 0 is there twice"));
  EXPECT_THAT(JsonComplaint(json(R"([{"blocks": [[1, 3]], "ranges": []}])")), HasSubstr("ownership: block 0 is missing"));
  EXPECT_THAT(JsonComplaint(json(R"([{"blocks": [[0, 1]], "ranges": [["b/0", 0, 6]]}])")),
              HasSubstr("ranges[0]: the plan has no device 'b/0'"));
  EXPECT_THAT(JsonComplaint(json(R"([{"blocks": [[0, 1]], "ranges": [["a/0", 6]]}])")), HasSubstr("ranges[0]: must be [device,"));
  EXPECT_THAT(JsonComplaint(json(R"([{"blocks": [3], "ranges": []}])")), HasSubstr("blocks[0]: must be"));
  EXPECT_THAT(JsonComplaint(json(R"([{"blocks": [[0, 99999999]], "ranges": []}])")),
              HasSubstr("must be [first block, last block]"));
}

TEST(PlanJsonTest, SchedulesByClassOfDevices) {
  const auto json = [](const std::string& classes, const std::string& actions = "(0F0 0B0)x2+1") {
    return R"({"global_batch": 8, "seq_len": 32, "schedule": "1f1b", "pipelines": [{"stages": [{"ministages": [[0, 3]], "units": [
      {"ranks": [{"device": "a/0", "shard_ratio": 0.5}], "microbatches": [2, 2]},
      {"ranks": [{"device": "a/1", "shard_ratio": 0.5}], "microbatches": [2, 2]}]}]}],
      "schedules": {"training": [{"stage_of": [0], "stages": [{"actions": ")" +
           actions + R"(", "classes": )" + classes + "}]}]}}";
  };
  const auto plan = PlanFromJson(json(R"([{"devices": ["a/1", "a/0"], "microbatches": "2@0 2@4"}])"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const StageSchedule& stage = plan->training->pipelines[0].stages[0];
  EXPECT_EQ(ToText(stage.members[0]), "2@2 2@6");
  EXPECT_EQ(ToText(stage.members[1]), "2@0 2@4");
  EXPECT_EQ(ToText(ActionsOf(stage, 0)), "0F0 0B0 0F1 0B1");
  EXPECT_EQ(Validate(*plan, SmallModel()), absl::OkStatus());
  EXPECT_EQ(*PlanFromJson(ToJson(*plan))->training, *plan->training);

  const std::string path = "plan.schedules.training[0].stages[0]";
  EXPECT_THAT(JsonComplaint(json(R"([{"devices": ["a/1"], "microbatches": "2@0 2@4"}])")),
              HasSubstr(path + ": classes: device 0 of the stage is missing"));
  EXPECT_THAT(JsonComplaint(json(R"([{"devices": ["a/1", "a/1"], "microbatches": "2@0 2@4"}])")),
              HasSubstr(path + ".classes[0]: devices: 'a/1' is there twice"));
  EXPECT_THAT(JsonComplaint(json(R"([{"devices": ["b/1"], "microbatches": "2@0 2@4"}])")), HasSubstr("the stage has no 'b/1'"));
  EXPECT_THAT(JsonComplaint(json(R"([{"devices": ["a/1", "a/0"], "microbatches": "2@0 2"}])")),
              HasSubstr("schedule: '2' is not a microbatch like 4@12"));
  EXPECT_THAT(JsonComplaint(json("[]", "0F0 0G0")), HasSubstr("schedule: '0G0' is not an action like 2F0"));
}

TEST(PlanJsonTest, ErrorsNameThePath) {
  EXPECT_THAT(JsonComplaint("{"), HasSubstr("not JSON"));
  EXPECT_THAT(JsonComplaint("[]"), HasSubstr("plan: must be an object"));
  EXPECT_THAT(JsonComplaint("{}"), HasSubstr("pipelines is missing"));
  EXPECT_THAT(JsonComplaint(R"({"pipeline":[]})"), HasSubstr("unknown key 'pipeline'; did you mean 'pipelines'?"));
  EXPECT_THAT(JsonComplaint(R"({"pipelines":{}})"), HasSubstr("plan.pipelines: must be a list"));
  EXPECT_THAT(JsonComplaint(R"({"pipelines":[{}]})"), HasSubstr("plan.pipelines[0]: stages is missing"));
  EXPECT_THAT(JsonComplaint(R"({"pipelines":[{"stages":[{"units":[{"ranks":[{"device":1}]}]}]}]})"),
              HasSubstr("plan.pipelines[0].stages[0].units[0].ranks[0].device: must be a string"));
  EXPECT_THAT(JsonComplaint(R"({"pipelines":[{"stages":[{"units":[{"ranks":[{"device":"a","recompute":"norm3"}]}]}]}]})"),
              HasSubstr("ranks[0].recompute: operator 'norm3' is not known; did you mean 'norm1'?"));
  EXPECT_THAT(JsonComplaint(R"({"dtype":"bf61","pipelines":[]})"), HasSubstr("plan.dtype: dtype 'bf61' is not known"));
  EXPECT_THAT(JsonComplaint(R"({"schedule":"layred","pipelines":[]})"),
              HasSubstr("plan.schedule: schedule 'layred' is not known"));
  EXPECT_THAT(JsonComplaint(R"({"pipelines":[{"stages":[{"ministages":[[1]],"units":[]}]}]})"),
              HasSubstr("ministages[0]: must be [first layer, last layer]"));
  EXPECT_THAT(JsonComplaint(R"({"pipelines":[{"stages":[{"units":[{"ranks":[{"offload":["weights"]}]}]}]}]})"),
              HasSubstr("offload[0]: 'weights' is not known"));
}

TEST(PlanJsonTest, WhatOtherSystemsDivideIsRefusedByName) {
  EXPECT_THAT(std::string(PlanFromJson(R"({"context_parallel_size": 2})").status().message()),
              testing::HasSubstr("context parallelism is not supported"));
  EXPECT_THAT(std::string(PlanFromJson(R"({"expert_parallel": 2})").status().message()),
              testing::HasSubstr("mixture of experts is not supported"));
}

TEST(PlanJsonTest, NumbersThatAreNone) {
  EXPECT_THAT(JsonComplaint(R"({"global_batch":1.5,"pipelines":[]})"), HasSubstr("plan.global_batch: must be an integer"));
  EXPECT_THAT(JsonComplaint(R"({"global_batch":18446744073709551615,"pipelines":[]})"),
              HasSubstr("plan.global_batch: must be an integer"));
  EXPECT_THAT(JsonComplaint(R"({"pipelines_zero_stage":4294967296,"pipelines":[]})"), HasSubstr("must be a small integer"));
  EXPECT_THAT(JsonComplaint(R"({"predicted":{"mfu":null},"pipelines":[]})"), HasSubstr("plan.predicted.mfu: must be a number"));
  EXPECT_THAT(JsonComplaint(R"({"predicted":{"estimated":1},"pipelines":[]})"), HasSubstr("must be true or false"));
}

TEST(PlanJsonTest, AnotherVersionIsSaidBeforeItsKeys) {
  EXPECT_THAT(JsonComplaint(R"({"schema_version":9,"stages":[]})"),
              HasSubstr("schema_version 9 is not known, this build reads 1 to 5"));
  EXPECT_THAT(JsonComplaint(R"({"schema_version":"2"})"), HasSubstr("schema_version: must be"));
}

TEST(PlanJsonTest, ADocumentThatIsNoPlanIsNotParsed) {
  const std::string huge(static_cast<size_t>(kLongestPlanBytes) + 1, '[');
  EXPECT_THAT(JsonComplaint(huge), HasSubstr("67108865 bytes; a plan has at most 67108864"));
  EXPECT_THAT(JsonComplaint(std::string(1 << 20, '[')), HasSubstr("plan: is nested deeper than 32 levels"));
}

TEST(PlanJsonTest, NamesThatAreNotUtf8AreReplaced) {
  Plan plan = FullPlan();
  plan.model = "path/\xff.json";
  EXPECT_TRUE(PlanFromJson(ToJson(plan)).ok());
}

}  // namespace
}  // namespace motley::planner
