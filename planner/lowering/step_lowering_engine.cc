#include "planner/lowering/step_lowering_engine.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace motley::planner {

// Operations beyond an actor's next that are looked at first when a schedule stands still.
static constexpr size_t kWindow = 8;
// Of a pass of a microbatch, about: compute, its transfer, the other tasks beside it.
static constexpr size_t kTasksAnOperation = 3;

StepEngine::StepEngine(const LoweringContext& context, std::vector<StageGroup>* groups, StepEnd* end)
    : context_(context),
      groups_(*groups),
      end_(*end),
      actors_(context.view.actors.size()),
      most_in_flight_(context.view.actors.size(), 0) {
  for (const PipelineView& pipeline : context_.view.pipelines) routes_.emplace_back(context_.view, pipeline);
  size_t operations = 0;
  for (size_t a = 0; a < actors_.size(); ++a) {
    const int actor = static_cast<int>(a);
    ActorState& state = actors_[a];
    state.order = OrderOf(context_.view, actor, WorkOfActor(actor));
    state.forward_done.assign(state.order.forward.size(), false);
    state.backward_done.assign(state.order.backward.size(), false);
    const size_t cells = WorkOfActor(actor).chunks.size() * static_cast<size_t>(context_.view.actors[a].count());
    state.forward_task.assign(cells, -1);
    state.offload_task.assign(cells, -1);
    operations += state.order.forward.size() + state.order.backward.size();
  }
  context_.writer.Expect(kTasksAnOperation * operations);
  ExpectArrivals();
}

const StageWork& StepEngine::WorkOfActor(int actor) const { return groups_[context_.view.actors[actor].stage].work(); }
const Chunk& StepEngine::ChunkOf(int actor, const StepOp& op) const { return WorkOfActor(actor).chunks[op.chunk]; }
size_t StepEngine::Cell(int actor, int chunk, int64_t k) const {
  return static_cast<size_t>(chunk * context_.view.actors[actor].count() + k);
}
std::vector<StepEngine::Arrival>& StepEngine::Arrivals(bool backward, int pipeline, int element) {
  return arrivals_[backward ? 1 : 0][pipeline][element];
}

// In a pipeline of one stage the lanes' order is all there is.
void StepEngine::ExpectArrivals() {
  for (auto& pass : arrivals_) pass.resize(context_.view.pipelines.size());
  for (size_t p = 0; p < context_.view.pipelines.size(); ++p) {
    const PipelineView& pipeline = context_.view.pipelines[p];
    const Routes& routes = routes_[p];
    for (auto& pass : arrivals_) pass[p].resize(pipeline.elements.size());
    if (pipeline.num_stages == 1) continue;
    for (size_t e = 0; e < pipeline.elements.size(); ++e) {
      const std::vector<Slot>& slots = routes.SlotsOf(pipeline.elements[e].stage);
      for (auto& pass : arrivals_) pass[p][e].resize(slots.size());
      for (size_t i = 0; i < slots.size(); ++i) {
        const auto count = [&](size_t other) {
          const Routes::Range range = routes.Overlap(slots[i], pipeline.elements[other].stage);
          return range.last - range.first;
        };
        if (e > 0) arrivals_[0][p][e][i].missing = count(e - 1);
        if (e + 1 < pipeline.elements.size()) arrivals_[1][p][e][i].missing = count(e + 1);
      }
    }
  }
}

bool StepEngine::Possible(int actor, bool backward, const StepOp& op, double* start) const {
  const ActorView& a = context_.view.actors[actor];
  const ActorState& state = actors_[actor];
  if (!groups_[a.stage].Ready(backward, op.chunk)) return false;
  const Chunk& chunk = ChunkOf(actor, op);
  const StageView& stage = context_.stage(a.stage);
  *start = context_.writer.LaneFree(LaneIndex(actor, Lane::kCompute));
  if (backward) {
    for (int64_t k = op.first; k < op.last; ++k) {
      if (state.forward_task[Cell(actor, op.chunk, k)] < 0) return false;
    }
  }
  const bool waits = backward ? chunk.last : chunk.first;
  if (!waits || stage.num_stages == 1) return true;
  const auto& arrivals = arrivals_[backward ? 1 : 0][stage.pipeline][chunk.element];
  for (int64_t k = op.first; k < op.last; ++k) {
    const Arrival& arrival = arrivals[routes_[stage.pipeline].SlotOf(actor, k)];
    if (arrival.missing > 0) return false;
    for (const int32_t task : arrival.tasks) *start = std::max(*start, context_.writer.EndOf(task));
  }
  return true;
}

