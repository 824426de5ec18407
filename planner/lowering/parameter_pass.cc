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
    const bool is_others = !home || traits.across() || group == traits.tied_group;
    if (is_others || !traits.alone) stage->gathered.push_back({unit, buffer, by});
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
    (used >= 0 ? stage->steps[used].gathered : stage->gathered).push_back({unit, buffer, traits.group, more});
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

// A unit in each buffer. What comes into one comes behind its last use, which all of the stage's ranks must have passed.
void AddUnits(const StageTraits& traits, StageSteps* stage, BufferPool* pool) {
  const auto gather = [&](int32_t unit, StageStep* step) {
    const int32_t buffer = pool->Take(unit, traits.elements[unit]), last = (*pool)[buffer].last_step;
    if (last >= 0) stage->steps[last].released.push_back(buffer);
    (last >= 0 ? stage->steps[last].gathered : stage->gathered).push_back({unit, buffer, traits.group});
    step->waits_for = std::max(step->waits_for, last);
  };
  for (int32_t i = 0; i < static_cast<int32_t>(stage->steps.size()); ++i) {
    StageStep& step = stage->steps[i];
    if (!step.needs_parameters()) continue;
    for (int32_t unit = step.unit; unit <= step.last_unit(); ++unit) {
      if (pool->Find(unit) < 0) gather(unit, &step);
      (*pool)[pool->Find(unit)].last_step = i;
    }
    step.parameters = pool->Find(step.unit);
  }
}

// What is gathered for the step is free behind its last use. The head of a tied model uses unit 0, too.
void ReleaseAtEnd(const StageTraits& traits, StageSteps* stage, BufferPool* pool) {
  for (int32_t i = 0; i < static_cast<int32_t>(stage->steps.size()) && stage->tied_parameters >= 0; ++i) {
    const StageStep& step = stage->steps[i];
    int32_t& last = (*pool)[stage->tied_parameters].last_step;
    if (step.needs_parameters() && step.unit == traits.head()) last = std::max(last, i);
  }
  for (int32_t b = 0; b < pool->size(); ++b) {
    const BufferPool::Place& place = (*pool)[b];
    if (place.buffer.home_of < 0 && place.last_step >= 0) stage->steps[place.last_step].released.push_back(b);
  }
}

}  // namespace

StageSteps WithParameters(StageSteps stage, const StageTraits& traits) {
  BufferPool pool(traits.parameters_in_turn);
  Keep(traits, &stage, &pool);
  if (traits.streams) {
    AddStreams(traits, &stage, &pool);
  } else {
    AddUnits(traits, &stage, &pool);
    ReleaseAtEnd(traits, &stage, &pool);
  }
  if (traits.across()) Order(traits, &stage.gathered);
  stage.parameter_buffers = pool.Buffers();
  return stage;
}

}  // namespace motley::planner
