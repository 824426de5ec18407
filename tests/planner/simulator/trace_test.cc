#include "planner/simulator/trace.h"

#include <map>
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

// Rows by process and thread.
std::map<std::pair<int, int>, std::string> NamesOf(const nlohmann::json& trace, const char* what) {
  std::map<std::pair<int, int>, std::string> names;
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == what) names[{event["pid"], event["tid"]}] = event["args"]["name"];
  }
  return names;
}

TEST(TraceTest, ATensorParallelUnitIsOneProcess) {
  StepGraph graph = MakeGraph(4);
  graph.actors[1].unit = graph.actors[2].unit = "n1/gpu0+n2/gpu0 (tp 0.75/0.25)";
  for (int a = 0; a < 4; ++a) Compute(&graph, a, 1 + a);
  Add(&graph, TaskKind::kAllReduce, {LaneIndex(1, Lane::kCollective), LaneIndex(2, Lane::kCollective)}, 0.5);
  const Timeline timeline = *RunGraph(graph);
  const auto trace = nlohmann::json::parse(TraceJson(graph, {{"measured", &timeline}, {"simulated", &timeline}}));
  using Names = std::map<std::pair<int, int>, std::string>;
  EXPECT_EQ(NamesOf(trace, "process_name"), (Names{{{0, 0}, "measured: pipeline 0 stage 0 n0/gpu0"},
                                                   {{1, 0}, "simulated: pipeline 0 stage 0 n0/gpu0"},
                                                   {{2, 0}, "measured: pipeline 0 stage 0 unit n1/gpu0+n2/gpu0 (tp 0.75/0.25)"},
                                                   {{3, 0}, "simulated: pipeline 0 stage 0 unit n1/gpu0+n2/gpu0 (tp 0.75/0.25)"},
                                                   {{4, 0}, "measured: pipeline 0 stage 0 n3/gpu0"},
                                                   {{5, 0}, "simulated: pipeline 0 stage 0 n3/gpu0"}}));
  Names threads = NamesOf(trace, "thread_name");
  EXPECT_EQ((std::vector<std::string>{threads[{0, 0}], threads[{2, 0}], threads[{2, 1}], threads[{2, kNumLanes}],
                                      threads[{3, kNumLanes + 1}], threads[{4, 0}]}),
            (std::vector<std::string>{"compute", "n1/gpu0 compute", "n1/gpu0 collective", "n2/gpu0 compute", "n2/gpu0 collective",
                                      "compute"}));
  std::map<std::pair<int, int>, double> longest;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "X") longest[{event["pid"], event["tid"]}] = event["dur"];
  }
  EXPECT_EQ(longest.size(), threads.size()) << "a span has a row with a name";
  EXPECT_EQ((longest[{2, kNumLanes}]), 3e6);
  EXPECT_EQ((longest[{5, 0}]), 4e6);
}

TEST(TraceTest, AnEmptyStepIsStillJson) {
  EXPECT_TRUE(nlohmann::json::parse(TraceJson(StepGraph{}, Timeline{}))["traceEvents"].empty());
}

}  // namespace
}  // namespace motley::planner
