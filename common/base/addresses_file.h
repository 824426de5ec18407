// The file in which a daemon says where it can be reached: whoever started it with port 0 reads there which port it got, so that
// nobody has to choose a port before it is bound.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"

namespace motley {

// A JSON object: {"pid": 4711, "metrics": "127.0.0.1:40001", ...}. Empty addresses are left out. The process id tells a reader
// whether the file is that of the daemon it started, or left by an earlier one. The file appears whole or not at all; its folder
// must exist. Errors are those of FileError.
absl::Status WriteAddressesFile(const std::string& path, const std::map<std::string, std::string>& addresses);

}  // namespace motley
