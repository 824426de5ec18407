#include "worker/engine/transport/segment_socket.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/peer_ended.h"

namespace motley::engine {
namespace {

absl::Status Await(int socket, short event, absl::Duration patience) {
  pollfd waited{socket, event, 0};
  for (;;) {
    const int n = poll(&waited, 1, static_cast<int>(absl::ToInt64Milliseconds(patience)));
    if (n > 0) return absl::OkStatus();
    if (n == 0) return absl::UnavailableError(absl::StrCat("nothing moved for ", absl::FormatDuration(patience)));
    if (errno != EINTR) return absl::UnavailableError(absl::StrCat("poll: ", std::strerror(errno)));
  }
}

// Takes `bytes` off the front. False: nothing is left.
bool Advance(std::vector<iovec>& parts, size_t& first, size_t bytes) {
  while (first < parts.size() && bytes >= parts[first].iov_len) bytes -= parts[first++].iov_len;
  if (first == parts.size()) return false;
  parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + bytes;
  parts[first].iov_len -= bytes;
  return true;
}

template <typename Transfer>
absl::Status TransferAll(int socket, std::vector<iovec>& parts, short event, absl::Duration patience, Transfer transfer) {
  size_t first = 0;
  if (!Advance(parts, first, 0)) return absl::OkStatus();
  for (;;) {
    msghdr message{};
    message.msg_iov = parts.data() + first;
    message.msg_iovlen = parts.size() - first;
    const ssize_t n = transfer(&message);
    if (n > 0) {
      if (!Advance(parts, first, static_cast<size_t>(n))) return absl::OkStatus();
    } else if (n == 0) {
      return absl::UnavailableError(kPeerEnded);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (absl::Status status = Await(socket, event, patience); !status.ok()) return status;
    } else if (errno != EINTR) {
      return absl::UnavailableError(std::strerror(errno));
    }
  }
}

}  // namespace

absl::Status SendParts(int socket, std::vector<iovec> parts, absl::Duration patience) {
  return TransferAll(socket, parts, POLLOUT, patience,
                     [socket](msghdr* message) { return sendmsg(socket, message, MSG_NOSIGNAL); });
}

absl::Status ReceiveParts(int socket, std::vector<iovec> parts, absl::Duration patience) {
  return TransferAll(socket, parts, POLLIN, patience, [socket](msghdr* message) { return recvmsg(socket, message, 0); });
}

bool IsClosed(int socket) {
  pollfd polled{socket, POLLRDHUP, 0};
  if (poll(&polled, 1, 0) <= 0 || (polled.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0) return false;
  int unread = 0;
  return ioctl(socket, FIONREAD, &unread) != 0 || unread == 0;
}

}  // namespace motley::engine
