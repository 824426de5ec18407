// Who is at the other end of a connection for people, as the kernel says it of a Unix socket. docs/use/security.md, "Owners".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace motley::coordinator {

struct Person {
  std::optional<uint32_t> uid;  // nothing: by TCP, where nobody is known
  std::string name;             // of the account; its number where it has no name
  bool admin = false;           // root, the coordinator's own account, a member of motley-admin
};

// Nothing: it is no Unix socket.
std::optional<uint32_t> UidOf(int fd);
// Root, or the coordinator's own account.
bool IsOwn(uint32_t uid);
// Asks the system for name and groups, which may take as long as a directory server does.
Person PersonOf(uint32_t uid);

// Members of this group may do everything.
inline constexpr char kAdminGroup[] = "motley-admin";

}  // namespace motley::coordinator
