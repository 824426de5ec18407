// The way to one worker, for as long as its session lives. Called on the loop only.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/session/session.h"
#include "coordinator/state/member.h"

namespace motley::coordinator {

class WorkerLink {
 public:
  virtual ~WorkerLink() = default;
  virtual void Send(CoordinatorCommand command) = 0;
  // Whether the worker has sent something that still waits for the loop.
  virtual bool HasUnread() const = 0;
  // Ends the session; the worker sees `status`.
  virtual void Close(absl::Status status) = 0;
  // Of its other end, numeric; empty: not known.
  virtual std::string peer_address() const { return ""; }
  // By its certificate; empty: it came without TLS.
  virtual std::optional<NodeKey> identity() const { return std::nullopt; }
};

}  // namespace motley::coordinator
