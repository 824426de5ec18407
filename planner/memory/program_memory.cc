#include "planner/memory/program_memory.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/model/layer_table.h"
#include "common/program/launch_ahead.h"
#include "planner/memory/program_bytes.h"

namespace motley::planner {
namespace {

// The two halves of a layer, by what makes its saved tensors. The sum of the first is made in place by the second's residual.
OpSet HalfOf(bool attention) {
  OpSet half;
  for (const Op op : AllLayerOps()) {
    if ((InAttention(op) && op != Op::kResidual1) == attention) half = half.With(op);
  }
  return half;
}

// A receive, of activations or gradients.
struct HandOver {
  bool gradient = false;
  int32_t unit = 0, microbatch = 0, first = 0, peer = 0;
  bool IsOfCell(const HandOver& other) const {
    return gradient == other.gradient && unit == other.unit && microbatch == other.microbatch;
  }
};

std::optional<HandOver> HandOverOf(const Instruction& instruction) {
  const auto of = [](const auto& op, bool gradient) { return HandOver{gradient, op.unit, op.microbatch, op.first, op.peer}; };
  if (const auto* activation = std::get_if<ReceiveActivation>(&instruction.op)) return of(*activation, false);
  if (const auto* gradient = std::get_if<ReceiveGradient>(&instruction.op)) return of(*gradient, true);
  return std::nullopt;
}

// Walks the instructions in the order of the program. Between units lives one activation (forward) or its gradient (backward) per
// microbatch.
class Ledger {
 public:
  Ledger(const Costs& costs, int kind, const Program& program, const ModelSlice& slice)
      : costs_(costs),
        bytes_(costs, kind, slice, program),
        program_(program),
        behind_(costs.LaunchesAhead(kind) ? kMostUnfinishedPasses - 1 : 0),
        held_(program.num_units, false),
        summed_(program.num_units, false),
        activations_(program),
        gradients_(program) {
    for (const int32_t unit : program.units) held_[unit] = true;
  }

  ActivationBytes Peak(ActivationBytes* most) {
    FindReceives();
    for (at_ = 0; at_ < program_.instructions.size(); ++at_) {
      for (const int32_t before : program_.instructions[at_].after) HasLeft(before);
      while (next_receive_ < receives_.size() && receives_[next_receive_].at <= at_) ++next_receive_;
      std::visit([this](const auto& op) { Walk(op); }, program_.instructions[at_].op);
    }
    if (most != nullptr) *most = most_;
    return peak_;
  }

 private:
  struct Sizes {
    int64_t input, output;
    int64_t saved;  // beside the input
    int64_t workspace;
  };

  // Samples of what is handed over at the borders of units, by unit and microbatch: so many have been sent or received.
  class Pieces {
   public:
    explicit Pieces(const Program& program)
        : microbatches_(program.microbatches.size()), done_(static_cast<size_t>(program.num_units) * microbatches_, 0) {}
    template <typename Op>
    int64_t& Of(const Op& op) {
      return done_[static_cast<size_t>(op.unit) * microbatches_ + static_cast<size_t>(op.microbatch)];
    }

   private:
    size_t microbatches_;
    std::vector<int64_t> done_;
  };

