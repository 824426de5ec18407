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
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "proto/motley/v1/worker.pb.h"
#include "worker/daemon/outbox.h"
#include "worker/daemon/rank_run.h"
#include "worker/daemon/spawn.h"
#include "worker/daemon/watchdog.h"
#include "worker/daemon/worker_metrics.h"

namespace motley::worker {

struct SupervisorConfig {
  std::string rank_binary;
  std::vector<std::string> device_ids;              // of this node
  WatchConfig watch;
  absl::Duration exit_grace = absl::Seconds(5);     // from the last word, or the closed socket, to SIGKILL
  absl::Duration stop_floor = absl::Seconds(150);   // a stop that saves: at least this, or 10 predicted steps; the coordinator waits 120 s
  absl::Duration tick = absl::Milliseconds(100);
};

class Supervisor {
 public:
  Supervisor(SupervisorConfig config, const Clock& clock, Outbox& outbox, WorkerMetrics& metrics);
  // Kills and reaps every rank.
  ~Supervisor();

  void Start(v1::StartEpoch start);
  void Profile(v1::ProfileRequest request);
  void Stop(v1::StopEpoch stop);
  void Deliver(v1::KvValue value);
  void Deliver(v1::PublishAnswer answer);
  // The session is (again) there: repeats what was asked and not answered.
  void OnConnected();
  // Of the loop's newest turn; a daemon whose loop stands still must not pet systemd's watchdog.
  absl::Duration last_turn() const;

 private:
  using Command = std::function<void()>;
  void Post(Command command);
  void Loop();
  void RunCommands();
  void Poll();

  // All below: supervisor thread only.
  void StartOnLoop(const v1::StartEpoch& start);
  void ProfileOnLoop(const v1::ProfileRequest& request);
  void StopOnLoop(const v1::StopEpoch& stop);
  bool BeginRun(const v1::RankAssignment& first, std::vector<v1::RankAssignment> assignments, std::unique_ptr<ProfileSchedule> profile);
  void FailToStart(const v1::RankAssignment& assignment, const std::string& why);
  void ServeRank(RankRun& run, Rank& rank);
  void OnMessage(RankRun& run, Rank& rank, v1::FromRank& message);
  void OnEvent(RankRun& run, Rank& rank, v1::RankEvent event);
  void OnProgress(Rank& rank, const v1::Progress& progress);
  void OnExit(RankRun& run, Rank& rank, const std::string& how);
  void CheckHung(RankRun& run, Rank& rank);
  void Report(RankRun& run, Rank& rank, v1::RankEvent::Kind kind, const std::string& message);
  void SendLog(const RankRun& run, const Rank& rank, const std::string& line);
  void DriveProfile(RankRun& run);
  void KillRank(Rank& rank, Rank::Phase phase, const std::string& reason);
  void KillRun(RankRun& run, const std::string& reason);
  Rank* FindRank(const std::string& job, int64_t epoch, int rank);
  void RemoveEndedRuns();

  const SupervisorConfig config_;
  const Clock& clock_;
  Outbox& outbox_;
  WorkerMetrics& metrics_;
  UniqueFd wake_;  // eventfd

  mutable std::mutex mutex_;
  std::deque<Command> commands_;
  bool stopping_ = false;
  absl::Duration last_turn_;

  std::vector<std::unique_ptr<RankRun>> runs_;
  std::map<std::string, int64_t> newest_epoch_;                  // by job: older messages are dropped
  std::map<std::string, std::vector<v1::RankEvent>> last_words_;  // by job: how the newest epoch's ranks ended
  std::thread thread_;
};

}  // namespace motley::worker
