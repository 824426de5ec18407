#include "planner/lowering/step_lowering_end.h"

#include <algorithm>
#include <utility>

namespace motley::planner {
namespace {

// Pieces in which offloaded optimizer state streams through the device.
constexpr int kStreamPieces = 8;

}  // namespace

IndexList LoweringContext::CollectiveLanes(int stage) const {
  IndexList lanes;
  for (const int a : view.stages[stage].actors) lanes.push_back(LaneIndex(a, Lane::kCollective));
  return lanes;
}

int64_t LoweringContext::Elements(const Part& part, bool tied_copy) const {
  const Costs& costs = setting.costs;
  int64_t elements = part.layers * costs.UnitElements(UnitKind::kLayer);
  if (part.embedding || (part.head && tied_copy)) elements += costs.UnitElements(UnitKind::kEmbedding);
  if (part.head) elements += costs.UnitElements(UnitKind::kHead);
  return elements;
}

int32_t LoweringContext::TagOf(const Part& part) const {
  if (part.embedding) return 0;
  return static_cast<int32_t>(part.first_layer + 1);
}

StepEnd::StepEnd(const LoweringContext& context)
    : context_(context),
      last_unit_(context.setting.workload.model.num_layers + 1),
      across_done_(static_cast<size_t>(last_unit_) + 1, false),
      head_tasks_(context.view.pipelines.size()),
      embedding_tasks_(context.view.pipelines.size()),
      deferred_(context.view.actors.size()) {
  ready_.assign(context.view.pipelines.size(), std::vector<IndexList>(static_cast<size_t>(last_unit_) + 1));
}

void StepEnd::Reduced(int stage, const Part& part, IndexList tasks) {
  const StageView& s = context_.stage(stage);
  const size_t p = static_cast<size_t>(s.pipeline);
  const PipelineView& pipeline = context_.view.pipelines[p];
  const int first = pipeline.embedding_stage(), last = pipeline.head_stage();
  const bool split_tie = context_.tied() && first != last;
  if (part.layers > 0) UnitReady(s.pipeline, part.first_layer + 1, part.first_layer + part.layers, tasks);
  if (part.head) {
    UnitReady(s.pipeline, last_unit_, last_unit_, tasks);
    if (split_tie) head_tasks_[p] = tasks;
  }
  if (part.embedding) embedding_tasks_[p] = tasks;
  if (!part.embedding && !(part.head && split_tie)) return;
  if (!split_tie) {
    UnitReady(s.pipeline, 0, 0, tasks);
    return;
  }
  if (head_tasks_[p].empty() || embedding_tasks_[p].empty()) return;
  // The embedding's gradient has two parts, of its own stage and of the copy beside the head.
  IndexList after = head_tasks_[p];
  after.insert(after.end(), embedding_tasks_[p].begin(), embedding_tasks_[p].end());
  UnitReady(s.pipeline, 0, 0,
            {AddAcross(TaskKind::kAllReduce, Collective::kAllReduce, {first, last}, UnitElements(0), std::move(after), 0)});
}

void StepEnd::UnitReady(int pipeline, int64_t first, int64_t last, const IndexList& tasks) {
  if (context_.view.pipelines.size() == 1) {
    final_.insert(final_.end(), tasks.begin(), tasks.end());
    return;
  }
  for (int64_t u = first; u <= last; ++u) ready_[pipeline][u] = tasks;
  // Neighbours that became complete by the same tasks everywhere and lie in the same stages are summed together.
  const auto complete = [&](int64_t u) {
    return std::none_of(ready_.begin(), ready_.end(), [u](const auto& units) { return units[u].empty(); });
  };
  const auto alike = [&](int64_t a, int64_t b) {
    return std::all_of(ready_.begin(), ready_.end(), [a, b](const auto& units) { return units[a] == units[b]; });
  };
  for (int64_t u = last; u >= first;) {
    int64_t begin = u;
    if (!across_done_[u] && complete(u)) {
      while (begin > first && alike(begin - 1, u)) --begin;
      Across(begin, u);
    }
    u = begin - 1;
  }
}

int64_t StepEnd::UnitElements(int64_t unit) const {
  const UnitKind kind = unit == 0 ? UnitKind::kEmbedding : unit == last_unit_ ? UnitKind::kHead : UnitKind::kLayer;
  return context_.setting.costs.UnitElements(kind);
}

int64_t StepEnd::StageElements(int stage) const {
  const StageView& s = context_.stage(stage);
  return context_.Elements({s.embedding, 0, s.layers, s.head}, s.tied_copy);
}

std::vector<int> StepEnd::HoldersOf(int64_t unit) const {
  std::vector<int> stages;
  for (const PipelineView& pipeline : context_.view.pipelines) {
    const auto holds = [unit](const Element& element) {
      return unit - 1 >= element.first_layer && unit - 1 < element.first_layer + element.layers;
    };
    const auto element = std::find_if(pipeline.elements.begin(), pipeline.elements.end(), holds);
    stages.push_back(unit == 0                            ? pipeline.embedding_stage()
                     : element == pipeline.elements.end() ? pipeline.head_stage()
                                                          : element->stage);
  }
  return stages;
}

int32_t StepEnd::AddAcross(TaskKind kind, Collective collective, const std::vector<int>& stages, int64_t elements,
                           IndexList after, int64_t unit) {
  std::vector<std::vector<int>> sets;
  IndexList lanes;
  for (const int stage : stages) {
    sets.push_back(DevicesOf(context_.view, context_.stage(stage)));
    for (const int32_t lane : context_.CollectiveLanes(stage)) lanes.push_back(lane);
  }
  const double bytes = static_cast<double>(elements) * context_.setting.costs.RingBytes(collective);
  const int flow = context_.writer.AddFlow(AcrossFlow(context_.setting.links, sets, collective, bytes));
  return context_.writer.AddTransfer(kind, std::move(lanes), flow, 1, std::move(after), {static_cast<int32_t>(unit), -1});
}

void StepEnd::Across(int64_t first, int64_t last) {
  int64_t elements = 0;
  for (int64_t u = first; u <= last; ++u) {
    elements += UnitElements(u);
    across_done_[u] = true;
  }
  IndexList after;
  for (const auto& units : ready_) {
    const IndexList& tasks = units[first];
    after.insert(after.end(), tasks.begin(), tasks.end());
  }
  const bool sharded = context_.view.pipelines_zero_stage > 0;
  final_.push_back(AddAcross(sharded ? TaskKind::kReduceScatter : TaskKind::kAllReduce,
                             sharded ? Collective::kReduceScatter : Collective::kAllReduce, HoldersOf(first), elements,
                             std::move(after), first));
}

bool StepEnd::Interleaved(int stage) const {
  return TraitsOf(context_.view.schedule).by_ministage && context_.stage(stage).offload_parameters &&
         context_.view.pipelines.size() == 1;
}

void StepEnd::Defer(int stage, int chunk, int64_t elements, const IndexList& tasks) {
  for (const int a : context_.stage(stage).actors) deferred_[a].push_back({chunk, elements, tasks});
}

void StepEnd::StepDeferred(int actor, int chunk) {
  std::vector<Deferred>& waiting = deferred_[actor];
  std::vector<Deferred> later;
  for (Deferred& d : waiting) {
    if (chunk < 0 || d.chunk > chunk) {
      Step(actor, static_cast<double>(d.elements), std::move(d.tasks));
    } else {
      later.push_back(std::move(d));
    }
  }
  waiting = std::move(later);
}

int32_t StepEnd::Scalars() {
  std::vector<int> devices;
  IndexList lanes;
  for (const RankView& rank : context_.view.ranks) devices.push_back(rank.device);
  for (size_t a = 0; a < context_.view.actors.size(); ++a) {
    lanes.push_back(LaneIndex(static_cast<int>(a), Lane::kCollective));
  }
  const int flow = context_.writer.AddFlow({context_.setting.links.TreeSeconds(devices), {}});
  return context_.writer.AddTransfer(TaskKind::kScalars, std::move(lanes), flow, 1, final_);
}

// The actor's part of `elements` of its stage.
int32_t StepEnd::Step(int actor, double elements, IndexList after) {
  const ActorView& a = context_.view.actors[actor];
  const RankView& rank = context_.view.ranks[a.first_rank];
  const double owned = OwnedPart(context_.view, rank) * elements;
  double& owed = context_.owed_seconds[actor];
  if (owed > 0) context_.writer.AddCompute(TaskKind::kWait, actor, std::exchange(owed, 0), {});
  const IndexList copy = {LaneIndex(actor, Lane::kCopy)};
  const int pieces = rank.plan->offload_optimizer ? kStreamPieces : 1;
  const Costs& costs = context_.setting.costs;
  int32_t step = -1;
  for (int i = 0; i < pieces; ++i) {
    const double part = 1.0 / pieces;
    IndexList inputs = after;
    const double moments = part * owned * static_cast<double>(costs.optimizer_bytes_per_element());
    if (rank.plan->offload_optimizer) {
      inputs.push_back(context_.writer.AddTransfer(TaskKind::kPrefetch, copy, context_.flows.FromHost(actor, moments), 1, {}));
    }
    step = context_.writer.AddCompute(TaskKind::kOptimizer, actor, context_.seconds.OptimizerSeconds(actor, part * elements),
                                      std::move(inputs));
    double back = rank.plan->offload_optimizer ? moments : 0;
    if (rank.plan->offload_parameters) back += part * owned * static_cast<double>(costs.element_bytes());
    if (back > 0) context_.writer.AddTransfer(TaskKind::kOffload, copy, context_.flows.ToHost(actor, back), 1, {step});
  }
  return step;
}

// ZeRO 1 and 2: every rank needs the parameters that the others have stepped. Ministages that are fetched in turn are gathered
// when their turn comes.
void StepEnd::GatherParameters(int stage, const IndexList& after) {
  const StageView& s = context_.stage(stage);
  if (!s.shared() || s.offload_parameters || (s.plan->zero_stage != 1 && s.plan->zero_stage != 2)) return;
  context_.writer.AddTransfer(TaskKind::kGather, context_.CollectiveLanes(stage),
                              context_.flows.Group(stage, Collective::kAllGather, StageElements(stage)), 1, after);
}

// The pipelines' parts of the stepped parameters, neighbouring layers of the same stages at once.
void StepEnd::GatherAcross(const IndexList& after) {
  for (int64_t first = 0; first <= last_unit_;) {
    const std::vector<int> stages = HoldersOf(first);
    int64_t elements = 0, end = first;
    for (; end <= last_unit_ && HoldersOf(end) == stages; ++end) elements += UnitElements(end);
    AddAcross(TaskKind::kGather, Collective::kAllGather, stages, elements, after, first);
    first = end;
  }
}

void StepEnd::Finish() {
  const PlanView& view = context_.view;
  const int stages = static_cast<int>(view.stages.size());
  bool norm = false;
  for (int s = 0; s < stages; ++s) norm |= !Interleaved(s);
  const int32_t scalars = norm ? Scalars() : -1;
  IndexList all;
  for (int s = 0; s < stages; ++s) {
    IndexList steps;
    for (const int a : context_.stage(s).actors) {
      if (Interleaved(s)) {
        StepDeferred(a, -1);
      } else {
        steps.push_back(Step(a, static_cast<double>(StageElements(s)), {scalars}));
      }
    }
    GatherParameters(s, steps);
    all.insert(all.end(), steps.begin(), steps.end());
  }
  if (view.pipelines_zero_stage > 0 && view.pipelines.size() > 1) GatherAcross(all);
}

}  // namespace motley::planner