  // The embedding's input are tokens, counted with what it saves; the head's output is a number.
  Sizes SizesOf(int32_t unit, int32_t microbatch) {
    const UnitKind unit_kind = UnitKindOf(program_, unit);
    const int64_t boundary = BoundaryOf(microbatch);
    const int64_t rows = unit_kind == UnitKind::kHead && summed_[unit] ? bytes_.Rows(microbatch) : 0;
    return {unit_kind == UnitKind::kEmbedding ? 0 : boundary, unit_kind == UnitKind::kHead ? 0 : boundary,
            SavedWithout(OpSet::None(), unit, microbatch) + rows, bytes_.Workspace(unit, microbatch)};
  }
  // What stays of a unit beside its input when nothing is kept of these operators.
  int64_t SavedWithout(OpSet operators, int32_t unit, int32_t microbatch) {
    if (UnitKindOf(program_, unit) == UnitKind::kEmbedding) return 0;  // tokens
    return bytes_.Saved(operators, unit, microbatch);
  }
  // The same of what a rank recomputes. What the ranks of a tensor-parallel unit have summed between two segments stays: making
  // it again would need them all.
  int64_t KeptWithout(OpSet operators, int32_t unit, int32_t microbatch) {
    const int64_t kept = SavedWithout(operators, unit, microbatch);
    if (!summed_[unit] || !operators.Has(Op::kAttnOut)) return kept;
    const OpSet sum = OpSet().With(Op::kAttnOut);
    return kept + SavedWithout(OpSet::None(), unit, microbatch) - SavedWithout(sum, unit, microbatch);
  }
  bool Held(int32_t unit) const { return unit >= 0 && unit < program_.num_units && held_[unit]; }
  // Whether another rank of the group hands over what this one has, too.
  bool Follows(int32_t group) const { return group != -1 && program_.groups[group].front() != program_.rank; }

  // What is there for the length of the instruction beside what lives.
  ActivationBytes Moment(int64_t boundaries, int64_t saved, int64_t workspace) {
    return {live_.boundaries + boundaries + AwaitedBytes() + PassingBytes(), live_.saved + saved, workspace};
  }
  void TakePeak(const ActivationBytes& moment) {
    if (moment.total() > peak_.total()) peak_ = moment;
  }
  // Of each by itself. There what a pass makes and does not keep is its workspace, whatever it is.
  void TakeMost(const ActivationBytes& moment) {
    most_.boundaries = std::max(most_.boundaries, moment.boundaries);
    most_.saved = std::max(most_.saved, moment.saved);
    most_.workspace = std::max(most_.workspace, moment.workspace);
  }
  void Touch(int64_t boundaries, int64_t saved, int64_t workspace) {
    const ActivationBytes moment = Moment(boundaries, saved, workspace);
    TakePeak(moment);
    TakeMost(moment);
  }

  template <typename Op, typename Function>
  void ForCells(const Op& op, bool backward, Function walk) {
    for (int32_t i = 0; i <= op.more_units; ++i) {
      const int32_t unit = op.unit + (backward ? op.more_units - i : i);
      for (int32_t k = 0; k <= op.more_microbatches; ++k) walk(unit, op.microbatch + k);
    }
  }

