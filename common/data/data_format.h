// Training data is plain text or bare token numbers. What is known to be something else is refused by name, before it is taken
// for one of them or for damage.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace motley {

// `head`: the file's first bytes, up to a mebibyte. Told by its name, by its first bytes, or by what its first lines are
// (common/data/text_shape.h), whatever it is called. INVALID_ARGUMENT says what the file is and how to get text out of it.
absl::Status CheckIsText(const std::string& file, std::string_view head);

// The same of a file of bare token numbers, which have no mark of their own: it is refused where its first bytes are another's.
absl::Status CheckIsBareTokens(const std::string& file, std::string_view head);

}  // namespace motley
