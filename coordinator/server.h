// The coordinator as one object: store, loop, gRPC and metrics listeners, in order of dependency.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "coordinator/config.h"

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

  std::string address() const;          // host:port really taken
  std::string metrics_address() const;  // empty: none

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace motley::coordinator