  // A layer of a step. Its largest temporaries are gone when its second half begins, which ends with all that it keeps, beside
  // what its kernels take for themselves. What is not kept of the first half is gone by then.
  void TouchLayerForward(const Sizes& s, OpSet recomputed, int32_t unit, int32_t microbatch) {
    const ActivationBytes first = Moment(0, SavedWithout(mlp_half_, unit, microbatch), s.workspace);
    const int64_t boundaries = first.boundaries + s.output;
    const ActivationBytes second{boundaries, live_.saved + KeptWithout(attention_half_ & recomputed, unit, microbatch),
                                 bytes_.LayerForwardWorkspace(microbatch)};
    ActivationBytes kept{boundaries, live_.saved + KeptWithout(recomputed, unit, microbatch), 0};
    kept.workspace = std::max<int64_t>(0, std::max(first.total(), second.total()) - kept.total());
    TakePeak(first);
    TakePeak(second);
    TakeMost(kept);
  }
  // Without keeping, internals still exist while the unit runs (an upper bound). The first of two segments counts as the unit.
  void Walk(const Forward& f) {
    if (!bytes_.TakesNothing(f, f.unit)) ++num_passes_;
    ForCells(f, false, [&](int32_t unit, int32_t microbatch) {
      if (bytes_.TakesNothing(f, unit)) return;
      if (f.segment != UnitSegment::kWhole) summed_[unit] = true;
      const Sizes s = SizesOf(unit, microbatch);
      if (IsSecond(f.segment)) return;
      if (f.keep != Keep::kNothing && UnitKindOf(program_, unit) == UnitKind::kLayer) {
        TouchLayerForward(s, f.keep == Keep::kAll ? OpSet::None() : OperatorSet(f.operators), unit, microbatch);
      } else {
        Touch(s.output, s.saved, s.workspace);
      }
      if (f.keep == Keep::kAll) live_.saved += s.saved;
      if (f.keep == Keep::kBoundary) live_.saved += KeptWithout(OperatorSet(f.operators), unit, microbatch);
      if (f.keep == Keep::kNothing) FreeInput(unit, s.input);
      live_.boundaries += s.output;
      if (Follows(f.tp_group) && unit + 1 < program_.num_units && !Held(unit + 1)) live_.boundaries -= s.output;
    });
  }
  void Walk(const Recompute& r) {
    ++num_passes_;
    ForCells(r, false, [&](int32_t unit, int32_t microbatch) {
      const Sizes s = SizesOf(unit, microbatch);
      if (IsSecond(r.segment)) return Touch(s.output, 0, s.workspace);
      const int64_t again = s.saved - KeptWithout(OperatorSet(r.operators), unit, microbatch);
      ActivationBytes moment = Moment(s.output, again, s.workspace);
      TakePeak(moment);
      moment.boundaries -= s.output;  // nobody's
      if (UnitKindOf(program_, unit) == UnitKind::kLayer && OperatorSet(r.operators).all()) {
        moment.workspace = s.output + bytes_.LayerForwardWorkspace(microbatch);
      }
      TakeMost(moment);
      live_.saved += again;
    });
  }
  // The gradient of the output is there already; that of the input is made before the saved tensors are all gone.
  void Walk(const Backward& b) {
    ++num_passes_;
    ForCells(b, true, [&](int32_t unit, int32_t microbatch) {
      const Sizes s = SizesOf(unit, microbatch);
      Touch(s.input, 0, s.workspace);
      if (!IsLastBackward(b.segment)) return;
      FreeGradients(unit, microbatch, s);
      live_.saved -= s.saved;
      if (Follows(b.tp_group) && unit > 0 && !Held(unit - 1)) live_.boundaries -= s.input;
    });
  }
  // For the second part stays what it needs of what was saved and of the gradient of the output, and of a head one sum for all
  // microbatches that wait.
  void Walk(const BackwardInput& b) {
    ++num_passes_;
    ForCells(b, true, [&](int32_t unit, int32_t microbatch) {
      const Sizes s = SizesOf(unit, microbatch);
      const UnitKind kind = UnitKindOf(program_, unit);
      if (kind == UnitKind::kHead) WaitHead();
      Touch(s.input, 0, bytes_.BackwardInputWorkspace(unit, microbatch));
      if (!IsLastBackward(b.segment)) return;
      FreeGradients(unit, microbatch, s);
      live_.saved += bytes_.Waiting(unit, microbatch) - s.saved;
      if (Follows(b.tp_group) && unit > 0 && !Held(unit - 1)) live_.boundaries -= s.input;
    });
  }
  void Walk(const BackwardWeight& b) {
    ++num_passes_;
    ForCells(b, true, [&](int32_t unit, int32_t microbatch) {
      Touch(0, 0, bytes_.BackwardWeightWorkspace(unit, microbatch));
      if (!IsLastBackward(b.segment)) return;
      live_.saved -= bytes_.Waiting(unit, microbatch);
      if (UnitKindOf(program_, unit) == UnitKind::kHead) live_.saved -= std::exchange(head_waits_, 0);
    });
  }
  // The gradients of a head's weights, and of the table that a tied one shares.
  void WaitHead() {
    if (head_waits_ > 0) return;
    const int64_t tied = costs_.workload().model.tie_embeddings ? bytes_.Elements(UnitKind::kEmbedding) : 0;
    head_waits_ = costs_.gradient_bytes() * (bytes_.Elements(UnitKind::kHead) + tied);
    live_.saved += head_waits_;
  }
  static bool IsSecond(UnitSegment segment) { return segment == UnitSegment::kMlp || segment == UnitSegment::kLoss; }
  static bool IsLastBackward(UnitSegment segment) { return !IsSecond(segment); }

