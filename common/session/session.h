// What coordinator and worker say to each other, as plain values. wire/session turns them into proto and back; the protocol is
// described in proto/motley/v1/worker.proto. Job and epoch stand in every message about a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/fault.h"
#include "common/base/ids.h"
#include "common/base/memory_by_purpose.h"
#include "common/base/memory_shortage.h"
#include "common/data/data_summary.h"
#include "common/device/device.h"
#include "common/inputs/path_sample.h"
#include "common/program/step_spans.h"
#include "common/session/assignment.h"
#include "common/session/files.h"
#include "common/session/profile.h"
#include "common/session/step.h"
#include "common/session/transport_use.h"

namespace motley {

// How far the coordinator's store has got; a coordinator that meets a higher one than its own runs on an older state.
struct StoreMark {
  std::string store_id;  // empty: none was told
  int64_t commits = 0;
  std::string token;  // proves to the coordinator that it said so itself; empty in the store
  friend bool operator==(const StoreMark&, const StoreMark&) = default;
};

// The newest epoch of a job that a worker has seen, with what proves that the coordinator gave it.
struct SeenEpoch {
  JobId job;
  Epoch epoch;
  std::string token;
  std::string key_id;  // of the coordinator's key
  friend bool operator==(const SeenEpoch&, const SeenEpoch&) = default;
};
// So many a worker brings at most, and so many are looked at.
inline constexpr size_t kMostSeenEpochs = 4096;

// What a worker says of itself when it dials in.
struct NodeDescription {
  NodeName name;
  std::string version;
  int64_t incarnation = 0;
  std::string data_address;
  std::vector<DeviceDescription> devices;
  std::vector<SeenEpoch> newest_epochs;
  StoreMark store_mark;  // the highest that it was told
  int reach_port = 0;    // on data_address; 0: none
  std::vector<UnusedCard> unused_cards;
  int64_t host_memory_bytes = 0;  // 0: not known
  std::string files_not_held;     // why the kernel does not hold ranks to the worker's roots; empty: it does
  std::string user;               // numbers of the user and group that ranks write as: "872:871"; empty: not said
  int protocol = 1;               // kSessionProtocol of its build
  std::string rank_build;         // RankBuild of its ranks: only nodes of one train together
  // Where it looks for the cluster's coordinator: those of other machines may have taken the cluster over.
  std::vector<std::string> coordinators;
  std::string term_certificate;  // PEM: of the coordinator of the highest term that it met; empty: of none
};
inline constexpr size_t kMostCoordinators = 8;

// ---- to a worker ----
// `token`: what job and epoch are brought back with.
struct StorageCheckCommand {
  JobId job;
  Epoch epoch;
  std::string data_path, checkpoint_folder, token;
  bool write_token = false;
  std::string check_id;           // not empty: a probe beside a running job
  std::string initial;            // folder of the weights that the job begins with, or empty
  bool over = false;              // no check, but the end of those before: no answers, no token
  std::string verify_checkpoint;  // not empty: nothing else is looked at than whether this checkpoint verifies
  JobUid job_uid;                 // in the token's name; empty: it is no job's
  std::string validation_path;    // or empty
  // Instead: is data_path what this is of?
  std::optional<PathSample> sample = std::nullopt;
};
struct ReachTarget {
  NodeName node;
  std::string address;
  int port = 0;
};
struct ReachCheckCommand {
  std::string check_id;
  std::vector<ReachTarget> targets;
  std::string secret;  // not empty: bursts are taken from who shows it, for a while
  bool burst = false;  // sends every target one
  bool large = false;  // instead of a burst, with a secret: tries whether large packets arrive, too
};
struct ProfileCommand {
  JobId job;
  Epoch epoch;
  std::vector<RankAssignment> ranks;  // this worker's
  std::vector<DeviceId> compute_devices;
  bool collectives = false;
  std::string check_id;
  std::string token;
  // With a check_id: each rank trains two steps of its program, and is gone when the answer comes. Without ranks a check_id ends
  // what was begun under it.
  bool trial = false;
};
struct StartCommand {
  std::vector<RankAssignment> ranks;
  std::string token;
  CheckpointSource source = {};  // of a job whose checkpoints lie on its nodes' disks: what resume_from names
};
struct StopCommand {
  JobId job;
  Epoch epoch;
  bool save = false;
  std::string reason;
  std::string token;
};
struct KvValueCommand {
  JobId job;
  Epoch epoch;
  std::string key, value;
  int rank = 0;
};
struct PublishAnswerCommand {
  JobId job;
  Epoch epoch;
  int64_t step = 0;
  int rank = 0;
  bool allowed = false;
  std::string reason;
  int64_t question = 0;
  std::string mark = {};  // of the manifest that was asked for (mark_file.h); empty: of none
};
// For the spans of a step, kept or to come.
struct TraceCommand {
  JobId job;
  Epoch epoch;
  int rank = 0;
  int64_t step = 0;
};
struct HeartbeatAnswer {
  StoreMark store_mark;
  bool knows_leaving = false;  // that the worker was told to end
  bool awaits_files = false;   // other nodes bring what only its disk has
};
// Whom a member is to believe from now on (PEM). A certificate of its own that the last of them did not sign is renewed.
struct AuthoritiesCommand {
  std::string authorities;
};
// Answers RenewalReport.
struct CertificateCommand {
  std::string certificate;  // PEM
  std::string error;        // empty = fine
};
using CoordinatorCommand = std::variant<StorageCheckCommand, ReachCheckCommand, ProfileCommand, StartCommand, StopCommand,
                                        KvValueCommand, PublishAnswerCommand, HeartbeatAnswer, TraceCommand, AuthoritiesCommand,
                                        CertificateCommand, HoldingsCommand, CopyCommand, DropCommand, CarryCommand>;

// ---- from a worker ----
struct HeartbeatReport {
  int64_t unix_ms = 0;     // the worker's clock of the wall; 0: not said
  std::string doing = {};  // what its ranks do beside their steps that takes long, for people; empty: nothing
};
// Of a storage check that could not be started: the node is short of descriptors, processes or memory, and what it says is about
// itself. No error of data or folder has this code.
inline constexpr absl::StatusCode kCheckNotStarted = absl::StatusCode::kAborted;
struct StorageReport {
  JobId job;
  Epoch epoch;
  std::string error;  // empty = fine
  DataSummary data;
  bool token_seen = false;
  std::string check_id;
  absl::StatusCode error_code = absl::StatusCode::kOk;
  DataSummary validation;         // of data.validation_path; without a digest: the job has none
  std::string initial_digest;     // of a HuggingFace folder of weights; empty: the job begins otherwise
  std::string initial_tokenizer;  // SHA-256 (hex) of that folder's tokenizer.json; empty: it has none
  Sampled sampled = Sampled::kNotLooked;
};
struct ReachAnswer {
  NodeName node;
  std::string error;                                 // empty = reached
  double connect_seconds = 0, bytes_per_second = 0;  // 0 = not known
  std::string other_card;                            // why bytes may leave by another card; empty = they do not
};
struct ReachReport {
  std::string check_id;
  std::vector<ReachAnswer> answers;
};
struct ProfileReport {
  JobId job;
  Epoch epoch;
  std::string error;
  std::vector<ComputeProfile> compute;
  CollectiveProfile collectives;
  std::string check_id;
  Fault fault = Fault::kOurs;  // of the error
  std::optional<MemoryTrial> trial = {};
};
enum class RankEventKind { kReady, kFinished, kFailed, kDied, kHung, kPeerLost, kNonFinite };
struct RankReport {
  JobId job;
  Epoch epoch;
  int rank = 0;
  DeviceId device;
  RankEventKind kind = RankEventKind::kReady;
  std::string message;
  Fault fault = Fault::kOurs;      // of kFailed
  std::string damaged_checkpoint;  // with Fault::kDamage: the folder
  // With kReady: of the groups whose first member this rank is and of the hand-overs that it sends.
  std::vector<TransportUse> transports;
  // With kReady: what the device holds beside tensors, where that is more than the plan counted; 0: it is not, or not known.
  int64_t context_bytes = 0;
  std::optional<MemoryShortage> shortage = {};  // with Fault::kMemory
  // With kFailed: ranks did not start, since their host has less memory than is planned; what plans may keep there now.
  std::optional<int64_t> host_offer_bytes;
};
struct StepReport {
  JobId job;
  Epoch epoch;
  int rank = 0;
  StepStats stats;
  int64_t peak_memory_bytes = 0;
  double lateness_seconds = 0;
  LaneSeconds lanes;
  int64_t host_memory_bytes = 0;              // what the rank keeps in the host's memory
  int64_t held_memory_bytes = 0;              // of the device, when the step began: state, buffers, slots
  std::optional<MeasuredMemory> memory = {};  // of the device; nothing: the worker's version does not measure it
};
struct TraceReport {
  JobId job;
  Epoch epoch;
  int rank = 0;
  int64_t step = 0;
  std::string error;  // empty = fine
  double step_seconds = 0;
  std::vector<InstructionSpan> spans;  // by instruction, since the step's begin
};
struct KvSetReport {
  JobId job;
  Epoch epoch;
  std::string key, value;
};
struct KvGetReport {
  JobId job;
  Epoch epoch;
  std::string key;
  int rank = 0;
};
struct PublishReport {
  JobId job;
  Epoch epoch;
  int64_t step = 0;
  int rank = 0;
  int64_t question = 0;
  std::string purpose;               // "publish step-00000040-gen-3"
  std::string manifest_digest = {};  // of a checkpoint on the nodes' disks: the answer brings its mark
};
struct CheckpointReport {
  JobId job;
  Epoch epoch;
  int64_t step = 0;
  std::string folder;
  int64_t bytes = 0;
  double seconds = 0;
  int64_t free_bytes = 0;  // left in the folder's file system; 0 = not known
  JobUid job_uid;          // in its manifest; empty: a rank from before uids wrote it
};
struct CheckpointFailedReport {
  JobId job;
  Epoch epoch;
  int64_t step = 0;
  std::string message;
  DeviceId blamed = {};  // whose node is to blame for it; empty: nobody's, or not known
};
struct LogReport {
  JobId job;
  Epoch epoch;
  std::string source, text;
  int64_t unix_ms = 0;
};
// The worker was told to end.
struct LeavingReport {
  double stop_seconds = 0;  // that it has
};
// What changes of a card while its worker runs.
struct CardReport {
  DeviceId device;
  std::string health, lost;  // as in CardDescription
  int64_t used_by_others_bytes = 0;
};
// A member asks for a new certificate, or says that it has stored one.
struct RenewalReport {
  std::string signing_request;  // PEM, of the key that it has; or
  std::string stored;           // hex SHA-256 of the certificate (PEM)
};
using WorkerReport = std::variant<HeartbeatReport, StorageReport, ReachReport, ProfileReport, RankReport, StepReport, KvSetReport,
                                  KvGetReport, PublishReport, CheckpointReport, CheckpointFailedReport, LogReport, LeavingReport,
                                  TraceReport, CardReport, RenewalReport, HoldingsReport, FetchReport>;

// ---- between a worker and its rank ----
// A rank hears what its worker was told, of itself alone: StartCommand and ProfileCommand hold one assignment.
using RankCommand = std::variant<StartCommand, ProfileCommand, StopCommand, KvValueCommand, PublishAnswerCommand, TraceCommand>;
// Every 0.25 s: the hang detector's food. An empty `doing` says only that the process lives.
struct ProgressReport {
  Epoch epoch;
  int64_t step = 0;
  int64_t instruction = 0;
  std::string doing;
};
using RankMessage = std::variant<ProgressReport, WorkerReport>;

}  // namespace motley
