#include "planner/live/ran_out.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "planner/answers/quick_plan.h"
#include "planner/answers/ways_out.h"
#include "planner/live/memory_limits.h"

namespace motley::planner {
namespace {

// No reserve is the way out of memory that was not there.
constexpr double kLeastReserve = 0.02;
constexpr int kMostCuts = 60;
constexpr double kCut = 0.9;

// The setting of devices that are too small for the job, as few cuts as there have to be. NOT_FOUND: they have no limits, say.
absl::StatusOr<JobSetting> TooSmall(PlannerInput input) {
  input.config.planner.memory_reserve = kLeastReserve;
  const std::vector<int64_t> limits = MemoryLimits(input);
  double part = kCut;
  for (int cut = 0; cut < kMostCuts; ++cut, part *= kCut) {
    for (size_t d = 0; d < limits.size(); ++d)
      input.compute[d].usable_bytes = static_cast<int64_t>(part * static_cast<double>(limits[d]));
    MOTLEY_ASSIGN_OR_RETURN(JobSetting job, SettingOf(input));
    if (!FindQuickPlan(*job.setting, QuickStrategies(job.setting->request))) return job;
  }
  return absl::NotFoundError("the job fits on devices however small");
}

}  // namespace

absl::Status RanOut(PlannerInput input, const std::string& why) {
  const absl::StatusOr<JobSetting> job = TooSmall(std::move(input));
  const std::vector<WayOut> ways = job.ok() ? FindWaysOut(*job->setting, job->book.get()) : std::vector<WayOut>();
  if (ways.empty())
    return absl::ResourceExhaustedError(
        absl::StrCat(why, "\nno single change that was tried helps: a smaller model or more devices"));
  return absl::ResourceExhaustedError(
      absl::StrCat(why, "\nwhat needs less memory, the cheapest first:\n", absl::StripSuffix(ToText(*job->setting, ways), "\n")));
}

}  // namespace motley::planner
