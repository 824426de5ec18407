#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <vector>

#include "planner/lowering/stage_passes.h"

namespace motley::planner {
namespace {

// Something may arrive for it from another stage.
bool MayArrive(const StageStep& step) { return step.place == 0 && step.hands_over(); }

}  // namespace

StageSteps WithRoomForBroadcasts(StageSteps stage, const StageTraits& traits) {
  const auto last = std::find_if(stage.steps.rbegin(), stage.steps.rend(), MayArrive);
  if (last == stage.steps.rend()) return stage;
  const auto last_arrival = static_cast<size_t>(std::distance(last, stage.steps.rend())) - 1;
  UnitCollectives put_off;
  for (size_t i = 0; i <= last_arrival && !traits.reduces_in_turn; ++i) {
    UnitCollectives& reduced = stage.steps[i].reduced;
    put_off.insert(put_off.end(), reduced.begin(), reduced.end());
    reduced.clear();
  }
  if (!traits.reduces_in_turn) stage.steps[last_arrival].reduced = std::move(put_off);
  int32_t collective = -1;
  for (size_t i = 0; i < stage.steps.size(); ++i) {
    StageStep& step = stage.steps[i];
    if (MayArrive(step)) step.waits_for = std::max(step.waits_for, collective);
    if (!step.gathered.empty() || !step.reduced.empty()) collective = static_cast<int32_t>(i);
  }
  return stage;
}

StageSteps SliceOf(StageSteps stage, double tp_share, int32_t group) {
  for (std::vector<UnitBuffer>* buffers : {&stage.parameter_buffers, &stage.gradient_buffers}) {
    for (UnitBuffer& buffer : *buffers) {
      buffer.elements = static_cast<int64_t>(std::ceil(tp_share * static_cast<double>(buffer.elements)));
    }
  }
  if (group < 0) return stage;
  const auto rename = [&](UnitCollectives* collectives) {
    for (UnitCollective& collective : *collectives) {
      if (collective.group == stage.group) collective.group = group;
    }
  };
  rename(&stage.gathered);
  for (StageStep& step : stage.steps) {
    rename(&step.gathered);
    rename(&step.reduced);
  }
  return stage;
}

}  // namespace motley::planner
