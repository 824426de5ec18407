#include "worker/engine/model/layer_walk.h"

#include "common/program/segment_operators.h"
#include "worker/engine/base/torch_pch.h"

namespace motley::engine {

LayerWalk::LayerWalk(const FamilyTraits& traits) {
  for (const LayerOperator& op : LayerOperatorsOf(traits)) {
    operators_.push_back(op);
    forward_.push_back({op.op, FunctionsOf(op.op).forward, op.reads | op.makes, ValueSet()});
  }
  for (auto op = operators_.rbegin(); op != operators_.rend(); ++op) {
    const LayerFunctions& functions = FunctionsOf(op->op);
    const Step input = {op->op, functions.backward_input, op->input_reads, op->makes};
    const Step weight = {op->op, functions.backward_weight, op->weight_reads, op->weight_gradients};
    // Weights first, so that what they alone read is gone before the other half makes room for its gradients.
    const bool first = op->has_weights() && !op->weights_with_input();
    if (first) backward_.push_back(weight);
    backward_.push_back(input);
    if (op->weights_with_input()) backward_.push_back(weight);
    backward_input_.push_back(input);
    if (op->has_weights()) backward_weight_.push_back(weight);
  }
  forward_ = Freeing(std::move(forward_), ValueSet::Of(LayerValue::kOutput), ValueSet());
  backward_ = Freeing(std::move(backward_), ValueSet(), ValueSet());
  backward_input_ = Freeing(std::move(backward_input_), WaitingValues(), WaitingGradients());
  backward_weight_ = Freeing(std::move(backward_weight_), ValueSet(), ValueSet());
}

std::vector<LayerWalk::Step> LayerWalk::Freeing(std::vector<Step> steps, ValueSet values_stay, ValueSet gradients_stay) {
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const ValueSet values = step->values, gradients = step->gradients;
    step->values = values.Without(values_stay);
    step->gradients = gradients.Without(gradients_stay);
    values_stay = values_stay | values;
    gradients_stay = gradients_stay | gradients;
  }
  return steps;
}

void LayerWalk::Run(const std::vector<Step>& steps, LayerFrame& frame, ValueSet kept, UnitSegment segment) {
  for (const Step& step : steps) {
    if (!RunsIn(segment, step.op)) continue;
    step.run(frame);
    step.values.Without(kept).ForEach([&](LayerValue value) { frame.Value(value).reset(); });
    step.gradients.ForEach([&](LayerValue value) { frame.Gradient(value).reset(); });
  }
}

void LayerWalk::Recompute(LayerFrame& frame, OpSet recomputed) const {
  const OpSet again = RunAgainFor(recomputed);
  for (const LayerOperator& op : operators_) {
    if (again.Has(op.op)) FunctionsOf(op.op).forward(frame);
  }
}

}  // namespace motley::engine
