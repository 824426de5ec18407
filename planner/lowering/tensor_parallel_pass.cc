#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "planner/lowering/stage_passes.h"

namespace motley::planner {
namespace {

// A unit's ranks meet in it: they sum what they have made, or one of them passes on what may arrive from another stage.
bool Meets(const StageStep& step) {
  const bool arrives = step.place == 0 && step.hands_over();
  const bool of_embedding = step.backward() && step.unit == 0;  // whose input has no gradient
  return arrives || (step.hands_over() && !of_embedding);
}

}  // namespace

StageSteps WithRoomForSums(StageSteps stage, ReductionOrder order) {
  const auto last = std::find_if(stage.steps.rbegin(), stage.steps.rend(), Meets);
  if (last == stage.steps.rend()) return stage;
  if (order == ReductionOrder::kBehindSums) {
    const auto last_meeting = static_cast<size_t>(std::distance(last, stage.steps.rend())) - 1;
    UnitCollectives put_off;
    for (size_t i = 0; i <= last_meeting; ++i) {
      UnitCollectives& reduced = stage.steps[i].reduced;
      put_off.insert(put_off.end(), reduced.begin(), reduced.end());
      reduced.clear();
    }
    stage.steps[last_meeting].reduced = std::move(put_off);
  }
  int32_t collective = -1;
  for (size_t i = 0; i < stage.steps.size(); ++i) {
    StageStep& step = stage.steps[i];
    if (Meets(step)) step.waits_for = std::max(step.waits_for, collective);
    if (!step.gathered.empty() || !step.reduced.empty()) collective = static_cast<int32_t>(i);
  }
  return stage;
}

StageSteps SliceOf(StageSteps stage, const RankElements& rank) {
  for (std::vector<UnitBuffer>* buffers : {&stage.parameter_buffers, &stage.gradient_buffers}) {
    for (UnitBuffer& buffer : *buffers) buffer.elements = 0;
  }
  const auto cut = [&](UnitCollectives* collectives, const std::vector<SharedElements>& with_all,
                       std::vector<UnitBuffer>* buffers) {
    UnitCollectives parts;
    for (const UnitCollective& whole : *collectives) {
      UnitBuffer& buffer = (*buffers)[whole.buffer];
      if (!buffer.IsShard()) buffer.elements = std::max(buffer.elements, rank.slice.all[whole.unit]);
      const SharedElements& shared = (whole.group == rank.stage_group ? rank.in_turn : with_all)[whole.unit];
      if (shared.empty() && !buffer.IsShard()) parts.push_back(whole);  // of a shard: the rank keeps nothing of the unit
      for (const MetElements& met : shared) {
        parts.push_back(whole);
        parts.back().group = met.group;
        parts.back().elements = met.elements;
        if (buffer.IsShard()) buffer.elements += met.elements.count;
      }
    }
    *collectives = std::move(parts);
  };
  cut(&stage.gathered, rank.gathered, &stage.parameter_buffers);
  for (StageStep& step : stage.steps) {
    cut(&step.gathered, rank.gathered, &stage.parameter_buffers);
    cut(&step.reduced, rank.reduced, &stage.gradient_buffers);
  }
  return stage;
}

}  // namespace motley::planner
