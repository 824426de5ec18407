#include <algorithm>

#include "planner/lowering/buffer_pool.h"
#include "planner/lowering/stage_passes.h"

namespace motley::planner {
namespace {

// What is gathered once: homes, and a tied embedding, which both its ends need all step long.
void Keep(const StageTraits& traits, StageSteps* stage, BufferPool* pool) {
  const auto keep = [&](int32_t unit, bool home, int32_t group) {
    const int32_t by = traits.across() ? traits.sum_group[unit] : group;
    const int32_t buffer = pool->Keep(unit, traits.elements[unit], home);
    const bool of_homes = home ? traits.gathers_homes : true;
    const bool gathers = traits.across() ? traits.gathers_homes : group == traits.tied_group ? traits.gathers_tied : of_homes;
    if (gathers) stage->gathered.push_back({unit, buffer, by});
  };
  const bool apart = traits.tied_group >= 0, home = traits.across() || !traits.gathers_in_turn;
  if (apart) keep(0, traits.has_embedding() && home, traits.tied_group);
  for (const int32_t unit : traits.units) {
    const bool is_tied = traits.tied && unit == 0;
    if (is_tied ? !apart : !traits.gathers_in_turn) keep(unit, home, traits.group);
    if (!traits.gathers_in_turn || !traits.KeepsShards(unit)) continue;
    stage->gathered.push_back({unit, pool->KeepShard(unit, traits.elements[unit], traits.group), traits.sum_group[unit]});
  }
  if (traits.tied && traits.has_head()) stage->tied_parameters = pool->Find(0);
}

// What stands before the first step, by the pipelines' order: what shards give, behind what they get.
void Order(const StageTraits& traits, UnitCollectives* gathered) {
  const auto at = [&](int32_t unit) { return std::find(traits.gather_order.begin(), traits.gather_order.end(), unit); };
  const auto place = [&](const UnitCollective& gather) {
    auto last = at(gather.unit);
    for (int32_t more = 1; more <= gather.more_units; ++more) last = std::max(last, at(gather.unit + more));
    return last;
  };
  std::stable_sort(gathered->begin(), gathered->end(),
                   [&](const UnitCollective& a, const UnitCollective& b) { return place(a) < place(b); });
}

// What a step's unit is gathered with, under one name in the pool.
struct ComingUnits {
  int32_t name = 0, first = 0, more = 0;
  int64_t elements = 0;
};

ComingUnits UnitsComing(const StageTraits& traits, const StageStep& step) {
  if (!traits.whole_ministages) return {step.unit, step.unit, 0, traits.elements[step.unit]};
  const std::vector<int32_t>& units = traits.units_of[step.virtual_stage];
  ComingUnits coming{static_cast<int32_t>(traits.elements.size()) + step.virtual_stage, units.front(),
                     static_cast<int32_t>(units.size()) - 1};
  for (const int32_t unit : units) coming.elements += traits.elements[unit];
  return coming;
}

// A pass of a virtual stage by one microbatch: steps [first, last].
struct Stream {
  int32_t first = 0, last = 0;
};

std::vector<Stream> StreamsOf(const StageSteps& stage) {
  std::vector<Stream> streams;
  for (int32_t i = 0; i < static_cast<int32_t>(stage.steps.size()); ++i) {
    const StageStep& step = stage.steps[i];
    if (step.needs_parameters() && step.place == 0) streams.push_back({i, i});
    if (step.needs_parameters()) streams.back().last = i;
  }
  return streams;
}

// Two buffers: of a pass's first unit, where the stream begins, and of the others, which are all there when the last is computed.
// The next pass's follow the last but one and the last step that use them.
void AddStreams(const StageTraits& traits, StageSteps* stage, BufferPool* pool) {
  const int32_t begin = pool->Take(-1, 0), rest = pool->Take(-1, 0);
  int32_t begin_used = -1, rest_used = -1;
  const auto gather = [&](int32_t step, int32_t more, int32_t unit, int32_t buffer, int32_t used) {
    if (used >= 0) stage->steps[used].released.push_back(buffer);
    (used >= 0 ? stage->steps[used].gathered : stage->gathered).push_back({unit, buffer, traits.group, false, more});
    stage->steps[step].waits_for = std::max(stage->steps[step].waits_for, used);
  };
  for (const auto& [first, last] : StreamsOf(*stage)) {
    const int32_t first_unit = stage->steps[first].unit, last_unit = stage->steps[last].unit;
    gather(first, 0, first_unit, begin, begin_used);
    for (int32_t i = first; i < std::max(last, first + 1); ++i) stage->steps[i].parameters = begin;
    begin_used = std::max(first, last - 1);
    if (first == last) continue;
    const int32_t low = stage->steps[first].backward() ? last_unit : first_unit + 1;
    const int32_t more = stage->steps[first].num_places - 2;
    gather(last, more, low, rest, rest_used);
    stage->steps[last].parameters = rest;
    rest_used = last;
  }
}

}  // namespace

StageSteps WithParameters(StageSteps stage, const StageTraits& traits) {
  BufferPool pool;
  Keep(traits, &stage, &pool);
  if (traits.streams) {
    AddStreams(traits, &stage, &pool);
    if (traits.across()) Order(traits, &stage.gathered);
    stage.parameter_buffers = pool.Buffers();
    return stage;
  }
  for (int32_t i = 0; i < static_cast<int32_t>(stage.steps.size()); ++i) {
    StageStep& step = stage.steps[i];
    if (!step.needs_parameters()) continue;
    const ComingUnits units = UnitsComing(traits, step);
    step.parameters = pool.Find(units.name);
    if (step.parameters < 0) {
      step.parameters = pool.Take(units.name, units.elements);
      const int32_t last = pool[step.parameters].last_step;
      if (last >= 0) stage.steps[last].released.push_back(step.parameters);
      (last >= 0 ? stage.steps[last].gathered : stage.gathered)
          .push_back({units.first, step.parameters, traits.group, false, units.more});
      step.waits_for = std::max(step.waits_for, last);
    }
    pool[step.parameters].last_step = i;
    if (step.unit == traits.head() && stage.tied_parameters >= 0) pool[stage.tied_parameters].last_step = i;
  }
  for (int32_t b = 0; b < pool.size(); ++b) {
    if (pool[b].buffer.home_of < 0 && pool[b].last_step >= 0) stage.steps[pool[b].last_step].released.push_back(b);
  }
  if (traits.across()) Order(traits, &stage.gathered);
  stage.parameter_buffers = pool.Buffers();
  return stage;
}

}  // namespace motley::planner
