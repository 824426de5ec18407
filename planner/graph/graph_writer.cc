#include "planner/graph/graph_writer.h"

#include <algorithm>
#include <utility>

namespace motley::planner {
namespace {

// Seconds that one flow needs on one link.
struct FlowSeconds {
  int flow = 0;
  double seconds = 0;
};
// A link with what all flows need on it, ascending flow.
struct LinkUse {
  int resource = 0;
  double sum = 0;
  std::vector<FlowSeconds> flows;
};

// Shares of equal devices differ in the last bits.
constexpr double kSlack = 1e-9;

bool Dominates(const LinkUse& kept, const LinkUse& other) {
  size_t i = 0;
  for (const FlowSeconds& need : other.flows) {
    while (i < kept.flows.size() && kept.flows[i].flow < need.flow) ++i;
    if (i == kept.flows.size() || kept.flows[i].flow != need.flow) return false;
    if (kept.flows[i].seconds < need.seconds * (1 - kSlack)) return false;
  }
  return true;
}

// Which resources to keep.
std::vector<bool> BindingLinks(const std::vector<const Flow*>& flows, const Links& links) {
  std::vector<LinkUse> uses(static_cast<size_t>(links.num_resources()));
  for (size_t f = 0; f < flows.size(); ++f) {
    for (const LinkLoad& load : flows[f]->loads) {
      LinkUse& use = uses[load.resource];
      const double seconds = load.bytes / links.Capacity(load.resource);
      use.flows.push_back({static_cast<int>(f), seconds});
      use.sum += seconds;
    }
  }
  for (size_t r = 0; r < uses.size(); ++r) uses[r].resource = static_cast<int>(r);
  // A link that dominates another is not less used; rounding is left to the comparison, ties to the order of resources.
  std::stable_sort(uses.begin(), uses.end(), [](const LinkUse& a, const LinkUse& b) { return a.sum > b.sum; });
  std::vector<bool> binding(uses.size(), false);
  std::vector<const LinkUse*> kept;
  for (const LinkUse& use : uses) {
    if (use.flows.empty()) break;
    const bool dominated = std::any_of(kept.rbegin(), kept.rend(), [&use](const LinkUse* k) { return Dominates(*k, use); });
    if (dominated) continue;
    kept.push_back(&use);
    binding[use.resource] = true;
  }
  return binding;
}

}  // namespace

int GraphWriter::AddActor(Actor actor) {
  graph_.actors.push_back(std::move(actor));
  return static_cast<int>(graph_.actors.size()) - 1;
}

void GraphWriter::Expect(size_t tasks) {
  graph_.tasks.reserve(tasks);
  uses_.reserve(tasks);
}

int GraphWriter::AddFlow(Flow flow) {
  const double alone = links_.SecondsAlone(flow);
  flows_.push_back({std::move(flow), alone});
  return static_cast<int>(flows_.size()) - 1;
}

int32_t GraphWriter::Add(Task task, FlowUse use) {
  std::sort(task.after.begin(), task.after.end());
  task.after.erase(std::unique(task.after.begin(), task.after.end()), task.after.end());
  if (!task.after.empty() && task.after.front() < 0) task.after.erase(task.after.begin());
  graph_.tasks.push_back(std::move(task));
  uses_.push_back(use);
  return static_cast<int32_t>(graph_.tasks.size()) - 1;
}

int32_t GraphWriter::AddCompute(TaskKind kind, int actor, double seconds, IndexList after, TaskTag tag) {
  Task task;
  task.kind = kind;
  task.lanes = {LaneIndex(actor, Lane::kCompute)};
  task.duration = ToPicoseconds(seconds);
  task.after = std::move(after);
  task.unit = tag.unit;
  task.microbatch = tag.microbatch;
  return Add(std::move(task), {});
}

int32_t GraphWriter::AddTransfer(TaskKind kind, IndexList lanes, int flow, double times, IndexList after, TaskTag tag) {
  const SharedFlow& shared = flows_[flow];
  Task task;
  task.kind = kind;
  task.lanes = std::move(lanes);
  task.duration = ToPicoseconds(shared.flow.latency_seconds * times);
  task.after = std::move(after);
  task.unit = tag.unit;
  task.microbatch = tag.microbatch;
  return Add(std::move(task), {flow, times});
}

StepGraph GraphWriter::Finish() {
  std::vector<const Flow*> flows;
  for (const SharedFlow& shared : flows_) flows.push_back(&shared.flow);
  const std::vector<bool> binding = BindingLinks(flows, links_);
  for (SharedFlow& shared : flows_) {
    std::erase_if(shared.flow.loads, [&](const LinkLoad& load) { return !binding[load.resource]; });
  }
  for (size_t t = 0; t < graph_.tasks.size(); ++t) {
    if (uses_[t].flow < 0) continue;
    Task& task = graph_.tasks[t];
    task.loads = flows_[uses_[t].flow].flow.loads;
    for (LinkLoad& load : task.loads) load.bytes *= uses_[t].scale;
  }
  for (int r = 0; r < links_.num_resources(); ++r) graph_.link_bytes_per_second.push_back(links_.Capacity(r));
  return std::move(graph_);
}

}  // namespace motley::planner
