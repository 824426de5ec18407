#include "coordinator/rpc/held_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coordinator/rpc/busy_peers.h"

namespace motley::coordinator {
namespace {

uint64_t InodeOf(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

}  // namespace

HeldSocket HeldSocket::Of(int fd) { return {fd, InodeOf(fd), PeerOfSocket(fd)}; }

bool HeldSocket::IsOpen() const { return InodeOf(fd) == inode; }

bool HeldSocket::ShutDown() const {
  // Of one's own, so that gRPC cannot close it and the number be another's meanwhile.
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return false;
  const bool is_it = InodeOf(own) == inode;
  if (is_it) shutdown(own, SHUT_RDWR);
  close(own);
  return is_it;
}

}  // namespace motley::coordinator
