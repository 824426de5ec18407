// The gRPC servers for people. gRPC does not tell who is at the other end of a Unix socket, so where that matters every account
// has a server of its own: a caller is known by the server by which the call came, as roles are.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "coordinator/core/core.h"
#include "coordinator/core/loop.h"
#include "coordinator/rpc/acceptor.h"
#include "coordinator/rpc/busy_peers.h"
#include "coordinator/rpc/endpoint.h"
#include "coordinator/rpc/health_service.h"
#include "coordinator/rpc/motley_service.h"
#include "coordinator/rpc/person.h"

namespace motley::coordinator {

class PeopleServers {
 public:
  // All must outlive it.
  PeopleServers(TaskPoster loop, Core& core, Carries& carries) : loop_(loop), core_(core), carries_(carries) {}

  // The server of those of whom nothing is known; without owners, of everybody. INTERNAL: gRPC does not start.
  absl::Status Start();
  // Who takes a connection, and whose it is. On the acceptor's thread.
  Acceptor::Chosen For(int fd);
  // No connection is handed over any more.
  void Shutdown(std::chrono::system_clock::time_point deadline);

 private:
  struct Server {
    Server(TaskPoster loop, Core& core, Carries& carries, Person person)
        : motley(loop, core, carries, busy, std::move(person)),
          health(loop, core, busy, Role::kPerson, v1::Motley::service_full_name()) {}
    BusyPeers busy;  // by Unix sockets only this account's calls
    MotleyService motley;
    HealthService health;
    RefusingService refusing{Role::kPerson};
    Endpoint endpoint;
  };
  struct Known {
    Person person;
    absl::Duration asked;  // steady
  };
  absl::StatusOr<std::unique_ptr<Server>> Make(Person person);
  const Person& Ask(uint32_t uid);
  Server& ServerOf(const Person& person);

  const TaskPoster loop_;
  Core& core_;
  Carries& carries_;
  std::unique_ptr<Server> unknown_;
  std::map<uint32_t, Known> known_;  // of the acceptor's thread
  absl::Mutex mutex_;
  // By account, and whether it is an admin's: who is made one is so with the next connection.
  std::map<std::pair<uint32_t, bool>, std::unique_ptr<Server>> servers_ ABSL_GUARDED_BY(mutex_);
  bool said_full_ = false;
  const SystemClock clock_;
};

}  // namespace motley::coordinator
