// One data-parallel group that holds some layers: who computes how many samples, in which microbatches, with what recomputation,
// and who stores how much. The exact solver of Cephalo's equations 2 and 3 behind a small question, so that every strategy can
// give its groups uneven batches and shards.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/program/offload_kinds.h"
#include "planner/plan/op_set.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"
#include "planner/split/split_problem.h"

namespace motley::planner {

struct GroupQuestion {
  std::vector<int> devices;  // of the setting
  int64_t batch = 0;         // samples that the group computes in a step
  int64_t layers = 0;        // in all its ministages
  int64_t ministages = 1;
  bool embedding = false, head = false;
  ScheduleFamily schedule = ScheduleFamily::kLayered;
  int stage = 0, num_stages = 1;
  int zero_stage = 3;
  bool even_shards = false;
  int64_t least_batch = 0;         // of every device
  bool powers_of_two = false;      // microbatch sizes
  int64_t largest_microbatch = 0;  // 0 = no limit
  bool allow_keep = true, allow_recompute = true;
  // Activations of those devices whose node offers host memory, of one at least; state of all.
  OffloadKinds offload;
  bool steps_in_turn = false;  // units are stepped behind their sums
  double tolerance = 1e-4;     // of the answer's seconds (SplitProblem::tolerance)
};

struct GroupMember {
  int device = 0;
  int64_t batch = 0, microbatch = 0;  // the last may be smaller
  OpSet recompute;                    // None or All here
  double share = 0;
};

struct GroupAnswer {
  double forward_seconds = 0, backward_seconds = 0;  // bounds over members, collectives included
  std::vector<GroupMember> members;                  // one for each device, in order; batch 0 and share 0 = not needed
};

// RESOURCE_EXHAUSTED: does not fit; says how many bytes are missing.
absl::StatusOr<GroupAnswer> SplitGroup(const Setting& setting, const GroupQuestion& question);

// The same with another solver of the question's numbers than SolveSplit.
using GroupSolver = SplitAnswer (*)(SplitProblem* problem, int64_t largest_microbatch, const ExtendTables& extend);
absl::StatusOr<GroupAnswer> SplitGroupBy(const Setting& setting, const GroupQuestion& question, GroupSolver solve);

// The members as a stage of a plan, layers to be set by the caller.
StagePlan ToStage(const Setting& setting, const GroupAnswer& answer, int zero_stage, const OffloadKinds& offload = {});

}  // namespace motley::planner
