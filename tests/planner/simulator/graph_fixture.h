// Step graphs for the simulator's tests: built by hand, drawn at random, and run by a slow simulator that shares no code.
#pragma once

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/simulator/step_graph.h"

namespace motley::planner {

inline constexpr Picoseconds kSecond = 1'000'000'000'000;

inline StepGraph MakeGraph(int actors, std::vector<double> links = {}) {
  StepGraph graph;
  for (int a = 0; a < actors; ++a) {
    Actor actor;
    actor.name = absl::StrCat("n", a, "/gpu0");
    actor.device = a;
    graph.actors.push_back(actor);
  }
  graph.link_bytes_per_second = std::move(links);
  return graph;
}

inline int32_t Add(StepGraph* graph, TaskKind kind, IndexList lanes, double seconds, IndexList after = {},
                   std::vector<LinkLoad> loads = {}) {
  Task task;
  task.kind = kind;
  task.lanes = std::move(lanes);
  task.duration = ToPicoseconds(seconds);
  task.after = std::move(after);
  task.loads = std::move(loads);
  graph->tasks.push_back(std::move(task));
  return static_cast<int32_t>(graph->tasks.size()) - 1;
}
inline int32_t Compute(StepGraph* graph, int actor, double seconds, IndexList after = {}) {
  return Add(graph, TaskKind::kForward, {LaneIndex(actor, Lane::kCompute)}, seconds, std::move(after));
}
inline int32_t Send(StepGraph* graph, int actor, std::vector<LinkLoad> loads, IndexList after = {}, double latency = 0) {
  return Add(graph, TaskKind::kSend, {LaneIndex(actor, Lane::kSend)}, latency, std::move(after), std::move(loads));
}

// Run, under a name that gtest's own does not hide.
inline absl::StatusOr<Timeline> RunGraph(const StepGraph& graph, const Stragglers& stragglers = {}) {
  return Run(graph, stragglers);
}

// Compute, collectives over several lanes and, with `links`, transfers of one to three loads.
inline StepGraph RandomGraph(std::mt19937_64* random, int tasks, bool transfers) {
  const auto draw = [random](int n) { return static_cast<int>((*random)() % static_cast<uint64_t>(n)); };
  const int actors = 1 + draw(5), links = 1 + draw(4);
  StepGraph graph = MakeGraph(actors);
  for (int l = 0; l < links; ++l) graph.link_bytes_per_second.push_back(1e6 * (1 + draw(50)));
  for (int t = 0; t < tasks; ++t) {
    IndexList after;
    for (int k = draw(3); k > 0 && t > 0; --k) after.push_back(draw(t));
    const int what = draw(transfers ? 5 : 3);
    const double seconds = draw(4) == 0 ? 0 : 1e-3 * draw(1000);
    if (what < 2) {
      Compute(&graph, draw(actors), seconds, after);
    } else if (what == 2) {
      IndexList lanes;
      for (int a = 0; a < actors; ++a) {
        if (lanes.empty() || draw(2) == 0) lanes.push_back(LaneIndex(a, Lane::kCollective));
      }
      Add(&graph, TaskKind::kGather, lanes, seconds, after);
    } else {
      std::vector<LinkLoad> loads;
      for (int l = 0; l < links; ++l) {
        if (draw(2) == 0) loads.push_back({l, draw(6) == 0 ? 0 : 1e4 * (1 + draw(500))});
      }
      const Lane lane = what == 3 ? Lane::kSend : Lane::kCollective;
      Add(&graph, TaskKind::kSend, {LaneIndex(draw(actors), lane)}, draw(2) * 1e-4 * draw(50), after, loads);
    }
  }
  return graph;
}

// Seconds of the task when no other transfer is about.
inline double SecondsAlone(const StepGraph& graph, const Task& task) {
  double longest = 0;
  for (const LinkLoad& load : task.loads) {
    longest = std::max(longest, load.bytes / graph.link_bytes_per_second[load.resource]);
  }
  return ToSeconds(task.duration) + longest;
}

}  // namespace motley::planner