StepEngine::Candidate StepEngine::At(int actor, bool backward, size_t position) const {
  const ActorState& state = actors_[actor];
  const StepOp& op = (backward ? state.order.backward : state.order.forward)[position];
  Candidate candidate{false, backward, position, 0};
  candidate.possible = Possible(actor, backward, op, &candidate.start);
  return candidate;
}

// What the schedule wants next: the turn of a fixed order; else forwards up to the limit, then a backward.
StepEngine::Candidate StepEngine::Next(int actor) const {
  const ActorState& state = actors_[actor];
  if (state.next_turn < state.order.turns.size()) {
    const StepTurn& turn = state.order.turns[state.next_turn];
    return At(actor, turn.kind != ActionKind::kForward, turn.position);
  }
  const bool forward_left = state.next_forward < state.order.forward.size();
  if (forward_left && state.in_flight < state.order.limit) return At(actor, false, state.next_forward);
  if (state.next_backward < state.order.backward.size()) return At(actor, true, state.next_backward);
  return {};
}

// One live entry for each actor: others would be looked at again whenever its lane moves on.
void StepEngine::Push(int actor) {
  const Candidate candidate = Next(actor);
  if (!candidate.possible) return;
  double& queued = actors_[actor].queued_start;
  if (queued >= 0 && queued <= candidate.start) return;
  queued = candidate.start;
  queue_.push({candidate.start, actor});
}

void StepEngine::Run() {
  for (size_t a = 0; a < actors_.size(); ++a) Push(static_cast<int>(a));
  for (;;) {
    if (queue_.empty() && !EmitAny()) break;
    if (queue_.empty()) continue;
    const auto [start, actor] = queue_.top();
    queue_.pop();
    double& queued = actors_[actor].queued_start;
    if (start != queued) continue;  // an earlier one took its place
    queued = -1;
    const Candidate candidate = Next(actor);
    if (candidate.possible && candidate.start <= start) {
      Emit(actor, candidate);
    } else {
      Push(actor);
    }
  }
  for (size_t a = 0; a < actors_.size(); ++a) {
    ActorState& state = actors_[a];
    while (state.next_weight < state.emitted_backward.size()) {
      Weights(static_cast<int>(a), state.emitted_backward[state.next_weight++]);
    }
  }
  for (StageGroup& group : groups_) group.Flush();
}

// The schedules' orders assume stages of equal microbatches. Where others wait for each other, the first forward that the data
// allow goes beyond the limit (the ledger counts it), else the first backward. False: nothing is left.
bool StepEngine::EmitAny() {
  // What the data allow is nearly always among the next few; looking through all of them each time would be quadratic.
  for (const size_t window : {kWindow, std::numeric_limits<size_t>::max()}) {
    for (const bool backward : {false, true}) {
      Candidate best;
      int best_actor = -1;
      for (size_t a = 0; a < actors_.size(); ++a) {
        const Candidate candidate = FirstPossible(static_cast<int>(a), backward, window);
        if (!candidate.possible || (best_actor >= 0 && candidate.start >= best.start)) continue;
        best = candidate;
        best_actor = static_cast<int>(a);
      }
      if (best_actor < 0) continue;
      Emit(best_actor, best);
      return true;
    }
  }
  return false;
}

StepEngine::Candidate StepEngine::FirstPossible(int actor, bool backward, size_t window) const {
  const ActorState& state = actors_[actor];
  const std::vector<bool>& done = backward ? state.backward_done : state.forward_done;
  const size_t first = backward ? state.next_backward : state.next_forward;
  for (size_t i = first; i < done.size() && i - first < window; ++i) {
    if (done[i]) continue;
    const Candidate candidate = At(actor, backward, i);
    if (candidate.possible) return candidate;
  }
  return {};
}

