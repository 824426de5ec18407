// Whole messages over one connected, non-blocking socket. Private to the engine.
#pragma once

#include <sys/uio.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace motley::engine {

// Blocks until all `parts` are with the kernel (SendParts) or filled (ReceiveParts). `patience` bounds each wait for the other
// end. UNAVAILABLE: it closed or lost the connection, or did not move for so long. Another thread's shutdown(2) ends both at
// once.
absl::Status SendParts(int socket, std::vector<iovec> parts, absl::Duration patience);
absl::Status ReceiveParts(int socket, std::vector<iovec> parts, absl::Duration patience);
// Whether the other end closed or lost the connection and nothing that it sent is left to read. Does not block, reads nothing.
bool IsClosed(int socket);

}  // namespace motley::engine
