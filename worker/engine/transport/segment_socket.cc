#include "worker/engine/transport/segment_socket.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/hmac.h"
#include "common/base/peer_ended.h"
#include "common/base/status_macros.h"

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

}  // namespace

template <typename Transfer>
absl::Status SegmentSocket::TransferAll(std::vector<iovec>& parts, short event, absl::Duration patience, Transfer transfer) {
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
      return Ended(0);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (absl::Status status = Await(socket_.get(), event, patience); !status.ok()) return status;
    } else if (errno != EINTR) {
      return Ended(errno);
    }
  }
}

// The parts lie where they are: their codes go between them.
absl::Status SegmentSocket::Send(std::vector<iovec> parts, absl::Duration patience) {
  if (!codes_) return SendAll(std::move(parts), patience);
  std::vector<Gmac::Code> codes(parts.size());
  std::vector<iovec> with_codes;
  for (size_t i = 0; i < parts.size(); ++i) {
    MOTLEY_ASSIGN_OR_RETURN(codes[i], codes_->sending.Next(parts[i].iov_base, parts[i].iov_len));
    with_codes.push_back(parts[i]);
    with_codes.push_back({codes[i].data(), codes[i].size()});
  }
  return SendAll(std::move(with_codes), patience);
}

absl::Status SegmentSocket::Receive(std::vector<iovec> parts, absl::Duration patience) {
  if (!codes_) return ReceiveAll(std::move(parts), patience);
  for (const iovec& part : parts) {
    if (altered_) return Altered();
    Gmac::Code came;
    MOTLEY_RETURN_IF_ERROR(ReceiveAll({part, {came.data(), came.size()}}, patience));
    MOTLEY_ASSIGN_OR_RETURN(const Gmac::Code sent, codes_->receiving.Next(part.iov_base, part.iov_len));
    altered_ = !EqualSecrets({came.data(), came.size()}, {sent.data(), sent.size()});
    if (altered_) return Altered();
  }
  return absl::OkStatus();
}

absl::Status SegmentSocket::Altered() const {
  return absl::UnavailableError(
      absl::StrCat(AlteredOnTheWay(codes_->way), ": message ", codes_->receiving.messages(), " does not have its code"));
}

absl::Status SegmentSocket::SendAll(std::vector<iovec> parts, absl::Duration patience) {
  return TransferAll(parts, POLLOUT, patience, [this](msghdr* message) { return sendmsg(socket_.get(), message, MSG_NOSIGNAL); });
}

absl::Status SegmentSocket::ReceiveAll(std::vector<iovec> parts, absl::Duration patience) {
  return TransferAll(parts, POLLIN, patience, [this](msghdr* message) { return recvmsg(socket_.get(), message, 0); });
}

absl::Status SegmentSocket::Health() {
  pollfd polled{socket_.get(), POLLRDHUP, 0};
  if (poll(&polled, 1, 0) <= 0 || (polled.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0) return absl::OkStatus();
  int unread = 0;
  if (ioctl(socket_.get(), FIONREAD, &unread) == 0 && unread > 0) return absl::OkStatus();
  int error = 0;
  socklen_t bytes = sizeof(error);
  getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  return Ended(error);
}

void SegmentSocket::SayFarewell() { send(socket_.get(), "", 1, MSG_NOSIGNAL | MSG_DONTWAIT); }

void SegmentSocket::Shutdown() { shutdown(socket_.get(), SHUT_RDWR); }

// A write after the end says EPIPE, whatever the end was.
absl::Status SegmentSocket::Ended(int error) {
  int none = 0;
  if (error != 0 && error != EPIPE) error_.compare_exchange_strong(none, error);
  const int first = error_;
  if (first != 0) return absl::UnavailableError(std::strerror(first));
  return absl::UnavailableError(error == 0 ? kPeerEnded : std::strerror(error));
}

}  // namespace motley::engine
