#include "common/model/layer_passes.h"

#include <cstdlib>
#include <span>
#include <utility>

namespace motley {
namespace {

LayerPass Freeing(LayerPass pass, ValueSet values_stay, ValueSet gradients_stay) {
  for (auto step = pass.rbegin(); step != pass.rend(); ++step) {
    const ValueSet values = step->values, gradients = step->gradients;
    step->values = values.Without(values_stay);
    step->gradients = gradients.Without(gradients_stay);
    values_stay = values_stay | values;
    gradients_stay = gradients_stay | gradients;
  }
  return pass;
}

LayerPasses Make(const FamilyTraits& traits) {
  LayerPasses passes;
  const std::span<const LayerOperator> operators = LayerOperatorsOf(traits);
  for (const LayerOperator& op : operators) {
    passes.forward.push_back({&op, OpFunction::kForward, op.reads | op.makes, ValueSet()});
  }
  for (auto op = operators.rbegin(); op != operators.rend(); ++op) {
    const PassStep input = {&*op, OpFunction::kBackwardInput, op->input_reads, op->makes};
    const PassStep weight = {&*op, OpFunction::kBackwardWeight, op->weight_reads, op->weight_gradients};
    // Weights first, so that what they alone read is gone before the other half makes room for its gradients.
    const bool first = op->has_weights() && !op->weights_with_input();
    if (first) passes.backward.push_back(weight);
    passes.backward.push_back(input);
    if (op->weights_with_input()) passes.backward.push_back(weight);
    passes.backward_input.push_back(input);
    if (op->has_weights()) passes.backward_weight.push_back(weight);
  }
  passes.forward = Freeing(std::move(passes.forward), ValueSet::Of(LayerValue::kOutput), ValueSet());
  passes.backward = Freeing(std::move(passes.backward), ValueSet(), ValueSet());
  passes.backward_input = Freeing(std::move(passes.backward_input), WaitingValues(), WaitingGradients());
  passes.backward_weight = Freeing(std::move(passes.backward_weight), ValueSet(), ValueSet());
  return passes;
}

}  // namespace

// Families differ in positions alone (LayerOperatorsOf).
const LayerPasses& PassesOf(const FamilyTraits& traits) {
  switch (traits.positions) {
    case PositionKind::kLearned: {
      static const LayerPasses* const passes = new LayerPasses(Make(traits));
      return *passes;
    }
    case PositionKind::kRotary: {
      static const LayerPasses* const passes = new LayerPasses(Make(traits));
      return *passes;
    }
  }
  std::abort();
}

}  // namespace motley
