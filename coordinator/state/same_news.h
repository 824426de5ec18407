// Whether a job's reason says something new, or only what it said before with the numbers of now.
#pragma once

#include <string_view>

namespace motley::coordinator {

// The same words, where a number may be another one: "in 15 of 15 steps, 13 s" and "in 188 of 188 steps, 9 s". Digits in a name
// ("b/gpu0") are no number.
bool IsSameButNumbers(std::string_view a, std::string_view b);

}  // namespace motley::coordinator
