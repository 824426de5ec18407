// Plans that do not fit, with how much they lack: of several reasons the nearest miss is the one to tell.
//
// One unit for all: the bytes that the fullest device of a whole plan lacks. The fullest lacks at least what all devices
// together lack, divided by their number (planner/setting/least_lack.h).
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace motley::planner {

// What was looked at: every device of a whole plan, or a search that gave up at one that lacked memory. Of the latter the bytes
// are only a floor: a plan that mends that device may lack more elsewhere.
enum class LackIn { kWholePlan, kOneDevice };

// RESOURCE_EXHAUSTED that carries the missing bytes beside its message, which names them for people.
absl::Status LackOfMemory(int64_t bytes, absl::string_view message, LackIn what = LackIn::kWholePlan);
// Nothing: another kind of error.
std::optional<int64_t> LackingBytes(const absl::Status& status);
// Whether `a` is more telling than `b`, neither of them OK: it says of bytes at all, of a whole plan, or of fewer bytes.
bool IsNearerMiss(const absl::Status& a, const absl::Status& b);

}  // namespace motley::planner
