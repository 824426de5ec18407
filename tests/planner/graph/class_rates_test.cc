// What class programs cost: seconds, flows, lanes and copies of several units, by hand.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/graph/group_flows.h"
#include "planner/graph/program_graph.h"
#include "planner/graph/program_rates.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// Four layers in two stages of like cards; microbatches of 8 samples. Blocks: embedding, two layers each, head.
class ClassesTest : public testing::Test {
 protected:
  // `first`, `second`: microbatches of the stages' units.
  void Make(const std::vector<std::vector<int64_t>>& first, const std::vector<std::vector<int64_t>>& second, double overlap = 1,
            bool tied = false) {
    Cluster cluster = Nodes({std::vector<std::string>(first.size(), "T4"), std::vector<std::string>(second.size(), "T4")});
    cluster.overlap_efficiency = overlap;
    setting_ = MakeSetting(std::move(cluster), WorkOf(MediumModel(4, tied), 16));
    const StagePlan stages[] = {StageOf(*setting_, 0, first, {{0, 1}}, 3, OpSet::All()),
                                StageOf(*setting_, static_cast<int>(first.size()), second, {{2, 3}}, 3, OpSet::All())};
    plan_ = PlanOf(*setting_, ScheduleFamily::k1F1B, {{{stages[0], stages[1]}}});
  }
  // As one unit.
  void MakePair(int stage, double share, OpSet recompute = OpSet::All()) {
    std::vector<UnitPlan>& units = plan_.pipelines[0].stages[stage].units;
    std::vector<UnitPlan> pairs;
    for (size_t u = 0; u < units.size(); u += 2) {
      UnitPlan pair = units[u];
      pair.ranks.push_back(units[u + 1].ranks[0]);
      pair.ranks[0].tp_share = share;
      pair.ranks[1].tp_share = 1 - share;
      for (RankPlan& rank : pair.ranks) rank.recompute = recompute;
      pairs.push_back(pair);
    }
    units = pairs;
  }
  void Look() {
    view_ = ViewOf(*setting_, plan_).value();
    classes_.blocks = {{true, 0, 0, false}, {false, 0, 2, false}, {false, 2, 2, false}, {false, 4, 0, true}};
    classes_.stages_of = {{0}, {1}, {0, 1}};
    writer_ = std::make_unique<GraphWriter>(setting_->links);
    rates_ = RatesOfClasses(*setting_, view_, classes_, writer_.get());
  }
  // Of each class: its microbatches, what it holds and its instructions.
  struct Text {
    std::string microbatches, holds, instructions;
  };
  void Write(const std::vector<Text>& texts) {
    Look();
    std::string groups = " ";
    for (size_t c = 0; c < texts.size(); ++c) {
      absl::StrAppend(&groups, c == 0 ? "" : ",", c);
    }
    for (size_t c = 0; c < texts.size(); ++c) {
      const auto& [microbatches, holds, instructions] = texts[c];
      auto program = ParseProgram(absl::StrCat(
          "program 6 training rank ", c, " of ", texts.size(), " units 4 microbatches ", microbatches, "\nholds ", holds,
          "\ngroups 0 1", groups, "\nparameters 1,1\ngradients 1,1\noffloads parameters,optimizer\nslots -\n", instructions));
      ASSERT_TRUE(program.ok()) << program.status();
      classes_.programs.push_back(*std::move(program));
    }
  }
  void Build() {
    auto graph = GraphOfClasses(*setting_, view_, classes_);
    ASSERT_TRUE(graph.ok()) << graph.status();
    graph_ = *std::move(graph);
  }
  std::vector<Task> TasksOf(TaskKind kind) const {
    std::vector<Task> tasks;
    for (const Task& task : graph_.tasks) {
      if (task.kind == kind) tasks.push_back(task);
    }
    return tasks;
  }
  double Layers(double samples, double share = 1) const {
    return 2 * setting_->costs.ForwardSeconds(0, UnitKind::kLayer, samples, share);
  }
  double Alone(int flow) const { return writer_->SecondsAlone(flow); }
  double Alone(const std::vector<Flow>& flows) const { return setting_->links.SecondsAlone(Links::Together(flows)); }
  Flow Sent(int from, int to, double samples) const {
    return setting_->links.PointToPoint(from, to, static_cast<double>(setting_->costs.BoundaryBytes(samples)));
  }

  std::unique_ptr<Setting> setting_;
  Plan plan_;
  PlanView view_;
  ClassPrograms classes_;
  std::unique_ptr<GraphWriter> writer_;
  std::unique_ptr<ProgramRates> rates_;
  StepGraph graph_;
};

