#include "planner/simulator/picture.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/simulator/graph_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Whether tags open and close in pairs and text holds no bare markup: what a reader of XML insists on.
bool IsWellFormed(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t i = 0; i < xml.size(); ++i) {
    if (xml[i] == '&' && xml.find(';', i) > i + 6) return false;
    if (static_cast<unsigned char>(xml[i]) < 0x20 && xml[i] != '\n') return false;
    if (xml[i] != '<') continue;
    const size_t end = xml.find('>', i);
    if (end == std::string::npos || xml.substr(i + 1, end - i - 1).find('<') != std::string::npos) return false;
    const std::string tag = xml.substr(i + 1, end - i - 1), name = tag.substr(0, tag.find(' '));
    if (name[0] == '/') {
      if (open.empty() || open.back() != name.substr(1)) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    i = end;
  }
  return open.empty();
}

StepGraph TwoStages(int microbatches) {
  StepGraph graph = MakeGraph(2, {1e9, 1e9});
  graph.actors[1].stage = 1;
  for (int m = 0; m < microbatches; ++m) {
    const int32_t first = Compute(&graph, 0, 0.010);
    const int32_t sent = Send(&graph, 0, {{0, 1e6}}, {first});
    Compute(&graph, 1, 0.012, {sent});
  }
  return graph;
}

TEST(PictureTest, ShowsStagesLanesKindsAndTime) {
  const StepGraph graph = TwoStages(8);
  PictureOptions options;
  options.title = "zorse, llama-7b";
  const std::string svg = SvgTimeline(graph, *RunGraph(graph), options);
  EXPECT_TRUE(IsWellFormed(svg)) << svg;
  for (const char* text : {">zorse, llama-7b: 107 ms a step<", ">pipeline 0, stage 1<", ">n1/gpu0<", ">send<", ">forward<",
                           ">idle<", ">100 ms<", ">90 %<", ">75 %<", "<title>forward: 10 ms at 0.00 ms</title>"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_THAT(svg, Not(HasSubstr(">backward<")));  // the legend has what occurs
}

TEST(PictureTest, NamesAreEscapedAndShortened) {
  StepGraph graph = TwoStages(1);
  graph.actors[0].name = "<&\"\x01>";
  graph.actors[1].name = std::string(33, 'x') + "äöü";
  PictureOptions options;
  options.title = "<script>";
  const std::string svg = SvgTimeline(graph, *RunGraph(graph), options);
  EXPECT_TRUE(IsWellFormed(svg));
  EXPECT_THAT(svg, HasSubstr("&lt;&amp;&quot;?&gt;"));
  EXPECT_THAT(svg, HasSubstr(std::string(33, 'x') + "ä…<"));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;: "));
}

TEST(PictureTest, RanksOfATensorParallelUnitStandUnderItsName) {
  StepGraph graph = MakeGraph(5);
  graph.actors[1].unit = graph.actors[2].unit = "n1/gpu0+n2/gpu0 (tp 0.75/0.25)";
  graph.actors[3].unit = graph.actors[4].unit = "n3/gpu0+n4/gpu0 (tp 0.75/0.25)";
  for (int a = 0; a < 5; ++a) Compute(&graph, a, 1);
  const std::string svg = SvgTimeline(graph, *RunGraph(graph));
  size_t at = 0;
  for (const char* text : {">n0/gpu0<", ">unit n1/gpu0+n2/gpu0 (tp 0.75/0.25)<", ">n1/gpu0<", ">n2/gpu0<",
                           ">unit n3/gpu0+n4/gpu0 (tp 0.75/0.25)<", ">n3/gpu0<", ">n4/gpu0<"}) {
    const size_t found = svg.find(text, at);
    ASSERT_NE(found, std::string::npos) << text;
    EXPECT_EQ(svg.find(text, found + 1), std::string::npos) << text << " twice";
    at = found;
  }
}

TEST(PictureTest, SizeIsBoundedWhateverTheNumberOfTasks) {
  const StepGraph small = TwoStages(2000), large = TwoStages(40000);
  const std::string svg = SvgTimeline(large, *RunGraph(large));
  EXPECT_LT(svg.size(), 300'000u);
  EXPECT_LT(svg.size(), 2 * SvgTimeline(small, *RunGraph(small)).size() + 10000);
  EXPECT_TRUE(IsWellFormed(svg));
}

TEST(PictureTest, OfManyActorsSomeOfEveryStageAreShown) {
  StepGraph graph = MakeGraph(100);
  for (int a = 0; a < 100; ++a) {
    graph.actors[a].stage = a / 50;
    Compute(&graph, a, 1);
  }
  PictureOptions options;
  options.most_actors = 10;
  const std::string svg = SvgTimeline(graph, *RunGraph(graph), options);
  EXPECT_THAT(svg, HasSubstr(">n4/gpu0<"));
  EXPECT_THAT(svg, Not(HasSubstr(">n5/gpu0<")));
  EXPECT_THAT(svg, HasSubstr(">n54/gpu0<"));
  EXPECT_THAT(svg, HasSubstr(">90 more actors are not shown<"));
}

TEST(PictureTest, EmptyStepsAndNarrowPicturesAreDrawn) {
  EXPECT_TRUE(IsWellFormed(SvgTimeline(StepGraph{}, Timeline{})));
  const StepGraph graph = MakeGraph(3);
  PictureOptions options;
  options.width = 1;
  options.most_actors = 0;
  EXPECT_TRUE(IsWellFormed(SvgTimeline(graph, *RunGraph(graph), options)));
}

TEST(PictureTest, AxisUsesTheUnitOfTheStep) {
  const std::vector<std::pair<double, const char*>> cases = {{90, ">90 s<"},       {7, ">7 s<"},        {1.5, ">0.2 s<"},
                                                             {0.5, ">450 ms<"},    {0.005, ">4.5 ms<"}, {4e-5, ">40 µs<"},
                                                             {3e-9, ">0.0005 µs<"}};
  for (const auto& [seconds, tick] : cases) {
    StepGraph graph = MakeGraph(1);
    Compute(&graph, 0, seconds);
    EXPECT_THAT(SvgTimeline(graph, *RunGraph(graph)), HasSubstr(tick)) << seconds;
  }
}

}  // namespace
}  // namespace motley::planner
