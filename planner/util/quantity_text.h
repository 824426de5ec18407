// Seconds, bytes, counts and changes for people: "412 ms", "39.1 GiB", "4.8 % faster".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace motley::planner {

std::string SecondsText(double seconds);
std::string BytesText(int64_t bytes);
// 718e6 is "718 M": of tokens for a dollar, which are too many to read.
std::string CountText(double count);
// By a part of the whole: 0.048 is "4.8 % faster", -0.02 "2.0 % slower", what would be printed as 0.0 % "no difference".
std::string ChangeText(double part, std::string_view more, std::string_view less);

}  // namespace motley::planner
