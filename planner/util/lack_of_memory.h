// Plans that do not fit, with how much they lack: of several reasons the nearest miss is the one to tell.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace motley::planner {

// RESOURCE_EXHAUSTED that carries the missing bytes beside its message, which names them for people.
absl::Status LackOfMemory(int64_t bytes, absl::string_view message);
// Nothing: another kind of error.
std::optional<int64_t> LackingBytes(const absl::Status& status);
// Whether `a` is more telling than `b`, neither of them OK: it lacks fewer bytes, or says of bytes at all.
bool IsNearerMiss(const absl::Status& a, const absl::Status& b);

}  // namespace motley::planner
