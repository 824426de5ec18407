// Walk, memory and price of what programs can say and the engine does not run yet: ranges, a split backward, tensor parallelism,
// copies.
#include <algorithm>
#include <map>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/graph/graph_writer.h"
#include "planner/graph/program_graph.h"
#include "planner/graph/program_walk.h"
#include "planner/memory/program_memory.h"
#include "planner/plan/ownership.h"
#include "planner/simulator/step_graph.h"
#include "tests/common/program/program_texts.h"
#include "tests/common/program/wide_program_texts.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/scheduled.h"

namespace motley::planner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Program Parsed(const char* text, const std::map<std::string, std::string>& edits = {}) {
  auto program = ParseProgram(Edited(text, edits));
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

// ---- walk ----

using Edits = std::map<std::string, std::string>;
std::vector<Program> AroundAGroup(const Edits& follower = {}) {
  return {Parsed(kBeforeTheGroup), Parsed(kLeader), Parsed(kFollower, follower), Parsed(kBehindTheGroup)};
}

TEST(ProgramWideWalkTest, ATensorParallelGroupComesToItsEnd) { EXPECT_EQ(CheckOrder(AroundAGroup()), absl::OkStatus()); }

TEST(ProgramWideWalkTest, AGroupMustMeanTheSame) {
  const auto broken = [](const Edits& edits) { return std::string(CheckOrder(AroundAGroup(edits)).message()); };
  EXPECT_THAT(broken({{"2", "broadcast_activation block=1 mb=0 of=activation group=4 root=2"}}),
              HasSubstr("do not match: rank 1 is at"));
  EXPECT_THAT(broken({{"program", "6 training rank 2 of 4 units 4 microbatches 2@2"}}), HasSubstr("collectives do not match"));
  EXPECT_THAT(broken({{"5", "all_reduce_activation block=2 mb=0 segment=attention of=gradient group=4 after=4"}}),
              HasSubstr("collectives do not match: rank 1 is at instruction 6 (all_reduce_activation unit 2)"));
  // Without the group the leader computes its share for ever.
  EXPECT_THAT(broken({{"3", "forward block=1 mb=0 buffer=0 keep=all after=2"}}),
              HasSubstr("rank 1 is stuck at instruction 4 (forward unit 1)"));
}

// The ranks' collectives by group, each of another unit; all groups have two of three ranks.
std::vector<Program> OfCollectives(const std::vector<std::vector<int>>& orders) {
  std::vector<Program> programs;
  for (size_t r = 0; r < orders.size(); ++r) {
    Program program;
    program.rank = static_cast<int32_t>(r);
    program.world = static_cast<int32_t>(orders.size());
    program.num_units = 5;
    program.groups = orders.size() == 2 ? std::vector<std::vector<int32_t>>{{0, 1}, {1, 0}}
                                        : std::vector<std::vector<int32_t>>{{0, 1}, {1, 2}, {2, 0}};
    for (const int group : orders[r]) program.instructions.push_back({Gather{group + 1, 0, group}, {}});
    programs.push_back(std::move(program));
  }
  return programs;
}

TEST(ProgramWideWalkTest, CollectivesThatCrossAreNamedWithTheRank) {
  EXPECT_EQ(CheckOrder(OfCollectives({{0, 1}, {0, 1}})), absl::OkStatus());
  EXPECT_EQ(CheckOrder(OfCollectives({{0, 2}, {0, 1}, {1, 2}})), absl::OkStatus());
  EXPECT_THAT(
      std::string(CheckOrder(OfCollectives({{0, 1}, {1, 0}})).message()),
      HasSubstr("collectives cross at rank 0: it has instruction 0 (gather unit 1) before instruction 1 (gather unit 2), but "
                "rank 1 is at the latter"));
  // No two ranks disagree about two collectives; the three of them do.
  EXPECT_THAT(
      std::string(CheckOrder(OfCollectives({{0, 2}, {1, 0}, {2, 1}})).message()),
      AllOf(HasSubstr("collectives cross at rank 0: it has instruction 0 (gather unit 1) before instruction 1 (gather unit 3)"),
            HasSubstr("rank 2 is at the latter")));
}

// ---- memory ----

// The program with an instruction for each unit and microbatch of a range.
Program Singles(const Program& wide) {
  Program program = wide;
  program.instructions.clear();
  std::vector<int32_t> last;  // of the wide one's instructions
  for (const Instruction& instruction : wide.instructions) {
    std::vector<int32_t> after;
    for (const int32_t a : instruction.after) after.push_back(last[a]);
    std::visit(
        [&](const auto& op) {
          auto single = op;
          if constexpr (requires { op.more_units, op.more_microbatches, op.keep; }) {
            single.more_units = single.more_microbatches = 0;
            for (single.unit = op.unit; single.unit <= op.unit + op.more_units; ++single.unit) {
              for (single.microbatch = op.microbatch; single.microbatch <= op.microbatch + op.more_microbatches;
                   ++single.microbatch) {
                program.instructions.push_back({single, after});
              }
            }
          } else if constexpr (requires { op.more_units, op.more_microbatches; }) {
            single.more_units = single.more_microbatches = 0;
            const bool forwards = std::is_same_v<decltype(single), Recompute>;
            for (int32_t i = 0; i <= op.more_units; ++i) {
              single.unit = op.unit + (forwards ? i : op.more_units - i);
              for (int32_t k = 0; k <= op.more_microbatches; ++k) {
                single.microbatch = op.microbatch + k;
                program.instructions.push_back({single, after});
              }
            }
          } else {
            program.instructions.push_back({op, after});
          }
        },
        instruction.op);
    last.push_back(static_cast<int32_t>(program.instructions.size()) - 1);
  }
  return program;
}

class ProgramWideTest : public testing::Test {
 protected:
  // One rank with all of a small model, in microbatches of two.
  void MakeOneRank(int64_t layers, int64_t batch) {
    setting_ = MakeSetting(Nodes({{"T4"}}), WorkOf(MediumModel(layers, false), batch));
    plan_ = PlanOf(*setting_, ScheduleFamily::kLayered,
                   {{{StageOf(*setting_, 0, {std::vector<int64_t>(static_cast<size_t>(batch / 2), 2)}, {{0, layers - 1}})}}});
    PlaceEvenly({1});
  }
  void PlaceEvenly(const std::vector<double>& shares) {
    for (size_t u = 0; u < shares.size(); ++u) plan_.pipelines[0].stages[0].units[u].ranks[0].shard_ratio = shares[u];
    GiveOwnership(setting_->workload.model, &plan_);
  }
  StepGraph GraphOf(const std::vector<Program>& programs) const {
    const auto graph = GraphOfPrograms(*setting_, plan_, programs);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return graph->graph;
  }
  double Seconds(const std::vector<Program>& programs) const {
    const auto timeline = planner::Run(GraphOf(programs));
    EXPECT_TRUE(timeline.ok()) << timeline.status();
    return ToSeconds(timeline->end);
  }
  int64_t Peak(const Program& program, const ModelSlice& slice = {}) const {
    return PeakActivations(setting_->costs, 0, program, slice).total();
  }
  int64_t Border() const { return setting_->costs.BoundaryBytes(2); }

