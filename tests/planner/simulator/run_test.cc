#include <functional>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/simulator/step_graph.h"
#include "tests/planner/simulator/graph_fixture.h"
#include "tests/planner/simulator/slow_simulator.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const StepGraph& graph, const Stragglers& stragglers = {}) {
  return std::string(RunGraph(graph, stragglers).status().message());
}

TEST(RunTest, AnEmptyStepTakesNoTime) {
  EXPECT_EQ(RunGraph(StepGraph{})->end, 0);
  EXPECT_EQ(RunGraph(MakeGraph(2))->busy, std::vector<Picoseconds>(2 * kNumLanes, 0));
}

TEST(RunTest, LanesRunInOrderAndWaitForTheirPredecessors) {
  StepGraph graph = MakeGraph(2);
  const int32_t a = Compute(&graph, 0, 1), b = Compute(&graph, 0, 2);
  const int32_t c = Compute(&graph, 1, 0.5, {b}), d = Compute(&graph, 1, 1, {a});
  const Timeline timeline = *RunGraph(graph);
  EXPECT_EQ(timeline.spans[b].begin, kSecond);
  EXPECT_EQ(timeline.spans[c].begin, 3 * kSecond);
  // Ready long before, but behind c on its lane.
  EXPECT_EQ(timeline.spans[d].begin, 3 * kSecond + kSecond / 2);
  EXPECT_EQ(timeline.end, 4 * kSecond + kSecond / 2);
  EXPECT_EQ(timeline.busy[0], 3 * kSecond);
  EXPECT_EQ(timeline.busy[LaneIndex(1, Lane::kCompute)], kSecond + kSecond / 2);
}

TEST(RunTest, ACollectiveStartsWhenAllHaveReachedIt) {
  StepGraph graph = MakeGraph(2);
  const int32_t slow = Compute(&graph, 1, 3);
  const int32_t gather =
      Add(&graph, TaskKind::kGather, {LaneIndex(0, Lane::kCollective), LaneIndex(1, Lane::kCollective)}, 1, {slow});
  Compute(&graph, 0, 1, {gather});
  const Timeline timeline = *RunGraph(graph);
  EXPECT_EQ(timeline.spans[1].begin, 3 * kSecond);
  EXPECT_EQ(timeline.busy[LaneIndex(0, Lane::kCollective)], kSecond);  // waiting is not busy
  EXPECT_EQ(timeline.busy[LaneIndex(1, Lane::kCollective)], kSecond);
  EXPECT_EQ(timeline.end, 5 * kSecond);
}

TEST(RunTest, TwoEqualFlowsOnOneLinkTakeTwiceAsLong) {
  StepGraph graph = MakeGraph(2, {10});
  Send(&graph, 0, {{0, 20}});
  EXPECT_EQ(RunGraph(graph)->end, 2 * kSecond);
  Send(&graph, 1, {{0, 20}});
  const Timeline timeline = *RunGraph(graph);
  EXPECT_EQ(timeline.spans[0].end, 4 * kSecond);
  EXPECT_EQ(timeline.spans[1].end, 4 * kSecond);
}

TEST(RunTest, FlowsOneAfterTheOtherDoNotShare) {
  StepGraph graph = MakeGraph(2, {10});
  const int32_t first = Send(&graph, 0, {{0, 20}}, {}, 0.5);
  Send(&graph, 1, {{0, 20}}, {first}, 0.5);
  EXPECT_EQ(RunGraph(graph)->end, 5 * kSecond);
}

TEST(RunTest, LatencyDoesNotLoadTheLink) {
  StepGraph graph = MakeGraph(2, {10});
  Send(&graph, 0, {{0, 20}});
  Send(&graph, 1, {{0, 20}}, {}, 2);
  const Timeline timeline = *RunGraph(graph);
  EXPECT_EQ(timeline.spans[0].end, 2 * kSecond);
  EXPECT_EQ(timeline.spans[1].end, 4 * kSecond);
}

