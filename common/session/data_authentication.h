// Whether the messages between two ranks carry authentication codes: a worker's choice for its ranks (worker.data_authentication;
// docs/use/security.md, "What ranks send each other").
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace motley {

enum class DataAuthentication { kBetweenMachines, kAlways, kNever };

std::string_view DataAuthenticationName(DataAuthentication value);                 // "between-machines", "always", "never"
std::optional<DataAuthentication> ParseDataAuthentication(std::string_view name);  // null: no such name

// Of two ranks with these data addresses, the same for both. What goes between addresses of loopback, or from an address to
// itself, does not leave the machine.
bool Authenticates(DataAuthentication value, const std::string& address, const std::string& other_address);

}  // namespace motley
