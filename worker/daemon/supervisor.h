// Runs the node's ranks: starts one process per assignment, relays between them and the coordinator, notices what dies or
// hangs, and can always kill.
//
// One thread does everything (it spawns, so that the ranks die with it); the public methods only queue a command and may
// be called from anywhere. What goes to the coordinator goes to the outbox, also while the session is broken: ranks keep
// running, and their unanswered questions are asked again when it is back.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/beneath.h"
#include "common/base/clock.h"
#include "common/session/data_authentication.h"
#include "common/session/session.h"
#include "worker/daemon/card_watch.h"
#include "worker/daemon/offer.h"
#include "worker/daemon/outbox.h"
#include "worker/daemon/program_stamp.h"
#include "worker/daemon/rank_run.h"
#include "worker/daemon/seen_epochs.h"
#include "worker/daemon/spawn.h"
#include "worker/daemon/watchdog.h"
#include "worker/daemon/worker_metrics.h"

namespace motley::worker {

struct SupervisorConfig {
  std::vector<OfferedDevice> devices;                       // of this node
  std::string host_root;                                    // in the place of "/", of tests: what the host has
  CardWatch* cards = nullptr;                               // of its cards; outlives the supervisor; null: there are none
  FileRoots roots = FileRoots(std::vector<std::string>());  // beneath these lies what jobs may use
  std::string files_folder;                                 // [files] local, beneath which inputs of jobs lie
  DataAuthentication data_authentication = DataAuthentication::kBetweenMachines;
  int known_parts = -1;  // memory for what ranks compare of the data (spawn.h); outlives the supervisor; -1: none
  // A folder that was brought for ranks (StartCommand::source) is not needed any more. Called on the supervisor's thread.
  std::function<void(std::string)> on_restored = [](std::string) {};
  WatchConfig watch;
  absl::Duration exit_grace = absl::Seconds(5);  // from the last word, or the closed socket, to SIGKILL
  absl::Duration stop_floor =
      absl::Seconds(150);  // a stop that saves: at least this, or 10 predicted steps; the coordinator waits 120 s
  absl::Duration tick = absl::Milliseconds(100);
};

class Supervisor {
 public:
  Supervisor(SupervisorConfig config, const Clock& clock, Outbox& outbox, WorkerMetrics& metrics);
  // Kills and reaps every rank.
  ~Supervisor();

  void Start(StartCommand command);
  // With a check_id: a probe of devices that no job uses; it is refused while ranks train here, and moves no epoch.
  void Profile(ProfileCommand command);
  void Stop(StopCommand command);
  void Deliver(KvValueCommand value);
  void Deliver(PublishAnswerCommand answer);
  // A rank that is not here any more says nothing.
  void Deliver(TraceCommand trace);
  // The session is (again) there: repeats what was asked and not answered. Numbers are of this key from now on; ranks that were
  // started under one of another key are of another store's jobs, and end.
  void OnConnected(const std::string& key_id);

  // Of the loop's newest turn; a daemon whose loop stands still must not pet systemd's watchdog.
  absl::Duration last_turn() const;
  // The newest epoch of every job that this worker has seen.
  std::vector<SeenEpoch> newest_epochs() const;
  // What a rank does beside its steps for so long that people wonder, for them: "comparing the data (37 %, about 40 s left)".
  // Empty: nothing.
  std::string doing() const;
  // Ranks that train; what is asked in commands under way counts.
  bool training() const;

 private:
  using Command = std::function<void()>;
  void Post(Command command);
  void Loop();
  void RunCommands();
  void Poll();

  // All below: supervisor thread only.
  void StartOnLoop(const StartCommand& command);
  void ProfileOnLoop(ProfileCommand command);
  void SetTrueMemory(std::vector<RankAssignment>& ranks) const;
  void StopOnLoop(const StopCommand& command);
  bool IsStale(const JobId& job, Epoch epoch) const;
  void BeginEpoch(const JobId& job, Epoch epoch, const std::string& token);
  void See(const JobId& job, Epoch epoch, const std::string& token);
  absl::Status BeginRun(const JobId& job, Epoch epoch, const std::vector<RankAssignment>& assignments,
                        std::unique_ptr<ProfileSchedule> profile);
  absl::StatusOr<Rank> StartRank(const RankAssignment& assignment, const SharedMemory& memory);
  // Ranks of the generation before hold theirs until they are gone, so it is looked for a while.
  absl::Status CheckHostRoomFor(const std::vector<RankAssignment>& assignments) const;
  RankEventKind WhyNotStarted(const DeviceId& device, const absl::Status& status) const;
  void ServeRank(RankRun& run, Rank& rank);
  void OnMessage(RankRun& run, Rank& rank, RankMessage message);
  void OnEvent(RankRun& run, Rank& rank, RankReport event);
  void AddLoads(ProfileReport& report) const;
  void OnProgress(Rank& rank, const ProgressReport& progress);
  void OnExit(RankRun& run, Rank& rank, const std::string& how);
  void CheckHung(RankRun& run, Rank& rank);
  void CheckCard(RankRun& run, Rank& rank);
  std::string DoingNow() const;
  std::string LostCard(const Rank& rank) const;
  void Report(RankRun& run, Rank& rank, RankEventKind kind, const std::string& message);
  void Remember(const RankReport& last_word);
  void SendLog(const RankRun& run, const Rank& rank, const std::string& line);
  void DriveProfile(RankRun& run);
  void EndProfile(RankRun& run);
  void FailProfile(RankRun& run, const Rank& rank, const std::string& why);
  void KillRank(Rank& rank, Rank::Phase phase, const std::string& reason);
  void KillRun(RankRun& run, const std::string& reason);
  Rank* FindRank(const JobId& job, Epoch epoch, int rank);
  Epoch Newest(const JobId& job) const;
  void RemoveEndedRuns();

  const SupervisorConfig config_;
  std::map<std::string, ProgramStamp> programs_;  // the ranks', as they were at the start; constant
  const Clock& clock_;
  Outbox& outbox_;
  WorkerMetrics& metrics_;
  const UniqueFd wake_;  // eventfd

  mutable absl::Mutex mutex_;
  std::deque<Command> commands_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration last_turn_ ABSL_GUARDED_BY(mutex_);
  SeenEpochs seen_ ABSL_GUARDED_BY(mutex_);        // older messages are dropped; changed by the loop alone
  bool training_ ABSL_GUARDED_BY(mutex_) = false;  // as of the newest turn
  std::string doing_ ABSL_GUARDED_BY(mutex_);      // the same

  std::vector<std::unique_ptr<RankRun>> runs_;
  std::map<JobId, std::vector<RankReport>> last_words_;  // how the newest epoch's ranks ended
  std::thread thread_;
};

}  // namespace motley::worker
