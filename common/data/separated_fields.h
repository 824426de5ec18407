// Whether a text is a table of separated values: CSV, TSV and their like.
#pragma once

#include <string_view>

namespace motley {

// `whole`: the text does not break off. Looks at the first lines. What prose and source code do keeps a text from being a table:
// a blank behind a comma, a line with another number of fields, a bracket that opens in one field and closes in another.
bool HoldsSeparatedFields(std::string_view text, bool whole);

}  // namespace motley
