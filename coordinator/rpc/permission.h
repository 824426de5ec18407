// What a person may do where jobs have owners (server.owners). docs/use/security.md, "Owners".
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "coordinator/rpc/person.h"

namespace motley::coordinator {

// `method` as gRPC names it; `job`: that the call is about, empty: none. What a method needs is a column of the table of roles.
// PERMISSION_DENIED says what is missing and who could. A job that is not known is nobody's: its method says so.
absl::Status CheckPermission(const ClusterState& state, const Person& person, std::string_view method, const std::string& job);

// The line of the log for a call, "audit: alice (1001) StopJob a: done"; `about`: what the call is about, empty: nothing.
std::string AuditLine(const Person& person, std::string_view method, const std::string& about, const absl::Status& status);
// Logs it for a call that changes something; nothing for others.
void Audit(const Person& person, std::string_view method, const std::string& about, const absl::Status& status);

}  // namespace motley::coordinator
