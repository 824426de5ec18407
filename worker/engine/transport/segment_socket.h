// Whole messages over one connected, non-blocking socket, and why it ended. Private to the engine.
//
// Where messages are authenticated, each is followed by its code (common/base/gmac.h): under the key of its direction, by its
// place among all that went before it. So one that was altered, doubled, left out, sent back or brought from another connection
// is found before anybody looks at it.
//
// Linux tells an error of a connection to the first call that meets it and to no other: later reads see an ordinary end. Two
// threads use the socket of a ring of two, and a third asks how it is. So the error is kept here, and each of them says it.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/altered_way.h"
#include "common/base/files.h"
#include "common/base/gmac.h"

namespace motley::engine {

// Of a connection whose messages are authenticated.
struct MessageCodes {
  Gmac sending, receiving;
  AlteredWay way;  // of what comes
};

// Thread-safe for one sender, one receiver, and any number of Health and Shutdown.
//
// Errors: UNAVAILABLE: the other end closed the connection (common/base/peer_ended.h), the connection was lost, with the system's
// word for it, the other end did not move for so long, or what came is not what was sent (common/base/altered_way.h): nothing
// that comes later is taken then.
class SegmentSocket {
 public:
  explicit SegmentSocket(FileDescriptor socket, std::optional<MessageCodes> codes = std::nullopt)
      : socket_(std::move(socket)), codes_(std::move(codes)) {}

  // Blocks until all `parts` are with the kernel (Send) or filled (Receive). `patience` bounds each wait for the other end. Each
  // part is a message: what is sent in two may be received by two calls.
  absl::Status Send(std::vector<iovec> parts, absl::Duration patience);
  absl::Status Receive(std::vector<iovec> parts, absl::Duration patience);
  // An error when the connection ended and nothing that came over it is left to read. Does not block, reads nothing.
  absl::Status Health();
  // A last word that nobody reads, if there is room for it.
  void SayFarewell();
  // Ends calls under way, and the other end's.
  void Shutdown();

 private:
  template <typename Transfer>
  absl::Status TransferAll(std::vector<iovec>& parts, short event, absl::Duration patience, Transfer transfer);
  absl::Status SendAll(std::vector<iovec> parts, absl::Duration patience);
  absl::Status ReceiveAll(std::vector<iovec> parts, absl::Duration patience);
  absl::Status Altered() const;
  // `error`: what the system just said; 0: an ordinary end.
  absl::Status Ended(int error);

  const FileDescriptor socket_;
  std::optional<MessageCodes> codes_;  // the one half is the sender's, the other the receiver's
  bool altered_ = false;               // the receiver's
  std::atomic<int> error_{0};          // the system's first word
};

}  // namespace motley::engine
