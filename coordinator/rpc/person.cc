#include "coordinator/rpc/person.h"

#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/base/accounts.h"

namespace motley::coordinator {

std::optional<uint32_t> UidOf(int fd) {
  sockaddr_storage address = {};
  socklen_t address_length = sizeof(address);
  const bool known = getsockname(fd, reinterpret_cast<sockaddr*>(&address), &address_length) == 0;
  ucred peer = {};
  socklen_t length = sizeof(peer);
  if (!known || address.ss_family != AF_UNIX || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
  return peer.uid;
}

bool IsOwn(uint32_t uid) { return uid == 0 || uid == geteuid(); }

Person PersonOf(uint32_t uid) {
  const absl::StatusOr<Account> account = AccountOf(uid);
  Person person;
  person.uid = uid;
  person.name = account.ok() ? account->name : absl::StrCat(uid);
  person.admin = IsOwn(uid) || (account.ok() && IsInGroup(*account, kAdminGroup));
  return person;
}

}  // namespace motley::coordinator
