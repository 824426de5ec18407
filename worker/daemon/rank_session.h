// The rank's end of the socket to its worker: takes assignments, runs the engine on the calling thread, and is the engine's
// host. Torch-free; the engine is made by a factory.
//
// Threads: Serve's caller runs the engine; one thread reads the socket (answers, stop); one thread tells every
// progress_interval that the process lives, whatever the engine does. All writes go through one mutex.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/steady_condition.h"
#include "common/session/session.h"
#include "worker/daemon/kept_steps.h"
#include "worker/engine/engine.h"
#include "worker/records/step_recorder.h"

namespace motley::worker {

class RankSession : public engine::RankHost {
 public:
  using EngineFactory = std::function<std::unique_ptr<engine::Engine>(engine::RankHost&)>;
  struct Options {
    absl::Duration progress_interval = absl::Milliseconds(250);
    // How long a publishing rank waits for the coordinator, which may be restarting.
    absl::Duration publish_timeout = absl::Minutes(5);
    // The worker is gone while the engine is busy: nobody wants the result. Must not return in production.
    std::function<void()> on_orphaned;
  };

  // Takes over `fd` (closed by the destructor). `clock` must outlive the session.
  RankSession(int fd, EngineFactory factory, const Clock& clock, Options options);
  ~RankSession() override;

  // Until the socket closes. OK then; DATA_LOSS when the worker sent what is not a message, INVALID_ARGUMENT when an assignment
  // does not parse.
  absl::Status Serve();

  absl::Status KvSet(const std::string& key, const std::string& value) override;
  // UNAVAILABLE after the timeout: the peer that should have set it is not there. CANCELLED when told to stop.
  absl::StatusOr<std::string> KvGet(const std::string& key, absl::Duration timeout) override;
  absl::Status ConfirmEpochIsNewest(int64_t step, const std::string& purpose) override;
  absl::StatusOr<std::string> AskForMark(int64_t step, const std::string& purpose, const std::string& manifest_digest) override;
  void OnReady(const std::vector<TransportUse>& transports, int64_t context_bytes) override;
  void OnStep(const engine::StepResult& step) override;
  void OnProgress(int64_t step, int64_t instruction, const std::string& doing) override;
  void OnCheckpoint(int64_t step, const std::string& folder, int64_t bytes, double seconds) override;
  void OnCheckpointFailed(int64_t step, const std::string& message, const DeviceId& blamed) override;
  void OnLog(const std::string& line) override;

 private:
  void ReadLoop();
  void BeatLoop();
  absl::Status Handle(const std::string& frame);
  void RunTraining(const RankAssignment& assignment);
  void RunProfile(const ProfileCommand& command);
  absl::Status Profile(const ProfileCommand& command, ProfileReport* report);
  // The answer, which allows it.
  absl::StatusOr<PublishAnswerCommand> AskToPublish(int64_t step, const std::string& purpose, const std::string& manifest_digest);
  void SendEvent(RankEventKind kind, const std::string& message);
  void SendFailure(const absl::Status& status);
  absl::Status Send(const RankMessage& message);
  void SetAssignment(const RankAssignment& assignment);
  // Now, or when the step is done.
  void SendTrace(int64_t step);
  std::unique_ptr<StepRecorder> MakeRecords(const RankAssignment& assignment);

  const int fd_;
  const EngineFactory factory_;
  const Clock& clock_;
  const Options options_;

  absl::Mutex write_mutex_;

  SteadyCondition changed_;
  absl::Mutex mutex_;
  std::deque<RankCommand> work_ ABSL_GUARDED_BY(mutex_);                     // StartCommand and ProfileCommand
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mutex_);        // answered keys
  std::map<int64_t, PublishAnswerCommand> answers_ ABSL_GUARDED_BY(mutex_);  // by question
  int64_t questions_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // why the socket is of no more use
  KeptSteps steps_ ABSL_GUARDED_BY(mutex_);
  std::set<int64_t> awaited_steps_ ABSL_GUARDED_BY(mutex_);  // asked for and to come
  bool closed_ ABSL_GUARDED_BY(mutex_) = false, busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;                    // calls that wait for the coordinator
  engine::Engine* running_ ABSL_GUARDED_BY(mutex_) = nullptr;  // takes RequestStop
  bool stop_save_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration last_progress_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();

  JobId job_;  // of the newest assignment; changed before the engine runs
  JobUid job_uid_;
  bool on_nodes_disks_ = false;  // its checkpoints lie there: what they are called has no path
  DeviceId device_;
  Epoch epoch_;
  int rank_ = 0;
  std::unique_ptr<engine::Engine> engine_;  // main thread only
  std::unique_ptr<StepRecorder> records_;   // main thread only, while an epoch trains
};

}  // namespace motley::worker
