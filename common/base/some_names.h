// "a, b, c, d and 3 more": a list of a thousand names helps nobody.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace motley {

std::string SomeNames(const std::vector<std::string>& names, size_t most = 4);

}  // namespace motley
