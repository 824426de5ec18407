#include "common/session/data_authentication.h"

#include <array>

#include "common/base/address.h"

namespace motley {
namespace {

constexpr std::array<std::string_view, 3> kAuthenticationNames = {"between-machines", "always", "never"};

}  // namespace

std::string_view DataAuthenticationName(DataAuthentication value) { return kAuthenticationNames[static_cast<size_t>(value)]; }

std::optional<DataAuthentication> ParseDataAuthentication(std::string_view name) {
  for (size_t i = 0; i < kAuthenticationNames.size(); ++i) {
    if (kAuthenticationNames[i] == name) return static_cast<DataAuthentication>(i);
  }
  return std::nullopt;
}

bool Authenticates(DataAuthentication value, const std::string& address, const std::string& other_address) {
  if (value != DataAuthentication::kBetweenMachines) return value == DataAuthentication::kAlways;
  return address != other_address && !(IsLoopback(address) && IsLoopback(other_address));
}

}  // namespace motley
