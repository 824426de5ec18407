#include <algorithm>

#include "planner/lowering/buffer_pool.h"
#include "planner/lowering/stage_passes.h"

namespace motley::planner {
namespace {

// What is gathered once: homes, and a tied embedding, which both its ends need all step long.
void Keep(const StageTraits& traits, StageSteps* stage, BufferPool* pool) {
  const auto keep = [&](int32_t unit, bool home, int32_t group) {
    const int32_t by = traits.sum_group.empty() ? group : traits.sum_group[unit];
    stage->gathered.push_back({unit, pool->Keep(unit, traits.elements[unit], home), by});
  };
  const bool apart = traits.tied_group >= 0;
  if (apart) keep(0, traits.has_embedding() && !traits.gathers_in_turn, traits.tied_group);
  for (const int32_t unit : traits.units) {
    const bool is_tied = traits.tied && unit == 0;
    if (is_tied ? !apart : !traits.gathers_in_turn) keep(unit, !traits.gathers_in_turn, traits.group);
  }
  if (traits.tied && traits.has_head()) stage->tied_parameters = pool->Find(0);
}

}  // namespace

StageSteps WithParameters(StageSteps stage, const StageTraits& traits) {
  BufferPool pool;
  Keep(traits, &stage, &pool);
  for (int32_t i = 0; i < static_cast<int32_t>(stage.steps.size()); ++i) {
    StageStep& step = stage.steps[i];
    if (!step.needs_parameters()) continue;
    step.parameters = pool.Find(step.unit);
    if (step.parameters < 0) {
      step.parameters = pool.Take(step.unit, traits.elements[step.unit]);
      const int32_t last = pool[step.parameters].last_step;
      if (last >= 0) stage.steps[last].released.push_back(step.parameters);
      (last >= 0 ? stage.steps[last].gathered : stage.gathered).push_back({step.unit, step.parameters, traits.group});
      step.waits_for = std::max(step.waits_for, last);
    }
    pool[step.parameters].last_step = i;
    if (step.unit == traits.head() && stage.tied_parameters >= 0) pool[stage.tied_parameters].last_step = i;
  }
  for (int32_t b = 0; b < pool.size(); ++b) {
    if (pool[b].buffer.home_of < 0 && pool[b].last_step >= 0) stage.steps[pool[b].last_step].released.push_back(b);
  }
  stage.parameter_buffers = pool.Buffers();
  return stage;
}

}  // namespace motley::planner
