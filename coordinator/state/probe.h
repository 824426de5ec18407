// A node that comes while a job trains is looked at beside it, and is taken in only when it has passed: its data and folder, the
// way to every node of the job and back, the speed of its devices, a plan with it. Nothing that it says, or does not say, stops
// the job. A swap that fails all the same is counted by the address that it came from: names cost nothing.
//
// Pure: DecideProbes(now, state, config) says what to do next; epoch/prober does it and files the answers.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/session/session.h"

namespace motley::coordinator {

struct ClusterState;
struct Failure;
struct JobRun;
struct NodeRecord;

struct ProbeConfig {
  absl::Duration storage_timeout = absl::Seconds(300);  // reading the data on the newcomer
  absl::Duration reach_timeout = absl::Seconds(10);     // workers try for 3 s
  absl::Duration profile_timeout = absl::Seconds(300);
  absl::Duration plan_timeout = absl::Seconds(60);
  absl::Duration first_pause = absl::Seconds(30);  // after a refusal; doubles
  absl::Duration longest_pause = absl::Minutes(10);
  absl::Duration reach_pause =
      absl::Seconds(10);  // between tries whether an unreached node is reached now: they cost next to nothing
  // An address waits at least so many times what its failed swap cost the job: whatever its names, it takes a twentieth at most.
  int pauses_of_cost = 20;
  // Devices of one job. Planning and the meeting of the ranks grow with them, and a running job stands still for both.
  int max_devices = 512;
};

// kUnreached: a set-up left the node out because others do not reach it, or it does not reach them; that alone is tried again,
// also while the job has not trained yet.
enum class ProbeStage { kStorage, kReach, kProfile, kPlan, kRefused, kUnreached };

struct Probe {
  int64_t incarnation = 0;
  std::string id;  // check_id of its messages
  ProbeStage stage = ProbeStage::kStorage;
  absl::Duration begun, since;  // of the probe, of the stage
  // kStorage
  bool storage_asked = false;
  std::optional<StorageReport> storage;
  // kReach, kUnreached
  bool trying_again = false;      // of kUnreached: it was asked
  std::set<NodeName> unanswered;  // the newcomer, and the nodes of the job that try to reach it
  std::string unreachable;        // the first complaint
  // kProfile
  std::vector<DeviceId> to_measure;  // without those that were measured before
  std::optional<ProfileReport> profile;
  // kPlan
  bool alone = false;                // there was no plan with all newcomers, so they are tried one by one
  std::optional<absl::Status> plan;  // with it
  // kRefused, kUnreached
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

// A plan with newcomers, made beside the job and thrown away.
struct TrialPlan {
  int64_t ticket = 0;
  std::set<NodeName> nodes;
  absl::Duration since;
};

// Swaps in a row that newcomers from one address made fail.
struct AddressPause {
  int failures = 0;
  absl::Duration until;  // nobody from there is looked at before
};

// The node passed a check for this job in its present life: it took part in set-up, or a probe.
bool IsTrusted(const ClusterState& state, const JobRun& run, const NodeName& node);
// The job uses none of the node's devices any more (JobRun::left_out).
bool AllLeftOut(const JobRun& run, const NodeRecord& node);
// Newcomers are probed: the job has trained, and there are nodes to go on with.
bool ProbesNewcomers(const ClusterState& state, const JobRun& run);
// A probe is under way that may soon bring a node: a swap waits for it a while, so that several joins make one.
bool JoinIsNear(absl::Duration now, const JobRun& run);

// Nodes of the epoch that never were in one that made a step, beside others that were: what goes wrong before the first step is
// blamed on them. Empty: nobody to blame, or nobody to go on with.
std::set<NodeName> UnprovenNodes(const ClusterState& state, const JobRun& run);
// Which of them a failure is blamed on: of one that came before the epoch's first step, the newcomer that it is of, or all where
// it speaks of others. Empty: a node that was there before failed by itself.
std::set<NodeName> BlamedNewcomers(const ClusterState& state, const JobRun& run, const Failure& failure);

// How long a node or an address waits after its refusal, `before` being those in a row before it.
absl::Duration PauseAfterRefusals(const ProbeConfig& config, int before);
// Newcomers from this node's address wait together: not on this machine, nor where a node came from that has made steps.
bool IsCountedByAddress(const ClusterState& state, const JobRun& run, const NodeRecord& node);
// A swap with a node from this address failed, for which the job stood still for `cost`. Pauses that were over long ago are
// forgotten, and so is the oldest of very many.
void CountFailedSwap(absl::Duration now, const ProbeConfig& config, const std::string& address, absl::Duration cost,
                     std::map<std::string, AddressPause>* pauses);

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
struct AwaitPlan {
  NodeName node;
};
struct TryPlan {
  std::set<NodeName> nodes;
};
struct PassProbe {
  NodeName node;
};
struct RefuseProbe {
  NodeName node;
  std::string why;
};
// Refused without being looked at: others from its address made swaps fail.
struct HoldOff {
  NodeName node;
  absl::Duration until;
  std::string why;
};
// Of a node that is unreached.
struct TryReachAgain {
  NodeName node;
};
struct StillUnreached {
  NodeName node;
  std::string why;
};
struct ReachedAgain {
  NodeName node;
};
struct ForgetProbe {
  NodeName node;
};
using ProbeAction = std::variant<BeginProbe, AskToken, AskStorage, AskReach, AskProfile, AwaitPlan, TryPlan, PassProbe,
                                 RefuseProbe, HoldOff, TryReachAgain, StillUnreached, ReachedAgain, ForgetProbe>;

// Call only while state.run is set. At most one action for each node and turn, and one trial at a time.
std::vector<ProbeAction> DecideProbes(absl::Duration now, const ClusterState& state, const ProbeConfig& config);

}  // namespace motley::coordinator
