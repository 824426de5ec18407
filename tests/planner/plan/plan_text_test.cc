#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_words.h"
#include "tests/planner/plan_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

std::string TextComplaint(const std::string& text) { return std::string(ParsePlanText(text).status().message()); }

TEST(PlanTextTest, NamesEveryRank) {
  const std::string text = ToText(OneStagePlan(SmallModel()));
  EXPECT_THAT(text,
              HasSubstr("plan generation 3 cephalo batch 11 seq 32 float32 layered\npipeline 0 / stage 0 layers 0-3 zero 3\n"));
  EXPECT_THAT(text, HasSubstr("rank 0 n1/gpu0 A6000  batch 6 = 4+2  shard 0.500  recompute full"));
  EXPECT_THAT(text, HasSubstr("rank 2 n2/gpu0 P40    batch 0"));
  EXPECT_THAT(text, HasSubstr("rank 3 n2/gpu1 P40    batch 2 = 2x1"));
  EXPECT_THAT(text, HasSubstr("unused n3/gpu0: slow"));
}

TEST(PlanTextTest, SaysEverythingOfALargePlan) {
  EXPECT_EQ(
      ToText(FullPlan()),
      R"(plan auto batch 12 seq 32 float16 layered cluster "three boxes" in "lab files/three.toml" model small pipelines-zero 1
pipeline 0 / stage 0 layers 0-0,2-2 zero 2
  unit of 2  batch 8 = 2x4
    rank 0 a/gpu0 A100-40GB  tp 0.750  shard 0.750  recompute none  busy 0.33 ms  peak 123 B
    rank 1 a/gpu1 T4         tp 0.250  shard 0.250  recompute norm1,activation  offload activations  busy 0.00 ms  peak 0 B
pipeline 0 / stage 1 layers 1-1,3-3 zero 3
  rank 2 b/gpu0 "RTX 2080 Ti"  batch 5 = 2+3  shard 0.333  recompute none  offload parameters,optimizer  busy 0.00 ms  peak 0 B
  rank 3 b/gpu1 "RTX 2080 Ti"  batch 3 = 1x3  shard 0.667  recompute none  busy 0.00 ms  peak 0 B
pipeline 1 / stage 0 layers 0-3 zero 1
  rank 4 c/gpu0 P40  batch 4 = 3+1  shard 0.250  recompute full  busy 0.00 ms  peak 0 B
  rank 5 c/gpu1 P40  batch 0        shard 0.750  recompute none  busy 0.00 ms  peak 0 B
  unused c/gpu2: no room: "context" alone
  unused c/gpu3: "excluded\nby the user"
predicted 300 ms a step, 1234 tokens/s, MFU 41.0 %, HFU 55.0 %, idle 7.0 %, 3.0 M tokens/$
between 280 ms and 350 ms in nine cases of ten, as it rests on estimates
bound by: compute of a/gpu1
lower bound 250 ms, gap 20.0 %
note: T4: estimated from P40
)");
}

TEST(PlanTextTest, SaysWhatOfThePeakLiesBesideTheTensors) {
  Plan plan = OneStagePlan(SmallModel());
  RankPrediction& predicted = plan.pipelines[0].stages[0].units[0].ranks[0].predicted;
  predicted.memory.parameters = int64_t{3} << 30;
  predicted.memory.context = int64_t{896} << 20;
  predicted.peak_bytes = predicted.memory.total();
  const std::string text = ToText(plan);
  EXPECT_THAT(text, HasSubstr("  peak 3.9 GiB  context 896.0 MiB\n"));
  EXPECT_THAT(text, HasSubstr("  peak 0 B\n")) << "the others have none";
  const auto parsed = ParsePlanText(ToText(plan, TextPrecision::kExact));
  EXPECT_TRUE(parsed.ok()) << parsed.status();
}

