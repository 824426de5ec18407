// The coordinator as one object: store, loop, the servers for people and for workers, metrics, in order of dependency.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "coordinator/core/config.h"

namespace motley::coordinator {

class Server {
 public:
  // UNAVAILABLE: a port is taken or the state folder is in use; the store's errors; INVALID_ARGUMENT: the configuration.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Config& config);
  // Ends sessions and streams; jobs go on when the next coordinator is there.
  ~Server();

  // Lets the running job save, if that fits server.stop_seconds. Returns at once.
  void BeginStop();
  // After BeginStop: nothing is waited for any more.
  bool MayStop() const;
  // ABORTED: another coordinator has taken the cluster over, and this one has to end.
  absl::Status ended() const;

  // As a gRPC client dials them, with the ports really taken.
  std::string address() const;                 // of people: host:port when they have one, else unix:PATH
  std::string socket_address() const;          // of people: unix:PATH; empty: none
  std::string workers_address() const;         // empty: none
  std::string workers_socket_address() const;  // of this machine's workers: unix:PATH; empty: none
  std::string metrics_address() const;         // empty: none

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace motley::coordinator
