#include "planner/answers/plan_answer.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/answers/explain_plan.h"
#include "planner/answers/given_plan.h"
#include "planner/answers/ways_out.h"
#include "planner/live/planner.h"
#include "planner/pricing/worst_memory.h"
#include "tests/planner/offline_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

PlanRequest Asking(const std::string& strategy) {
  PlanRequest request;
  request.strategy = strategy;
  return request;
}

TEST(CatalogTest, FindsByNameAndNamesTheNearest) {
  for (const CatalogEntry& entry : Catalog()) EXPECT_EQ(FindInCatalog(entry.name)->plan, entry.plan);
  EXPECT_EQ(Catalog().back().name, "auto");
  const absl::Status status = FindInCatalog("cefalo").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("did you mean 'cephalo'? known are even, "));
  // What others call what is here.
  for (const auto& [name, here] : std::vector<std::pair<std::string, std::string>>{
           {"DDP", "fsdp --zero-stage 0"}, {"ZeRO-3", "fsdp --zero-stage 3"}, {"deepspeed", "fsdp --zero-stage 3"}}) {
    EXPECT_THAT(std::string(FindInCatalog(name).status().message()), HasSubstr("did you mean '" + here + "'?"));
  }
}

TEST(OfflineTest, EveryStrategysPlanIsCompleteAndEvaluated) {
  for (const CatalogEntry& entry : Catalog()) {
    const auto setting = MakeSetting(SmallWorkload(), Asking(std::string(entry.name)));
    const auto result = AnswerPlan(*setting);
    ASSERT_TRUE(result.ok()) << entry.name << ": " << result.status();
    const Plan& plan = result->evaluation.plan;
    EXPECT_EQ(Validate(plan, setting->workload.model), absl::OkStatus()) << entry.name;
    EXPECT_EQ(plan.cluster, "mixed");
    EXPECT_EQ(std::set<std::string>(plan.predicted.notes.begin(), plan.predicted.notes.end()).size(),
              plan.predicted.notes.size());
    EXPECT_EQ(plan.model, "small");
    EXPECT_GT(plan.predicted.step_seconds, 0) << entry.name;
    EXPECT_GE(plan.predicted.gap(), 0) << entry.name << " is under the lower bound";
    size_t devices = plan.unused.size();
    for (const PipelinePlan& pipeline : plan.pipelines) {
      for (const StagePlan& stage : pipeline.stages) {
        for (const UnitPlan& unit : stage.units) devices += unit.ranks.size();
      }
    }
    EXPECT_EQ(devices, 4u) << entry.name << " leaves a device unexplained";
    EXPECT_EQ(ToJson(AnswerPlan(*setting)->evaluation.plan), ToJson(plan)) << entry.name << " is not deterministic";
    EXPECT_LE(WorstMemory(*setting, plan), 1);
    // The JSON gives the plan back, with its schedules and ranges and where they are made anew.
    EXPECT_EQ(ToJson(*PlanFromJson(ToJson(plan))), ToJson(plan));
    Plan bare = plan;
    bare.ownership.reset();
    bare.training.reset();
    bare.validation.reset();
    for (const Plan& written : {plan, bare}) {
      const auto again = PriceGivenPlan(*setting, *PlanFromJson(ToJson(written)));
      ASSERT_TRUE(again.ok()) << entry.name << again.status();
      EXPECT_EQ(again->evaluation.plan.predicted.step_seconds, plan.predicted.step_seconds) << entry.name;
    }
  }
}

TEST(OfflineTest, ExcludedDevicesAreListedAsUnused) {
  PlanRequest request = Asking("cephalo");
  request.exclude = {"n2"};
  const auto result = AnswerPlan(*MakeSetting(SmallWorkload(), request));
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->evaluation.plan.unused.size(), 2u);
  EXPECT_THAT(result->evaluation.plan.unused[0].because, HasSubstr("excluded"));
}

// Whatever is asked, all devices in one stage, in pairs: for what a strategy of its own might forget.
absl::StatusOr<Plan> PlanPairs(const Setting& setting) {
  Plan plan;
  plan.global_batch = setting.workload.global_batch;
  plan.seq_len = setting.workload.seq_len;
  plan.dtype = setting.workload.dtype;
  StagePlan stage;
  stage.ministages = {{0, setting.workload.model.num_layers - 1}};
  for (int d = 0; d + 1 < setting.num_devices(); d += 2) {
    UnitPlan& unit = stage.units.emplace_back();
    for (int i : {d, d + 1}) {
      RankPlan& rank = unit.ranks.emplace_back();
      rank.device = setting.cluster.devices[i].id;
      rank.tp_share = 0.5;
      rank.shard_ratio = 1.0 / setting.num_devices();
    }
    unit.microbatches = {setting.workload.global_batch / 2};
  }
  plan.pipelines = {{{stage}}};
  return plan;
}

