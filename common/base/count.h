// "1 device", "2 devices": a number with its noun, for people.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace motley {

// The plural is the noun with an s unless it is given.
template <typename Number>
std::string Count(Number number, std::string_view one, std::string_view many = {}) {
  if (number == 1) return absl::StrCat(number, " ", std::string(one));
  return many.empty() ? absl::StrCat(number, " ", std::string(one), "s") : absl::StrCat(number, " ", std::string(many));
}

}  // namespace motley