  // In place of a unit's input there is its gradient, or beside the slot in which it was; that of its output is gone.
  void FreeGradients(int32_t unit, int32_t microbatch, const Sizes& s) {
    live_.boundaries -= s.output;
    if (in_slots_.contains({unit, microbatch})) live_.boundaries += s.input;
    if (!Held(unit + 1)) Pass(s.output, behind_);
    if (!Held(unit - 1)) Pass(s.input, behind_);
  }
  void FreeInput(int32_t unit, int64_t bytes) {
    live_.boundaries -= bytes;
    if (!Held(unit - 1)) Pass(bytes, behind_);
  }
  // A card's passes are launched ahead, and take from the allocator then. What another lane made for one, or takes from one, is
  // free when the card has passed it: it stays for so many more passes.
  void Pass(int64_t bytes, size_t more_passes) {
    if (bytes > 0 && more_passes > 0) passing_.push_back({bytes, num_passes_ + more_passes});
  }
  int64_t PassingBytes() {
    std::erase_if(passing_, [this](const Passing& one) { return one.until < num_passes_; });
    int64_t bytes = 0;
    for (const Passing& one : passing_) bytes += one.bytes;
    return bytes;
  }

  // What a border's other side makes or needs lives here, whole, from its first piece's receipt or until its last one is sent,
  // which takes about as long as another pass. Where none is launched ahead the pass behind an activation's mostly waits.
  int64_t BoundaryOf(int32_t microbatch) { return bytes_.Boundary(microbatch); }
  template <typename Op>
  void Send(const Op& op, size_t more_passes, Pieces& pieces) {
    int64_t& sent = pieces.Of(op);
    sent += op.samples;
    if (sent < program_.microbatches[op.microbatch].samples) return;
    live_.boundaries -= BoundaryOf(op.microbatch);
    Pass(BoundaryOf(op.microbatch), more_passes);
  }
  template <typename Op>
  void Receive(const Op& op, Pieces& pieces) {
    int64_t& received = pieces.Of(op);
    if (received == 0) Received(BoundaryOf(op.microbatch));
    received += op.samples;
  }
  void Received(int64_t bytes) {
    live_.boundaries += bytes;
    Touch(0, 0, 0);
  }
  void Walk(const SendActivation& op) { Send(op, behind_ > 0 ? behind_ + 1 : 0, activations_); }
  void Walk(const SendGradient& op) { Send(op, behind_ + 1, gradients_); }
  void Walk(const ReceiveActivation& op) { Receive(op, activations_); }
  void Walk(const ReceiveGradient& op) { Receive(op, gradients_); }
  void Walk(const BroadcastActivation& op) {
    if (op.root != program_.rank) Received(BoundaryOf(op.microbatch));
  }

  // What its lane may begin has its room: on a card a lane issues what waits for nothing more.
  struct Awaited {
    size_t at = 0, ready = 0;  // an instruction, and the first one at which it waits for nothing
    std::optional<HandOver> hand_over;
  };
  void FindReceives() {
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const Instruction& next = program_.instructions[i];
      if (LaneOf(next.op) != Lane::kReceive) continue;
      receives_.push_back({i, next.after.empty() ? 0 : static_cast<size_t>(next.after.back()) + 1, HandOverOf(next)});
    }
  }
  int64_t AwaitedBytes() {
    int64_t bytes = 0;
    for (size_t i = next_receive_; i < receives_.size(); ++i) {
      const std::optional<HandOver>& hand_over = receives_[i].hand_over;
      if (!hand_over || receives_[i].ready > at_) break;
      const auto first = receives_.begin() + static_cast<std::ptrdiff_t>(next_receive_);
      const auto is_of_cell = [&](const Awaited& other) { return other.hand_over->IsOfCell(*hand_over); };
      if (std::none_of(first, first + static_cast<std::ptrdiff_t>(i - next_receive_), is_of_cell)) bytes += RoomOf(*hand_over);
    }
    return bytes;
  }
  int64_t RoomOf(const HandOver& hand_over) {
    Pieces& pieces = hand_over.gradient ? gradients_ : activations_;
    return pieces.Of(hand_over) == 0 ? BoundaryOf(hand_over.microbatch) : 0;
  }

