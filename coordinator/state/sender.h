// Who may say what: a worker speaks for its own devices and ranks, with rendezvous keys of theirs, under the newest epoch, and
// steps come one after the other.
// Pure functions of the state.
#pragma once

#include <array>
#include <string>
#include <variant>

#include "coordinator/state/cluster.h"

namespace motley::coordinator {

// About the newest epoch of the job that has the cluster. What is not is old: dropped, and nobody's fault.
template <typename Report>
bool IsCurrent(const ClusterState& state, const Report& report) {
  return state.run && state.run->job == report.job && state.jobs.at(report.job).epoch == report.epoch;
}

// Whether a rank of the run's newest epoch is on this node; whether rank `rank` is.
bool HostsRank(const JobRun& run, const NodeName& node);
bool HostsRank(const JobRun& run, const NodeName& node, int rank);

struct Standing {
  enum Kind {
    kOwn,      // may be applied; what is old is dropped by its handler
    kForeign,  // of another's device, rank, step or folder: dropped and counted
    kGap,      // a step without the one before it: reports were lost on the way, so the session is worth nothing
  };
  Kind kind = kOwn;
  std::string why;  // "reports a step of rank 1, which is on node n2"
};
Standing StandingOf(const ClusterState& state, const NodeName& node, const WorkerReport& report);

// Every value of the metrics' label `kind`, in the order of the variant's alternatives.
const std::array<const char*, std::variant_size_v<WorkerReport>>& ReportKinds();
// What a hello may claim and the coordinator did not give, further values of `kind`.
inline constexpr const char* kHelloGeneration = "hello_generation";
inline constexpr const char* kHelloMark = "hello_store_mark";
inline constexpr const char* kHelloTerm = "hello_term";
// "step", "kv_set": the metrics' label `kind`.
std::string ReportKind(const WorkerReport& report);

}  // namespace motley::coordinator
