// The passes over a layer, each a walk over the table of its operators (common/model/layer_table.h): which functions run, in
// which order, and which tensors are freed behind each. Immutable. May throw c10::Error.
#pragma once

#include <vector>

#include "common/model/layer_table.h"
#include "common/program/operation_traits.h"
#include "worker/engine/model/layer_frame.h"
#include "worker/engine/model/layer_functions.h"

namespace motley::engine {

class LayerWalk {
 public:
  explicit LayerWalk(const FamilyTraits& traits);

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
  // A function, and what nothing behind it needs any more.
  struct Step {
    Op op;
    LayerFunction run;
    ValueSet values, gradients;  // first what it uses, then what is freed
  };
  static std::vector<Step> Freeing(std::vector<Step> steps, ValueSet values_stay, ValueSet gradients_stay);
  static void Run(const std::vector<Step>& steps, LayerFrame& frame, ValueSet kept, UnitSegment segment);

  std::vector<LayerOperator> operators_;
  std::vector<Step> forward_, backward_, backward_input_, backward_weight_;
};

}  // namespace motley::engine
