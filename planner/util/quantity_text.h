// Seconds and bytes for people: "412 ms", "39.1 GiB".
#pragma once

#include <cstdint>
#include <string>

namespace motley::planner {

std::string SecondsText(double seconds);
std::string BytesText(int64_t bytes);

}  // namespace motley::planner
