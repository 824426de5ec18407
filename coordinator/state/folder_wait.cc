#include "coordinator/state/folder_wait.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/fault.h"
#include "coordinator/state/decide_view.h"

namespace motley::coordinator {

bool MayBeBackLater(const absl::Status& look) {
  return FaultOf(look) == Fault::kStorage || absl::IsUnavailable(look) || absl::IsPermissionDenied(look);
}

std::string WhyNoLook(const absl::Status& look) {
  return absl::StrCat("the coordinator cannot look for checkpoints now: ", std::string(look.message()),
                      "; it looks again by itself, and the job goes on when it can");
}

std::string WhyLookHangs(const JobConfig& config, bool at_initial, absl::Duration patience) {
  const CheckpointSection& checkpoint = config.checkpoint;
  return absl::StrFormat(
      "checkpoint.%s '%s' does not answer on the coordinator's machine: looking for the %s there takes longer than %.0f s; see "
      "whether its share is mounted there and its server is up; the job goes on by itself when it answers",
      at_initial ? "initial" : "folder", at_initial ? checkpoint.initial : checkpoint.folder,
      at_initial ? "weights to begin with" : "newest checkpoint", absl::ToDoubleSeconds(patience));
}

Decision DecideLook(const DecideView& v) {
  if (v.in_stage() <= v.config.look_patience) return {KeepOn{}, kPlanningReason};
  std::string hangs = WhyLookHangs(v.job.config, v.run.looks_at_initial, v.config.look_patience);
  if (v.in_stage() > v.config.planning_timeout) return {RetryLater{true}, std::move(hangs)};
  // A folder that was slow before, and answered, is given that time: it would be left again and again.
  const bool lends = v.in_stage() > std::max(v.config.look_patience, 2 * v.run.folder.took);
  return {KeepOn{lends}, std::move(hangs)};
}

}  // namespace motley::coordinator
