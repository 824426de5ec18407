// Programs of tensor-parallel stages that the engine runs: slices of arrays, and sums as instructions.
#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/graph/program_graph.h"
#include "planner/graph/program_walk.h"
#include "planner/lowering/program_writer.h"
#include "planner/plan/each_rank.h"
#include "planner/plan/ownership.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/price.h"
#include "planner/scheduling/make_schedule.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/lowering/tensor_parallel_plans.h"
#include "tests/planner/scheduled.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

// Every array of a rank's program is its slice's; that nothing of it is left out is a rule of programs.
void ExpectSlices(const Setting& setting, const Plan& plan, const std::vector<Program>& programs) {
  const ModelShape& model = setting.workload.model;
  const auto slices = SlicesOfRanks(model, plan);
  ASSERT_TRUE(slices.ok()) << slices.status();
  for (size_t r = 0; r < programs.size(); ++r) {
    const SliceElements elements = ElementsOf(model, (*slices)[r]);
    for (const auto* buffers : {&programs[r].parameter_buffers, &programs[r].gradient_buffers}) {
      for (const UnitBuffer& buffer : *buffers) {
        if (buffer.home_of >= 0) {
          EXPECT_EQ(buffer.elements, elements.all[buffer.home_of]) << "rank " << r;
        }
      }
    }
    for (const Instruction& instruction : programs[r].instructions) {
      const auto expect = [&]<typename Op>(const Op& op) {
        if constexpr (requires { op.elements; }) {
          EXPECT_LE(op.elements.end(), elements.all[op.unit]) << "rank " << r;
          EXPECT_TRUE((*slices)[r].whole() || !op.elements.whole()) << "rank " << r;
        }
        if constexpr (requires { op.tp_group; }) EXPECT_EQ(op.tp_group, -1);
      };
      std::visit(expect, instruction.op);
    }
  }
}

double SecondsOf(const Setting& setting, const Plan& plan, const std::vector<Program>& programs) {
  const auto graph = GraphOfPrograms(setting, plan, programs);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return 0;
  const auto timeline = Run(graph->graph);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? ToSeconds(timeline->end) : 0;
}

// A validation pass with the plan's own microbatches.
absl::StatusOr<std::vector<Program>> Evaluations(const Setting& setting, const Plan& plan) {
  std::vector<std::vector<int64_t>> microbatches;
  ForEachUnit(plan, [&](const UnitPlan& unit) { microbatches.push_back(unit.microbatches); });
  return ScheduleAndLowerEvaluation(setting, plan, microbatches);
}

TEST(TensorParallelProgramsTest, RandomPlansBecomeValidProgramsThatComeToTheirEnd) {
  TensorParallelPlans random(3);
  std::map<std::string, int> seen;
  for (int n = 0; n < 4000;) {
    const auto setting = random.NextSetting();
    Plan plan = random.Next(*setting);
    if (!AnyTensorParallel(plan) || !Validate(plan, setting->workload.model).ok()) continue;
    ++n;
    GiveOwnership(setting->workload.model, &plan);
    ASSERT_EQ(ValidateForEngine(plan, setting->workload.model), absl::OkStatus()) << ToText(plan);
    const auto programs = ScheduleAndLower(*setting, plan), evaluations = Evaluations(*setting, plan);
    ASSERT_TRUE(programs.ok()) << programs.status() << "\n" << ToText(plan);
    ASSERT_TRUE(evaluations.ok()) << evaluations.status() << "\n" << ToText(plan);
    for (const auto* all : {&*programs, &*evaluations}) {
      ASSERT_EQ(CheckOrder(*all), absl::OkStatus()) << "plan " << n << "\n" << ToText(plan);
      ExpectSlices(*setting, plan, *all);
    }
    EXPECT_GT(SecondsOf(*setting, plan, *programs), 0);
    if (testing::Test::HasFailure()) FAIL() << ToText(plan);
    const std::vector<StagePlan>& stages = plan.pipelines[0].stages;
    ++seen[std::string(ScheduleName(plan.schedule)) + (stages.size() > 1 ? ", several stages" : ", one stage")];
    for (const StagePlan& stage : stages) {
      if (!IsTensorParallel(stage)) continue;
      ++seen["zero " + std::to_string(stage.zero_stage)];
      bool alike = true;
      for (const UnitPlan& unit : stage.units) {
        alike &= unit.ranks.size() == stage.units[0].ranks.size();
        if (unit.ranks.size() > 1) ++seen["degree " + std::to_string(unit.ranks.size())];
      }
      ++seen[stage.units.size() == 1 ? "one unit" : alike ? "several units" : "units of unlike widths"];
    }
  }
  EXPECT_EQ(seen.size(), 12u + 3u + 3u + 3u);
  for (const auto& [what, count] : seen) EXPECT_GE(count, 20) << what;
}

