// One walk over one program: what each of its instructions does. In five files: here and executor_pass.cc what all lanes share,
// executor_collectives.cc the collective lane, executor_copies.cc the copy lane, executor_units.cc and executor_steps.cc the
// compute lane. Private to the executor.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "common/program/program_index.h"
#include "worker/engine/base/counted_pass.h"
#include "worker/engine/border.h"
#include "worker/engine/executor.h"
#include "worker/engine/lanes/runner.h"
#include "worker/engine/model/instruction_flops.h"
#include "worker/engine/operators/finite_check.h"

namespace motley::engine {

class Executor::Pass : public ProgramWork {
 public:
  Pass(Executor& executor, const Program& program, const StepInput& input);

  absl::StatusOr<StepOutcome> Run();

  // The one place where exceptions of the libraries become a Status.
  absl::Status Do(size_t instruction, const Operation& op) override;
  std::optional<double> FlopsOf(const Operation& op) const override { return flops_.Of(op); }

 private:
  // Among what a layer keeps, and the head.
  static constexpr auto kInput = static_cast<size_t>(LayerValue::kInput);
  static_assert(kInput == 0, "the head's input is the first of what it keeps, too");

  // ---- collective lane ----

  absl::Status Do(const Gather& op);
  absl::Status Do(const ReduceScatter& op);
  absl::Status Do(const AllReduceActivation& op);
  absl::Status Do(const BroadcastActivation& op);
  // The only place of a step where numbers come back from the device.
  absl::Status Do(const ReduceScalars& op);

  template <typename Use>
  void ForEachPart(int32_t unit, at::Tensor RangeState::*owned, const std::vector<UnitArray>& buffers, int32_t shard, Use use);
  absl::Status GatherRows(int group, at::Tensor& rows);
  // Of sums that will be gone before the scalars: stepped, or on the host.
  void TakeNorms(const ReduceScatter& op);
  void AddNorms(StepScalars& mine) const;
  // All ranks have the same scalars, so all come to the same verdict.
  absl::Status CheckFinite();

  // ---- what the engine does not run yet: RunsInEngine has refused the program ----

  template <typename Op, typename... Refused>
  static constexpr bool kIsOneOf = (std::is_same_v<Op, Refused> || ...);
  template <typename Op>
  static constexpr bool kIsRefused = kIsOneOf<Op, Broadcast, AllReduce>;
  template <typename Op>
    requires kIsRefused<Op>
  absl::Status Do(const Op&) {
    return absl::UnimplementedError("the engine does not run this operation yet");
  }

  // ---- send and receive lanes ----

  absl::Status Do(const SendActivation& op) { return Send(op, activations_out_); }
  absl::Status Do(const SendGradient& op) { return Send(op, gradients_out_); }
  absl::Status Do(const ReceiveActivation& op) { return Receive(op, activations_in_); }
  absl::Status Do(const ReceiveGradient& op) { return Receive(op, gradients_in_); }

  template <typename Op>
  absl::Status Send(const Op& op, Border& border);
  template <typename Op>
  absl::Status Receive(const Op& op, Border& border);

  // ---- copy lane ----

  absl::Status Do(const OffloadActivation& op);
  absl::Status Do(const PrefetchActivation& op);
  absl::Status Do(const PrefetchParameters& op);
  absl::Status Do(const OffloadGradients& op);
  absl::Status Do(const PrefetchOptimizer& op);
  absl::Status Do(const OffloadOptimizer& op);

  struct Piece {
    char* to = nullptr;
    const char* from = nullptr;
    int64_t bytes = 0;
  };
  // One copy, of all of them.
  absl::Status Copy(Direction direction, const std::vector<Piece>& pieces);
  // What the rank owns of a unit, in a buffer's array of it and in a part of its area on the host: by the bytes of an element.
  template <typename Use>
  void ForEachOwned(int32_t unit, const UnitBuffer& buffer, int64_t part, int64_t bytes, Use use);

  // ---- compute lane ----

  absl::Status Do(const Forward& op);
  absl::Status Do(const Recompute& op);
  absl::Status Do(const Backward& op);
  absl::Status Do(const BackwardInput& op);
  absl::Status Do(const BackwardWeight& op);
  absl::Status Do(const ZeroGrad& op);
  absl::Status Do(const Release&) { return absl::OkStatus(); }
  absl::Status Do(const OptimizerStep& op);

