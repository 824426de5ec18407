// Text from elsewhere, made fit to be stored, sent, logged and shown: a wrong byte must not make a message unreadable, a control
// character must neither forge a line of a log nor steer a terminal, and no two texts that differ may look alike by what is not
// seen.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace motley {

// Valid UTF-8 in one line. What is not UTF-8 becomes "\xff", a line end "\n", every other control character, separator of lines,
// turner of the writing direction and character that is not seen "\u001b" (beyond four digits "\U000e0041"). Backslashes stay:
// the result is for people and cannot be turned back. Clean text is returned as it is.
std::string CleanLine(std::string_view text);
// The same for text of many lines: line ends and tabs stay.
std::string CleanText(std::string_view text);

// The most that a message repeats of what it was given.
inline constexpr size_t kMostEchoedBytes = 200;
// CleanLine of the first bytes; "... (400000 bytes)" says when there are more.
std::string Echo(std::string_view text);
// Echo in single quotes.
std::string Quoted(std::string_view text);

}  // namespace motley
