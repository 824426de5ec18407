#include "planner/published/cephalo_group.h"

#include <algorithm>
#include <cstdint>

#include "planner/published/cephalo_equation4.h"

namespace motley::planner {

GroupQuestion PublishedCephalo(const Setting& setting, GroupQuestion question) {
  question.offload.activations = setting.MayOffload().activations;
  question.allow_keep = setting.request.recompute == RecomputePolicy::kNone;
  return question;
}

absl::StatusOr<GroupAnswer> SplitGroupByEquation4(const Setting& setting, const GroupQuestion& question) {
  GroupQuestion printed = question;
  printed.least_batch = std::max<int64_t>(1, question.least_batch);
  return SplitGroupBy(setting, printed, [](SplitProblem* problem, int64_t largest_microbatch, const ExtendTables& extend) {
    return SolveEquation4(problem, largest_microbatch, extend).split;
  });
}

}  // namespace motley::planner