TEST(RunTest, ALateFlowSlowsTheFirstFromThen) {
  StepGraph graph = MakeGraph(3, {10});
  Send(&graph, 0, {{0, 40}});
  const int32_t work = Compute(&graph, 2, 2);
  Send(&graph, 1, {{0, 10}}, {work});
  const Timeline timeline = *RunGraph(graph);
  EXPECT_EQ(timeline.spans[2].end, 4 * kSecond);  // 10 bytes at 5 a second
  EXPECT_EQ(timeline.spans[0].end, 5 * kSecond);  // 20 alone, 10 shared, 10 alone
}

// Two links of 10 and 4: a long flow over both and a short one on each. Speeds 2, 8, 2; then the short ones end.
TEST(RunTest, AFlowLimitedElsewhereLeavesItsRestToTheOthers) {
  StepGraph graph = MakeGraph(3, {10, 4});
  Send(&graph, 0, {{0, 20}, {1, 20}});
  Send(&graph, 1, {{0, 40}});
  Send(&graph, 2, {{1, 6}});
  const Timeline timeline = *RunGraph(graph);
  EXPECT_EQ(timeline.spans[2].end, 3 * kSecond);                // 6 bytes at 2
  EXPECT_EQ(timeline.spans[0].end, 6 * kSecond + kSecond / 2);  // 3 s at 2, 14 bytes at 4
  // 3 s at 8, then 6: 16 bytes are left.
  EXPECT_NEAR(ToSeconds(timeline.spans[1].end), 3 + 16.0 / 6, 1e-11);
}

TEST(RunTest, ATransferWithoutBytesTakesItsLatency) {
  StepGraph graph = MakeGraph(1, {10});
  Send(&graph, 0, {{0, 0}}, {}, 0.25);
  EXPECT_EQ(RunGraph(graph)->end, kSecond / 4);
}

TEST(RunTest, TasksOnNoLaneWaitForTheirPredecessorsOnly) {
  StepGraph graph = MakeGraph(1);
  const int32_t a = Compute(&graph, 0, 1);
  const int32_t mark = Add(&graph, TaskKind::kWait, {}, 2, {a});
  Compute(&graph, 0, 1, {mark});
  EXPECT_EQ(RunGraph(graph)->end, 4 * kSecond);
}

TEST(RunTest, TimeSaturatesInsteadOfRunningOver) {
  StepGraph graph = MakeGraph(1, {1e-6});
  Compute(&graph, 0, 9e6);
  Compute(&graph, 0, 9e6);
  EXPECT_EQ(RunGraph(graph)->end, std::numeric_limits<Picoseconds>::max());
  Send(&graph, 0, {{0, 1e30}});
  EXPECT_EQ(RunGraph(graph)->end, std::numeric_limits<Picoseconds>::max());
}

TEST(RunTest, AgreesWithTheSlowSimulatorOnRandomGraphs) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 600; ++round) {
    const StepGraph graph = RandomGraph(&random, 2 + static_cast<int>(random() % 60), round % 3 != 0);
    const auto timeline = RunGraph(graph);
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    const auto slow = SlowSimulator(graph).Run();
    for (size_t t = 0; t < slow.size(); ++t) {
      // A picosecond of rounding may decide which of two tasks meets the other's transfer; the effect stays of that size.
      ASSERT_NEAR(ToSeconds(timeline->spans[t].begin), slow[t].begin, 1e-9) << "round " << round << " task " << t;
      ASSERT_NEAR(ToSeconds(timeline->spans[t].end), slow[t].end, 1e-9) << "round " << round << " task " << t;
    }
  }
}

