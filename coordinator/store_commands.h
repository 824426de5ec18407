// motley-coordinator check | backup | restore: the store without a service.
#pragma once

#include <optional>
#include <ostream>

namespace motley::coordinator {

// Runs the command that argv[1] names and returns its exit code; null when it names none. 0 done, 64 usage, 65 damaged or another
// version, 66 no store or file, 69 in use, 73 cannot create or not allowed, 74 disk full, 78 configuration.
std::optional<int> RunStoreCommand(int argc, const char* const* argv, std::ostream& out, std::ostream& error);

}  // namespace motley::coordinator
