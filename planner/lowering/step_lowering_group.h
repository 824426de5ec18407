// The collectives of one stage: parameters gathered ahead of their use, gradients reduced behind it. Part of Lower.
//
// In turn (layered, docs/planner.md): chunk c lives in parameter buffer c % 2 and gradient buffer c % 2; the gather of c + 2
// (forward) or c - 2 (backward) follows the last use of c and precedes c's reduction; the last two chunks stay gathered at the
// turn; a tied embedding has buffers of its own. One stage of single layers has exactly the order of its programs
// (stage_passes.h). Per microbatch: each use of a chunk gathers its first unit while the use before computes its last one, and
// the rest meanwhile; reductions follow pieces of the backward, the last one's stands behind the next use's gathers.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/lowering/step_lowering_end.h"
#include "planner/lowering/step_lowering_orders.h"

namespace motley::planner {

// All but the unit of the model that a pass computes last, and that one.
std::pair<Part, Part> SplitLast(const Part& part, bool backward);

// What a use of a chunk waits for.
struct ChunkInputs {
  IndexList first;             // before its first unit
  IndexList rest;              // before its last unit
  int32_t gradients = -1;      // before its backward: the buffer is free
  double exposed_seconds = 0;  // what the gather costs the compute beside it
};

class StageGroup {
 public:
  StageGroup(const LoweringContext& context, int stage, StageWork work, StepEnd* end);

  const StageWork& work() const { return work_; }
  // Pieces of the backward after each of which gradients are reduced, in backward order.
  const std::vector<Part>& pieces(int chunk) const { return pieces_[chunk]; }
  // The same for a microbatch that is not the last.
  const std::vector<Part>& round_pieces(int chunk) const { return round_pieces_[chunk]; }
  // Whether the actor's backward of these microbatches is what the chunk's last reduction waits for.
  bool IsFinal(int actor, const StepOp& op) const;

  // The chunk's parameters will be there: their gather is written or can be.
  bool Ready(bool backward, int chunk) const;
  // May write gathers.
  ChunkInputs Use(bool backward, const StepOp& op);
  // The actor's compute of all but the chunk's last unit ends with `task`: the next gather may begin.
  void Released(int actor, int32_t task) { released_[Place(actor)] = task; }
  // The actor has computed the microbatches; those were all of its microbatches when `all`.
  void Forwarded(int chunk, bool all, int32_t task);
  // `tasks` by piece, or by round piece.
  void Backwarded(const StepOp& op, bool final, const IndexList& tasks);
  // Reductions that were held back for gathers.
  void Flush();

 private:
  struct Waiting {
    int actors = 0;                // that have not computed it
    std::vector<IndexList> tasks;  // by piece
  };
  struct Gathered {
    IndexList first, rest;
    double exposed_seconds = 0;
  };
  struct HeldBack {
    Part part;
    IndexList after;
  };

  size_t Place(int actor) const { return static_cast<size_t>(actor - first_actor_); }
  int BufferOf(int chunk) const { return work_.keeps_embedding && work_.chunks[chunk].part.embedding ? 2 : chunk % 2; }
  bool gathers() const { return stage_.shared() && stage_.plan->zero_stage > 0; }
  bool per_round() const;
  int64_t Elements(const Part& part) const { return context_.Elements(part, stage_.tied_copy); }
  void MakePieces();
  static std::vector<Part> Cut(const Part& part, int64_t most);
  void WriteGather(bool backward, int chunk);
  // The tasks after which the part's parameters are there; adds to `exposed_seconds` what the gather costs compute.
  IndexList Gather(const Part& part, const IndexList& after, double* exposed_seconds);
  Gathered GatherForUse(bool backward, const Part& part);
  IndexList Fetch(const Part& part, const IndexList& after);
  int32_t Reduce(const Part& part, IndexList after);
  void Complete(int chunk, const Waiting& waiting);

  const LoweringContext& context_;
  const int stage_index_;
  const StageView& stage_;
  const StageWork work_;
  StepEnd* const end_;
  int first_actor_ = 0, active_ = 0;                      // active: actors that compute
  int64_t rounds_ = 0;                                    // the most microbatches of a unit
  std::vector<std::vector<Part>> pieces_, round_pieces_;  // by chunk

  std::vector<Waiting> forward_, final_;  // by chunk
  std::vector<Gathered> in_turn_[2];      // by chunk; forward, backward
  std::vector<bool> written_[2];
  IndexList freed_[3];                                          // by parameter buffer: its last uses
  IndexList reduced_;                                           // by gradient buffer: its newest reduction
  std::map<std::tuple<bool, int, int64_t>, Gathered> per_use_;  // backward, chunk, microbatch
  std::map<std::tuple<int, int64_t>, Waiting> rounds_waiting_;  // chunk, microbatch
  IndexList released_;                                          // by actor's place
  std::vector<HeldBack> held_back_;
};

}  // namespace motley::planner