TEST(OfflineTest, AStrategyThatDidNotFollowTheRequestIsRefused) {
  const CatalogEntry pairs = {"pairs", "", &PlanPairs};
  EXPECT_TRUE(PlanAndEvaluate(*MakeSetting(SmallWorkload()), pairs).ok());
  PlanRequest request;
  request.pins = {{"stage1", "n2"}};
  const absl::Status pinned = PlanAndEvaluate(*MakeSetting(SmallWorkload(), request), pairs).status();
  EXPECT_EQ(pinned.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(pinned.message()),
              HasSubstr("strategy pairs cannot follow the pin of n2/gpu0 to stage1: it puts it into stage0"));
  request.pins.clear();
  request.max_tp = 1;
  EXPECT_THAT(std::string(PlanAndEvaluate(*MakeSetting(SmallWorkload(), request), pairs).status().message()),
              HasSubstr("put 2 devices into one tensor-parallel unit, --max-tp allows 1"));
}

TEST(OfflineTest, CompareHasARowForEachStrategyAndSaysWhyNot) {
  const auto rows = Compare(*MakeSetting(SmallWorkload()));
  ASSERT_EQ(rows.size(), Catalog().size());
  for (const ComparisonRow& row : rows) {
    ASSERT_TRUE(row.status.ok()) << row.strategy << row.status;
    EXPECT_GT(row.plan.predicted.lower_bound_seconds, 0);
    EXPECT_GT(row.worst_memory, 0);
  }
  for (const ComparisonRow& row : Compare(*MakeSetting(LargeWorkload(60)))) {
    EXPECT_EQ(row.status.code(), absl::StatusCode::kResourceExhausted) << row.strategy << row.status;
  }
}

TEST(OfflineTest, WhatFitsNowhereSaysWhatWould) {
  const absl::Status status = AnswerPlan(*MakeSetting(LargeWorkload(12), Asking("cephalo"))).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr(" are missing\n"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\nwhat would fit, the cheapest first:\n"));
}

TEST(WaysOutTest, EachWayReallyFits) {
  // State alone is more than the four cards have: neither batch nor sequence help, cards do.
  const auto setting = MakeSetting(LargeWorkload(12), Asking("even"));
  const std::vector<WayOut> ways = FindWaysOut(*setting, nullptr);
  ASSERT_FALSE(ways.empty());
  EXPECT_LE(ways.size(), 3u);
  for (const WayOut& way : ways) EXPECT_GT(way.step_seconds, 0) << way.what;
  EXPECT_THAT(ways.back().what, testing::MatchesRegex("[0-9]+ more .* on n[12]")) << ways.back().what;
}

TEST(WaysOutTest, ASmallerBatchIsFoundToAnEighth) {
  // Layered keeps every sample's boundaries; this many do not fit, the state does.
  const std::string toml = "name = \"two\"\n[[node]]\nname = \"n1\"\ngpus = [{card = \"T4\", count = 2}]\n";
  const auto setting = MakeSetting(LargeWorkload(1, 1000), Asking("cephalo"), toml);
  bool found = false;
  for (const WayOut& way : FindWaysOut(*setting, nullptr, 10)) {
    int64_t batch = 0, asked = 0;
    if (sscanf(way.what.c_str(), "--global-batch %ld instead of %ld", &batch, &asked) != 2) continue;
    found = true;
    EXPECT_EQ(asked, 1000);
    EXPECT_TRUE(AnswerPlan(*MakeSetting(LargeWorkload(1, batch), Asking("cephalo"), toml)).ok());
    EXPECT_FALSE(AnswerPlan(*MakeSetting(LargeWorkload(1, batch + batch / 4 + 1), Asking("cephalo"), toml)).ok());
  }
  EXPECT_TRUE(found);
}

TEST(WaysOutTest, TheDeadlineBoundsThemToo) {
  const auto setting = MakeSetting(LargeWorkload(12), Asking("even"));
  EXPECT_TRUE(FindWaysOut(*setting, nullptr, 3, absl::ZeroDuration()).empty()) << "no time left";
  EXPECT_FALSE(FindWaysOut(*setting, nullptr, 3, absl::Hours(1)).empty());
}

TEST(WaysOutTest, TheRealReasonLeads) {
  // Three samples for four devices: memory is not the matter.
  PlanRequest request = Asking("cephalo");
  request.fidelity = Fidelity::kPublished;
  const auto setting = MakeSetting(SmallWorkload(3), request);
  const absl::Status why = PlanAndEvaluate(*setting, *FindInCatalog("cephalo")).status();
  ASSERT_EQ(why.code(), absl::StatusCode::kResourceExhausted) << why;
  const std::string few(NothingFits(*setting, nullptr, why).message());
  EXPECT_THAT(few,
              testing::StartsWith("small on mixed with batch 3, sequence 128, float32: no plan: a batch of 3 does not give"));
  EXPECT_THAT(few, testing::Not(HasSubstr("does not fit")));
  const std::string large(
      NothingFits(*MakeSetting(LargeWorkload(12), request), nullptr, absl::ResourceExhaustedError("x")).message());
  EXPECT_THAT(large, HasSubstr("does not fit: the training state is "));
  EXPECT_THAT(large, HasSubstr(" are missing\nx\n"));
}

TEST(ExplainOfflineTest, SamplesOfAUnitCountOnce) {
  const auto setting = MakeSetting(SmallWorkload());
  Evaluation evaluation;
  Plan& plan = evaluation.plan;
  StagePlan stage;
  for (const auto& [ranks, batch] :
       {std::pair<std::vector<const char*>, int64_t>{{"n2/gpu0", "n2/gpu1"}, 5}, {{"n1/gpu0"}, 19}}) {
    UnitPlan& unit = stage.units.emplace_back();
    unit.microbatches = {batch};
    for (const char* name : ranks) {
      unit.ranks.emplace_back().device = DeviceId(name);
      unit.ranks.back().tp_share = 1.0 / static_cast<double>(ranks.size());
    }
  }
  plan.pipelines.push_back({{stage}});
  const std::string text = ExplainPlan(*setting, evaluation, {});
  EXPECT_THAT(text, HasSubstr("2 x P40: 5 samples")) << text;
  EXPECT_THAT(text, HasSubstr("1 x A6000: 19 samples")) << text;
}

TEST(GivenPlanTest, OtherCardsUnderTheSameNamesAreSaid) {
  const auto setting = MakeSetting(SmallWorkload());
  Plan plan = AnswerPlan(*MakeSetting(SmallWorkload(), Asking("cephalo")))->evaluation.plan;
  EXPECT_TRUE(PriceGivenPlan(*setting, plan)->warnings.empty());
  plan.cluster = "lab";
  EXPECT_THAT(PriceGivenPlan(*setting, plan)->warnings, testing::ElementsAre("the plan was made for lab; it is priced on mixed"));
  RankPlan& rank = plan.pipelines[0].stages[0].units[0].ranks[0];
  rank.device_model = "H100-SXM";
  const std::vector<std::string> warnings = PriceGivenPlan(*setting, plan)->warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("plan says H100-SXM for n1/gpu0 and was made for lab; here it is A6000 of mixed"));
}