// Two units of shares 3/4 and 1/4, one layer.
std::vector<Program> TwoUnits(int zero_stage) {
  ModelShape model = SmallModel(true, 1);
  model.max_positions = 256;
  const auto setting = MakeSetting(Nodes({{"T4", "T4", "T4", "T4"}}), WorkOf(model, 4));
  StagePlan stage = StageOf(*setting, 0, {{2}, {1, 1}, {}, {}}, {{0, 0}}, zero_stage, OpSet::All());
  for (int u = 0; u < 2; ++u) {
    UnitPlan& unit = stage.units[u];
    unit.ranks = {StageOf(*setting, 2 * u, {{}, {}}, {}).units[0].ranks[0],
                  StageOf(*setting, 2 * u + 1, {{}}, {}).units[0].ranks[0]};
    for (size_t r = 0; r < 2; ++r) {
      unit.ranks[r].tp_share = r == 0 ? 0.75 : 0.25;
      unit.ranks[r].shard_ratio = unit.ranks[r].tp_share / 2;
      if (r == 1) unit.ranks[r].recompute = OpSet::All();
    }
  }
  stage.units.resize(2);
  Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B, {{{stage}}});
  const auto programs = ScheduleAndLower(*setting, plan);
  EXPECT_TRUE(programs.ok()) << programs.status();
  return programs.ok() ? *programs : std::vector<Program>(4);
}

TEST(TensorParallelProgramsTest, StepGraphsNameTheUnitsOfTheirRanks) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4", "T4"}}), WorkOf(MediumModel(2, false), 4));
  StagePlan first = StageOf(*setting, 0, {{2, 2}, {}}, {{0, 0}}, 0), second = StageOf(*setting, 2, {{2, 2}}, {{1, 1}}, 0);
  first.units[0].ranks.push_back(first.units[1].ranks[0]);
  first.units.pop_back();
  first.units[0].ranks[0].tp_share = first.units[0].ranks[0].shard_ratio = 0.75;
  first.units[0].ranks[1].tp_share = first.units[0].ranks[1].shard_ratio = 0.25;
  const Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B, {{{first, second}}});
  const auto evaluation = Evaluate(*setting, plan);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  const auto programs = ScheduleAndLower(*setting, plan);
  ASSERT_TRUE(programs.ok()) << programs.status();
  const auto graph = GraphOfPrograms(*setting, plan, *programs);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::vector<Actor>& actors = graph->graph.actors;
  ASSERT_EQ(actors.size(), 3u);
  EXPECT_EQ(actors[0].unit, "n0/gpu0+n0/gpu1 (tp 0.75/0.25)");
  EXPECT_EQ(actors[1].unit, actors[0].unit);
  EXPECT_EQ(actors[2].unit, "");
  ASSERT_EQ(evaluation->graph.actors.size(), 2u) << "of classes";
  EXPECT_EQ(evaluation->graph.actors[0].unit, actors[0].unit);
  EXPECT_EQ(evaluation->graph.actors[1].unit, "");
}

