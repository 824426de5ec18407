#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "planner/simulator/run.h"

namespace motley::planner {
namespace {

std::string LaneText(const StepGraph& graph, int32_t lane) {
  const Actor& actor = graph.actors[lane / kNumLanes];
  return absl::StrCat(std::string(LaneName(static_cast<Lane>(lane % kNumLanes))), " of ", actor.name);
}

std::string TaskText(const StepGraph& graph, int32_t task) {
  return absl::StrCat("task ", task, " (", TaskLabel(graph.tasks[task]), ")");
}

// What is wrong with the task by itself, empty when nothing is.
std::string Fault(const StepGraph& graph, const Task& task) {
  const auto lanes = static_cast<int32_t>(graph.actors.size()) * kNumLanes;
  const auto num_tasks = static_cast<int32_t>(graph.tasks.size());
  if (task.duration < 0) return absl::StrCat("its duration is negative: ", task.duration, " ps");
  for (size_t i = 0; i < task.lanes.size(); ++i) {
    if (task.lanes[i] < 0 || task.lanes[i] >= lanes) {
      return absl::StrCat("lane ", task.lanes[i], " does not exist; the graph has ", lanes);
    }
  }
  if (task.lanes.size() > 1) {
    IndexList sorted = task.lanes;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) return absl::StrCat("it names lane ", LaneText(graph, *twice), " twice");
  }
  for (const int32_t a : task.after) {
    if (a < 0 || a >= num_tasks) return absl::StrCat("it comes after task ", a, "; the graph has ", num_tasks);
  }
  for (const LinkLoad& load : task.loads) {
    if (load.resource < 0 || static_cast<size_t>(load.resource) >= graph.link_bytes_per_second.size()) {
      return absl::StrCat("link ", load.resource, " does not exist; the graph has ", graph.link_bytes_per_second.size());
    }
    if (!(load.bytes >= 0) || std::isinf(load.bytes)) {
      return absl::StrCat("it loads link ", load.resource, " with ", load.bytes, " bytes; give a finite number, 0 or more");
    }
    const double rate = graph.link_bytes_per_second[load.resource];
    if (load.bytes > 0 && (!(rate > 0) || std::isinf(rate))) {
      return absl::StrCat("link ", load.resource, " that it loads has ", rate, " bytes a second; give a finite positive number");
    }
  }
  return "";
}

}  // namespace

absl::Status CheckGraph(const StepGraph& graph, const Stragglers& stragglers) {
  if (!(stragglers.part >= 0 && stragglers.part <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("part of stragglers is ", stragglers.part, "; give 0 to 1"));
  }
  if (!(stragglers.slowdown > 0) || std::isinf(stragglers.slowdown)) {
    return absl::InvalidArgumentError(
        absl::StrCat("slowdown of stragglers is ", stragglers.slowdown, "; give a positive number"));
  }
  for (size_t t = 0; t < graph.tasks.size(); ++t) {
    const std::string fault = Fault(graph, graph.tasks[t]);
    if (fault.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat("step graph, ", TaskText(graph, static_cast<int32_t>(t)), ": ", fault));
  }
  return absl::OkStatus();
}

std::vector<bool> ChooseStragglers(size_t actors, const Stragglers& stragglers) {
  std::vector<bool> slow(actors, false);
  const auto chosen = std::min(actors, static_cast<size_t>(std::ceil(stragglers.part * static_cast<double>(actors))));
  if (chosen == 0) return slow;
  // Fisher-Yates by hand: std::shuffle may differ from library to library.
  std::vector<size_t> order(actors);
  for (size_t i = 0; i < actors; ++i) order[i] = i;
  std::mt19937_64 random(stragglers.seed);
  for (size_t i = 0; i < chosen; ++i) {
    std::swap(order[i], order[i + random() % (actors - i)]);
    slow[order[i]] = true;
  }
  return slow;
}

absl::Status DeadlockError(const StepGraph& graph, const IndexLists& lane_tasks, const std::vector<int32_t>& lane_head,
                           const std::vector<bool>& ended) {
  const auto head_of = [&](int32_t lane) { return lane_tasks[lane][lane_head[lane]]; };
  const auto waits_for = [&](int32_t t) -> std::string {
    for (const int32_t a : graph.tasks[t].after) {
      if (!ended[a]) return TaskText(graph, a);
    }
    for (const int32_t lane : graph.tasks[t].lanes) {
      if (head_of(lane) != t) return absl::StrCat(LaneText(graph, lane), ", which is at ", TaskText(graph, head_of(lane)));
    }
    return "nothing";
  };
  std::string text = "the step deadlocks:";
  for (size_t lane = 0; lane < lane_head.size(); ++lane) {
    if (static_cast<size_t>(lane_head[lane]) >= lane_tasks[lane].size()) continue;
    const int32_t t = head_of(static_cast<int32_t>(lane));
    absl::StrAppend(&text, " ", LaneText(graph, static_cast<int32_t>(lane)), " is stuck at ", TaskText(graph, t), " waiting for ",
                    waits_for(t), ";");
  }
  for (size_t t = 0; t < graph.tasks.size(); ++t) {
    if (ended[t] || !graph.tasks[t].lanes.empty()) continue;
    absl::StrAppend(&text, " ", TaskText(graph, static_cast<int32_t>(t)), " on no lane is stuck waiting for ",
                    waits_for(static_cast<int32_t>(t)), ";");
  }
  text.pop_back();
  return absl::FailedPreconditionError(text);
}

}  // namespace motley::planner
