// A job whose checkpoint folder the coordinator cannot look into, or which does not answer: what is said of it. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/job/job.h"

namespace motley::coordinator {

// Of a look for checkpoints: the folder may be there again, or readable, later. The planner's own errors have other codes.
bool MayBeBackLater(const absl::Status& look);
// Of such a status.
std::string WhyNoLook(const absl::Status& look);
// Of a look that has taken longer than that. `at_initial`: it is at checkpoint.initial.
std::string WhyLookHangs(const JobConfig& config, bool at_initial, absl::Duration patience);

}  // namespace motley::coordinator
