// Accounts of this machine, as its user database knows them: files, or a directory server, which may be slow or away.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace motley {

// As whom the installed service runs workers.
inline constexpr char kWorkerAccount[] = "motley-worker";

struct Account {
  uint32_t uid = 0;
  uint32_t group = 0;  // its own; others list it
  std::string name;
};

// NOT_FOUND: there is none. UNAVAILABLE: the database does not say now.
absl::StatusOr<Account> AccountOf(uint32_t uid);
absl::StatusOr<Account> AccountNamed(const std::string& name);
// Of a name, or of a number, which needs no account. The errors of AccountNamed.
absl::StatusOr<uint32_t> UidOfAccount(const std::string& name_or_number);
// False where it cannot be known.
bool IsInGroup(const Account& account, const char* group_name);

}  // namespace motley
