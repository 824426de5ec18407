// A node that comes while a job trains is looked at beside it, and is planned with only when it has passed: its data and folder,
// the way to every node of the job and back, the speed of its devices. Nothing that it says, or does not say, stops the job.
//
// Pure: DecideProbes(now, state, config) says what to do next; epoch/prober does it and files the answers.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/session/session.h"

namespace motley::coordinator {

struct ClusterState;
struct Failure;
struct JobRun;

struct ProbeConfig {
  absl::Duration storage_timeout = absl::Seconds(300);  // reading the data on the newcomer
  absl::Duration reach_timeout = absl::Seconds(10);     // workers try for 3 s
  absl::Duration profile_timeout = absl::Seconds(300);
  absl::Duration first_pause = absl::Seconds(30);  // after a refusal; doubles
  absl::Duration longest_pause = absl::Minutes(10);
  // Devices of one job. Planning and the meeting of the ranks grow with them, and a running job stands still for both.
  int max_devices = 512;
};

enum class ProbeStage { kStorage, kReach, kProfile, kRefused };

struct Probe {
  int64_t incarnation = 0;
  std::string id;  // check_id of its messages
  ProbeStage stage = ProbeStage::kStorage;
  absl::Duration begun, since;  // of the probe, of the stage
  // kStorage
  bool storage_asked = false;
  std::optional<StorageReport> storage;
  // kReach
  std::set<NodeName> unanswered;  // the newcomer, and the nodes of the job that try to reach it
  std::string unreachable;        // the first complaint
  // kProfile
  std::optional<ProfileReport> profile;
  // kRefused
  std::string why;
  absl::Duration again_at;
};

// What a node of the job wrote into the checkpoint folder for the newcomers to read.
struct ProbeToken {
  std::string token;  // empty: none was asked for
  NodeName writer;
  int64_t incarnation = 0;  // of the writer
  bool written = false;
  std::string error;
};

// The node passed a check for this job in its present life: it took part in set-up, or a probe.
bool IsTrusted(const ClusterState& state, const JobRun& run, const NodeName& node);
// Newcomers are probed: the job has trained, and there are nodes to go on with.
bool ProbesNewcomers(const ClusterState& state, const JobRun& run);
// A probe is under way that may soon bring a node: a swap waits for it a while, so that several joins make one.
bool JoinIsNear(absl::Duration now, const JobRun& run);

// Nodes of the epoch that never were in one that made a step, beside others that were: what goes wrong before the first step is
// blamed on them. Empty: nobody to blame, or nobody to go on with.
std::set<NodeName> UnprovenNodes(const ClusterState& state, const JobRun& run);
// The failure came before the epoch's first step, and not from a proven node alone: the job goes on without the newcomers.
bool BlamesNewcomers(const ClusterState& state, const JobRun& run, const Failure& failure);

struct BeginProbe {
  NodeName node;
};
struct AskToken {
  NodeName writer;
};
struct AskStorage {
  NodeName node;
};
struct AskReach {
  NodeName node;
};
struct AskProfile {
  NodeName node;
};
struct PassProbe {
  NodeName node;
};
struct RefuseProbe {
  NodeName node;
  std::string why;
};
struct ForgetProbe {
  NodeName node;
};
using ProbeAction = std::variant<BeginProbe, AskToken, AskStorage, AskReach, AskProfile, PassProbe, RefuseProbe, ForgetProbe>;

// Call only while state.run is set. At most one action for each node and turn.
std::vector<ProbeAction> DecideProbes(absl::Duration now, const ClusterState& state, const ProbeConfig& config);

}  // namespace motley::coordinator
