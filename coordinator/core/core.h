// Everything that RPCs and periodic jobs work on. Owned by the loop: all methods, and all functions that take a Core&, run there.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/session/session.h"
#include "coordinator/core/cluster_authority.h"
#include "coordinator/core/config.h"
#include "coordinator/core/counted_time.h"
#include "coordinator/core/executor.h"
#include "coordinator/core/journal.h"
#include "coordinator/core/metrics.h"
#include "coordinator/state/cluster.h"
#include "coordinator/state/copy_rate.h"
#include "coordinator/state/examination.h"
#include "coordinator/state/holdings.h"
#include "coordinator/state/memory_probe.h"
#include "coordinator/state/refused_joins.h"
#include "coordinator/state/worker_link.h"
#include "coordinator/store/number_key.h"
#include "coordinator/store/store.h"

namespace motley::coordinator {

// A certificate that a member was given by its session.
struct Renewal {
  std::optional<absl::Duration> at;  // steady
  std::string hash;                  // SHA-256 of its PEM
  int64_t authority = 0;             // that signed it
};

// Of the store, as [backup] asks for them (periodic/backup).
struct BackupState {
  bool under_way = false;
  std::optional<absl::Duration> begun;  // the newest one, steady
  int64_t commits = -1;                 // that it held; -1: there was none since the start
};

// Who asks for what the loop does now, where jobs have owners.
struct CallingAccount {
  int64_t uid = -1;  // -1: nobody that is known
  std::string name;
  bool admin = false;
};

// At the addresses at which members look for the cluster's coordinator (members/term).
struct OtherCoordinators {
  bool asking = false;
};

// Into a job's folder of checkpoints, under way (epoch/looks).
struct LookUnderWay {
  absl::Duration since;                                 // steady
  std::shared_ptr<const std::atomic<bool>> at_initial;  // it is at checkpoint.initial
  std::function<void()> next;                           // what comes behind it
};

// Nodes are asked what they hold of a job's checkpoints on their disks (epoch/holdings_round): for who looks for the newest
// (epoch/local_looks), and for copies (epoch/copies).
struct HoldingsRound {
  std::string check_id;
  absl::Duration since;                                       // steady
  std::map<NodeName, std::optional<HoldingsReport>> answers;  // of all who were asked
};
struct LookTask;
struct LocalLook {
  HoldingsRound round;
  std::shared_ptr<LookTask> task;
  std::function<void()> done;
  std::optional<HoldingsRound> initial = {};  // of the job whose weights it begins with
};

// A file of a checkpoint on the nodes' disks that somebody wants to read, until it is known which node gives it
// (epoch/carrying).
struct CarryWish {
  JobId job;
  std::string input;                 // not empty: this input is given, to a node that lacks it; no file is read
  std::string checkpoint;            // its name; empty: the newest whole one
  std::string file;                  // empty: its manifest
  std::set<NodeName> not_from;       // who was asked already
  std::string path = {};             // of an input: where nodes may have it, too
  std::set<NodeName> on_nodes = {};  // and these have
};
struct CarryPlace {
  NodeName node;
  std::string checkpoint, manifest_digest, mark;
};
struct PendingCarry {
  CarryWish wish;
  std::function<void(absl::StatusOr<CarryPlace>)> answer;
  HoldingsRound round = {};
};

// An input that unfinished jobs read, on its way to the nodes (epoch/inputs).
struct InputTaker {
  CopyCommand command;
  absl::Duration up_since;  // of its node's session, NodeRecord::up_since
  absl::Duration heard;     // steady: its newest progress
  int64_t bytes = 0, bytes_here = 0;
};
struct InputKeeper {
  std::optional<absl::Duration> look_at;            // steady: when the nodes are asked next
  std::optional<HoldingsRound> round;               // they are asked now
  bool asked = false;                               // they were, once
  absl::Duration membership;                        // ClusterState::membership_changed, as the last round knew it
  std::map<NodeName, FilesOffer> offers;            // of all who can keep it
  std::set<NodeName> holders;                       // who has it whole
  std::map<NodeName, int64_t> part_bytes;           // what the others have of it
  std::map<NodeName, InputTaker> takers;            // who is bringing it
  std::set<std::pair<NodeName, NodeName>> accused;  // who said of whom that it gives something else: once
  std::map<NodeName, std::string> failed;           // who could not, and why; until they are asked again
  std::map<NodeName, std::string> said;             // of these what people were told last
  std::string upload;                               // the carry by which it comes from who submitted; empty: none
  NodeName uploads_to;
  std::optional<absl::Duration> awaited;  // steady: since when no node that is here has it, and nothing of it moves
};

// What the nodes' disks hold is listed for somebody (epoch/disk_looks).
struct DiskLook {
  HoldingsRound round;
  std::weak_ptr<const int> asker;  // gone: nobody waits for it
};
// They are asked for a path (members/path_looks).
struct PathLook {
  absl::Duration since;                                      // steady
  std::map<NodeName, std::optional<StorageReport>> answers;  // of all who were asked
  std::weak_ptr<const int> asker;
};
// Files of deleted jobs that a node has still, or may have (epoch/disk_looks).
struct UnwantedOnNode {
  std::set<UnwantedFiles> files;
  std::optional<absl::Duration> told;  // steady: when it was told last
  absl::Duration up_since;             // of its session then
};

// Copies of a job's checkpoints on other nodes' disks (epoch/copies).
struct CopyTaker {
  CopyCommand command;
  absl::Duration up_since;  // of its node's session, NodeRecord::up_since
  absl::Duration heard;     // steady: its newest progress
};
struct CopyKeeper {
  std::optional<absl::Duration> look_at;     // steady: when the nodes are asked next
  std::optional<HoldingsRound> round;        // they are asked now
  absl::Duration membership;                 // ClusterState::membership_changed, as the last round knew it
  Epoch epoch;                               // that trained when they were last asked
  std::string copying, copy_id;              // the checkpoint's name; empty: nothing was begun
  bool all_here = false;                     // all nodes that ever had files of it, as far as is known, answered then
  std::map<NodeName, CopyTaker> takers;      // that are not done
  std::map<NodeName, FetchReport> progress;  // of those that are, too
  std::set<NodeName> failed;                 // that could not
  std::set<NodeName> nobody_has;             // of these, whose own file is damaged, and who was given no whole one
  bool some_done = false;                    // another one was done
  int failures = 0;                          // in a row
  std::string said;                          // why there are fewer copies than asked for
  // Node, checkpoint and file, found damaged there: they count for nothing until the node has looked, or copied them anew.
  DamagedFiles damaged_files;
  // Who said so of whose file, and under which name (of a generation, or a copy): what a node repeats is no news.
  std::set<std::tuple<NodeName, std::string, NodeName, std::string>> complaints;
  std::map<std::string, std::set<NodeName>> had;  // by checkpoint: nodes that had files of it
};

// Where the page for browsers is, and the key of its data (page/page_key.h).
struct PageAccess {
  std::string address;  // empty: there is none
  std::string key;
};

struct Core {
  Core(const Config& config, Clock& clock, Store& store, Executor& executor, MetricsRegistry& registry,
       std::function<void(std::function<void()>)> post)
      : config(config),
        clock(clock),
        store(store),
        executor(executor),
        metrics(registry),
        journal(config, clock, store, metrics, std::move(post)),
        counted(config.state_folder + "/coordinator.time", clock),
        numbers(store.secret(), store.mark().store_id),
        started(clock.Now()) {}

