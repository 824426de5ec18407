// Follows one job over WatchJob, through restarts of the coordinator.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/client/connection.h"

namespace motley::client {

struct Watch {
  std::string job_id;
  std::function<void(const v1::JobUpdate&)> use;  // every update, in order
  std::function<void(const std::string&)> say;    // the connection was lost
  int64_t cursor = 0;                             // updates after this one
  absl::Time deadline = absl::InfiniteFuture();
};

// Until the job has ended, or the deadline has passed; returns its state then.
absl::StatusOr<v1::Job> WatchToEnd(Connection& connection, const Watch& watch);

// Until the coordinator has said how the job begins (it trains, waits or has ended), or the deadline has passed. Returns its
// state.
absl::StatusOr<v1::Job> WatchToFirstVerdict(Connection& connection, const v1::Job& job, const Watch& watch);

// What the coordinator keeps up to now, then returns: ends with `job`'s newest step record, with the stream, or after a few
// seconds.
absl::Status WatchUntilNow(Connection& connection, const v1::Job& job, const Watch& watch);

absl::StatusOr<v1::Job> GetJob(Connection& connection, const std::string& id);

}  // namespace motley::client