TEST(RunTest, NeverUnderItsLowerBounds) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    const StepGraph graph = RandomGraph(&random, 80, true);
    const Timeline timeline = *RunGraph(graph);
    const double end = ToSeconds(timeline.end) * (1 + 1e-12) + 1e-12;
    std::vector<double> path(graph.tasks.size()), lanes(graph.actors.size() * kNumLanes, 0),
        bytes(graph.link_bytes_per_second.size(), 0);
    for (size_t t = 0; t < graph.tasks.size(); ++t) {
      const double alone = SecondsAlone(graph, graph.tasks[t]);
      for (const int32_t a : graph.tasks[t].after) path[t] = std::max(path[t], path[a]);
      path[t] += alone;
      EXPECT_LE(path[t], end);  // critical path
      for (const int32_t lane : graph.tasks[t].lanes) lanes[lane] += alone;
      for (const LinkLoad& load : graph.tasks[t].loads) bytes[load.resource] += load.bytes;
    }
    for (const double lane : lanes) EXPECT_LE(lane, end);
    for (size_t l = 0; l < bytes.size(); ++l) EXPECT_LE(bytes[l] / graph.link_bytes_per_second[l], end);
  }
}

TEST(RunTest, EqualGraphsGiveEqualPicoseconds) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 50; ++round) {
    const StepGraph graph = RandomGraph(&random, 200, true);
    const Stragglers stragglers{7, 0.5, 1.7};
    const Timeline a = *RunGraph(graph, stragglers), b = *RunGraph(graph, stragglers);
    for (size_t t = 0; t < a.spans.size(); ++t) {
      ASSERT_EQ(a.spans[t].begin, b.spans[t].begin);
      ASSERT_EQ(a.spans[t].end, b.spans[t].end);
    }
    ASSERT_EQ(a.busy, b.busy);
  }
}

TEST(RunTest, MonotoneInDurationsWithoutSharedLinks) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 200; ++round) {
    StepGraph graph = RandomGraph(&random, 60, false);
    const Timeline before = *RunGraph(graph);
    for (int k = 0; k < 5; ++k) {
      graph.tasks[random() % graph.tasks.size()].duration += static_cast<Picoseconds>(random() % kSecond);
    }
    const Timeline after = *RunGraph(graph);
    for (size_t t = 0; t < graph.tasks.size(); ++t) {
      ASSERT_LE(before.spans[t].begin, after.spans[t].begin);
      ASSERT_LE(before.spans[t].end, after.spans[t].end);
    }
  }
}

TEST(RunTest, StragglersAreChosenBySeedAndSlowComputeOnly) {
  StepGraph graph = MakeGraph(10);
  for (int a = 0; a < 10; ++a) Compute(&graph, a, 1);
  Add(&graph, TaskKind::kGather, {LaneIndex(0, Lane::kCollective)}, 1);
  const auto slow_actors = [&](uint64_t seed, double part) {
    const Timeline timeline = *RunGraph(graph, {seed, part, 2.5});
    EXPECT_EQ(timeline.busy[1], kSecond);
    std::vector<int> slow;
    for (int a = 0; a < 10; ++a) {
      const Picoseconds busy = timeline.busy[LaneIndex(a, Lane::kCompute)];
      EXPECT_TRUE(busy == kSecond || busy == 2 * kSecond + kSecond / 2);
      if (busy > kSecond) slow.push_back(a);
    }
    return slow;
  };
  EXPECT_TRUE(slow_actors(1, 0).empty());
  EXPECT_EQ(slow_actors(1, 0.01).size(), 1u);  // rounded up
  EXPECT_EQ(slow_actors(1, 0.3).size(), 3u);
  EXPECT_EQ(slow_actors(1, 1).size(), 10u);
  EXPECT_EQ(slow_actors(1, 0.3), slow_actors(1, 0.3));
  bool other = false;
  for (uint64_t seed = 2; seed < 10; ++seed) other |= slow_actors(seed, 0.3) != slow_actors(1, 0.3);
  EXPECT_TRUE(other);
}

