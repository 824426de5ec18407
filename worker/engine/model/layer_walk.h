// Runs the passes over a layer (common/model/layer_passes.h): their functions, and the tensors that are freed behind each.
// Immutable. May throw c10::Error.
#pragma once

#include <span>
#include <vector>

#include "common/model/layer_passes.h"
#include "common/model/layer_table.h"
#include "common/program/operation_traits.h"
#include "worker/engine/model/layer_frame.h"
#include "worker/engine/model/layer_functions.h"

namespace motley::engine {

class LayerWalk {
 public:
  // Of a family's layers; `rotary` false: of those without rotary positions.
  explicit LayerWalk(const FamilyTraits& traits, bool rotary = true);

  // From kInput to kOutput; leaves the values of `kept` beside it. A segment is the part of a pass that it names: the frame goes
  // from one to the next with all that the first one left, kResidual (of a backward its gradient) among it.
  void Forward(LayerFrame& frame, ValueSet kept, UnitSegment segment) const { Run(forward_, frame, kept, segment); }
  // Makes what a forward without the values of `recomputed` did not keep, from what it kept.
  void Recompute(LayerFrame& frame, OpSet recomputed) const;
  // From the gradient of kOutput to that of kInput, and the weights'.
  void Backward(LayerFrame& frame, UnitSegment segment) const { Run(backward_, frame, ValueSet(), segment); }
  // Its two halves. Between them stay WaitingValues and WaitingGradients.
  void BackwardInput(LayerFrame& frame, UnitSegment segment) const { Run(backward_input_, frame, ValueSet(), segment); }
  void BackwardWeight(LayerFrame& frame, UnitSegment segment) const { Run(backward_weight_, frame, ValueSet(), segment); }

 private:
  struct Step {
    Op op;
    LayerFunction run;
    LayerFunction with_next;     // both of them, forward; nullptr: there is none
    ValueSet values, gradients;  // to be freed
  };
  std::vector<Step> StepsOf(const LayerPass& pass) const;
  static void Free(const Step& step, LayerFrame& frame, ValueSet kept);
  static void Run(const std::vector<Step>& steps, LayerFrame& frame, ValueSet kept, UnitSegment segment);

  const FamilyTraits& traits_;  // static
  const std::span<const LayerOperator> operators_;
  const std::vector<Step> forward_, backward_, backward_input_, backward_weight_;
};

}  // namespace motley::engine
