// The worker's side of its files process (files_child.h): starts it when a job first asks for this node's disk, asks it what the
// disk holds, and starts ranks when what they go on from is here. It may die without the session; the next question starts it
// again.
//
// One thread does everything; the public methods only queue and may be called from anywhere.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/session/session.h"
#include "worker/daemon/frame.h"
#include "worker/daemon/outbox.h"
#include "worker/daemon/spawn.h"

namespace motley::worker {

struct FilesProcessConfig {
  std::string program = "/proc/self/exe";
  std::string local;         // [files] local
  std::string data_address;  // numeric
  NodeName node;
};

class FilesProcess {
 public:
  // `start`: called on this object's thread, with this node's paths, when the ranks may start.
  FilesProcess(FilesProcessConfig config, Outbox& outbox, std::function<void(StartCommand)> start);
  ~FilesProcess();
  // It was asked for something, and runs.
  bool running() const { return running_; }
  // Nothing more happens: no ranks are started, and what is asked is not heard. Once.
  void End();

  // The answer goes to the outbox: always.
  void Ask(HoldingsCommand question);
  // A copy is reported until its end: always; but for one without files, which calls off what the job has. What is dropped is
  // not.
  void Copy(CopyCommand command);
  void Drop(DropCommand command);
  // Of a job whose checkpoints lie here (IsLocal). Where the source cannot be brought each rank is reported as failed: as damage
  // where nobody has it whole, else as storage.
  void Start(StartCommand command);
  // Ranks of that job that wait for their checkpoint are not started any more, and are reported.
  void Stop(const StopCommand& command);
  // The ranks have read what was brought for them into this folder: it goes, and with it the links that keep what the job
  // deletes.
  void Restored(std::string folder);

 private:
  using Command = std::function<void()>;
  void Post(Command command);
  void Loop();
  void Begin(StartCommand command);
  absl::Status Send(const CoordinatorCommand& command);
  void Tell(const CoordinatorCommand& command);  // what cannot be told is as if the process had gone
  absl::Status Spawn();
  void Receive();
  void OnReport(WorkerReport report);
  // The process is gone: who waited for it hears so.
  void OnGone(const std::string& why);
  void Refuse(const std::string& why, absl::StatusCode code);

  const FilesProcessConfig config_;
  Outbox& outbox_;
  const std::function<void(StartCommand)> start_;
  const UniqueFd wake_;  // eventfd

  std::atomic<bool> running_{false};
  absl::Mutex mutex_;
  std::deque<Command> commands_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // The thread's.
  std::optional<SpawnedProcess> process_;
  FrameDecoder decoder_;
  std::string unsent_;
  std::optional<StartCommand> waiting_;    // for its checkpoint
  std::deque<HoldingsCommand> questions_;  // not answered
  // Under way: what was last heard of each job's copies, and of each input, whosever.
  std::map<std::pair<JobId, std::string>, FetchReport> copies_;
  std::thread thread_;
};

}  // namespace motley::worker
