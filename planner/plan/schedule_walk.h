// Goes through a plan's schedule as its ranks would, without seconds: whether they wait for each other, and in which order they
// come to what they compute. Pure: a function of plan and schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/schedule.h"

namespace motley::planner {

// When a member computes a virtual stage's microbatch, in forward passes of a whole stage. Members are taken to be equally busy:
// the place of a microbatch's samples in the batch says when its member has computed it.
struct LogicalSpan {
  double begin = 0, end = 0;
};

class LogicalTimes {
 public:
  LogicalTimes(size_t virtual_stages, size_t microbatches)
      : microbatches_(microbatches), times_(kPasses * virtual_stages * microbatches) {}
  LogicalSpan& At(ActionKind kind, int32_t virtual_stage, int64_t microbatch) {
    return times_[Index(kind, virtual_stage, microbatch)];
  }
  const LogicalSpan& At(ActionKind kind, int32_t virtual_stage, int64_t microbatch) const {
    return times_[Index(kind, virtual_stage, microbatch)];
  }

 private:
  // A backward is whole or in two parts.
  static constexpr size_t kPasses = 3;
  size_t Index(ActionKind kind, int32_t virtual_stage, int64_t microbatch) const {
    const size_t pass = kind == ActionKind::kForward ? 0 : kind == ActionKind::kWeightGradient ? 2 : 1;
    return (kPasses * static_cast<size_t>(virtual_stage) + pass) * microbatches_ + static_cast<size_t>(microbatch);
  }
  size_t microbatches_;
  std::vector<LogicalSpan> times_;
};

// A member that does not come to its end.
struct StuckMember {
  size_t stage = 0, member = 0;
  size_t action = 0;  // of the stage, that it has not done
  int64_t microbatch = 0;
};

// The next forward of a stage that stands before a backward, and the forwards without backward that it would then have.
struct ForwardAhead {
  size_t stage = 0, action = 0;
  int64_t in_flight = 0;
};
// `actions`: of `stage`, which stands before number `at`. Nothing: that is no backward, or no forward comes behind it.
std::optional<ForwardAhead> ForwardBehind(size_t stage, const std::vector<Action>& actions, size_t at);

struct PipelineWalk {
  std::vector<std::vector<LogicalTimes>> times;  // by stage, member
  std::vector<StuckMember> stuck;                // empty: everybody comes to its end
  std::vector<ForwardAhead> could_run_ahead;     // where some are stuck: forwards that could be computed
};

// Pipeline `p` of the plan, with a schedule that fits it (ValidateSchedule's rules but the last).
PipelineWalk WalkSchedule(const Plan& plan, size_t p, const PipelineSchedule& schedule, bool training);

}  // namespace motley::planner