constexpr const char* kFirst =
    "0 forward block=0-1 mb=0-1 buffer=0 keep=boundary\n"
    "1 recompute block=0 mb=0 buffer=0\n"
    "2 recompute block=0-1 mb=0 buffer=0 after=0\n"
    "3 backward block=0-1 mb=0 buffer=0 grad=0 after=1\n"
    "4 backward_input block=0-1 mb=1 buffer=0\n"
    "5 backward_weight block=0-1 mb=1 grad=0\n";

TEST_F(ClassesTest, ComputeIsOfOneUnitsSamples) {
  Make({{4, 4}, {4, 4}}, {{8, 8}});
  Write({{"8@0,8@8", "0,1", kFirst}, {"8@0,8@8", "2,3", ""}});
  Build();
  ASSERT_EQ(graph_.actors.size(), 2);
  EXPECT_EQ(graph_.actors[0].name, "n0/gpu0 and 1 like it");
  EXPECT_EQ(graph_.actors[0].count, 2);
  ASSERT_EQ(graph_.tasks.size(), 5) << "running an embedding again is no task";
  const Costs& costs = setting_->costs;
  const double embedding = costs.ForwardSeconds(0, UnitKind::kEmbedding, 4);
  const double backward = 2 * costs.BackwardSeconds(0, UnitKind::kLayer, 4) + costs.BackwardSeconds(0, UnitKind::kEmbedding, 4);
  const double input = backward / 2;
  const double expected[] = {2 * (Layers(4) + embedding), Layers(4), backward, input, backward - input};
  for (size_t t = 0; t < 5; ++t) EXPECT_NEAR(ToSeconds(graph_.tasks[t].duration), expected[t], 1e-11) << t;
  EXPECT_THAT(graph_.tasks[2].after, ElementsAre(0)) << "through what takes no time";
}

TEST_F(ClassesTest, AUnitsSumsFollowItsComputeOnItsLane) {
  Make({{4, 4}, {4, 4}, {4, 4}, {4, 4}}, {{8, 8}});
  MakePair(0, 0.75);
  Write({{"8@0,8@8", "0,1", kFirst}, {"8@0,8@8", "2,3", ""}});
  Build();
  EXPECT_EQ(graph_.actors[0].count, 4);
  const std::vector<Task> forwards = TasksOf(TaskKind::kForward);
  ASSERT_EQ(forwards.size(), 1);
  const double embedding = setting_->costs.ForwardSeconds(0, UnitKind::kEmbedding, 4, 0.75);
  EXPECT_NEAR(ToSeconds(forwards[0].duration), 2 * (Layers(4, 0.75) + embedding), 1e-11) << "the slowest rank's";
  const std::vector<Task> sums = TasksOf(TaskKind::kAllReduce);
  ASSERT_EQ(sums.size(), 3) << "none behind the gradient of the weights or what is recomputed";
  const double times[] = {2 * (2 * 2 + 1), 2 * 2, 2 * 2};  // two microbatches, then one
  const Flow flow =
      setting_->links.Ring(Collective::kAllReduce, std::vector<int>{0, 1}, static_cast<double>(setting_->costs.BoundaryBytes(4)));
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_THAT(sums[i].lanes, ElementsAre(LaneIndex(0, Lane::kCompute)));
    EXPECT_NEAR(ToSeconds(sums[i].duration), times[i] * flow.latency_seconds, 1e-11) << i;
    ASSERT_FALSE(sums[i].loads.empty());
    EXPECT_NEAR(sums[i].loads[0].bytes, times[i] * flow.loads[0].bytes, 1) << i;
  }
}