void StepEngine::Emit(int actor, const Candidate& candidate) {
  ActorState& state = actors_[actor];
  std::vector<bool>& done = candidate.backward ? state.backward_done : state.forward_done;
  size_t& next = candidate.backward ? state.next_backward : state.next_forward;
  const StepOp op = (candidate.backward ? state.order.backward : state.order.forward)[candidate.position];
  done[candidate.position] = true;
  while (next < done.size() && done[next]) ++next;
  if (candidate.backward) {
    Backward(actor, op);
    --state.in_flight;
  } else {
    Forward(actor, op);
    ++state.in_flight;
    most_in_flight_[actor] = std::max(most_in_flight_[actor], state.in_flight);
    state.order.limit = std::max(state.order.limit, state.in_flight);
  }
  PassTurns(actor);
  // Gathers that are now written may let the whole stage go on.
  const int stage = context_.view.actors[actor].stage;
  if (WorkOfActor(actor).residency == Residency::kInTurn) {
    for (const int a : context_.stage(stage).actors) Push(a);
  } else {
    Push(actor);
  }
}

// What is done, and the weights whose turn it is: they wait for nobody.
void StepEngine::PassTurns(int actor) {
  ActorState& state = actors_[actor];
  for (; state.next_turn < state.order.turns.size(); ++state.next_turn) {
    const StepTurn& turn = state.order.turns[state.next_turn];
    if (turn.kind == ActionKind::kWeightGradient) {
      Weights(actor, state.order.backward[turn.position]);
    } else if (!(turn.kind == ActionKind::kForward ? state.forward_done : state.backward_done)[turn.position]) {
      return;
    }
  }
}

IndexList StepEngine::Inputs(bool backward, int actor, const StepOp& op) {
  IndexList tasks;
  const StageView& stage = context_.stage(context_.view.actors[actor].stage);
  const Chunk& chunk = ChunkOf(actor, op);
  if (stage.num_stages == 1 || !(backward ? chunk.last : chunk.first)) return tasks;
  std::vector<Arrival>& arrivals = Arrivals(backward, stage.pipeline, chunk.element);
  for (int64_t k = op.first; k < op.last; ++k) {
    const Arrival& arrival = arrivals[routes_[stage.pipeline].SlotOf(actor, k)];
    tasks.insert(tasks.end(), arrival.tasks.begin(), arrival.tasks.end());
  }
  return tasks;
}

// Compute of `part` for the op's microbatches, and its tensor-parallel all-reduces, which nothing hides. The last task.
int32_t StepEngine::Compute(TaskKind kind, int actor, const StepOp& op, const Part& part, double share, IndexList after) {
  const ActorView& a = context_.view.actors[actor];
  const TaskTag tag{context_.TagOf(part), op.last == op.first + 1 ? static_cast<int32_t>(op.first) : -1};
  double seconds = 0;
  for (int64_t k = op.first; k < op.last; ++k) {
    const PassSeconds pass = context_.seconds.Of(actor, a.size(k));
    seconds += kind == TaskKind::kForward     ? pass.Forward(part)
               : kind == TaskKind::kRecompute ? pass.Recompute(part)
                                              : pass.Backward(part);
  }
  int32_t task = context_.writer.AddCompute(kind, actor, share * seconds, std::move(after), tag);
  if (a.ranks_per_unit == 1 || kind == TaskKind::kBackwardWeight) return task;
  const PassReductions reductions = context_.seconds.ReductionsOf(actor);
  const double times = kind == TaskKind::kForward     ? reductions.Forward(part)
                       : kind == TaskKind::kRecompute ? reductions.Recompute(part)
                                                      : reductions.Backward(part);
  for (int64_t k = op.first; k < op.last && times > 0;) {
    int64_t next = k + 1;
    while (next < op.last && a.size(next) == a.size(k)) ++next;
    task = context_.writer.AddTransfer(TaskKind::kAllReduce, {LaneIndex(actor, Lane::kCompute)},
                                       context_.flows.TensorParallel(actor, a.size(k)), times * static_cast<double>(next - k),
                                       {task}, tag);
    k = next;
  }
  return task;
}

