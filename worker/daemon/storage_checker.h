// Runs storage checks in child processes: a check reads whole data sets from file systems that may never answer, and a process
// can be killed where a thread cannot. The children run this program itself (StorageChildMain).
//
// One thread starts and serves them (they die with it); the public methods may be called from anywhere and never touch a file.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/session/session.h"
#include "worker/daemon/frame.h"
#include "worker/daemon/outbox.h"
#include "worker/daemon/spawn.h"

namespace motley::worker {

struct StorageCheckerConfig {
  std::string program = "/proc/self/exe";
  std::vector<std::string> file_roots;                 // beneath these lies what jobs may use
  std::string files_folder;                            // [files] local, beneath which inputs of jobs lie
  absl::Duration check_patience = absl::Seconds(240);  // below what the coordinator waits
  absl::Duration verify_patience = absl::Hours(6);     // of a whole checkpoint; who does not wait any more says so
  absl::Duration remove_patience = absl::Seconds(30);
  // For a process that the machine has no descriptors or memory for. What others' checks need of the coordinator's patience is
  // left when the one that all wait for is short of them.
  absl::Duration start_patience = absl::Seconds(60);
  size_t at_a_time = 4;  // checks; the others wait
  int known_parts = -1;  // memory for what checks digest of the data (spawn.h); outlives the checker; -1: none
};

class StorageChecker {
 public:
  StorageChecker(StorageCheckerConfig config, const Clock& clock, Outbox& outbox);
  // Kills what runs; gives the removal of the tokens that are left a second.
  ~StorageChecker();

  // The answer goes to the outbox: in the end always, unless the job was stopped.
  void Check(StorageCheckCommand check);
  // Epochs that are over: their checks get no answer.
  void Drop(const StopCommand& stop);
  // The token that this node wrote for the job, if it did.
  void RemoveToken(const JobId& job);

 private:
  enum class Kind { kCheck, kRemove };
  struct Task {
    Kind kind;
    StorageCheckCommand command;
    absl::Duration give_up_at = absl::InfiniteDuration();  // starting it
  };
  struct Child {
    Task task;
    SpawnedProcess process;
    FrameDecoder decoder;
    absl::Duration kill_at;
    bool answered = false;  // or nobody wants the answer
    bool killed = false;
  };

  void Loop();
  void StartWaiting(bool stopping);
  // Not now, but perhaps soon: true, and it waits again.
  bool StartLater(const absl::Status& status, Task task, bool stopping);
  absl::Status Start(Task task);
  // False: it is gone.
  bool Serve(Child& child);
  void Answer(Child& child, StorageReport report);
  void Wake();

  const StorageCheckerConfig config_;
  const Clock& clock_;
  Outbox& outbox_;
  const UniqueFd wake_;  // eventfd

  absl::Mutex mutex_;
  std::deque<Task> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<StopCommand> stops_ ABSL_GUARDED_BY(mutex_);
  std::map<JobId, StorageCheckCommand> tokens_ ABSL_GUARDED_BY(mutex_);  // that this node wrote
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // The thread's.
  std::vector<Child> children_;
  std::optional<absl::Duration> start_again_at_;  // what waits could not be started
  std::thread thread_;
};

// The word by which this program knows that it is such a child, and what it then does; its exit status.
inline constexpr char kStorageChildWord[] = "storage-child";
int StorageChildMain(int argc, char** argv);

}  // namespace motley::worker
