// What the functions of a job's stages see, and what is decided in files of its own. Private to the decisions (decide.h).
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/device/device.h"
#include "coordinator/state/decide.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {

struct DecideView {
  absl::Duration now;
  const ClusterState& state;
  const DriverConfig& config;
  const JobRun& run;
  const JobRecord& job;
  std::vector<DeviceDescription> usable;

  bool changed() const { return !std::ranges::equal(usable, run.considered, IsSameToPlan); }
  bool settled() const { return now - state.membership_changed >= config.settle && !JoinIsNear(now, run); }
  absl::Duration in_stage() const { return now - run.stage_since; }
};

// "n4 joined", "n2 is not to be used any more": what is different from the devices that the epoch was planned for.
std::string DescribeChange(const DecideView& v);
bool AnyAdded(const DecideView& v);

// Null while answers are missing and there is time for them, or all are good.
std::optional<Decision> StorageVerdict(const DecideView& v);
// Null: the nodes reach each other, or do not say it in time. Answers are waited for alone when `all_else` of the set-up is
// there.
std::optional<Decision> ReachVerdict(const DecideView& v, bool all_else);

// While the newest checkpoint is looked for; what the look says comes too late when it is not waited for any more
// (folder_wait.cc).
Decision DecideLook(const DecideView& v);

// Null: nobody was told to end. What was trained is saved if that fits the time; else the epoch ends at once, and says what that
// costs.
std::optional<Decision> DecideLeaving(const DecideView& v);

// Null: no job that lent the cluster wants it back, or its ranks are ending already.
std::optional<Decision> DecideYield(const DecideView& v);

}  // namespace motley::coordinator
