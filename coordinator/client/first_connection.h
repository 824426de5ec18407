// The wait for a channel's first connection.
#pragma once

#include <grpc/grpc.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace motley::client {

// What the wait asks of a gRPC channel; a test answers for one.
struct Dial {
  std::function<grpc_connectivity_state()> state;  // it also asks for a connection
  // Of a channel that failed to connect, asked until a time; empty where the attempt found silence, which may end.
  std::function<std::string(absl::Time)> why_not;
  std::function<bool(grpc_connectivity_state, absl::Time)> changes;  // false: it is still that state at this time
};

struct FirstWait {
  std::string address;
  absl::Duration connect;  // in all
  absl::Duration silence;  // after which `say` is told
};

// Nobody answers at `address`: UNAVAILABLE with `why` and what to do, or RESOURCE_EXHAUSTED with the words of a coordinator that
// listens there and has no room.
absl::Status NotTaken(const std::string& address, const std::string& why);

// Ready, or NotTaken as soon as an attempt has failed by a reason of the address. After another failure it tries again, and says
// the reason when its time is over.
absl::Status AwaitFirst(const Dial& dial, const FirstWait& wait, const std::function<void(const std::string&)>& say);

}  // namespace motley::client
