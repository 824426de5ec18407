// A machine's own name often stands for loopback on that machine (127.0.1.1 in /etc/hosts, as Debian's installer writes it), and
// for its card's number everywhere else.
#pragma once

#include <string>

namespace motley::coordinator {

// Why no other machine comes in at workers.listen, and what helps: `address`, as it is configured, is a name for which `fd`
// listens on loopback. Empty: it is none.
std::string WhyOthersStayOut(const std::string& address, int fd);

}  // namespace motley::coordinator