TEST(GivenPlanTest, ANegativeShareIsNamedAsItIsWritten) {
  const auto setting = MakeSetting(SmallWorkload());
  Plan plan = AnswerPlan(*MakeSetting(SmallWorkload(), Asking("cephalo")))->evaluation.plan;
  plan.ownership.reset();
  plan.pipelines[0].stages[0].units[0].ranks[0].shard_ratio = -0.1;
  EXPECT_THAT(std::string(PriceGivenPlan(*setting, plan).status().message()), HasSubstr("-0.1")) << "not scaled";
}

TEST(GivenPlanTest, SumsAreMendedAndListed) {
  const auto setting = MakeSetting(SmallWorkload());
  Plan plan = AnswerPlan(*MakeSetting(SmallWorkload(), Asking("cephalo")))->evaluation.plan;
  const auto good = PriceGivenPlan(*setting, plan);
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_TRUE(good->broken.empty());
  EXPECT_EQ(good->evaluation.plan.predicted.step_seconds, plan.predicted.step_seconds);
  plan.global_batch = 30;
  plan.ownership.reset();
  for (UnitPlan& unit : plan.pipelines[0].stages[0].units) unit.ranks[0].shard_ratio *= 0.5;
  const auto mended = PriceGivenPlan(*setting, plan);
  ASSERT_TRUE(mended.ok()) << mended.status();
  ASSERT_EQ(mended->broken.size(), 2u);
  EXPECT_THAT(mended->broken[0], HasSubstr("add up to 24, the global batch is 30; priced with 24"));
  EXPECT_THAT(mended->broken[1], HasSubstr("the shard ratios add up to 0.5, priced as parts of 1"));
  EXPECT_EQ(mended->evaluation.plan.predicted.step_seconds, good->evaluation.plan.predicted.step_seconds);
}

