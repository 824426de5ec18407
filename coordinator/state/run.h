// The one job that has the cluster: where it is between "chosen" and "finished", in memory only. A restarted coordinator
// builds it again from the store (members/recovery).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/fault.h"
#include "common/base/ids.h"
#include "common/base/memory_by_purpose.h"
#include "common/base/memory_shortage.h"
#include "common/device/device.h"
#include "common/session/profile.h"
#include "common/session/session.h"
#include "coordinator/state/context_watch.h"
#include "coordinator/state/holdings.h"
#include "coordinator/state/job.h"
#include "coordinator/state/prediction_watch.h"
#include "coordinator/state/probe.h"
#include "coordinator/state/setup_reach.h"
#include "coordinator/state/slow_rank.h"
#include "planner/live/planner.h"

namespace motley::coordinator {

enum class Stage {
  kIdle,       // no process of this job runs; next is a set-up, or waiting
  kStorage,    // the nodes look at the data and the checkpoint folder
  kProfiling,  // ranks measure
  kPlanning,   // off the loop: newest checkpoint, plan, programs
  kStarting,   // ranks meet and restore
  kRunning,
  kStopping,  // waiting until every rank of the epoch is known to be gone
};

// How an epoch is ended, and what comes after it.
enum class Ending { kReplan, kFail, kStop };

struct RankRun {
  DeviceId device;
  int64_t incarnation = 0;  // of its worker: another one means that the rank is dead
  int64_t capacity_bytes = 0;
  std::optional<absl::Duration> met;  // when it told the others where it listens
  bool ready = false;
  bool ended = false;                              // its process is gone, or is about to exit by itself
  int64_t held_bytes = 0, peak_bytes = 0;          // newest step's
  int64_t host_bytes = 0, planned_host_bytes = 0;  // of the host's memory: newest step's, the plan's
  std::optional<MeasuredMemory> memory = {};       // by purpose: newest step's
  double lateness_seconds = 0;
  LaneSeconds lanes, predicted_lanes;  // newest step's, the plan's
  double step_seconds = 0;
  int64_t step = 0;  // the newest one of this generation; 0: none yet
  // What the plan counts of the device beside tensors, and how much of it is from the device's profile.
  int64_t planned_context_bytes = 0, card_context_bytes = 0;
  planner::MemoryByPurpose planned;  // of the plan's peak
};

enum class FailureKind { kNodeLost, kDied, kHung, kFailed, kNonFinite, kProfile, kPeerLost };
struct Failure {
  absl::Duration at;
  FailureKind kind = FailureKind::kDied;
  NodeName node;
  DeviceId device;  // empty: the node
  std::string message;
  Fault fault = Fault::kOurs;      // of kFailed and kProfile
  std::string damaged_checkpoint;  // with Fault::kDamage: what the epoch resumed from
};

// What helps against a failure (cause.h says which).
enum class Remedy {
  kReplan,          // the next epoch begins with what is there
  kRestart,         // the same, and a device whose rank ended so three times in a row is left out
  kWaitForStorage,  // the next epoch begins when the file may be there again
  kSecondReader,    // another node reads the checkpoint that is said to be damaged; it or its accuser is left out
  kWithoutNode,     // the node is left out; when another says the same the job is FAILED
  kLessMemory,      // the device's limit was corrected (epoch/memory_limits.h), and the job is planned again at once
  kEnd,             // it repeats by itself: the job is FAILED
};

// A checkpoint in which a rank found damage, until a second reader has said what it finds (second_reader.h).
struct Suspicion {
  std::string checkpoint;  // its folder
  DeviceId accuser;
  std::string complaint;
  int64_t bytes = 0;         // of the checkpoint
  std::set<NodeName> tried;  // nodes that were asked, the one that is asked now among them
  NodeName reader;           // that is asked now; empty: none
  int64_t incarnation = 0;   // of its worker
  std::string check_id;
  absl::Duration asked;
  std::optional<StorageReport> answer;
};

// Why the next epoch does not begin at once.
struct Trouble {
  Remedy remedy = Remedy::kReplan;
  int times = 0;   // epochs in a row that ended without a step; searches for a checkpoint that failed count, too
  int deaths = 0;  // of them, by the death or stall of a rank
  std::string reason;
  bool waited = false;  // the pause is over: a set-up that begins again does not wait once more
};

struct StorageAnswer {
  bool asked = false, answered = false;
  StorageReport report;
};

// What the planning task hands back.
struct Prepared {
  absl::Status status;              // of the plan
  bool of_planner = false;          // the status is the planner's word: on other devices there may be a plan
  std::vector<DeviceId> too_small;  // without these there is one
  Epoch epoch;                      // that it is for, or a later one
  planner::PlanResult plan;
  std::string resume_from;  // folder, or empty
  int64_t start_step = 0;
  int64_t resume_bytes = 0;           // of that folder
  bool initial = false;               // it is not this job's: only its weights are taken
  std::string adopted;                // it is not this job's, which goes on from it: CheckpointOwner::adopted; else empty
  std::vector<std::string> skipped;   // newer checkpoints that did not verify, with reasons
  std::vector<std::string> unjudged;  // their folders, where only the coordinator has looked
  std::optional<UnitedCheckpoint> source = {};  // of checkpoints on the nodes' disks: that one
  std::map<NodeName, FilesOffer> offers = {};   // who gives parts of it
};

// When the instructions of one step ran: asked of all ranks of an epoch.
struct StepTrace {
  Epoch epoch;
  absl::Duration asked;
  std::vector<std::optional<TraceReport>> ranks;  // their answers
};

// Of a job that waits for devices, or its folder, while others have the cluster (lending.h).
struct Aside {
  absl::Duration since;
  absl::Duration membership;  // ClusterState::membership_changed: it cannot run with the nodes of then
  int times = 0;              // since its newest step, each after a set-up
  std::string why;            // what it waits for
  size_t most_tried = 0;      // devices of its largest set-up since its newest step
  bool of_folder = false;     // that is its folder of checkpoints
};

// A node whose file system is not the others', while that lasts (epoch/storage_blame.h).
struct StorageBlame {
  NodeName node = {};
  int times = 0;  // in a row
  Epoch epoch = {};
  int64_t step = 0;  // of the save, in that epoch
};

// The coordinator cannot look into the job's folder of checkpoints, or gets no answer there. It looks again beside whatever runs
// (epoch/looks.h).
struct FolderWait {
  std::string why;        // for people; empty: it is not waited for
  absl::Duration looked;  // when it last began to, or it was last said that it cannot
  absl::Duration took;    // by the newest look that came back
};

// Of what a node offers of its host's memory, for ranks that found less.
struct HostCorrections {
  int times = 0;
  Epoch newest;  // all its ranks may say so
};

struct JobRun {
  JobId job;
  Stage stage = Stage::kIdle;
  absl::Duration stage_since;
  absl::Duration not_before;                  // a restarted coordinator gives its workers this long to come back
  std::vector<DeviceDescription> considered;  // what the planner was or will be offered, by id
  std::vector<RankRun> ranks;                 // of the newest epoch that started processes
  Epoch ranks_from;                           // of another epoch, after a restart: the store was older, and numbers went up
  bool ranks_in_order = false;                // ranks[r] is rank r: an epoch of training that this coordinator began
  bool started_processes = false;             // under the job's newest epoch number: the next start takes a new one
  Trouble trouble;                            // since the newest step
  std::optional<Suspicion> suspicion;         // set-up waits for the verdict
  std::set<std::string> damaged;              // checkpoints that are not used: a rank and a second reader found damage
  std::set<std::string> read_twice;           // checkpoints that the accuser's own node read again and found whole
  std::set<NodeName> odd_nodes;               // left out with Fault::kNode since the newest save
  std::vector<Failure> failures;              // of this epoch, in order of arrival
  bool has_run = false;                       // a step was done in some epoch: the job is known to be possible
  std::set<DeviceId> took_part;               // devices that some epoch of the job was set up on
  std::vector<std::string> named;             // nodes and devices without which it cannot go on (planner.plan_json, planner.pins)
  std::vector<std::string> dropped_pins;      // of the newest plan; said when they change

