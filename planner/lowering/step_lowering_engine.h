// Emits every actor's compute in the order in which it is likely to run. Part of Lower.
#pragma once

#include <cstdint>
#include <queue>
#include <tuple>
#include <vector>

#include "planner/lowering/step_lowering_end.h"
#include "planner/lowering/step_lowering_group.h"
#include "planner/lowering/step_lowering_orders.h"
#include "planner/lowering/step_lowering_routes.h"

namespace motley::planner {

class StepEngine {
 public:
  StepEngine(const LoweringContext& context, std::vector<StageGroup>* groups, StepEnd* end);
  void Run();
  const std::vector<int64_t>& in_flight() const { return most_in_flight_; }

 private:
  // What an element's microbatch (by slot) waits for from another stage.
  struct Arrival {
    int missing = 0;
    IndexList tasks;
  };
  struct ActorState {
    ActorOrder order;
    std::vector<bool> forward_done, backward_done;  // by position in the order
    size_t next_forward = 0, next_backward = 0, next_turn = 0;
    int64_t in_flight = 0;
    double queued_start = -1;  // of its live entry in the queue; -1 = none
    // Chunk x microbatch: the forward's last task (-1 = not yet), and the copy of its boundaries to the host.
    std::vector<int32_t> forward_task, offload_task;
    std::vector<int32_t> backward_ends;  // last tasks, in the order of emission
    size_t next_weight = 0;              // of the emitted backwards, where they are split
    std::vector<StepOp> emitted_backward;
  };
  // A candidate: the actor's next op and when it could start.
  struct Candidate {
    bool possible = false, backward = false;
    size_t position = 0;
    double start = 0;
  };

  const StageWork& WorkOfActor(int actor) const;
  const Chunk& ChunkOf(int actor, const StepOp& op) const;
  size_t Cell(int actor, int chunk, int64_t k) const;
  std::vector<Arrival>& Arrivals(bool backward, int pipeline, int element);
  void ExpectArrivals();

  Candidate Next(int actor) const;
  Candidate At(int actor, bool backward, size_t position) const;
  bool Possible(int actor, bool backward, const StepOp& op, double* start) const;
  bool EmitAny();
  Candidate FirstPossible(int actor, bool backward, size_t window) const;  // among the next `window` operations
  void Push(int actor);
  void Emit(int actor, const Candidate& candidate);
  void PassTurns(int actor);

  void Forward(int actor, const StepOp& op);
  void Backward(int actor, const StepOp& op);
  void Weights(int actor, const StepOp& op);
  IndexList Inputs(bool backward, int actor, const StepOp& op);
  int32_t Compute(TaskKind kind, int actor, const StepOp& op, const Part& part, double share, IndexList after);
  void PayOwed(int actor, double exposed_seconds);
  void Deliver(bool backward, int actor, const StepOp& op, int32_t task);
  void Send(bool backward, int actor, int64_t k, int element, Routes::Range range, int32_t task);
  int32_t Offload(int actor, const StepOp& op, int32_t task);
  int32_t Prefetch(int actor, const StepOp& op);
  double BoundaryBytes(int actor, const StepOp& op, const Part& part) const;

  const LoweringContext& context_;
  std::vector<StageGroup>& groups_;
  StepEnd& end_;
  std::vector<Routes> routes_;                                  // by pipeline
  std::vector<std::vector<std::vector<Arrival>>> arrivals_[2];  // forward, backward; pipeline, element, slot
  std::vector<ActorState> actors_;
  std::vector<int64_t> most_in_flight_;
  using Entry = std::tuple<double, int>;  // start, actor
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue_;
};

}  // namespace motley::planner