  // The embedding keeps nothing: its tokens are there all step.
  at::Tensor RunUnit(const Forward& op, const at::Tensor& input);
  // What goes past the layer's segment that runs next.
  template <typename Op>
  void Carry(const Op& op, const at::Tensor& past);
  // What a pass of the unit leaves for later ones, to its account. `waits`: the weights' half, which has all that is kept.
  void Keep(CountedPass& pass, int32_t unit, int32_t microbatch, bool waits = false) const;
  // A slot is another input's once the unit's backward by input is done. Where norms come behind, the weights' half needs the
  // input too: it gets a copy.
  void LeaveSlot(Saved& saved);
  // Whole or a segment; its rows are the microbatch's activation between the two.
  void RunHead(const Forward& op, at::Tensor& activation);
  // Of one owned range: what the step works on, wherever it lies.
  struct Stepped {
    at::Tensor parameter, exp_avg, exp_avg_sq, cast;
    at::Tensor sum;                  // of gradients
    std::vector<LocalPiece> pieces;  // where in the sum the range's elements are
    bool is_shard = false;           // the sum is the range's own, which reductions add to: zero when it is stepped
    bool casts_home = false;         // the cast is in the unit's home
  };
  Stepped SteppedBy(const OptimizerStep& op, RangeState& own) const;
  // Of the range's part of a slot that holds its unit's state.
  at::Tensor InSlot(int32_t slot, const RangeState& own, int64_t part, DType type) const;
  // The range in its unit's home, in another type that computes; undefined where there is none.
  at::Tensor InHome(const RangeState& own) const;
  void Step(Stepped& range, const RangeState& own, double clip);
  // In host memory, or in the unit's gradient buffer until it is stepped: no shard of its own that reductions add to.
  bool SumStays(int32_t unit) const { return index_.sum_stays[static_cast<size_t>(unit)]; }
  void CountLoss(int32_t microbatch, const at::Tensor& loss);
  // A backward or its first half: the gradient of the head's input. Counts the loss where the forward has left it.
  template <typename Op>
  at::Tensor BackwardOfHead(const Op& op, const UnitArray& sum, const UnitArray& tied_sum);
  // What both kinds of a backward begin with: the gradient of what the unit or segment makes, which becomes that of its input.
  template <typename Op>
  at::Tensor& OutputGradient(const Op& op);
  // And end with.
  template <typename Op>
  void HandOverGradient(const Op& op, at::Tensor& gradient);

  // ---- helpers ----

  int Head() const { return program_.num_units - 1; }
  bool Held(int unit) const { return held_[unit]; }
  const RankAssignment& assignment() const { return e_.assignment_; }
  // Whether what units make are terms: their sums come before anybody uses them (check_slice.h).
  bool Summed() const { return !assignment().slice.whole(); }
  const UnitArray& Tied(int buffer) const { return buffer >= 0 ? e_.parameter_buffers_[buffer] : none_; }
  // Zeroed at the first write after a reduction. Its last reduction and this write are ordered by the program.
  const UnitArray& GradientBuffer(int buffer, int unit);
  void Written(int buffer, int64_t elements);
  // Where the head's backward by input leaves its weights' gradients: one sum of all microbatches that wait
  // (docs/inside/operators.md).
  const UnitArray& HeadsSum(UnitArray& sum, int unit) const;
  double LossWeight() const;
  // Of a microbatch's samples; null where they have no borders.
  const Borders* BordersOf(int32_t microbatch) const { return input_.batch.BordersOf(microbatch); }
  // The same with what layers need; of the microbatch that asked last.
  const Documents* DocumentsOf(int32_t microbatch);
  const at::Tensor& TrainedOf(int32_t microbatch) const { return input_.batch.trained[static_cast<size_t>(microbatch)]; }
  // Of a training step alone.
  // What a layer makes may be marked in passing; then it is not noted.
  FiniteMark MarkOf(int64_t position, int32_t microbatch) const;
  void NoteFinite(const at::Tensor& made, int64_t position, int32_t microbatch);
  // What another lane made.
  at::Tensor Taken(at::Tensor whole) const {
    e_.backend_.UsedOn(whole, Lane::kCompute);
    return whole;
  }
  // Of activations that are handed over.
  at::TensorOptions Activations() const;

  // By gradient buffer; ordered by the program.
  struct GradientUse {
    bool fresh = true;    // the next write is the first one
    int64_t reduced = 0;  // elements of the unit
  };

  Executor& e_;
  const Program& program_;
  const StepInput& input_;
  const bool training_;
  const InstructionFlops flops_;
  const ProgramIndex index_;
  const std::vector<bool> in_turn_;  // by unit: stepped before the scalars
  std::vector<at::Tensor> norms_;    // squared, by owned range; collective lane. Undefined: not yet
  StepOutcome outcome_;              // written by the collective lane, read by steps after it
  std::vector<GradientUse> gradient_uses_;
  // Compute lane:
  at::Tensor loss_sum_;  // read by ReduceScalars after the last loss: of what trains whole, the head's last backward
  FiniteCheck finite_;   // the same
  FiniteMark mark_;      // of the pass that runs
  double tokens_ = 0;    // the same
  Documents documents_;
  int32_t documents_of_ = -1;  // microbatch
  // By microbatch: what its last unit or segment made, then the gradient with respect to it. The collective lane sums it in place
  // between two instructions of the compute lane.
  std::vector<at::Tensor> activations_;
  // By microbatch: what is carried past a layer's segment to the sum of its terms, to which it is added.
  std::vector<at::Tensor> carried_;
  std::vector<std::vector<Saved>> saved_;  // [unit][microbatch]
  UnitArray head_sum_, tied_sum_;          // of the head, and of the embedding's table that it uses
  const UnitArray none_;                   // of models that tie nothing
  std::vector<char> held_;                 // by unit
  Border activations_out_, activations_in_, gradients_out_, gradients_in_;
};

}  // namespace motley::engine