TEST(RunTest, DeadlockListsEveryStuckLane) {
  StepGraph graph = MakeGraph(2);
  Compute(&graph, 0, 1);
  Compute(&graph, 0, 1, {2});  // after the collective ...
  Add(&graph, TaskKind::kGather, {LaneIndex(0, Lane::kCollective), LaneIndex(1, Lane::kCollective)}, 1, {3});
  graph.tasks.back().unit = 4;
  Compute(&graph, 1, 1, {1});  // ... which waits for this, which waits for that
  const auto status = RunGraph(graph).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(status.message()),
            "the step deadlocks: compute of n0/gpu0 is stuck at task 1 (forward) waiting for task 2 (gather 4); "
            "collective of n0/gpu0 is stuck at task 2 (gather 4) waiting for task 3 (forward); "
            "compute of n1/gpu0 is stuck at task 3 (forward) waiting for task 1 (forward); "
            "collective of n1/gpu0 is stuck at task 2 (gather 4) waiting for task 3 (forward)");
}

TEST(RunTest, DeadlockNamesTheLaneThatIsInTheWayAndTasksOnNoLane) {
  StepGraph graph = MakeGraph(1);
  Add(&graph, TaskKind::kWait, {}, 0, {0});
  Compute(&graph, 0, 1, {2});
  Add(&graph, TaskKind::kScalars, {LaneIndex(0, Lane::kCompute), LaneIndex(0, Lane::kCollective)}, 0);
  EXPECT_THAT(ErrorOf(graph), HasSubstr("collective of n0/gpu0 is stuck at task 2 (scalars) waiting for compute of n0/gpu0, "
                                        "which is at task 1"));
  EXPECT_THAT(ErrorOf(graph), HasSubstr("task 0 (wait) on no lane is stuck waiting for task 0 (wait)"));
}

TEST(RunTest, RefusesWhatDoesNotExistOrIsNoNumber) {
  const auto broken = [](const std::function<void(StepGraph*)>& change) {
    StepGraph graph = MakeGraph(1, {10, 0});
    Compute(&graph, 0, 1);
    Send(&graph, 0, {{0, 20}}, {0});
    change(&graph);
    EXPECT_EQ(RunGraph(graph).status().code(), absl::StatusCode::kInvalidArgument);
    return ErrorOf(graph);
  };
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(broken([](StepGraph* g) { g->tasks[0].duration = -5; }),
              HasSubstr("task 0 (forward): its duration is negative: -5 ps"));
  EXPECT_THAT(broken([](StepGraph* g) { g->tasks[0].lanes = {kNumLanes}; }), HasSubstr("lane 5 does not exist; the graph has 5"));
  EXPECT_THAT(broken([](StepGraph* g) { g->tasks[0].lanes = {-1}; }), HasSubstr("lane -1 does not exist"));
  EXPECT_THAT(broken([](StepGraph* g) { g->tasks[0].lanes = {1, 0, 1}; }), HasSubstr("names lane collective of n0/gpu0 twice"));
  EXPECT_THAT(broken([](StepGraph* g) { g->tasks[1].after = {2}; }),
              HasSubstr("task 1 (send): it comes after task 2; the graph has 2"));
  EXPECT_THAT(broken([](StepGraph* g) { g->tasks[1].loads = {{2, 1}}; }), HasSubstr("link 2 does not exist; the graph has 2"));
  EXPECT_THAT(broken([](StepGraph* g) { g->tasks[1].loads = {{0, -1}}; }), HasSubstr("loads link 0 with -1 bytes"));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(broken([&](StepGraph* g) { g->tasks[1].loads = {{0, nan}}; }), HasSubstr("loads link 0 with nan bytes"));
  EXPECT_THAT(broken([&](StepGraph* g) { g->tasks[1].loads = {{0, inf}}; }), HasSubstr("loads link 0 with inf bytes"));
  EXPECT_THAT(broken([](StepGraph* g) { g->tasks[1].loads = {{1, 1}}; }), HasSubstr("link 1 that it loads has 0 bytes a second"));
  const StepGraph graph = MakeGraph(1);
  EXPECT_THAT(ErrorOf(graph, {1, 1.5, 2}), HasSubstr("part of stragglers is 1.5; give 0 to 1"));
  EXPECT_THAT(ErrorOf(graph, {1, 0.5, 0}), HasSubstr("slowdown of stragglers is 0; give a positive number"));
}

}  // namespace
}  // namespace motley::planner
