#include "coordinator/client/refusal.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <memory>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "common/base/address.h"
#include "common/base/clean_text.h"

namespace motley::client {
namespace {

constexpr std::string_view kNoRoom = "HTTP/1.1 503 ";
constexpr size_t kMostBytes = 4096;

// Until the socket has something to read, or can be written to; false: not in time.
bool Await(int fd, short what, absl::Time end) {
  pollfd polled = {fd, what, 0};
  const int64_t left = absl::ToInt64Milliseconds(end - absl::Now());
  return left > 0 && poll(&polled, 1, static_cast<int>(left)) > 0;
}

// -1: it does not connect.
int ConnectTo(const sockaddr* address, socklen_t length, absl::Time end) {
  const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  int error = connect(fd, address, length) == 0 ? 0 : errno;
  socklen_t size = sizeof(error);
  if (error == EINPROGRESS && Await(fd, POLLOUT, end)) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) return fd;
  close(fd);
  return -1;
}

int Connect(const std::string& address, absl::Time end) {
  std::string_view path = address;
  if (path.starts_with("unix:")) {
    path.remove_prefix(path.starts_with("unix://") ? 7 : 5);
    sockaddr_un there = {};
    there.sun_family = AF_UNIX;
    if (path.size() >= sizeof(there.sun_path)) return -1;
    path.copy(there.sun_path, sizeof(there.sun_path) - 1);
    return ConnectTo(reinterpret_cast<const sockaddr*>(&there), sizeof(there), end);
  }
  const absl::StatusOr<HostPort> parsed = ParseHostPort("", address, 1);
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (!parsed.ok() || getaddrinfo(parsed->host.c_str(), std::to_string(parsed->port).c_str(), &hints, &found) != 0) return -1;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  int fd = -1;
  for (const addrinfo* each = found; each != nullptr && fd < 0; each = each->ai_next) {
    fd = ConnectTo(each->ai_addr, each->ai_addrlen, end);
  }
  return fd;
}

bool MayBeRefusal(std::string_view text) { return kNoRoom.starts_with(text.substr(0, kNoRoom.size())); }

// All that comes, while it may be a refusal.
std::string Read(int fd, absl::Time end) {
  std::string text;
  char part[1024];
  while (text.size() < kMostBytes && MayBeRefusal(text) && Await(fd, POLLIN, end)) {
    const ssize_t bytes = recv(fd, part, sizeof(part), 0);
    if (bytes <= 0) break;
    text.append(part, static_cast<size_t>(bytes));
  }
  return text;
}

}  // namespace

std::optional<std::string> AskRefusal(const std::string& address, absl::Duration patience) {
  const absl::Time end = absl::Now() + patience;
  const int fd = Connect(address, end);
  if (fd < 0) return std::nullopt;
  const std::string answer = Read(fd, end);
  close(fd);
  const size_t head = answer.find("\r\n\r\n");
  if (!answer.starts_with(kNoRoom) || head == std::string::npos) return std::nullopt;
  return CleanLine(std::string(absl::StripAsciiWhitespace(answer.substr(head + 4))));
}

}  // namespace motley::client
