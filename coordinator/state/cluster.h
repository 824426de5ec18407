// All that the coordinator knows. Plain values; owned by the loop.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "coordinator/state/job.h"
#include "coordinator/state/member.h"
#include "coordinator/state/node.h"
#include "coordinator/state/run.h"

namespace motley::coordinator {

// A worker that was not let in.
struct RefusedWorker {
  std::string why;
  absl::Duration at;  // steady
};

// A worker that was refused because the node of its name was there (members/clones).
struct Clone {
  absl::Duration first, newest;  // steady: of its tries
  bool said = false;
};

struct ClusterState {
  std::map<NodeName, NodeRecord> nodes;
  std::map<NodeName, MemberRecord> members;
  std::map<std::string, TokenRecord> tokens;  // by id
  std::map<JobId, JobRecord> jobs;
  std::optional<JobRun> run;               // the job that has the cluster
  std::map<JobId, JobRun> aside;           // jobs that wait for devices and have lent it (lending.h)
  std::optional<JobId> claimant;           // of them, which can run now: what has the cluster makes room for it
  std::string rival;                       // what was said of another coordinator of the same term; empty: none was met
  std::string backup_problem;              // why the newest backup could not be made; empty: it could, or none is asked for
  std::optional<std::string> rank_build;   // of the nodes that train (rank_builds.h); not set: none has come yet
  std::optional<absl::Duration> stops_at;  // steady: the coordinator was told to end and does so by then
  absl::Duration membership_changed;       // steady time of the newest join, loss, drain or undrain
  // Of jobs that read inputs which were sent (epoch/inputs): nodes that may be used and lack one; and, of those that wait for
  // the cluster, why they cannot begin yet.
  std::map<JobId, std::set<NodeName>> lacks_inputs;
  std::map<JobId, std::string> awaits_inputs;
  std::map<DeviceId, MeasuredSpeed> speeds;
  // Epochs that workers have seen of jobs that the store does not know. A job that takes such an id begins above them.
  std::map<JobId, Epoch> foreign_epochs;
  std::map<JobId, std::set<NodeName>> ran_on;                // nodes whose ranks have ended; forgotten with the job's log
  std::map<std::string, RefusedWorker> refused_workers;      // the newest of each name, clean and short; a few dozen, for people
  std::map<std::pair<NodeName, std::string>, Clone> clones;  // by node and the address that it came from; a few dozen
  std::set<std::string> foreign_stores;  // ids of stores that workers know and this one is not: each is said once
};

}  // namespace motley::coordinator
