// Workers of the coordinator's own machine, by its Unix socket: the kernel says whose process has dialed, and that decides. Who
// is none is told so by a server that refuses every call, since gRPC does not say who calls. docs/use/security.md.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "coordinator/rpc/acceptor.h"
#include "coordinator/rpc/busy_peers.h"
#include "coordinator/rpc/endpoint.h"
#include "coordinator/rpc/person.h"
#include "coordinator/rpc/roles.h"
#include "coordinator/rpc/seats.h"

namespace motley::coordinator {

// Root, this process's own account, motley-worker where there is one, and `accounts`: names or numbers. Asks the system.
bool MayBeWorker(uint32_t uid, const std::vector<std::string>& accounts);

// On the acceptor's thread.
class OwnWorkers {
 public:
  // `socket`: its address, for people. `workers`: who takes connections of workers; must outlive this.
  OwnWorkers(std::vector<std::string> accounts, std::string socket, grpc::experimental::ExternalConnectionAcceptor& workers)
      : accounts_(std::move(accounts)), socket_(std::move(socket)), workers_(workers) {}

  // Who takes a connection; null: nobody, as too many are open already that are refused.
  grpc::experimental::ExternalConnectionAcceptor* For(int fd);
  // No connection is handed over any more.
  void Shutdown(std::chrono::system_clock::time_point deadline);

 private:
  static constexpr size_t kMostRefused = 32;  // connections at once: they keep nobody else out
  struct Refused {
    explicit Refused(grpc::Status status) : refusing(std::move(status)) {}
    RefusingService refusing;
    Endpoint endpoint;
  };
  struct Known {
    Person person;
    bool is_worker = false;
    absl::Duration asked;  // steady
    absl::Duration said = -absl::InfiniteDuration();
  };
  Known& Ask(uint32_t uid);
  absl::Status Refusal(const Person& person) const;
  grpc::experimental::ExternalConnectionAcceptor* Refuse(Known& known);

  const std::vector<std::string> accounts_;
  const std::string socket_;
  grpc::experimental::ExternalConnectionAcceptor& workers_;
  std::map<uint32_t, Known> known_;
  std::map<uint32_t, std::unique_ptr<Refused>> refused_;
  BusyPeers none_;
  Seats open_{SeatLimits::Common(kMostRefused, "")};  // of those that are refused
  const SystemClock clock_;
};

}  // namespace motley::coordinator