  std::unique_ptr<Setting> setting_;
  Plan plan_;
};

int CountOf(const StepGraph& graph, TaskKind kind) {
  return static_cast<int>(
      std::count_if(graph.tasks.begin(), graph.tasks.end(), [kind](const Task& t) { return t.kind == kind; }));
}

TEST_F(ProgramWideTest, ARangeIsWorthItsSingles) {
  MakeOneRank(3, 4);
  Program wide = Parsed(kWide);
  wide.world = 1;
  wide.groups = {{0}};
  const auto elements = UnitElements(setting_->costs.layout());
  for (Instruction& instruction : wide.instructions) {  // ranges of the model's head
    std::visit(
        [&](auto& op) {
          if constexpr (requires { op.elements; }) {
            if (!op.elements.whole())
              op.elements = op.elements.first == 0 ? ArrayRange{0, 100} : ArrayRange{100, elements[4] - 100};
          }
        },
        instruction.op);
  }
  ASSERT_EQ(Validate(wide), absl::OkStatus());
  const Program singles = Singles(wide);
  ASSERT_EQ(Validate(singles), absl::OkStatus());
  EXPECT_GT(singles.instructions.size(), wide.instructions.size() + 10);
  EXPECT_EQ(Peak(wide), Peak(singles));
  EXPECT_NEAR(Seconds({wide}), Seconds({singles}), 1e-9 * Seconds({singles}));
}

TEST_F(ProgramWideTest, RangesOfElementsAreTheModels) {
  MakeOneRank(3, 4);
  Program wide = Parsed(kWide);
  wide.world = 1;
  wide.groups = {{0}};
  const auto graph = GraphOfPrograms(*setting_, plan_, {wide});
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr("its ranges of unit 4 end at element 16448, the unit has "));
}

