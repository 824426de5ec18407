// The engine's copies between device and host memory.
#include <utility>

#include "planner/lowering/step_lowering_engine.h"

namespace motley::planner {

double StepEngine::BoundaryBytes(int actor, const StepOp& op, const Part& part) const {
  const ActorView& a = context_.view.actors[actor];
  int64_t samples = 0;
  for (int64_t k = op.first; k < op.last; ++k) samples += a.size(k);
  return static_cast<double>(context_.setting.costs.BoundaryBytes(static_cast<double>(samples * part.layers)));
}

// Boundaries of the op to host memory, and back one op ahead of their use.
int32_t StepEngine::Offload(int actor, const StepOp& op, int32_t task) {
  const ActorView& a = context_.view.actors[actor];
  const Part& part = ChunkOf(actor, op).part;
  if (!context_.view.ranks[a.first_rank].plan->offload_activations || part.layers == 0) return -1;
  const int flow = context_.flows.ToHost(actor, BoundaryBytes(actor, op, part));
  return context_.writer.AddTransfer(TaskKind::kOffload, {LaneIndex(actor, Lane::kCopy)}, flow, 1, {task},
                                     {context_.TagOf(part), static_cast<int32_t>(op.first)});
}

int32_t StepEngine::Prefetch(int actor, const StepOp& op) {
  const ActorState& state = actors_[actor];
  const Part& part = ChunkOf(actor, op).part;
  IndexList after;
  for (int64_t k = op.first; k < op.last; ++k) after.push_back(state.offload_task[Cell(actor, op.chunk, k)]);
  if (after.empty() || after.back() < 0) return -1;
  const size_t ends = state.backward_ends.size();
  if (ends >= 2) after.push_back(state.backward_ends[ends - 2]);
  const int flow = context_.flows.FromHost(actor, BoundaryBytes(actor, op, part));
  return context_.writer.AddTransfer(TaskKind::kPrefetch, {LaneIndex(actor, Lane::kCopy)}, flow, 1, std::move(after),
                                     {context_.TagOf(part), static_cast<int32_t>(op.first)});
}

}  // namespace motley::planner
