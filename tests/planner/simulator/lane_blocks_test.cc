#include "planner/simulator/lane_blocks.h"

#include <map>
#include <numeric>

#include "gtest/gtest.h"
#include "tests/planner/simulator/graph_fixture.h"

namespace motley::planner {
namespace {

// Tasks of one lane with a pause after each, in seconds.
struct Piece {
  TaskKind kind;
  double seconds, pause;
};
std::pair<StepGraph, Timeline> OneLane(const std::vector<Piece>& pieces) {
  StepGraph graph = MakeGraph(1);
  for (const Piece& p : pieces) {
    Add(&graph, p.kind, {0}, p.seconds);
    if (p.pause > 0) Add(&graph, TaskKind::kWait, {0}, p.pause);
  }
  Timeline timeline = *RunGraph(graph);
  return {std::move(graph), std::move(timeline)};
}
std::vector<int32_t> AllButPauses(const StepGraph& graph) {
  std::vector<int32_t> tasks;
  for (size_t t = 0; t < graph.tasks.size(); ++t) {
    if (graph.tasks[t].kind != TaskKind::kWait) tasks.push_back(static_cast<int32_t>(t));
  }
  return tasks;
}

TEST(LaneBlocksTest, WideTasksAreDrawnAsTheyAre) {
  const auto [graph, timeline] = OneLane({{TaskKind::kForward, 1, 2}, {TaskKind::kBackward, 3, 4}});
  const auto blocks = BlocksOfLane(graph, timeline, AllButPauses(graph), 100);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_DOUBLE_EQ(blocks[0].begin, 0);
  EXPECT_DOUBLE_EQ(blocks[0].end, 10);
  EXPECT_EQ(blocks[0].task, 0);
  EXPECT_DOUBLE_EQ(blocks[1].begin, 30);
  EXPECT_DOUBLE_EQ(blocks[1].end, 60);
  EXPECT_EQ(blocks[1].kind, TaskKind::kBackward);
}

TEST(LaneBlocksTest, SliversKeepTheirPartsOfTime) {
  std::vector<Piece> pieces;
  for (int i = 0; i < 20000; ++i) {
    pieces.push_back({TaskKind::kForward, 1, 0});
    pieces.push_back({TaskKind::kBackward, 2, 1});
  }
  const auto [graph, timeline] = OneLane(pieces);
  const auto blocks = BlocksOfLane(graph, timeline, AllButPauses(graph), 1000);
  EXPECT_LE(blocks.size(), 4000u);
  std::map<TaskKind, double> drawn;
  double last = 0;
  for (const LaneBlock& block : blocks) {
    EXPECT_GE(block.begin, last - 1e-9);  // no block over another
    EXPECT_EQ(block.task, -1);
    last = block.end;
    drawn[block.kind] += block.end - block.begin;
  }
  EXPECT_LE(last, 1000 + 1e-9);
  EXPECT_NEAR(drawn[TaskKind::kForward], 250, 2);
  EXPECT_NEAR(drawn[TaskKind::kBackward], 500, 2);
}

TEST(LaneBlocksTest, SliversBetweenWideTasksDoNotCoverThem) {
  std::vector<Piece> pieces;
  for (int i = 0; i < 100; ++i) {
    pieces.push_back({TaskKind::kForward, 9, 0});
    for (int k = 0; k < 3; ++k) pieces.push_back({TaskKind::kBackward, 0.3, 0});
  }
  const auto [graph, timeline] = OneLane(pieces);
  double last = 0, backward = 0;
  for (const LaneBlock& block : BlocksOfLane(graph, timeline, AllButPauses(graph), 990)) {
    EXPECT_GE(block.begin, last - 1e-9);
    last = block.end;
    if (block.kind == TaskKind::kBackward) backward += block.end - block.begin;
  }
  EXPECT_NEAR(backward, 90, 3);
}

TEST(LaneBlocksTest, NothingIsDrawnOfAnEmptyStep) {
  EXPECT_TRUE(BlocksOfLane(MakeGraph(1), *RunGraph(MakeGraph(1)), {}, 100).empty());
}

}  // namespace
}  // namespace motley::planner
