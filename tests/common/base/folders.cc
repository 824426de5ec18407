#include "tests/common/base/folders.h"

namespace motley {

std::string SourceFolder() { return MOTLEY_SOURCE_DIR; }
std::string BuildFolder() { return MOTLEY_BUILD_DIR; }

}  // namespace motley
