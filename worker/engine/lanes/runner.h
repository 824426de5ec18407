// The one issue loop: walks a program and gives each instruction to its lane, behind what it waits for. Knows no torch, no device
// and no schedule: what runs when is the program's.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/program/program.h"
#include "common/program/step_spans.h"
#include "worker/engine/lanes/device_lane.h"

namespace motley::engine {

// What instructions do. Do is called on the instruction's lane.
class ProgramWork {
 public:
  virtual ~ProgramWork() = default;
  virtual absl::Status Do(size_t instruction, const Operation& op) = 0;
  // LaneWork::flops.
  virtual std::optional<double> FlopsOf(const Operation& op) const = 0;
};

// `lanes`: by Lane. Blocks until all instructions have run, or one has failed: the first error. When each ran, by its lane's
// schedule. `program` passes Validate.
absl::StatusOr<std::vector<InstructionSpan>> RunProgram(const Program& program, const std::array<DeviceLane*, kNumLanes>& lanes,
                                                        ProgramWork& work);

}  // namespace motley::engine
