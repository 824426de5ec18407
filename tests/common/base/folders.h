// Where the sources lie, and what was built of them. Asked here, as a folder on a command line would keep a clone from another's
// compiler cache.
#pragma once

#include <string>

namespace motley {

std::string SourceFolder();
std::string BuildFolder();

}  // namespace motley
