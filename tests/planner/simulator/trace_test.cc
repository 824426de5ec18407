#include "planner/simulator/trace.h"

#include <set>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/planner/simulator/graph_fixture.h"

namespace motley::planner {
namespace {

TEST(TraceTest, AnEventForEveryTaskOnEachOfItsLanes) {
  StepGraph graph = MakeGraph(2, {10});
  graph.actors[1].name = "n2/\"gpu\"\n\xff";
  const int32_t a = Compute(&graph, 0, 1);
  graph.tasks[0].unit = 3;
  graph.tasks[0].microbatch = 1;
  Add(&graph, TaskKind::kWait, {LaneIndex(0, Lane::kCompute)}, 0);
  Add(&graph, TaskKind::kGather, {LaneIndex(0, Lane::kCollective), LaneIndex(1, Lane::kCollective)}, 0.25, {a}, {{0, 5}});
  const Timeline timeline = *RunGraph(graph);
  const auto json = nlohmann::json::parse(TraceJson(graph, timeline));
  std::set<std::string> names;
  std::vector<nlohmann::json> spans;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == "X") spans.push_back(event);
    if (event["name"] == "process_name") names.insert(event["args"]["name"].get<std::string>());
    if (event["name"] == "thread_name") names.insert(event["args"]["name"].get<std::string>());
  }
  EXPECT_EQ(names, (std::set<std::string>{"pipeline 0 stage 0 n0/gpu0", "pipeline 0 stage 0 n2/\"gpu\"\n\xEF\xBF\xBD", "compute",
                                          "collective"}));
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0]["name"], "forward 3.1");
  EXPECT_EQ(spans[0]["dur"], 1e6);
  EXPECT_EQ(spans[2]["pid"], 1);
  EXPECT_EQ(spans[2]["tid"], 1);
  EXPECT_EQ(spans[2]["ts"], 1e6);
  EXPECT_EQ(spans[2]["dur"], 0.75e6);
  EXPECT_EQ(spans[2]["args"]["task"], 2);
}

TEST(TraceTest, AnEmptyStepIsStillJson) {
  EXPECT_TRUE(nlohmann::json::parse(TraceJson(StepGraph{}, Timeline{}))["traceEvents"].empty());
}

}  // namespace
}  // namespace motley::planner
