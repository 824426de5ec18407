// Text as a shell takes it: for lines that people paste, whatever others wrote into what the line names.
#pragma once

#include <string>
#include <string_view>

namespace motley {

// In single quotes: the shell expands nothing in it. Control characters are as CleanLine shows them, and not what was given.
std::string ShellQuoted(std::string_view text);

}  // namespace motley