// Where the lane idles anyway, as under a collective that nothing hides, this adds nothing: it waits for no task.
void StepEngine::PayOwed(int actor, double exposed_seconds) {
  const double owed = std::exchange(context_.owed_seconds[actor], 0) + exposed_seconds;
  if (owed > 0) context_.writer.AddCompute(TaskKind::kWait, actor, owed, {});
}

void StepEngine::Forward(int actor, const StepOp& op) {
  ActorState& state = actors_[actor];
  StageGroup& group = groups_[context_.view.actors[actor].stage];
  const Chunk& chunk = ChunkOf(actor, op);
  IndexList inputs = Inputs(false, actor, op);
  const ChunkInputs parameters = group.Use(false, op);
  PayOwed(actor, parameters.exposed_seconds);
  inputs.insert(inputs.end(), parameters.first.begin(), parameters.first.end());
  int32_t task = -1;
  if (group.work().residency == Residency::kPerMicrobatch && chunk.part.units() > 1) {
    const auto [most, last] = SplitLast(chunk.part, false);
    task = Compute(TaskKind::kForward, actor, op, most, 1, std::move(inputs));
    group.Released(actor, task);
    task = Compute(TaskKind::kForward, actor, op, last, 1, parameters.rest);
  } else {
    task = Compute(TaskKind::kForward, actor, op, chunk.part, 1, std::move(inputs));
    group.Released(actor, task);
  }
  const int32_t copy = Offload(actor, op, task);
  for (int64_t k = op.first; k < op.last; ++k) {
    state.forward_task[Cell(actor, op.chunk, k)] = task;
    state.offload_task[Cell(actor, op.chunk, k)] = copy;
  }
  Deliver(false, actor, op, task);
  group.Forwarded(op.chunk, op.last == context_.view.actors[actor].count(), task);
}

void StepEngine::Backward(int actor, const StepOp& op) {
  ActorState& state = actors_[actor];
  const int stage = context_.view.actors[actor].stage;
  StageGroup& group = groups_[stage];
  const Chunk& chunk = ChunkOf(actor, op);
  const bool splits = TraitsOf(context_.view.schedule).splits_backward;
  IndexList gradients = Inputs(true, actor, op);
  const ChunkInputs parameters = group.Use(true, op);
  PayOwed(actor, parameters.exposed_seconds);
  IndexList again = parameters.first;
  again.push_back(Prefetch(actor, op));
  gradients.push_back(parameters.gradients);

  const bool final = group.IsFinal(actor, op);
  const bool per_use = group.work().residency == Residency::kPerMicrobatch && chunk.part.units() > 1;
  const std::vector<Part>& pieces = final && !splits ? group.pieces(op.chunk) : group.round_pieces(op.chunk);
  const double backward_part = splits ? context_.setting.costs.InputGradientPart() : 1;
  IndexList tasks;
  for (size_t i = 0; i < pieces.size(); ++i) {
    IndexList inputs = i == 0 ? again : IndexList{};
    if (per_use && i + 1 == pieces.size()) inputs = parameters.rest;
    if (context_.seconds.Of(actor, context_.view.actors[actor].size(op.first)).Recompute(pieces[i]) > 0) {
      Compute(TaskKind::kRecompute, actor, op, pieces[i], 1, inputs);
      inputs.clear();
    }
    if (i == 0) inputs.insert(inputs.end(), gradients.begin(), gradients.end());
    tasks.push_back(
        Compute(splits ? TaskKind::kBackwardInput : TaskKind::kBackward, actor, op, pieces[i], backward_part, std::move(inputs)));
    if (pieces.size() == 1 || i + 2 == pieces.size()) group.Released(actor, tasks.back());
  }
  state.backward_ends.push_back(tasks.back());
  Deliver(true, actor, op, tasks.back());
  if (splits && !state.order.turns.empty()) return;  // the weights have a turn of their own
  if (splits) {
    state.emitted_backward.push_back(op);
    const int64_t due = static_cast<int64_t>(state.emitted_backward.size()) - 1 - state.order.weight_delay;
    if (due >= 0) Weights(actor, state.emitted_backward[state.next_weight++]);
  } else {
    group.Backwarded(op, final, tasks);
    if (final) end_.StepDeferred(actor, op.chunk);
  }
}

