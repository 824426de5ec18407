#include "common/base/names.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"

namespace motley {
namespace {

constexpr char kAllowed[] = "1 to 63 letters, digits, '-', '.' or '_', not dots alone";

bool IsName(std::string_view name) {
  // As a file name "." and ".." are folders.
  if (name.find_first_not_of('.') == std::string_view::npos) return false;
  return name.size() <= 63 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_';
         });
}

}  // namespace

absl::Status CheckName(std::string_view field, const std::string& name) {
  if (IsName(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(std::string(field), " must be ", kAllowed, ", got ", Quoted(name)));
}

absl::Status CheckDeviceId(std::string_view field, const NodeName& node, const DeviceId& device) {
  const std::string begin = absl::StrCat(node.value(), "/");
  const std::string& id = device.value();
  if (absl::StartsWith(id, begin) && IsName(std::string_view(id).substr(begin.size()))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(field), " must be '", begin, "' and ", kAllowed, ", got ", Quoted(id)));
}

absl::Status CheckNumericAddress(std::string_view field, const std::string& address) {
  unsigned char parsed[sizeof(in6_addr)];
  // inet_pton reads up to a NUL.
  const bool whole = address.find('\0') == std::string::npos;
  if (whole && (::inet_pton(AF_INET, address.c_str(), parsed) == 1 || ::inet_pton(AF_INET6, address.c_str(), parsed) == 1)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      std::string(field), " must be a numeric address of this node (`ip -brief address` lists them), got ", Quoted(address)));
}

absl::Status CheckHostAddress(std::string_view field, const std::string& address) {
  absl::Status numeric = CheckNumericAddress(field, address);
  if (!numeric.ok()) return numeric;
  const auto no_hosts = [&](const char* why) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(field), " = ", Quoted(address), why,
                     "; give the address of this node's own card that the other nodes reach (`ip -brief address` lists them)"));
  };
  in_addr v4;
  in6_addr v6;
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) {
    const uint32_t host = ntohl(v4.s_addr);
    if (host >> 24 == 0) return no_hosts(" stands for every address of a machine and is none");
    if (host >> 28 >= 14) return no_hosts(" is no single machine's address");
    return absl::OkStatus();
  }
  if (::inet_pton(AF_INET6, address.c_str(), &v6) != 1) return absl::OkStatus();
  if (IN6_IS_ADDR_UNSPECIFIED(&v6)) return no_hosts(" stands for every address of a machine and is none");
  if (IN6_IS_ADDR_MULTICAST(&v6)) return no_hosts(" is no single machine's address");
  if (IN6_IS_ADDR_LINKLOCAL(&v6)) return no_hosts(" is good on one cable only, and peers cannot tell which");
  return absl::OkStatus();
}

}  // namespace motley