// The second unit's rank of three heads, in two microbatches; the ranks that have its slice are group 3.
TEST(TensorParallelProgramsTest, SlicesInHomes) {
  EXPECT_EQ(ToText(TwoUnits(1)[2]),
            "program 6 training rank 2 of 4 units 3 microbatches 1@0,1@3\n"
            "holds 0,1,2\n"
            "groups 0,1,2,3 0,1 2,3 0,2 1,3\n"
            "parameters 28672:0,37584:1,128:2\n"
            "gradients 28672:0,37584:1,128:2\n"
            "offloads -\n"
            "slots -\n"
            "0 gather block=0 elements=12288@0 buffer=0 group=3\n"
            "1 gather block=0 elements=16384@12288 buffer=0 group=0\n"
            "2 gather block=1 elements=37200@0 buffer=1 group=3\n"
            "3 gather block=1 elements=384@37200 buffer=1 group=0\n"
            "4 gather block=2 elements=128@0 buffer=2 group=0\n"
            "5 forward block=0 mb=0 buffer=0 keep=all after=1\n"
            "6 all_reduce_activation block=0 mb=0 of=activation group=2 after=5\n"
            "7 forward block=1 mb=0 segment=attention buffer=1 keep=all after=6\n"
            "8 all_reduce_activation block=1 mb=0 segment=attention of=activation group=2 after=7\n"
            "9 forward block=1 mb=0 segment=mlp buffer=1 keep=all after=8\n"
            "10 all_reduce_activation block=1 mb=0 of=activation group=2 after=9\n"
            "11 forward block=2 mb=0 segment=logits buffer=2 tied=0 keep=all after=10\n"
            "12 all_reduce_activation block=2 mb=0 segment=logits of=rows group=2 after=11\n"
            "13 forward block=2 mb=0 segment=loss buffer=2 tied=0 keep=all after=12\n"
            "14 backward block=2 mb=0 buffer=2 tied=0 grad=2 tied_grad=0\n"
            "15 all_reduce_activation block=2 mb=0 of=gradient group=2 after=14\n"
            "16 backward block=1 mb=0 segment=mlp buffer=1 grad=1 after=15\n"
            "17 all_reduce_activation block=1 mb=0 segment=mlp of=gradient group=2 after=16\n"
            "18 backward block=1 mb=0 segment=attention buffer=1 grad=1 after=17\n"
            "19 all_reduce_activation block=1 mb=0 of=gradient group=2 after=18\n"
            "20 backward block=0 mb=0 buffer=0 grad=0 after=19\n"
            "21 forward block=0 mb=1 buffer=0 keep=all\n"
            "22 all_reduce_activation block=0 mb=1 of=activation group=2 after=21\n"
            "23 forward block=1 mb=1 segment=attention buffer=1 keep=all after=22\n"
            "24 all_reduce_activation block=1 mb=1 segment=attention of=activation group=2 after=23\n"
            "25 forward block=1 mb=1 segment=mlp buffer=1 keep=all after=24\n"
            "26 all_reduce_activation block=1 mb=1 of=activation group=2 after=25\n"
            "27 forward block=2 mb=1 segment=logits buffer=2 tied=0 keep=all after=26\n"
            "28 all_reduce_activation block=2 mb=1 segment=logits of=rows group=2 after=27\n"
            "29 forward block=2 mb=1 segment=loss buffer=2 tied=0 keep=all after=28\n"
            "30 backward block=2 mb=1 buffer=2 tied=0 grad=2 tied_grad=0\n"
            "31 all_reduce_activation block=2 mb=1 of=gradient group=2 after=30\n"
            "32 reduce_scatter block=2 elements=128@0 grad=2 group=0\n"
            "33 backward block=1 mb=1 segment=mlp buffer=1 grad=1 after=31\n"
            "34 all_reduce_activation block=1 mb=1 segment=mlp of=gradient group=2 after=33\n"
            "35 backward block=1 mb=1 segment=attention buffer=1 grad=1 after=34\n"
            "36 all_reduce_activation block=1 mb=1 of=gradient group=2 after=35\n"
            "37 reduce_scatter block=1 elements=37200@0 grad=1 group=3\n"
            "38 reduce_scatter block=1 elements=384@37200 grad=1 group=0\n"
            "39 backward block=0 mb=1 buffer=0 grad=0 after=36\n"
            "40 reduce_scatter block=0 elements=12288@0 grad=0 group=3 after=39\n"
            "41 reduce_scatter block=0 elements=16384@12288 grad=0 group=0\n"
            "42 reduce_scalars\n"
            "43 optimizer_step after=42\n");
}