  // Of the newest epoch that started ranks (transports.h).
  std::vector<TransportUse> planned_transports;
  std::vector<TransportUse> transports;  // as ranks that are ready reported them

  // kStorage
  std::string token;
  NodeName token_writer;
  std::map<NodeName, StorageAnswer> storage;
  SetupReach reach;
  std::map<NodeName, int64_t> storage_ok;  // incarnations that passed
  bool storage_in_doubt = false;           // a rank's machine did not see what it saw before: all are asked again
  std::map<NodeName, int64_t> proven;      // incarnations that were in an epoch that made a step
  // Newcomers, looked at beside the job (state/probe).
  std::map<NodeName, Probe> probes;
  ProbeToken probe_token;
  int64_t probes_begun = 0;
  std::optional<TrialPlan> trial;                      // under way
  std::map<NodeName, int> refusals;                    // in a row: each makes the next pause longer
  std::map<std::string, AddressPause> address_pauses;  // by peer address: of failed swaps
  // kProfiling
  std::set<NodeName> profiling;  // workers that have not answered
  bool measures_alone = false;   // some of them measure their devices first
  // The devices' collectives are predicted in this epoch, from those that were last measured together, if any.
  bool predicts_collectives = false;
  std::vector<DeviceDescription> measured_together;
  PredictionWatch prediction;
  SlowRankWatch slow_rank;
  ContextWatch context;
  std::map<DeviceId, int> memory_corrections;  // of a device's limit, each for a rank that ran out of its memory
  std::map<NodeName, HostCorrections> host_corrections;
  // Why there is no other: the job ends with the next planning, which adds ways out. And of whose memory that is.
  std::string memory_end;
  MemoryTier memory_end_tier = MemoryTier::kDevice;
  std::string host_room;      // why the epoch ends: a host has less memory than its plan keeps there; empty: it need not
  std::string measure_again;  // why the epoch ends, so that a node is measured; empty: it need not
  // kPlanning
  int64_t planning_ticket = 0;    // the task whose answer counts
  bool looking = false;           // for the newest checkpoint; the planner comes behind it
  bool looks_at_initial = false;  // that look is at checkpoint.initial
  FolderWait folder;
  std::optional<Prepared> prepared;
  // No plan fits these devices; another set may.
  std::vector<DeviceDescription> infeasible;
  std::string infeasible_reason;
  bool infeasible_borrowed = false;           // found while it borrowed the cluster: in its own turn it is planned once more
  std::vector<DeviceId> proven_without_plan;  // the newest set without newcomers for which there was none
  absl::Duration without_plan_since;          // when that became so
  // kStarting
  int64_t resume_bytes = 0;  // that the ranks read before they are ready
  // kRunning
  int64_t first_step = 0;           // steps done when the epoch began
  std::string resumed_from;         // checkpoint folder, or empty
  bool begins_with_other = false;   // it is another job's, with whose weights this one begins
  DamagedFiles damaged_of_initial;  // of such
  int64_t epoch_steps = 0;          // done in this epoch
  std::vector<double> recent_step_seconds;
  double typical_step_seconds = 0;      // their median
  double ideal_step_seconds = 0;        // PlanPrediction::ideal_seconds
  absl::Duration step_stored_at;        // when the job's step was last made durable
  int64_t saved_step = 0;               // of the newest checkpoint
  int64_t state_bytes = 0;              // of a checkpoint, as the model says
  double save_seconds = 0;              // of the newest one; 0: none was written yet
  std::string checkpoint_trouble;       // why the newest checkpoint could not be written; empty once one could
  std::map<int64_t, StepTrace> traces;  // by step, the newest few that somebody asked for
  // kStopping
  bool saving = false;
  bool save_failed = false;  // it was told to save, and then killed
  Ending ending = Ending::kReplan;
  std::string ending_reason;
  std::string cause_label;  // bounded set, for metrics: "node_lost", "joined", ...

  // Devices that are not used by this job any more, and why; deaths in a row without a checkpoint between.
  std::map<DeviceId, int> deaths;
  std::map<DeviceId, std::string> left_out;
  StorageBlame storage_blame;
  std::optional<absl::Duration> lends_since;  // it waits for devices: since when others may have the cluster
  bool tried = false;                         // a set-up began since it was last put aside
  Aside aside;
  std::vector<Way> altered_ways;  // on which a message of ranks was altered, each time, since the newest checkpoint
  // For the line about the replan: what ended the last epoch, and when it last made a step.
  std::string replan_cause;  // empty once the line is written
  absl::Duration last_step_at;
  int64_t step_before_replan = 0;

  // Rendezvous of the newest epoch.
  std::map<std::string, std::string> kv;
  int64_t kv_bytes = 0;
  struct KvWaiter {
    NodeName node;
    int rank;
  };
  std::map<std::string, std::vector<KvWaiter>> kv_waiters;
};

}  // namespace motley::coordinator
