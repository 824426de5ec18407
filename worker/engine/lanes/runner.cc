#include "worker/engine/lanes/runner.h"

#include <vector>

namespace motley::engine {

absl::StatusOr<std::vector<InstructionSpan>> RunProgram(const Program& program, const std::array<DeviceLane*, kNumLanes>& lanes,
                                                        ProgramWork& work) {
  const std::vector<Instruction>& instructions = program.instructions;
  const auto lane_of = [](const Operation& op) { return static_cast<size_t>(LaneOf(op)); };
  // Only what another lane waits for needs an event: a lane keeps its own order.
  std::vector<char> awaited(instructions.size(), 0);
  for (const Instruction& instruction : instructions) {
    for (const int32_t i : instruction.after) awaited[i] |= lane_of(instructions[i].op) != lane_of(instruction.op);
  }
  std::vector<LaneEventPtr> events(instructions.size());
  std::vector<InstructionSpan> spans(instructions.size());
  for (DeviceLane* lane : lanes) lane->Begin();
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Operation& op = instructions[i].op;
    DeviceLane& lane = *lanes[lane_of(op)];
    for (const int32_t before : instructions[i].after) {
      if (lane_of(instructions[before].op) != lane_of(op)) lane.Wait(events[before]);
    }
    const bool reads_back = std::holds_alternative<ReduceScalars>(op);
    lane.Run({[&work, i, &op] { return work.Do(i, op); }, work.FlopsOf(op), &spans[i], reads_back});
    if (awaited[i]) events[i] = lane.Record();
  }
  absl::Status status;
  for (DeviceLane* lane : lanes) status.Update(lane->Finish());
  if (!status.ok()) return status;
  return spans;
}

}  // namespace motley::engine
