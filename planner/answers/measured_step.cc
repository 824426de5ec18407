#include "planner/answers/measured_step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/graph/program_graph.h"
#include "planner/plan/each_rank.h"
#include "planner/view/resolved_plan.h"

namespace motley::planner {
namespace {

// Names sums for people. A hand-over is on two lanes of two ranks.
std::string NameOf(TaskKind kind, Lane lane) {
  if (kind == TaskKind::kSend) return lane == Lane::kSend ? "sends" : "receives";
  return std::string(TaskName(kind));
}

absl::Status CheckSpans(const std::vector<Program>& programs, const RankSpans& spans) {
  if (spans.size() != programs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the step was measured on ", spans.size(), " ranks, the plan has ", programs.size()));
  }
  for (size_t r = 0; r < spans.size(); ++r) {
    if (spans[r].size() == programs[r].instructions.size()) continue;
    return absl::InvalidArgumentError(absl::StrCat("rank ", r, " measured ", spans[r].size(), " instructions, its program has ",
                                                   programs[r].instructions.size()));
  }
  return absl::OkStatus();
}

absl::Duration EndOfScalars(const Program& program, const std::vector<InstructionSpan>& spans) {
  for (size_t i = 0; i < spans.size(); ++i) {
    if (std::holds_alternative<ReduceScalars>(program.instructions[i].op)) return spans[i].end;
  }
  return absl::ZeroDuration();
}

// Onto the clock of the rank whose step began first.
void LayClocksTogether(const std::vector<Program>& programs, RankSpans* spans) {
  absl::Duration latest;
  for (size_t r = 0; r < programs.size(); ++r) latest = std::max(latest, EndOfScalars(programs[r], (*spans)[r]));
  for (size_t r = 0; r < programs.size(); ++r) {
    const absl::Duration shift = latest - EndOfScalars(programs[r], (*spans)[r]);
    for (InstructionSpan& span : (*spans)[r]) span = {span.begin + shift, span.end + shift};
  }
}

using Sums = std::map<std::pair<size_t, std::string>, std::pair<double, double>>;  // by actor and name: measured, simulated

void AddTasks(const MeasuredStep& step, Sums* sums) {
  for (size_t t = 0; t < step.graph.tasks.size(); ++t) {
    const Task& task = step.graph.tasks[t];
    const TaskSpan &measured = step.measured.spans[t], &simulated = step.simulated.spans[t];
    for (const int32_t lane : task.lanes) {
      auto& [m, s] = (*sums)[{static_cast<size_t>(lane / kNumLanes), NameOf(task.kind, Lane(lane % kNumLanes))}];
      m += ToSeconds(measured.end - measured.begin);
      s += ToSeconds(simulated.end - simulated.begin);
    }
  }
}

void AddWaits(const MeasuredStep& step, Sums* sums) {
  for (size_t r = 0; r < step.measured_lanes.size(); ++r) {
    const LaneSeconds &m = step.measured_lanes[r], &s = step.simulated_lanes[r];
    (*sums)[{r, "waits: collectives"}] = {m.collective, s.collective};
    (*sums)[{r, "waits: hand-overs"}] = {m.hand_over, s.hand_over};
    (*sums)[{r, "waits: bubble"}] = {m.bubble, s.bubble};
    (*sums)[{r, "waits: copies"}] = {m.copy, s.copy};
    (*sums)[{r, "waits: host"}] = {m.host, s.host};
  }
}

}  // namespace

absl::StatusOr<MeasuredStep> CompareStep(const Setting& setting, const Plan& plan, const std::vector<Program>& programs,
                                         RankSpans spans, const std::vector<double>& step_seconds) {
  MOTLEY_RETURN_IF_ERROR(CheckSpans(programs, spans));
  MOTLEY_ASSIGN_OR_RETURN(const ResolvedPlan resolved, Resolve(setting, plan));
  MOTLEY_ASSIGN_OR_RETURN(ProgramGraph priced, GraphOfPrograms(setting, resolved, programs));
  MeasuredStep step;
  MOTLEY_ASSIGN_OR_RETURN(step.simulated, Run(priced.graph));
  const RankSpans simulated = SpansByRank(programs, priced.task_of, step.simulated);
  for (size_t r = 0; r < programs.size(); ++r) {
    step.measured_lanes.push_back(SecondsByLane(programs[r], spans[r], absl::Seconds(step_seconds[r])));
    step.simulated_lanes.push_back(SecondsByLane(programs[r], simulated[r], absl::Seconds(ToSeconds(step.simulated.end))));
  }
  LayClocksTogether(programs, &spans);
  step.measured = TimelineOf(spans, priced.task_of, priced.graph);
  step.graph = std::move(priced.graph);
  Sums sums;
  AddTasks(step, &sums);
  AddWaits(step, &sums);
  std::vector<DeviceId> devices;
  ForEachRank(plan, [&](const RankPlan& rank) { devices.push_back(rank.device); });
  for (const auto& [key, seconds] : sums)
    step.differences.push_back({devices[key.first], key.second, seconds.first, seconds.second});
  std::stable_sort(step.differences.begin(), step.differences.end(), [](const StepDifference& a, const StepDifference& b) {
    return std::abs(a.difference()) > std::abs(b.difference());
  });
  return step;
}

}  // namespace motley::planner
