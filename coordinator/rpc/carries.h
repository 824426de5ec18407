// Streams of people and of workers, joined: what comes by one goes out by the other, one message at a time each way, so that the
// slower end sets the pace and nothing is kept (docs/inside/local-storage.md). On a thread of its own: what is carried delays
// nobody's call.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <set>
#include <string>

#include "coordinator/core/core.h"
#include "coordinator/core/loop.h"
#include "coordinator/rpc/busy_peers.h"
#include "coordinator/rpc/person.h"
#include "proto/motley/v1/files.pb.h"

namespace motley::coordinator {

// At once; others are told to come again.
inline constexpr size_t kMostCarries = 8;

class Carries {
 public:
  using Reactor = grpc::ServerBidiReactor<v1::CarryMessage, v1::CarryMessage>;

  // Both must outlive it; what `loop` is asked runs there.
  Carries(TaskPoster loop, Core& core);
  ~Carries();
  // When no call is left. Idempotent.
  void Stop() { thread_.Stop(); }

  // Thread-safe.
  Reactor* ForPerson(grpc::CallbackServerContext& context, BusyPeers& busy, const Person& person);
  Reactor* ForWorker(grpc::CallbackServerContext& context, BusyPeers& busy);

 private:
  class End;
  class PersonsEnd;
  class WorkersEnd;
  absl::Duration EndSilent();

  const TaskPoster loop_;
  Core& core_;
  const SystemClock clock_;
  // The thread's.
  std::set<End*> ends_;
  size_t persons_ = 0;
  std::map<std::string, PersonsEnd*> waiting_;  // for a node, by the carry's id
  TaskThread thread_;
};

}  // namespace motley::coordinator
