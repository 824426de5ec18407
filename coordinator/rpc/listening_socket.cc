#include "coordinator/rpc/listening_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/tcp_listener.h"

namespace motley::coordinator {
namespace {

constexpr int kBacklog = 1024;

absl::Status CannotListen(const std::string& address, int error) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address, ": ", strerror(error),
                   "; choose another address of this machine, or end what uses it (ss -ltnp shows it)"));
}

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.data(), std::min(path.size(), kLongestSocketPath));
  return address;
}

// OK when the path is free for a new socket; a socket that nobody listens on is removed.
absl::Status MakeRoom(const std::string& key, const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return absl::OkStatus();  // bind says what is wrong with the folder
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(absl::StrCat(path, " exists and is no socket; remove it, or set ", key, " to another path"));
  }
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return absl::ResourceExhaustedError(absl::StrCat("cannot make a socket: ", strerror(errno)));
  const sockaddr_un address = UnixAddress(path);
  const int connected = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int error = errno;
  close(probe);
  if (connected == 0 || error == EAGAIN) {
    return absl::UnavailableError(
        absl::StrCat("another coordinator listens on ", path, "; end it, or set ", key, " to another path"));
  }
  if (error == ECONNREFUSED) unlink(path.c_str());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ListeningSocket> ListeningSocket::Tcp(const std::string& key, const std::string& address) {
  MOTLEY_ASSIGN_OR_RETURN(TcpListener listener, TcpListener::Open(key, address));
  ListeningSocket made(listener.Release());
  made.address_ = listener.address();
  return made;
}

absl::StatusOr<ListeningSocket> ListeningSocket::Unix(const std::string& key, const std::string& path) {
  if (path.size() > kLongestSocketPath) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, " has ", path.size(), " bytes, a Unix socket's path may have ", kLongestSocketPath, ": ", path));
  }
  MOTLEY_RETURN_IF_ERROR(MakeRoom(key, path));
  ListeningSocket made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (made.fd_ < 0) return CannotListen(path, errno);
  const sockaddr_un address = UnixAddress(path);
  if (bind(made.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const std::string text = absl::StrCat("cannot make the socket ", path, ": ", strerror(errno), "; set ", key,
                                          " to a path in a folder that this user may write");
    if (errno == EACCES || errno == EPERM || errno == EROFS) return absl::PermissionDeniedError(text);
    return errno == ENOENT ? absl::NotFoundError(text) : absl::UnavailableError(text);
  }
  made.path_ = path;
  made.address_ = absl::StrCat("unix:", path);
  // Nobody can connect before it listens, so nobody sees the mode that the umask gave.
  if (chmod(path.c_str(), 0660) != 0 || listen(made.fd_, kBacklog) != 0) return CannotListen(path, errno);
  return made;
}

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), address_(std::move(other.address_)), path_(std::exchange(other.path_, std::string())) {}

ListeningSocket::~ListeningSocket() {
  if (fd_ < 0) return;
  close(fd_);
  // Whoever took the path after this socket was gone listens on it: then it answers.
  if (!path_.empty()) MakeRoom("", path_).IgnoreError();
}

}  // namespace motley::coordinator
