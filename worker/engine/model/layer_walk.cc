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
  for (const PassStep& step : pass) {
    const LayerFunctions& functions = FunctionsOf(step.op->op, traits_.norm_places);
    const LayerFunction run = step.does == OpFunction::kForward         ? functions.forward
                              : step.does == OpFunction::kBackwardInput ? functions.backward_input
                                                                        : functions.backward_weight;
    steps.push_back({step.op->op, run, step.values, step.gradients});
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
  const OpSet again = RunAgainFor(recomputed, traits_);
  for (const LayerOperator& op : operators_) {
    if (again.Has(op.op)) FunctionsOf(op.op, traits_.norm_places).forward(frame);
  }
}

}  // namespace motley::engine
