// A path in a request, at which nodes look.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace motley::coordinator {

// INVALID_ARGUMENT begins with the field: not absolute, too long, or a pattern. An empty one is none.
absl::Status CheckAbsolutePath(const char* field, const std::string& path);

}  // namespace motley::coordinator
