#include "coordinator/members/leaving.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/logging.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/epoch/planning.h"

namespace motley::coordinator {
namespace {

constexpr double kLongestStopSeconds = 3600;

}  // namespace

void OnLeaving(Core& core, const NodeName& name, const LeavingReport& report) {
  NodeRecord& node = core.state.nodes.at(name);
  if (node.leaves_at) return;
  const double seconds = std::isfinite(report.stop_seconds) ? std::clamp(report.stop_seconds, 0.0, kLongestStopSeconds) : 0;
  node.leaves_at = core.clock.Now() + absl::Seconds(seconds);
  node.reason = "its worker was told to end";
  core.state.membership_changed = core.clock.Now();
  EventRecord event;
  event.kind = kind::kNodeLeaving;
  event.node = name;
  event.message = absl::StrFormat("node %s was told to end and is gone within %.0f s: no plan uses it", name.value(), seconds);
  core.Emit(std::move(event));
}

void BeginStop(Core& core) {
  if (core.state.stops_at) return;
  core.state.stops_at = core.clock.Now() + core.config.stop;
  Drive(core);
  PardonPlanning(core);
  if (core.state.run) {
    const JobRecord& job = core.state.jobs.at(core.state.run->job);
    LogInfo(absl::StrCat("stopping; job ", job.id.value(), ": ", job.reason));
  }
}

bool MayStop(const Core& core) {
  if (!core.state.stops_at) return false;
  if (!core.state.run || core.clock.Now() >= *core.state.stops_at) return true;
  const JobRun& run = *core.state.run;
  return run.stage != Stage::kRunning && !(run.stage == Stage::kStopping && run.saving);
}

}  // namespace motley::coordinator