// The first unit's rank of one head, which recomputes: it does so alone, and adds zeroes where the other unit is at its second
// microbatch.
TEST(TensorParallelProgramsTest, SlicesInTurn) {
  EXPECT_EQ(ToText(TwoUnits(3)[1]),
            "program 6 training rank 1 of 4 units 3 microbatches 2@1\n"
            "holds 0,1,2\n"
            "groups 0,1,2,3 0,1 2,3 0,2 1,3\n"
            "parameters 20480,12784,128\n"
            "gradients 20480,128,12784\n"
            "offloads -\n"
            "slots -\n"
            "0 gather block=0 elements=4096@0 buffer=0 group=4\n"
            "1 gather block=0 elements=16384@4096 buffer=0 group=0\n"
            "2 gather block=1 elements=12400@0 buffer=1 group=4\n"
            "3 gather block=1 elements=384@12400 buffer=1 group=0\n"
            "4 gather block=2 elements=128@0 buffer=2 group=0\n"
            "5 forward block=0 mb=0 buffer=0 keep=all after=1\n"
            "6 all_reduce_activation block=0 mb=0 of=activation group=1 after=5\n"
            "7 forward block=1 mb=0 segment=attention buffer=1 keep=boundary after=6\n"
            "8 all_reduce_activation block=1 mb=0 segment=attention of=activation group=1 after=7\n"
            "9 forward block=1 mb=0 segment=mlp buffer=1 keep=boundary after=8\n"
            "10 all_reduce_activation block=1 mb=0 of=activation group=1 after=9\n"
            "11 forward block=2 mb=0 segment=logits buffer=2 tied=0 keep=all after=10\n"
            "12 all_reduce_activation block=2 mb=0 segment=logits of=rows group=1 after=11\n"
            "13 forward block=2 mb=0 segment=loss buffer=2 tied=0 keep=all after=12\n"
            "14 backward block=2 mb=0 buffer=2 tied=0 grad=1 tied_grad=0\n"
            "15 all_reduce_activation block=2 mb=0 of=gradient group=1 after=14\n"
            "16 reduce_scatter block=2 elements=128@0 grad=1 group=0\n"
            "17 recompute block=1 mb=0 buffer=1\n"
            "18 backward block=1 mb=0 segment=mlp buffer=1 grad=2 after=15\n"
            "19 all_reduce_activation block=1 mb=0 segment=mlp of=gradient group=1 after=18\n"
            "20 backward block=1 mb=0 segment=attention buffer=1 grad=2 after=19\n"
            "21 all_reduce_activation block=1 mb=0 of=gradient group=1 after=20\n"
            "22 reduce_scatter block=1 elements=12400@0 grad=2 group=4\n"
            "23 reduce_scatter block=1 elements=384@12400 grad=2 group=0\n"
            "24 backward block=0 mb=0 buffer=0 grad=0 after=21\n"
            "25 release buffer=2\n"
            "26 zero_grad block=2 grad=1\n"
            "27 reduce_scatter block=2 elements=128@0 grad=1 group=0 after=26\n"
            "28 release buffer=1\n"
            "29 zero_grad block=1 grad=2 after=23\n"
            "30 reduce_scatter block=1 elements=12400@0 grad=2 group=4 after=29\n"
            "31 reduce_scatter block=1 elements=384@12400 grad=2 group=0\n"
            "32 release buffer=0\n"
            "33 reduce_scatter block=0 elements=4096@0 grad=0 group=4\n"
            "34 reduce_scatter block=0 elements=16384@4096 grad=0 group=0\n"
            "35 reduce_scalars\n"
            "36 optimizer_step after=35\n");
}