  // The sum stands where its term was; where another rank sends it, this one has no more use for it.
  void Walk(const AllReduceActivation& op) {
    const bool output = op.of == Exchanged::kActivation && op.segment != UnitSegment::kAttention && !Held(op.unit + 1);
    const bool gradient = op.of == Exchanged::kGradient && op.segment != UnitSegment::kMlp && !Held(op.unit - 1);
    if (Follows(op.group) && (output || gradient)) live_.boundaries -= BoundaryOf(op.microbatch);
  }

  // A unit's input that leaves is there until somebody waits for its copy, which may take so long, or for a later one. It comes
  // back into a slot, which is there all step.
  void Walk(const OffloadActivation& op) {
    int64_t bytes = 0;
    ForCells(op, false, [&](int32_t, int32_t microbatch) { bytes += BoundaryOf(microbatch); });
    leaving_.push_back({bytes, at_});
  }
  void Walk(const PrefetchActivation& op) {
    ForCells(op, false, [&](int32_t unit, int32_t microbatch) { in_slots_.insert({unit, microbatch}); });
  }
  void HasLeft(int32_t awaited) {
    if (LaneOf(program_.instructions[static_cast<size_t>(awaited)].op) != Lane::kCopy) return;
    for (; !leaving_.empty() && leaving_.front().at <= static_cast<size_t>(awaited); leaving_.pop_front()) {
      live_.boundaries -= leaving_.front().bytes;
      Pass(leaving_.front().bytes, behind_);
    }
  }

  // These work in buffers that the program declares and in the owned shard, which the memory model counts apart.
  void Walk(const Gather&) {}
  void Walk(const Broadcast&) {}
  void Walk(const Release&) {}
  void Walk(const ZeroGrad&) {}
  void Walk(const ReduceScatter&) {}
  void Walk(const AllReduce&) {}
  void Walk(const PrefetchParameters&) {}
  void Walk(const OffloadGradients&) {}
  void Walk(const PrefetchOptimizer&) {}
  void Walk(const OffloadOptimizer&) {}
  void Walk(const ReduceScalars&) {}
  void Walk(const OptimizerStep&) {}

  const Costs& costs_;
  ProgramBytes bytes_;
  const Program& program_;
  const OpSet attention_half_ = HalfOf(true), mlp_half_ = HalfOf(false);
  const size_t behind_;       // passes that may run while the next is launched
  std::vector<bool> held_;    // by unit
  std::vector<bool> summed_;  // by unit: inside, over a tensor-parallel group
  Pieces activations_, gradients_;
  size_t at_ = 0;  // instruction
  std::vector<Awaited> receives_;
  size_t next_receive_ = 0;  // of them
  ActivationBytes live_, peak_, most_;
  int64_t head_waits_ = 0;
  struct Leaving {
    int64_t bytes = 0;
    size_t at = 0;  // the instruction that moves them
  };
  std::deque<Leaving> leaving_;
  absl::flat_hash_set<std::pair<int32_t, int32_t>> in_slots_;  // by unit and microbatch: inputs that came back
  struct Passing {
    int64_t bytes = 0;
    size_t until = 0;  // passes
  };
  size_t num_passes_ = 0;
  std::vector<Passing> passing_;
};

}  // namespace

UnitKind UnitKindOf(const Program& program, int32_t unit) {
  if (unit == 0) return UnitKind::kEmbedding;
  return unit == program.num_units - 1 ? UnitKind::kHead : UnitKind::kLayer;
}

OpSet OperatorSet(uint32_t operators) { return OpSet::OfProgram(operators); }

ActivationBytes PeakActivations(const Costs& costs, int kind, const Program& program, const ModelSlice& slice,
                                ActivationBytes* most) {
  return Ledger(costs, kind, program, slice).Peak(most);
}

}  // namespace motley::planner
