#include "coordinator/rpc/loopback_name.h"

#include <netdb.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/clean_text.h"

namespace motley::coordinator {

std::string WhyOthersStayOut(const std::string& address, int fd) {
  const absl::StatusOr<HostPort> meant = ParseHostPort("workers.listen", address, 0);
  sockaddr_storage taken = {};
  socklen_t length = sizeof(taken);
  char number[NI_MAXHOST] = "";
  if (!meant.ok() || IsLoopback(meant->host) || getsockname(fd, reinterpret_cast<sockaddr*>(&taken), &length) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&taken), length, number, sizeof(number), nullptr, 0, NI_NUMERICHOST) != 0 ||
      !IsLoopback(number)) {
    return "";
  }
  return absl::StrCat("workers.listen = ", Quoted(address), ": that name stands for ", number,
                      " on this machine (/etc/hosts), where no other one comes in; give the number of its card "
                      "(`ip -brief address` lists them), or 0.0.0.0 for all");
}

}  // namespace motley::coordinator