  const Config& config;
  Clock& clock;
  Store& store;
  Executor& executor;
  Metrics metrics;
  Journal journal;
  CountedTime counted;  // loaded at start
  const NumberKey numbers;
  const absl::Duration started;  // steady
  ClusterState state;
  std::optional<ClusterAuthority> authority;  // loaded at start (members/joining)
  Term term;                                  // that this coordinator shows (members/term)
  std::optional<absl::Status> ended;          // why it is the cluster's coordinator no more; the process ends
  OtherCoordinators others;
  CallingAccount caller;
  RefusedJoins refused_joins;
  std::map<NodeName, Renewal> renewals;  // the newest of each member
  BackupState backup;
  PageAccess page;
  std::map<NodeName, std::shared_ptr<WorkerLink>> links;  // of connected nodes
  int64_t planning_tickets = 0;
  std::map<std::string, LookUnderWay> looks;  // by folder
  std::map<JobId, LocalLook> local_looks;
  int64_t holdings_rounds_begun = 0;
  std::map<JobId, CopyKeeper> copies;
  std::map<std::string, PendingCarry> carries;  // by id
  std::map<std::string, InputKeeper> inputs;    // by the input's id
  std::map<std::string, DiskLook> disk_looks;   // by check_id
  std::map<std::string, PathLook> path_looks;   // likewise
  std::map<NodeName, UnwantedOnNode> unwanted;
  CopyRate copy_rate;                                       // beside the job that trains
  std::optional<absl::Duration> leases_checked;             // when; empty before the first time
  std::set<std::pair<NodeName, std::string>> foreign_said;  // nodes and kinds of reports whose first was logged
  std::string lease_brake;                                  // said already
  std::optional<Examination> examination;                   // under way, or done and its result not taken
  std::weak_ptr<const int> examiner;                        // who asked for it; gone: nobody waits for it
  std::optional<MemoryProbe> memory_probe;                  // likewise
  std::weak_ptr<const int> memory_prober;                   // likewise
  bool stopping = false;  // the process ends: sessions that break now say nothing about their nodes

  // Dropped when the node is not connected: its loss is an event of its own. Generations go with their tokens.
  void Send(const NodeName& node, CoordinatorCommand command);
  // What workers are told of the store, with its token.
  StoreMark Mark() const { return numbers.WithToken(store.mark()); }
  // What a worker may not say: counted, and logged the first time for each node and kind.
  void CountForeign(const NodeName& node, const std::string& kind, const std::string& why);
  // The job's new phase and reason, with its event, on disk before it is in memory.
  absl::Status SetPhase(JobRecord& job, JobPhase phase, const std::string& reason);
  // A reason without a new phase: seen by watchers, not stored; logged when more changes than numbers.
  void SetReason(JobRecord& job, const std::string& reason);
  // An event by itself. A failure to write it is logged: what happened has happened.
  void Emit(EventRecord event);
};

// `job` with another phase and reason, for a batch; and the event that says so.
JobRecord WithPhase(const JobRecord& job, JobPhase phase, const std::string& reason);
EventRecord PhaseEvent(const JobRecord& before, const JobRecord& after);

}  // namespace motley::coordinator
