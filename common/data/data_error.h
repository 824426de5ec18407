// The one beginning of what is said about a file of the data.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace motley {

inline absl::Status WrongDataFile(std::string_view file, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("data file ", std::string(file), " ", std::string(what)));
}

}  // namespace motley