// Where the backward is split: the gradient of the weights, after that of the input.
void StepEngine::Weights(int actor, const StepOp& op) {
  StageGroup& group = groups_[context_.view.actors[actor].stage];
  const bool final = group.IsFinal(actor, op);
  const double part = 1 - context_.setting.costs.InputGradientPart();
  const IndexList nothing;
  IndexList tasks;
  for (const Part& piece : final ? group.pieces(op.chunk) : group.round_pieces(op.chunk)) {
    tasks.push_back(Compute(TaskKind::kBackwardWeight, actor, op, piece, part, nothing));
  }
  group.Backwarded(op, final, tasks);
}

// Sends what the chunk made to those who stand for the same samples in the neighbouring ministage. One rank sends to one after
// another; the ranks of a larger actor send at the same time.
void StepEngine::Deliver(bool backward, int actor, const StepOp& op, int32_t task) {
  const ActorView& a = context_.view.actors[actor];
  const PipelineView& pipeline = context_.view.pipelines[context_.stage(a.stage).pipeline];
  const Chunk& chunk = ChunkOf(actor, op);
  const int target = chunk.element + (backward ? -1 : 1);
  if (pipeline.num_stages == 1 || !(backward ? chunk.first : chunk.last)) return;
  if (target < 0 || target >= static_cast<int>(pipeline.elements.size())) return;
  const int target_stage = pipeline.elements[target].stage;
  const Routes& routes = routes_[context_.stage(a.stage).pipeline];
  for (int64_t k = op.first; k < op.last; ++k) {
    const Slot& slot = routes.SlotsOf(a.stage)[routes.SlotOf(actor, k)];
    const Routes::Range range = routes.Overlap(slot, target_stage);
    const int together = a.units() > 1 ? range.last - range.first : 1;
    for (int first = range.first; first < range.last; first += together) {
      Send(backward, actor, k, target, {first, first + together}, task);
    }
  }
}

// To the slots of `range` of the element's stage. The same stage's next ministage needs no transfer.
void StepEngine::Send(bool backward, int actor, int64_t k, int element, Routes::Range range, int32_t task) {
  const ActorView& a = context_.view.actors[actor];
  const StageView& stage = context_.stage(a.stage);
  const PipelineView& pipeline = context_.view.pipelines[stage.pipeline];
  const int target_stage = pipeline.elements[element].stage;
  const std::vector<Slot>& slots = routes_[stage.pipeline].SlotsOf(target_stage);
  if (target_stage != a.stage) {
    absl::InlinedVector<PlanFlows::Samples, 4> to;
    for (int i = range.first; i < range.last; ++i) {
      const Slot& slot = slots[i];
      to.push_back({slot.actor, slot.begin, context_.view.actors[slot.actor].size(slot.k)});
    }
    const int flow = context_.flows.Send({actor, a.begin[k], a.size(k)}, to);
    const auto first_layer = static_cast<int32_t>(pipeline.elements[element].first_layer);
    task = context_.writer.AddTransfer(TaskKind::kSend, {LaneIndex(actor, Lane::kSend)}, flow, 1, {task},
                                       {first_layer + 1, static_cast<int32_t>(k)});
  }
  std::vector<Arrival>& arrivals = Arrivals(backward, stage.pipeline, element);
  for (int i = range.first; i < range.last; ++i) {
    Arrival& arrival = arrivals[i];
    arrival.tasks.push_back(task);
    if (--arrival.missing == 0) Push(slots[i].actor);
  }
}

}  // namespace motley::planner
