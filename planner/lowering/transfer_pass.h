// The pass of the program writer that says who sends what to whom.
//
// All members of all stages (data-parallel: a rank, or the ranks of a tensor-parallel unit) go through their steps side by side,
// in the order of the schedule's logical times (planner/plan/schedule_walk.h), and each hand-over is written where its sender has
// made it. This is one order of all that all ranks do, in which everything stands behind what it waits for, and every lane keeps
// it. So the programs come to their end with transfers that block, too. Which pieces a receiver takes first, hand_over_order.h
// says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/program/program.h"
#include "planner/lowering/stage_steps.h"
#include "planner/plan/schedule.h"
#include "planner/plan/schedule_walk.h"

namespace motley::planner {

// One microbatch in a step of the stage, or several where none of them is handed over. A member skips the steps of rounds that it
// has no microbatch in.
struct MemberStep {
  size_t step = 0;
  int64_t microbatch = 0, more_microbatches = 0;
  double end = 0;                           // when the member is done with it, in logical time
  bool arrives = false;                     // what it is computed from
  int32_t num_receives = 0, num_sends = 0;  // before it, and of what it has made behind it
};

struct StageMember {
  size_t stage = 0, index = 0;  // of the pipeline, of the stage
  int32_t rank = 0;             // of several the first, which sends and receives
  std::vector<MemberStep> steps;
  std::vector<Operation> receives, sends;  // of one step after the other
  std::vector<size_t> passed_when_sent;    // by receive: so many of the member's steps
};

// Of the steps that all of a member's microbatches pass in turn: those in which they are one MemberStep.
enum class Joined { kNone, kInside, kAll };  // kInside: of a virtual stage's units all but the first and the last

// A member's steps, without transfers.
std::vector<MemberStep> MemberSteps(const StageSteps& stage, const MemberMicrobatches& microbatches, const LogicalTimes& times,
                                    Joined joined = Joined::kNone);

// With them. `members`: all of a pipeline. INTERNAL: they would wait for each other, although the schedule says that they do not.
absl::StatusOr<std::vector<StageMember>> WithTransfers(std::vector<StageMember> members, const std::vector<StageSteps>& stages,
                                                       const PipelineSchedule& schedule);

}  // namespace motley::planner
