#include "coordinator/rpc/person.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace motley::coordinator {
namespace {

constexpr size_t kMostAnswerBytes = 1 << 20;  // of the user database

// `ask(buffer, size)`: the error of one of getpwuid_r and its like, which ask for a larger buffer by ERANGE.
template <typename Ask>
void AskDatabase(Ask ask) {
  std::vector<char> buffer(1 << 12);
  while (ask(buffer.data(), buffer.size()) == ERANGE && buffer.size() < kMostAnswerBytes) buffer.resize(4 * buffer.size());
}

bool IsInGroup(const std::string& account, gid_t own_group, const char* group_name) {
  std::optional<gid_t> wanted;
  AskDatabase([&](char* buffer, size_t size) {
    group entry = {};
    group* found = nullptr;
    const int error = getgrnam_r(group_name, &entry, buffer, size, &found);
    if (found != nullptr) wanted = entry.gr_gid;
    return error;
  });
  if (!wanted) return false;
  int count = 64;
  std::vector<gid_t> groups(count);
  while (getgrouplist(account.c_str(), own_group, groups.data(), &count) < 0 && count > static_cast<int>(groups.size())) {
    groups.resize(count);
  }
  groups.resize(std::min<size_t>(groups.size(), std::max(count, 0)));
  return std::find(groups.begin(), groups.end(), *wanted) != groups.end();
}

}  // namespace

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
  Person person;
  person.uid = uid;
  person.name = absl::StrCat(uid);
  std::optional<gid_t> own_group;
  AskDatabase([&](char* buffer, size_t size) {
    passwd entry = {};
    passwd* found = nullptr;
    const int error = getpwuid_r(uid, &entry, buffer, size, &found);
    if (found != nullptr) person.name = entry.pw_name, own_group = entry.pw_gid;
    return error;
  });
  person.admin = IsOwn(uid) || (own_group && IsInGroup(person.name, *own_group, kAdminGroup));
  return person;
}

}  // namespace motley::coordinator