// The first stage sends its second microbatch when it has the first one's gradient, which the first unit makes before the second
// has anything: a reduction in between would wait for both units.
TEST(TensorParallelProgramsTest, AReductionThatWouldKeepASumWaitingComesBehindAll) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4", "T4", "T4", "T4"}}), WorkOf(MediumModel(4, false), 4));
  for (const int64_t in_flight : {1, 2}) {
    StagePlan one = StageOf(*setting, 0, {{2, 2}}, {{0, 1}}, 1), pairs = StageOf(*setting, 1, {{2}, {2}, {}, {}}, {{2, 3}}, 1);
    one.in_flight = in_flight;
    for (size_t u = 0; u < 2; ++u) {
      pairs.units[u].ranks.push_back(pairs.units[u + 2].ranks[0]);
      for (RankPlan& rank : pairs.units[u].ranks) rank.tp_share = 0.5;
    }
    pairs.units.resize(2);
    const auto programs = ScheduleAndLower(*setting, PlanOf(*setting, ScheduleFamily::k1F1B, {{{one, pairs}}}));
    ASSERT_TRUE(programs.ok()) << programs.status();
    EXPECT_EQ(CheckOrder(*programs), absl::OkStatus());
    std::string order;
    for (const Instruction& i : programs->at(1).instructions) {
      if (const auto* reduce = std::get_if<ReduceScatter>(&i.op)) order += " R" + std::to_string(reduce->unit);
      const auto* backward = std::get_if<Backward>(&i.op);
      if (backward != nullptr && backward->segment != UnitSegment::kMlp) order += " B" + std::to_string(backward->unit);
    }
    EXPECT_EQ(order, in_flight == 1 ? " B5 B4 B3 R5 R5 R4 R4 R3 R3" : " B5 R5 R5 B4 R4 R4 B3 R3 R3");
  }
}

// Of 200 random plans in which no unit shares state with others, and of 200 others: how much more they cost than searches say,
// whose sums are inside the compute. Where ranks recompute, that is less: searches make sums again that the engine keeps.
std::array<double, 2> MoreThanSearched(TensorParallelPlans random) {
  std::array<double, 2> sum = {0, 0};
  std::array<int, 2> plans = {0, 0};
  while (plans[0] < 200 || plans[1] < 200) {
    const auto setting = random.NextSetting();
    Plan plan = random.Next(*setting);
    if (!AnyTensorParallel(plan) || !Validate(plan, setting->workload.model).ok()) continue;
    ForEachRank(plan, [](RankPlan& rank) { rank.recompute = OpSet::None(); });
    GiveOwnership(setting->workload.model, &plan);
    const auto evaluation = Evaluate(*setting, plan);
    const auto programs = ScheduleAndLower(*setting, plan);
    EXPECT_TRUE(evaluation.ok() && programs.ok()) << evaluation.status() << programs.status();
    if (!evaluation.ok() || !programs.ok()) break;
    const std::vector<StagePlan>& stages = plan.pipelines[0].stages;
    const bool shared = std::any_of(stages.begin(), stages.end(), [](const StagePlan& stage) { return stage.units.size() > 1; });
    ++plans[shared];
    sum[shared] += SecondsOf(*setting, plan, *programs) / evaluation->plan.predicted.step_seconds - 1;
  }
  return {sum[0] / plans[0], sum[1] / plans[1]};
}

// What waits for gathers and reductions is not in searches' sums.
TEST(TensorParallelProgramsTest, ThePriceIsNearTheSearches) {
  const auto [alone, shared] = MoreThanSearched(TensorParallelPlans(5, /*any_cuts=*/false));
  EXPECT_NEAR(alone, 0.015, 0.015);
  EXPECT_NEAR(shared, 0.04, 0.02);
}

// Unlike slices meet in more, smaller collectives; no search chooses them without a look at this price.
TEST(TensorParallelProgramsTest, UnlikeSlicesCostMoreThanSearched) {
  const auto [alone, shared] = MoreThanSearched(TensorParallelPlans(5));
  EXPECT_NEAR(alone, 0.03, 0.03);
  EXPECT_NEAR(shared, 0.12, 0.06);
}

}  // namespace
}  // namespace motley::planner
