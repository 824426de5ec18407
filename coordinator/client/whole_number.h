// The check of a flag that takes a whole number.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace motley::client {

// For CLI::Option::check(). CLI11's own names the range of a double, 309 digits long.
std::function<std::string(const std::string&)> WholeFrom(int64_t least);

}  // namespace motley::client