TEST(GivenPlanTest, WhatCannotBePricedIsRefused) {
  const auto setting = MakeSetting(SmallWorkload());
  const Plan plan = AnswerPlan(*MakeSetting(SmallWorkload(), Asking("cephalo")))->evaluation.plan;
  const auto refused = [&](auto&& change) {
    Plan changed = plan;
    change(changed);
    const auto priced = PriceGivenPlan(*setting, changed);
    EXPECT_EQ(priced.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(priced.status().message());
  };
  EXPECT_THAT(refused([](Plan& p) { p.pipelines[0].stages[0].units[0].ranks[0].device = DeviceId("n1/gpu9"); }),
              HasSubstr("rank 0 (n1/gpu9): cluster mixed has no such device"));
  EXPECT_THAT(refused([](Plan& p) {
                p.cluster = "elsewhere";
                p.pipelines[0].stages[0].units[0].ranks[0].device = DeviceId("x");
              }),
              HasSubstr("the plan was made for elsewhere"));
  EXPECT_THAT(refused([](Plan& p) { p.pipelines[0].stages[0].units[0].microbatches = {-4}; }),
              HasSubstr("microbatches must be at least 1"));
  EXPECT_THAT(refused([](Plan& p) { p.seq_len = 64; }), HasSubstr("seq_len"));
  EXPECT_THAT(refused([](Plan& p) { p.dtype = DType::kFloat16; }), HasSubstr("dtype"));
  EXPECT_THAT(refused([](Plan& p) { p.pipelines.clear(); }), HasSubstr("pipelines: empty"));
}

TEST(GivenPlanTest, APlanByHandIsFilledIn) {
  const auto setting = MakeSetting(SmallWorkload());
  const auto plan = PlanFromJson(R"({"pipelines": [{"stages": [{"units": [
      {"ranks": [{"device": "n1/gpu0", "shard_ratio": 0.75}], "microbatches": [10, 10]},
      {"ranks": [{"device": "n2/gpu1", "shard_ratio": 0.25}], "microbatches": [4]}]}]}]})");
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto priced = PriceGivenPlan(*setting, *plan);
  ASSERT_TRUE(priced.ok()) << priced.status();
  EXPECT_TRUE(priced->broken.empty());
  EXPECT_EQ(priced->evaluation.plan.strategy, "manual");
  EXPECT_EQ(priced->evaluation.plan.pipelines[0].stages[0].units[1].ranks[0].device_model, "P40");
  EXPECT_EQ(priced->evaluation.plan.unused.size(), 2u);
}

TEST(GivenPlanTest, APlanMadeOfflineRunsOnALiveCluster) {
  // The same devices as MixedDevices'.
  const std::string toml =
      "name = \"live\"\n[defaults]\nnic_gbit_per_second = 50\n[[node]]\nname = \"n1\"\ngpus = [\"A6000\", \"L4\"]\n"
      "[[node]]\nname = \"n2\"\ngpus = [{card = \"P40\", count = 2}]\n[[node]]\nname = \"n3\"\ngpus = [\"P100\"]\n";
  Workload workload;
  workload.model_name = "small";
  workload.model = SmallModel();
  workload.global_batch = 11;
  workload.seq_len = 32;
  const auto result = AnswerPlan(*MakeSetting(workload, Asking("even"), toml));
  ASSERT_TRUE(result.ok()) << result.status();
  PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 11);
  std::string json = ToJson(result->evaluation.plan);
  json.replace(json.rfind('}'), 1, ", \"report\": {\"ranks\": []}}");  // as the command line prints it
  input.config.planner.plan_json = json;
  const auto live = MakePlan(input);
  ASSERT_TRUE(live.ok()) << live.status();
  EXPECT_EQ(live->plan.pipelines[0].stages[0].units.size(), result->evaluation.plan.pipelines[0].stages[0].units.size());
  EXPECT_EQ(live->programs.size(), live->plan.pipelines[0].stages[0].units.size());
  // One that needs what the cluster lacks is refused by name.
  Plan offloads = result->evaluation.plan;
  offloads.pipelines[0].stages[0].units[0].ranks[0].offload.optimizer = true;
  input.config.planner.plan_json = ToJson(offloads);
  EXPECT_THAT(std::string(MakePlan(input).status().message()), HasSubstr("the host memory of n1: offloading needs"));
}

TEST(ExplainOfflineTest, SaysWhoDoesWhatAndWhatItRestsOn) {
  const auto setting = MakeSetting(SmallWorkload(), Asking("cephalo"));
  const auto result = AnswerPlan(*setting);
  ASSERT_TRUE(result.ok()) << result.status();
  const std::string text = ExplainPlan(*setting, result->evaluation, result->bound);
  EXPECT_THAT(text, testing::StartsWith(ToText(result->evaluation.plan)));
  EXPECT_THAT(text, HasSubstr("pipeline 0 stage 0, 1 x A6000: "));
  EXPECT_THAT(text, HasSubstr("\nno plan can be faster than "));
  EXPECT_THAT(text, HasSubstr("\nlatencies:\n  A6000: "));
}

}  // namespace
}  // namespace motley::planner
