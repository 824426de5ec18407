// What follows the name of a key that no job has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace motley {

// "; did you mean 'batch'?", or all that are known.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& known);

// Of a key, or a section and key, that only planning asks about: where, behind "; ". Of others empty.
std::string AskedInPlanning(std::string_view key);

}  // namespace motley
