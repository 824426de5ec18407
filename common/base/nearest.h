// "Did you mean ...": the nearest known word to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace motley {

// The known word with the fewest edits (insert, delete, replace; case is free). Ties go to the longest common beginning, then
// to the first. Empty when nothing is near: more than half of the longer word's characters would change.
std::string NearestWord(std::string_view word, const std::vector<std::string>& known);

}  // namespace motley
