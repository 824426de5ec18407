// The data-parallel group of Cephalo as published (arXiv 2411.01075): its limits, and its own split of a batch.
#pragma once

#include "absl/status/statusor.h"
#include "planner/setting/setting.h"
#include "planner/split/group_split.h"

namespace motley::planner {

// The question under the paper's limits: layers are recomputed in full, unless the request says that nothing is; boundaries wait
// in host memory (section 2.2) where the cluster's file knows it.
GroupQuestion PublishedCephalo(const Setting& setting, GroupQuestion question);

// Answered by what the paper prints (cephalo_equation4.h) in place of the exact solver: every device computes at least one
// sample. Shares are even where every device's memory holds an even one, else they even out the use of memory (section 2.4).
absl::StatusOr<GroupAnswer> SplitGroupByEquation4(const Setting& setting, const GroupQuestion& question);

}  // namespace motley::planner
