#include "common/program/step_spans.h"

#include <algorithm>

namespace motley {
namespace {

// What a lane did, in its order, and so in that of time.
using LaneSpans = std::vector<InstructionSpan>;

absl::Duration BusyWithin(const LaneSpans& lane, absl::Duration begin, absl::Duration end) {
  absl::Duration busy;
  auto span = std::lower_bound(lane.begin(), lane.end(), begin,
                               [](const InstructionSpan& s, absl::Duration from) { return s.end <= from; });
  for (; span != lane.end() && span->begin < end; ++span) {
    busy += std::max(absl::ZeroDuration(), std::min(span->end, end) - std::max(span->begin, begin));
  }
  return busy;
}

// The instruction of another lane for which `instruction` waited longest; null: none.
const int32_t* LastAwaited(const Program& program, const Instruction& instruction, const std::vector<InstructionSpan>& spans) {
  const int32_t* last = nullptr;
  for (const int32_t& i : instruction.after) {
    if (LaneOf(program.instructions[i].op) == Lane::kCompute) continue;
    if (last == nullptr || spans[i].end > spans[*last].end) last = &i;
  }
  return last;
}

bool IsScalars(const Operation& op) { return std::holds_alternative<ReduceScalars>(op); }

}  // namespace

LaneSeconds SecondsByLane(const Program& program, const std::vector<InstructionSpan>& spans, absl::Duration step) {
  LaneSeconds seconds;
  std::array<LaneSpans, kNumLanes> lanes;
  for (size_t i = 0; i < spans.size(); ++i) {
    const auto lane = static_cast<size_t>(LaneOf(program.instructions[i].op));
    seconds.busy[lane] += absl::ToDoubleSeconds(spans[i].end - spans[i].begin);
    if (!IsScalars(program.instructions[i].op)) lanes[lane].push_back(spans[i]);
  }
  absl::Duration free;
  for (size_t i = 0; i < spans.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (LaneOf(instruction.op) != Lane::kCompute) continue;
    const absl::Duration gap = spans[i].begin - free;
    const int32_t* awaited = LastAwaited(program, instruction, spans);
    if (gap > absl::ZeroDuration() && (awaited == nullptr || spans[*awaited].end <= free)) {
      seconds.host += absl::ToDoubleSeconds(gap);
    } else if (gap > absl::ZeroDuration()) {
      const Lane lane = LaneOf(program.instructions[*awaited].op);
      const absl::Duration until = std::min(spans[i].begin, spans[*awaited].end);
      const absl::Duration busy = BusyWithin(lanes[static_cast<size_t>(lane)], free, until);
      double& waited = lane == Lane::kCollective ? seconds.collective : lane == Lane::kCopy ? seconds.copy : seconds.hand_over;
      waited += absl::ToDoubleSeconds(busy);
      seconds.bubble += absl::ToDoubleSeconds(until - free - busy);
      seconds.host += absl::ToDoubleSeconds(spans[i].begin - until);
    }
    free = std::max(free, spans[i].end);
  }
  seconds.host += std::max(0.0, absl::ToDoubleSeconds(step - free));
  return seconds;
}

}  // namespace motley