TEST_F(ClassesTest, HandOversAreOfUnitsThatHaveSamplesInCommon) {
  Make({{4, 4}, {4, 4}}, {{2, 2}, {2, 2}, {2, 2}, {2, 2}});
  Write({{"8@0,8@8", "0,1", ""}, {"8@0,8@8", "2,3", ""}});
  const auto seconds = [&](int32_t from_microbatch, int64_t first, int64_t samples) {
    return Alone(rates_->HandOver({0, 1, from_microbatch, from_microbatch, first, samples}));
  };
  EXPECT_DOUBLE_EQ(seconds(0, 0, 8), Alone({Sent(0, 2, 2), Sent(0, 3, 2), Sent(1, 4, 2), Sent(1, 5, 2)}));
  EXPECT_DOUBLE_EQ(seconds(0, 1, 4), Alone({Sent(0, 2, 1), Sent(0, 3, 2), Sent(1, 4, 1)}));
  EXPECT_DOUBLE_EQ(Alone(rates_->HandOver({1, 0, 1, 1, 8, 3})), Alone({Sent(2, 0, 2), Sent(3, 0, 1)}));
  EXPECT_EQ(rates_->HandOver({0, 1, 1, 1, 9, 4}), rates_->HandOver({0, 1, 0, 0, 1, 4})) << "made once";
  const UnitRange some = rates_->UnitsWith(1, 1, 11, 2);
  EXPECT_EQ(some.first, 1);
  EXPECT_EQ(some.last, 3);
  EXPECT_FALSE(some.all());
  EXPECT_TRUE(rates_->UnitsWith(1, 1, 8, 8).all());
}

// A class of two units hands one unit's samples to each of two cards.
TEST_F(ClassesTest, UnitsHandOverBesideEachOther) {
  Make({{4, 4}, {4, 4}}, {{8}, {8}});
  plan_.pipelines[0].stages[1].units[1].ranks[0].recompute = OpSet::None();  // they are unlike
  const std::string sends =
      "0 send_activation block=2 mb=0 first=0 samples=4 peer=1\n"
      "1 send_activation block=2 mb=0 first=4 samples=4 peer=2\n"
      "2 send_activation block=2 mb=1 first=8 samples=4 peer=1\n"
      "3 send_activation block=2 mb=1 first=12 samples=4 peer=2\n";
  const auto receives = [](int first) {
    return absl::StrCat("0 receive_activation block=2 mb=0 first=", first, " samples=4 peer=0\n",
                        "1 receive_activation block=2 mb=1 first=", first + 8, " samples=4 peer=0\n");
  };
  Write({{"8@0,8@8", "0,1", sends}, {"4@0,4@8", "2,3", receives(0)}, {"4@4,4@12", "2,3", receives(4)}});
  Build();
  ASSERT_EQ(graph_.tasks.size(), 4);
  for (int t = 0; t < 4; ++t) {
    EXPECT_THAT(graph_.tasks[t].lanes, ElementsAre(LaneIndex(1 + t % 2, Lane::kReceive))) << "not the sender's";
    if (t >= 2) EXPECT_THAT(graph_.tasks[t].after, ElementsAre(t - 2)) << "the same unit's last one";
  }
}

TEST_F(ClassesTest, AllUnitsOfAClassTakeItsLanes) {
  Make({{4, 4}, {4, 4}}, {{2, 2}, {2, 2}, {2, 2}, {2, 2}});
  Write({{"8@0,8@8", "0,1", "0 send_activation block=2 mb=0 first=0 samples=8 peer=1\n"},
         {"8@0,8@8", "2,3", "0 receive_activation block=2 mb=0 first=0 samples=8 peer=0\n"}});
  Build();
  ASSERT_EQ(graph_.tasks.size(), 1);
  EXPECT_THAT(graph_.tasks[0].lanes, UnorderedElementsAre(LaneIndex(0, Lane::kSend), LaneIndex(1, Lane::kReceive)));
}

