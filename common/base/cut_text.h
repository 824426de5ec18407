// Texts that came from elsewhere, cut to a length that may be kept or sent on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace motley {

// `text` unchanged when it has at most `max_bytes`; else its beginning, cut between UTF-8 characters, and a mark that says how
// many bytes are missing. Never longer than max(max_bytes, 48).
std::string CutText(std::string_view text, size_t max_bytes);

}  // namespace motley
