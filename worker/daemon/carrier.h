// Carries files of this node's disk to people: for each carry that the coordinator asks for, a stream to it and a process
// (carry_child.h) that gives what is read there. docs/inside/local-storage.md
#pragma once

#include <grpcpp/client_context.h>
#include <sys/types.h>

#include <atomic>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/session/files.h"
#include "worker/daemon/session.h"

namespace motley::worker {

struct CarrierConfig {
  std::string program = "/proc/self/exe";
  std::string local;                         // [files] local
  std::vector<std::string> file_roots = {};  // beneath these an input may lie, too
};

// Thread-safe. Each carry has a thread, as long as the coordinator wants it; the coordinator bounds how many there are.
class Carrier {
 public:
  explicit Carrier(CarrierConfig config) : config_(std::move(config)) {}
  // Breaks off what is under way.
  ~Carrier();
  // Where the coordinator is.
  void SetOpener(ChannelOpener opener);
  // Returns at once. What fails is said to whoever asked.
  void Carry(CarryCommand command);

 private:
  struct Running {
    grpc::ClientContext context;
    std::atomic<bool> done{false};
    std::atomic<pid_t> child{-1};
    std::thread thread;
  };
  void Run(const CarryCommand& command, const ChannelOpener& opener, Running& carry) const;

  const CarrierConfig config_;
  absl::Mutex mutex_;
  ChannelOpener opener_ ABSL_GUARDED_BY(mutex_);
  std::list<Running> running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace motley::worker
