#include "common/model/layer_passes.h"

#include <map>
#include <mutex>
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

LayerPasses Make(std::span<const LayerOperator> operators) {
  LayerPasses passes;
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
  passes.backward_input = Freeing(std::move(passes.backward_input), WaitingValues(operators), WaitingGradients(operators));
  passes.backward_weight = Freeing(std::move(passes.backward_weight), ValueSet(), ValueSet());
  return passes;
}

}  // namespace

// Made once for each table of operators, which is all that they follow from: which traits choose a table is LayerOperatorsOf's.
const LayerPasses& PassesOf(const FamilyTraits& traits, bool rotary) {
  static std::mutex mutex;
  static auto* const made = new std::map<const LayerOperator*, LayerPasses>();
  const std::span<const LayerOperator> operators = LayerOperatorsOf(traits, rotary);
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [at, is_new] = made->try_emplace(operators.data());
  if (is_new) at->second = Make(operators);
  return at->second;
}

}  // namespace motley
