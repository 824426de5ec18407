#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/plan/plan.h"
#include "tests/planner/plan_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

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
    rank 0 a/gpu0 A100-40GB  tp 0.750  shard 0.750  recompute none  busy 0.33 ms  peak 128 B
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
}

TEST(PlanTextTest, MicrobatchesInFlight) {
  const std::string text = ToText(InTurnPlan());
  EXPECT_THAT(text, HasSubstr("pipeline 0 / stage 0 layers 0-1 zero 2 in-flight 3\n"));
  EXPECT_THAT(text, HasSubstr("pipeline 0 / stage 1 layers 2-3 zero 3\n"));
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
  const std::string text = ToText(plan);
  EXPECT_THAT(text, HasSubstr("layers 0-3/1 zero 3\n  64 units of 8  batch 8 = 2x4\n    ranks 0-511 n0/gpu0..7,n1/gpu0..7,"));
  EXPECT_LT(text.size(), 1500u);
  // Single ranks too, and a different one in between ends the run.
  for (UnitPlan& unit : plan.pipelines[0].stages[0].units) unit.ranks = {unit.ranks[0]}, unit.ranks[0].tp_share = 1;
  plan.pipelines[0].stages[0].units[9].microbatches = {8};
  const std::string singles = ToText(plan);
  EXPECT_THAT(singles, HasSubstr("rank 9"));
  EXPECT_THAT(singles, HasSubstr("ranks 10-63 n10/gpu0,n11/gpu0,"));
}

TEST(PlanTextTest, OddNamesAreQuoted) {
  Plan plan = FullPlan();
  plan.strategy = "";
  plan.cluster = "a\"b\\c d";
  plan.unused.clear();
  for (const char* name : {"with space", "a,b", "n1..2", "gpu007", "gpu008"}) plan.unused.push_back({DeviceId(name), " why"});
  const std::string text = ToText(plan);
  EXPECT_THAT(text, HasSubstr("plan \"\" batch 12 seq 32 float16 layered cluster \"a\\\"b\\\\c d\" in \"lab files/three.toml\""));
  EXPECT_THAT(text, HasSubstr("  unused \"with space\",\"a,b\",\"n1..2\",gpu007,gpu008: \" why\"\n"));
}

// A file that holds it is told from what is no plan at all.
TEST(PlanTextTest, IsKnownByItsFirstLine) {
  for (const Plan& plan : {OneStagePlan(SmallModel()), FullPlan(), Plan()}) {
    EXPECT_TRUE(IsPlanText(ToText(plan)));
    EXPECT_TRUE(IsPlanText("955 ms a step, 34327 tokens/s\nbound by compute of turing/gpu2\nruns here: yes\n\n" + ToText(plan)));
    EXPECT_FALSE(IsPlanText(ToJson(plan, 2)));
  }
  for (const char* text : {"", "nonsense", "plan x", "the plan is batch 4 seq 8", "plan x batch 4\nseq 8"}) {
    EXPECT_FALSE(IsPlanText(text)) << text;
  }
}

}  // namespace
}  // namespace motley::planner
