// The table of periodic jobs: adding one is one file pair and one line in PeriodicJobs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

struct PeriodicJob {
  std::string name;
  absl::Duration interval;
  std::function<void(Core&)> run;
};

// Used on the loop only.
class Runner {
 public:
  Runner(Core& core, std::vector<PeriodicJob> jobs);
  // Runs what is due and returns the time until the next job is.
  absl::Duration RunDue();

 private:
  Core& core_;
  std::vector<PeriodicJob> jobs_;
  std::vector<absl::Duration> due_;  // steady, by job
};

std::vector<PeriodicJob> PeriodicJobs();

}  // namespace motley::coordinator
