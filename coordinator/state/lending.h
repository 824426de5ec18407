// A job that waits for devices, or for its checkpoint folder, with no rank running, lends the cluster: another one that can run
// trains meanwhile. When these are there it takes the cluster back; the borrower saves first and is queued again. Pure.
//
// What keeps jobs from displacing each other for nothing: a job that was put aside is asked again only when the nodes have
// changed, and one that took the cluster back in vain waits longer each time.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/state/decide.h"

namespace motley::coordinator {

// An older job was put aside: what runs now makes room for it some day.
bool Borrows(const ClusterState& state, const JobRun& run);

// The oldest job that may be tried while the one that has the cluster waits. Null: there is none, or the wait is one for a
// moment: a newcomer is looked at, or it has not lasted for `lend_after`. Call when that job was just told to wait (Wait::lends,
// KeepOn::lends).
std::optional<JobId> ChooseBorrower(absl::Duration now, const ClusterState& state, const DriverConfig& config);

struct Claims {
  std::optional<JobId> claimant;                      // the oldest job put aside that can run now, older than what runs
  std::vector<std::pair<JobId, std::string>> unable;  // those that cannot with the present nodes, with why
};
Claims DecideClaims(absl::Duration now, const ClusterState& state, const DriverConfig& config);

// Of a job that was put aside.
std::string LenderSentence(const ClusterState& state, const JobRun& lender);
// What is said with the reason of the job that has the cluster; empty: it is its own.
std::string BorrowerSentence(const ClusterState& state);

}  // namespace motley::coordinator