TEST_F(ProgramWideTest, RecomputingSomeOperatorsKeepsTheOthers) {
  MakeOneRank(3, 4);
  Program some = Parsed(kWide);
  Program all = Parsed(
      kWide, {{"4", "forward block=1-3 mb=0-1 buffer=1 keep=boundary after=1"}, {"10", "recompute block=1-3 mb=0-1 buffer=1"}});
  EXPECT_EQ(Peak(some), Peak(all)) << "when all was recomputed";
  for (Program* program : {&some, &all}) program->instructions.resize(9);
  // At the head: of both microbatches in three layers what the two operators do not save.
  const OpSet two = OpSet().With(Op::kAttention).With(Op::kActivation);
  EXPECT_EQ(Peak(some) - Peak(all), 6 * setting_->costs.SavedBytes(0, UnitKind::kLayer, two, 2));
}

TEST_F(ProgramWideTest, TwoPartsOfABackwardTakeItsTime) {
  MakeOneRank(1, 4);
  const Program split = Parsed(kSplitBackward);
  // 1F1B with whole backwards: a microbatch is over before the next one begins.
  const Program whole = Parsed(kSplitBackward, {{"4", "backward block=1-2 mb=0 buffer=1 grad=1"},
                                                {"5", "backward block=0 mb=0 buffer=0 grad=0"},
                                                {"8", "backward block=1-2 mb=1 buffer=1 grad=1"},
                                                {"9", "zero_grad block=0 grad=9"},
                                                {"10", "backward block=0 mb=1 buffer=0 grad=0"},
                                                {"11", "zero_grad block=0 grad=9"}});
  EXPECT_NEAR(Seconds({split}), Seconds({whole}), 1e-9 * Seconds({whole}));
  const StepGraph graph = GraphOf({split});
  EXPECT_EQ(CountOf(graph, TaskKind::kBackwardInput), 4);
  EXPECT_EQ(CountOf(graph, TaskKind::kBackwardWeight), 2);
}

TEST_F(ProgramWideTest, CopiesMoveWhatIsNotNeeded) {
  MakeOneRank(1, 2);
  const Program copies = Parsed(kCopies);
  const StepGraph graph = GraphOf({copies});
  EXPECT_EQ(CountOf(graph, TaskKind::kOffload), 3);
  EXPECT_EQ(CountOf(graph, TaskKind::kPrefetch), 7);
  const Costs& costs = setting_->costs;
  double largest = 0;
  for (const Task& task : graph.tasks) {
    if (task.kind != TaskKind::kPrefetch || task.loads.empty() || task.unit != 0) continue;
    largest = std::max(largest, task.loads.front().bytes);
  }
  const int64_t stepped = costs.element_bytes() + costs.optimizer_bytes_per_element();
  EXPECT_EQ(largest, static_cast<double>(costs.UnitElements(UnitKind::kEmbedding) * stepped)) << "parameter and moments at once";
}

