#include "worker/engine/model/layer_walk.h"

#include "common/program/segment_operators.h"
#include "worker/engine/base/torch_pch.h"

namespace motley::engine {

LayerWalk::LayerWalk(const FamilyTraits& traits, bool rotary)
    : traits_(traits),
      operators_(LayerOperatorsOf(traits, rotary)),
      forward_(StepsOf(PassesOf(traits, rotary).forward)),
      backward_(StepsOf(PassesOf(traits, rotary).backward)),
      backward_input_(StepsOf(PassesOf(traits, rotary).backward_input)),
      backward_weight_(StepsOf(PassesOf(traits, rotary).backward_weight)) {}

std::vector<LayerWalk::Step> LayerWalk::StepsOf(const LayerPass& pass) const {
  std::vector<Step> steps;
  for (size_t i = 0; i < pass.size(); ++i) {
    const PassStep& step = pass[i];
    const LayerFunctions& functions = FunctionsOf(step.op->op, traits_.norm_places);
    const LayerFunction run = step.does == OpFunction::kForward         ? functions.forward
                              : step.does == OpFunction::kBackwardInput ? functions.backward_input
                                                                        : functions.backward_weight;
    const bool joins = step.does == OpFunction::kForward && i + 1 < pass.size();
    const LayerFunction with_next = joins ? JoinedForward(step.op->op, pass[i + 1].op->op, traits_.norm_places) : nullptr;
    steps.push_back({step.op->op, run, with_next, step.values, step.gradients});
  }
  return steps;
}

void LayerWalk::Free(const Step& step, LayerFrame& frame, ValueSet kept) {
  step.values.Without(kept).ForEach([&](LayerValue value) { frame.Value(value).reset(); });
  step.gradients.ForEach([&](LayerValue value) { frame.Gradient(value).reset(); });
}

void LayerWalk::Run(const std::vector<Step>& steps, LayerFrame& frame, ValueSet kept, UnitSegment segment) {
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!RunsIn(segment, steps[i].op)) continue;
    const bool joined = steps[i].with_next != nullptr && RunsIn(segment, steps[i + 1].op);
    (joined ? steps[i].with_next : steps[i].run)(frame);
    Free(steps[i], frame, kept);
    if (joined) Free(steps[++i], frame, kept);
  }
}

void LayerWalk::Recompute(LayerFrame& frame, OpSet recomputed) const {
  const OpSet again = RunAgainFor(recomputed, traits_);
  for (size_t i = 0; i < operators_.size(); ++i) {
    const Op op = operators_[i].op;
    if (!again.Has(op)) continue;
    const bool with_next = i + 1 < operators_.size() && again.Has(operators_[i + 1].op);
    const LayerFunction joined = with_next ? JoinedForward(op, operators_[i + 1].op, traits_.norm_places) : nullptr;
    (joined != nullptr ? joined : FunctionsOf(op, traits_.norm_places).forward)(frame);
    if (joined != nullptr) ++i;
  }
}

}  // namespace motley::engine