TEST_F(ClassesTest, CollectivesAreOfTheStagesRanks) {
  Make({{4, 4}, {4, 4}}, {{2, 2}, {2, 2}, {2, 2}, {2, 2}});
  Write({{"8@0,8@8", "0,1", ""}, {"8@0,8@8", "2,3", ""}});
  const Costs& costs = setting_->costs;
  const int64_t layer = costs.UnitElements(UnitKind::kLayer), embedding = costs.UnitElements(UnitKind::kEmbedding);
  const auto bytes = [&](Collective collective, int64_t elements) {
    return static_cast<double>(elements) * costs.RingBytes(collective);
  };
  const Collective gather = Collective::kAllGather, sum = Collective::kAllReduce;
  EXPECT_DOUBLE_EQ(Alone(rates_->Ring({gather, 1, 2, 1})),
                   Alone({GroupFlow(setting_->links, view_, view_.stages[1], gather,
                                    bytes(gather, 2 * layer + costs.UnitElements(UnitKind::kHead)))}));
  EXPECT_DOUBLE_EQ(Alone(rates_->Ring({gather, 1, 2, 0, 0, {5, 1000}})),
                   Alone({GroupFlow(setting_->links, view_, view_.stages[1], gather, bytes(gather, 1000))}));
  EXPECT_DOUBLE_EQ(Alone(rates_->Ring({sum, 2, 0, 0})),
                   Alone({TiedFlow(setting_->links, view_, 0, 1, sum, bytes(sum, embedding))}));
  EXPECT_DOUBLE_EQ(Alone(rates_->Scalars()), setting_->links.TreeSeconds(std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST_F(ClassesTest, CollectivesBesideComputeAreChargedToEachClass) {
  const std::string steps =
      "0 gather block=2-3 buffer=0 group=1\n"
      "1 forward block=2-3 mb=0 buffer=0 keep=all after=0\n";
  for (const double overlap : {0.75, 1.0}) {
    Make({{4, 4}, {4, 4}}, {{2, 2}, {2, 2}, {2, 2}, {2, 2}}, overlap);
    classes_ = {};
    Write({{"8@0,8@8", "0,1", ""}, {"8@0,8@8", "2,3", steps}});
    Build();
    const std::vector<Task> waits = TasksOf(TaskKind::kWait);
    ASSERT_EQ(waits.size(), overlap < 1 ? 1 : 0);
    if (overlap == 1) continue;
    EXPECT_NEAR(ToSeconds(waits[0].duration), 0.25 * Alone(rates_->Ring({Collective::kAllGather, 1, 2, 1})), 1e-11);
  }
}

TEST_F(ClassesTest, CopiesAreOfEachRank) {
  Make({{4, 4}, {4, 4}}, {{8, 8}}, 1, true);
  Write({{"8@0,8@8", "0,1", ""}, {"8@0,8@8", "2,3", ""}});
  const Costs& costs = setting_->costs;
  const auto both = [&](double bytes) { return Alone({setting_->links.FromHost(0, bytes), setting_->links.FromHost(1, bytes)}); };
  const double layers = static_cast<double>(2 * costs.UnitElements(UnitKind::kLayer));
  const double embedding = static_cast<double>(costs.UnitElements(UnitKind::kEmbedding));
  EXPECT_DOUBLE_EQ(Alone(rates_->Copy(0, PrefetchActivation{0, 0, 0, 1, 1})),
                   both(static_cast<double>(costs.BoundaryBytes(2 * 4 * 2))))
      << "inputs of layers";
  EXPECT_DOUBLE_EQ(Alone(rates_->Copy(0, PrefetchParameters{0, 0, 1})),
                   both((embedding + layers) / 2 * static_cast<double>(costs.element_bytes())));
  const auto stepped = static_cast<double>(costs.element_bytes() + costs.optimizer_bytes_per_element());
  EXPECT_DOUBLE_EQ(Alone(rates_->Copy(0, PrefetchOptimizer{1, 0})), both(layers / 2 * stepped));
  EXPECT_DOUBLE_EQ(Alone(rates_->Copy(0, OffloadGradients{1, 0})),
                   Alone({setting_->links.ToHost(0, layers / 2 * costs.gradient_bytes()),
                          setting_->links.ToHost(1, layers / 2 * costs.gradient_bytes())}));
  const double head = static_cast<double>(costs.UnitElements(UnitKind::kHead));
  const auto out = [&](double bytes) { return Alone({setting_->links.ToHost(2, bytes)}); };
  EXPECT_DOUBLE_EQ(Alone(rates_->Copy(1, OffloadOptimizer{3, 0})), out((head + embedding) * stepped))
      << "a tied head's copy of the embedding is stepped with it";
}

TEST_F(ClassesTest, ARankStepsItsPart) {
  Make({{4, 4}, {4, 4}}, {{8, 8}}, 1, true);
  Write({{"8@0,8@8", "0,1", ""}, {"8@0,8@8", "2,3", ""}});
  const Costs& costs = setting_->costs;
  const double layers = static_cast<double>(2 * costs.UnitElements(UnitKind::kLayer));
  const double ends = static_cast<double>(costs.UnitElements(UnitKind::kEmbedding) + costs.UnitElements(UnitKind::kHead));
  EXPECT_DOUBLE_EQ(rates_->OptimizerSeconds(0, OptimizerStep{1, 0}), costs.OptimizerSeconds(0, layers / 2));
  EXPECT_DOUBLE_EQ(rates_->OptimizerSeconds(1, OptimizerStep{}), costs.OptimizerSeconds(0, layers + ends)) << "with the copy";
  EXPECT_DOUBLE_EQ(rates_->OptimizerSeconds(1, OptimizerStep{3, 0}), costs.OptimizerSeconds(0, ends));
}

}  // namespace
}  // namespace motley::planner
