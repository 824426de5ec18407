// What a program's instructions compute: a declared speed slows a device down by it. Immutable; plain values, no torch.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/model/model.h"
#include "common/model/model_slice.h"
#include "common/model/operators.h"
#include "common/program/program.h"

namespace motley::engine {

class InstructionFlops {
 public:
  // `model`: the whole one, of which the rank computes with a slice. `owned_elements`: what the rank steps, by unit. The program
  // must outlive it.
  InstructionFlops(const ModelShape& model, const ModelSlice& slice, int64_t seq_len, const Program& program,
                   std::vector<int64_t> owned_elements)
      : model_(ShapeOf(model, slice)),
        whole_(slice.whole()),
        seq_len_(seq_len),
        program_(program),
        owned_elements_(std::move(owned_elements)) {}

  // nullopt: of an instruction that does not compute, as a whole head's forward in training does not.
  std::optional<double> Of(const Operation& op) const;

 private:
  template <typename Op>
    requires(Op::kTraits.lane != Lane::kCompute)
  std::optional<double> Flops(const Op&) const {
    return std::nullopt;
  }
  std::optional<double> Flops(const Release&) const { return std::nullopt; }
  std::optional<double> Flops(const ZeroGrad&) const { return std::nullopt; }
  std::optional<double> Flops(const Forward& op) const;
  std::optional<double> Flops(const Recompute& op) const;
  std::optional<double> Flops(const Backward& op) const;
  std::optional<double> Flops(const BackwardInput& op) const;
  std::optional<double> Flops(const BackwardWeight& op) const;
  std::optional<double> Flops(const OptimizerStep& op) const;

  bool IsWholeHead(int32_t unit) const;
  // Of the operators of the instruction's unit and segment, on its microbatch.
  template <typename Op>
  double Sum(const Op& op, double OpCost::*part, OpSet of = OpSet::All()) const;

  const ModelShape model_;  // the slice
  const bool whole_;
  const int64_t seq_len_;
  const Program& program_;
  const std::vector<int64_t> owned_elements_;
};

}  // namespace motley::engine