TEST(PlanTextTest, ExactTextRoundTrips) {
  for (Plan plan : {OneStagePlan(SmallModel()), FullPlan()}) {
    plan.ownership.reset();  // like schedules, it is not in the text
    const std::string text = ToText(plan, TextPrecision::kExact);
    const auto parsed = ParsePlanText(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
    EXPECT_EQ(Definition(*parsed), Definition(plan)) << text;
  }
}

TEST(PlanTextTest, MicrobatchesInFlight) {
  const Plan plan = InTurnPlan();
  const std::string text = ToText(plan, TextPrecision::kExact);
  EXPECT_THAT(text, HasSubstr("pipeline 0 / stage 0 layers 0-1 zero 2 in-flight 3\n"));
  EXPECT_THAT(text, HasSubstr("pipeline 0 / stage 1 layers 2-3 zero 3\n"));
  const auto parsed = ParsePlanText(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->pipelines[0].stages[0].in_flight, 3);
  EXPECT_EQ(Definition(*parsed), Definition(plan));
  EXPECT_THAT(TextComplaint("plan x batch 4 seq 8 fp32 1f1b\npipeline 0 / stage 0 layers 0-3 zero 3 in-flight many\n"),
              HasSubstr("line 2: expected a whole number, got 'many'"));
}

TEST(PlanTextTest, RoundedTextReadsBackAsAValidPlan) {
  Plan plan = FullPlan();
  // Thirds rounded to 0.333 would lack more than the rules forgive.
  StagePlan& stage = plan.pipelines[1].stages[0];
  stage.units.clear();
  for (int i = 0; i < 7; ++i) stage.units.push_back({{MakeRank(absl::StrCat("d/gpu", i), "P40", 1.0 / 7)}, {}});
  stage.units[0].microbatches = {4};
  const auto parsed = ParsePlanText(ToText(plan));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(Validate(*parsed, SmallModel()), absl::OkStatus());
  EXPECT_NEAR(parsed->pipelines[1].stages[0].units[3].ranks[0].shard_ratio, 1.0 / 7, 1e-9);
  // A sum that no rounding explains stays for Validate to refuse.
  const auto wrong =
      ParsePlanText("plan x batch 1 seq 8 fp32 layered\npipeline 0 / stage 0 layers 0-3\nrank 0 a batch 1 = 1x1 shard 0.5\n");
  ASSERT_TRUE(wrong.ok()) << wrong.status();
  EXPECT_EQ(wrong->pipelines[0].stages[0].units[0].ranks[0].shard_ratio, 0.5);
}

TEST(PlanTextTest, LikeRanksAreOneLine) {
  Plan plan;
  plan.strategy = "megatron";
  plan.global_batch = 512;
  plan.seq_len = 32;
  StagePlan stage;
  for (int64_t layer = 0; layer < 4; ++layer) stage.ministages.push_back({layer, layer});
  for (int node = 0; node < 64; ++node) {
    UnitPlan& unit = stage.units.emplace_back();
    unit.microbatches = {4, 4};
    for (int gpu = 0; gpu < 8; ++gpu)
      unit.ranks.push_back(MakeRank(absl::StrCat("n", node, "/gpu", gpu), "H100-SXM", 1.0 / 512, 0.125));
  }
  plan.pipelines = {{{stage}}};
  const std::string text = ToText(plan, TextPrecision::kExact);
  EXPECT_THAT(text, HasSubstr("layers 0-3/1 zero 3\n  64 units of 8  batch 8 = 2x4\n    ranks 0-511 n0/gpu0..7,n1/gpu0..7,"));
  EXPECT_LT(text.size(), 1500u);
  EXPECT_EQ(Definition(*ParsePlanText(text)), Definition(plan));
  // Single ranks too, and a different one in between ends the run.
  for (UnitPlan& unit : plan.pipelines[0].stages[0].units) unit.ranks = {unit.ranks[0]}, unit.ranks[0].tp_share = 1;
  plan.pipelines[0].stages[0].units[9].microbatches = {8};
  const std::string singles = ToText(plan, TextPrecision::kExact);
  EXPECT_THAT(singles, HasSubstr("rank 9"));
  EXPECT_THAT(singles, HasSubstr("ranks 10-63 n10/gpu0,n11/gpu0,"));
  EXPECT_EQ(Definition(*ParsePlanText(singles)), Definition(plan));
}

TEST(PlanTextTest, WhatACommandPrintsAboveAndBelowItIsPassedOver) {
  const Plan plan = FullPlan();
  const std::string text = ToText(plan, TextPrecision::kExact);
  const std::string summary =
      "955 ms a step, 34327 tokens/s; between 610 ms and 1.49 s, as it rests on estimates\nbound by compute of turing/gpu2; idle "
      "11.1 %\n17.7 % above the bound: no plan can be faster than 811 ms (compute)\nruns here: yes\n\n";
  const auto parsed = ParsePlanText(summary + text + "note: P40: estimated\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(Definition(*parsed), Definition(plan));
  EXPECT_FALSE(ParsePlanText(text + "runs here: yes\n").ok()) << "only above";
}

TEST(PlanTextTest, OddNamesSurvive) {
  Plan plan = FullPlan();
  plan.strategy = "";
  plan.cluster = "a\"b\\c d";
  int i = 0;
  for (const char* name : {"with space", "a,b", "n1..2", "x:y", "gpu007", "\"quoted\"", "batch"}) {
    StagePlan& stage = plan.pipelines[1].stages[0];
    stage.units.push_back({{MakeRank(name, i++ % 2 == 0 ? "" : name, 0)}, {}});
    plan.unused.push_back({DeviceId(absl::StrCat("u", name)), name});
  }
  const std::string text = ToText(plan, TextPrecision::kExact);
  const auto parsed = ParsePlanText(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << text;
  EXPECT_EQ(Definition(*parsed), Definition(plan)) << text;
}

TEST(PlanTextTest, ErrorsNameTheLine) {
  const std::string head = "plan x batch 4 seq 8 fp32 layered\n", stage = "pipeline 0 / stage 0 layers 0-3 zero 3\n";
  EXPECT_THAT(TextComplaint(""), HasSubstr("the first line must be 'plan STRATEGY"));
  EXPECT_THAT(TextComplaint("rank 0 a batch 0 shard 1\n"), HasSubstr("line 1: the first line must be"));
  EXPECT_THAT(TextComplaint("plan x batch many\n"), HasSubstr("line 1: expected a whole number, got 'many'"));
  EXPECT_THAT(TextComplaint("plan x batch 4 seq 8 fp31 layered\n"), HasSubstr("dtype 'fp31'"));
  EXPECT_THAT(TextComplaint(head + head), HasSubstr("line 2: a second plan begins here"));
  EXPECT_THAT(TextComplaint(head + "rank 0 a batch 0 shard 1\n"),
              HasSubstr("line 2: expected 'pipeline 0 / stage 0 layers ...'"));
  EXPECT_THAT(TextComplaint(head + "pipeline 1 / stage 0 layers 0-3\n"), HasSubstr("line 2: pipeline 1 where 0 comes next"));
  EXPECT_THAT(TextComplaint(head + "pipeline 0 / stage 1 layers 0-3\n"), HasSubstr("line 2: stage 1 where 0 comes next"));
  EXPECT_THAT(TextComplaint(head + "pipeline 0 / stage 0 layers 3-0\n"), HasSubstr("expected layers such as"));
  EXPECT_THAT(TextComplaint(head + "pipeline 0 / stage 0 layers 0-6/2\n"), HasSubstr("expected layers such as"));
  EXPECT_THAT(TextComplaint(head + stage + "rank 0 a batch 4 = 2x3 shard 1\n"),
              HasSubstr("line 3: batch is 4 but the microbatches"));
  EXPECT_THAT(TextComplaint(head + stage + "rank 0 a batch 4 = 0x4 shard 1\n"), HasSubstr("expected microbatches such as 2x4+3"));
  EXPECT_THAT(TextComplaint(head + stage + "rank 0 a shard 1\n"), HasSubstr("expected 'batch'"));
  EXPECT_THAT(TextComplaint(head + stage + "rank 0 a batch 4 = 1x4 shard nan\n"), HasSubstr("expected a number, got 'nan'"));
  EXPECT_THAT(TextComplaint(head + stage + "rank 0 a batch 4 = 1x4 shard 1 offload ram\n"), HasSubstr("expected 'recompute'"));
  EXPECT_THAT(TextComplaint(head + stage + "rank 0 a batch 4 = 1x4 shard 1 recompute norm3\n"),
              HasSubstr("line 3: operator 'norm3' is not known"));
  EXPECT_THAT(TextComplaint(head + stage + "rank 0 a batch 4 = 1x4 shard 1 recompute none offload ram\n"),
              HasSubstr("offload 'ram'"));
  EXPECT_THAT(TextComplaint(head + stage + "unit of 2 batch 4 = 1x4\nrank 0 a shard 1\n"),
              HasSubstr("units of 2 ranks: 1 are not complete"));
  EXPECT_THAT(TextComplaint(head + stage + "nonsense\n"), HasSubstr("line 3: expected a whole number, got 'nonsense'"));
  EXPECT_THAT(TextComplaint(head + "unused n1/gpu0\n"), HasSubstr("expected 'unused DEVICE: REASON'"));
  EXPECT_THAT(TextComplaint(head + stage + "ranks 0-9 n/gpu9..0 batch 0 shard 1\n"), HasSubstr("expected a range of devices"));
}

TEST(PlanTextTest, AShortTextCannotFillTheMemory) {
  const std::string head = "plan x batch 4 seq 8 fp32 layered\npipeline 0 / stage 0 layers 0-3 zero 3\n";
  EXPECT_THAT(TextComplaint(head + "ranks 0- n/gpu0..999999999 batch 0 shard 1\n"), HasSubstr("expected a range of devices"));
  EXPECT_THAT(TextComplaint(head + "rank 0 a batch 1000000000000 = 1000000000000x1 shard 1\n"),
              HasSubstr("expected microbatches"));
  EXPECT_THAT(TextComplaint(head + "ranks 0- n/gpu0..1000000 batch 1000000 = 1000000x1 shard 0\n"),
              HasSubstr("unfolds to more than"));
}

}  // namespace
}  // namespace motley::planner
