// Command line and configuration file of motley-coordinator.
#pragma once

#include <optional>

#include "coordinator/core/config.h"

namespace motley::coordinator {

// The configuration to run with, or the code to exit with at once (0 after --help or --version; sysexits otherwise, with the
// reason on standard error).
struct FlagsResult {
  std::optional<Config> config;
  int exit_code = 0;
};
FlagsResult ParseFlags(int argc, char** argv);

// sysexits code of a failed start or command.
int ExitCode(const absl::Status& status);

}  // namespace motley::coordinator
