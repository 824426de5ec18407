// Texts that list words: "n3, n2/gpu1".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace motley {

// The words between the commas, without blanks around them; empty ones are left out.
std::vector<std::string> Listed(std::string_view text);

}  // namespace motley
