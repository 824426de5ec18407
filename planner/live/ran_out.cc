#include "planner/live/ran_out.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "planner/answers/quick_plan.h"
#include "planner/answers/ways_out.h"
#include "planner/live/memory_limits.h"

namespace motley::planner {
namespace {

// No reserve is the way out of memory that was not there.
constexpr double kLeastReserve = 0.02;
constexpr int kMostCuts = 40;

// Of devices with this part of their memory.
absl::StatusOr<JobSetting> SettingWith(PlannerInput input, double part) {
  input.config.planner.memory_reserve = kLeastReserve;
  const std::vector<int64_t> limits = MemoryLimits(input);
  for (size_t d = 0; d < limits.size(); ++d)
    input.compute[d].usable_bytes = static_cast<int64_t>(part * static_cast<double>(limits[d]));
  return SettingOf(input);
}

bool FitsWith(const PlannerInput& input, double part) {
  const absl::StatusOr<JobSetting> job = SettingWith(input, part);
  return job.ok() && FindQuickPlan(*job->setting, QuickStrategies(job->setting->request));
}

// The largest devices that are too small for the job, to a tenth. NOT_FOUND: it fits on devices however small, without a limit,
// say.
absl::StatusOr<JobSetting> TooSmall(const PlannerInput& input) {
  double part = 1;
  int cuts = 0;
  for (const double cut : {0.5, 0.9}) {
    for (; FitsWith(input, part * cut); part *= cut) {
      if (++cuts == kMostCuts) return absl::NotFoundError("the job fits on devices however small");
    }
  }
  return SettingWith(input, part * 0.9);
}

// With nothing on hosts.
absl::StatusOr<JobSetting> OnDevicesAlone(PlannerInput input) {
  for (DeviceDescription& device : input.devices) device.node_host_memory_bytes = 0;
  input.config.planner.offload = "never";
  return SettingOf(input);
}

}  // namespace

absl::Status RanOut(const PlannerInput& input, const std::string& why, MemoryTier tier) {
  const bool of_host = tier == MemoryTier::kHost;
  const absl::StatusOr<JobSetting> job = of_host ? OnDevicesAlone(input) : TooSmall(input);
  if (of_host && job.ok()) {
    if (const auto quick = FindQuickPlan(*job->setting, QuickStrategies(job->setting->request))) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("%s\nwhat needs less memory, the cheapest first:\n  planner.offload=never: %.3g s a step\n  more "
                          "memory for the host, or "
                          "less of it held by others",
                          why, quick->step_seconds));
    }
  }
  const std::vector<WayOut> ways = job.ok() ? FindWaysOut(*job->setting, job->book.get()) : std::vector<WayOut>();
  if (ways.empty())
    return absl::ResourceExhaustedError(
        absl::StrCat(why, "\nno single change that was tried helps: a smaller model or more devices"));
  return absl::ResourceExhaustedError(
      absl::StrCat(why, "\nwhat needs less memory, the cheapest first:\n", absl::StripSuffix(ToText(*job->setting, ways), "\n")));
}

}  // namespace motley::planner
