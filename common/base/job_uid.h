// What tells jobs of one id apart: two clusters may each have one, and an id that was freed is given again.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/ids.h"

namespace motley {

// 128 random bits as 32 hexadecimal digits.
absl::StatusOr<JobUid> NewJobUid();
// Whether a text is one: uids become parts of file names.
bool IsJobUid(std::string_view text);

}  // namespace motley