// Half of every unit's heads and columns on each rank of the group, between an embedding and a head.
TEST_F(ProgramWideTest, ATensorParallelGroupIsPricedAsSearchesPriceIt) {
  setting_ = MakeSetting(Nodes({{"T4", "T4", "T4", "T4"}}), WorkOf(MediumModel(2, false), 2));
  const auto stage = [this](std::vector<int> devices, std::vector<LayerRange> layers) {
    StagePlan made = StageOf(*setting_, devices[0], {{2}}, std::move(layers));
    RankPlan rank = made.units[0].ranks[0];
    made.units[0].ranks.clear();
    for (const int device : devices) {
      rank.device = setting_->cluster.devices[device].id;
      rank.tp_share = 1.0 / static_cast<double>(devices.size());
      made.units[0].ranks.push_back(rank);
    }
    return made;
  };
  plan_ = PlanOf(*setting_, ScheduleFamily::kGPipe, {{{stage({0}, {{0, -1}}), stage({1, 2}, {{0, 1}}), stage({3}, {{2, 1}})}}});
  std::vector<Program> programs = AroundAGroup();
  const std::vector<int64_t> elements = UnitElements(setting_->costs.layout());
  plan_.ownership.emplace();
  plan_.ownership->Add({{0, 0, elements[0]}});
  plan_.ownership->Add({{1, 0, elements[1] / 2}, {2, elements[1] / 2, elements[1]}});
  plan_.ownership->Add({{1, 0, elements[2] / 2}, {2, elements[2] / 2, elements[2]}});
  plan_.ownership->Add({{3, 0, elements[3]}});
  const StepGraph graph = GraphOf(programs);
  // Four between segments, and the two inside each pass of the other layer as one task.
  EXPECT_EQ(CountOf(graph, TaskKind::kAllReduce), 6);
  const Costs& costs = setting_->costs;
  double compute = 0;
  for (const Task& task : graph.tasks) {
    const bool pass = task.kind == TaskKind::kForward || task.kind == TaskKind::kBackward;
    if (pass && task.lanes[0] == LaneIndex(2, Lane::kCompute)) compute += ToSeconds(task.duration);
  }
  EXPECT_NEAR(compute,
              2 * (costs.ForwardSeconds(0, UnitKind::kLayer, 2, 0.5) + costs.BackwardSeconds(0, UnitKind::kLayer, 2, 0.5)), 1e-9);
  EXPECT_LT(Peak(programs[2], {0, 1, 2}), Peak(programs[2]));
  EXPECT_LT(Peak(programs[2]), Peak(programs[1]) + 1);
}

TEST_F(ProgramWideTest, RowsAreTwoNumbersEach) {
  setting_ = MakeSetting(Nodes({{"T4", "T4"}}), WorkOf(MediumModel(1, false), 2));
  plan_ = PlanOf(*setting_, ScheduleFamily::kLayered, {{{StageOf(*setting_, 0, {{1}, {1}}, {{0, 0}})}}});
  PlaceEvenly({0.5, 0.5});
  Program first = Parsed(kRows, {{"groups", "0,1 0 1"}}), second = first;
  second.rank = 1;
  std::get<Gather>(second.instructions[1].op).group = 2;
  const StepGraph graph = GraphOf({first, second});
  ASSERT_EQ(CountOf(graph, TaskKind::kAllReduce), 2);
  std::vector<double> bytes;
  for (const Task& task : graph.tasks) {
    if (task.kind == TaskKind::kAllReduce) bytes.push_back(task.loads.at(0).bytes);
  }
  // Of each row 512 numbers of the activation, or two; both of float32.
  EXPECT_NEAR(bytes[0] / bytes[1], 512.0 / 2, 1e-6);
}

}  // namespace
}  // namespace motley::planner
