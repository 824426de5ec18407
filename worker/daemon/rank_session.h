// The rank's end of the socket to its worker: takes assignments, runs the engine on the calling thread, and is the engine's
// host. Torch-free; the engine is made by a factory.
//
// Threads: Serve's caller runs the engine; one thread reads the socket (answers, stop); one thread tells every
// progress_interval that the process lives, whatever the engine does. All writes go through one mutex.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/motley/v1/worker.pb.h"
#include "worker/engine/engine.h"

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

  // Takes over `fd` (closed by the destructor).
  RankSession(int fd, EngineFactory factory, Options options);
  ~RankSession() override;

  // Until the socket closes. OK then; DATA_LOSS when the worker sent what is not a message.
  absl::Status Serve();

  absl::Status KvSet(const std::string& key, const std::string& value) override;
  // UNAVAILABLE after the timeout: the peer that should have set it is not there. CANCELLED when told to stop.
  absl::StatusOr<std::string> KvGet(const std::string& key, absl::Duration timeout) override;
  absl::Status ConfirmEpochIsNewest(int64_t step, const std::string& purpose) override;
  void OnReady() override;
  void OnStep(const engine::StepResult& step) override;
  void OnProgress(int64_t step, int64_t instruction, const std::string& doing) override;
  void OnCheckpoint(int64_t step, const std::string& folder, int64_t bytes, double seconds) override;
  void OnCheckpointFailed(int64_t step, const std::string& message) override;
  void OnLog(const std::string& line) override;

 private:
  void ReadLoop();
  void BeatLoop();
  void Handle(const v1::ToRank& message);
  void RunTraining(const v1::RankAssignment& proto);
  void RunProfile(const v1::ProfileRequest& request);
  absl::Status Profile(const v1::ProfileRequest& request, v1::ProfileResult* result);
  void SendEvent(v1::RankEvent::Kind kind, const std::string& message);
  absl::Status Send(const v1::FromRank& message);
  void SetAssignment(const v1::RankAssignment& assignment);

  const int fd_;
  const EngineFactory factory_;
  const Options options_;

  std::mutex write_mutex_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  std::deque<v1::ToRank> work_;
  std::map<std::string, std::string> values_;        // answered keys
  std::map<int64_t, v1::PublishAnswer> answers_;     // by question
  int64_t questions_ = 0;
  absl::Status end_;                                 // why the socket is of no more use
  bool closed_ = false, busy_ = false;
  bool stop_ = false, stop_save_ = false;
  int waiting_ = 0;                                  // calls that wait for the coordinator
  engine::Engine* running_ = nullptr;                // takes RequestStop
  absl::Time last_progress_;

  std::string job_, device_;                         // of the newest assignment; changed before the engine runs
  int64_t epoch_ = 0;
  int rank_ = 0;
  std::unique_ptr<engine::Engine> engine_;           // main thread only
};

}  // namespace motley::worker
