// Whether a text is records rather than something to read: told by its first lines, whatever the file is called. Prose and source
// code with commas, tabs and brackets are plain: where it is not certain, nothing is refused.
#pragma once

#include <string_view>

namespace motley {

enum class TextShape {
  kPlain,
  kJsonLines,    // a JSON object in every line
  kJsonRecords,  // one JSON list of objects or texts, or an object around it
  kTable,        // the same number of separated fields in every line
};

// `head`: the beginning of the text, up to kTextHeadBytes; what is shorter is the whole text. Linear in its length.
inline constexpr size_t kTextHeadBytes = size_t{1} << 20;
TextShape ShapeOf(std::string_view head);

}  // namespace motley
