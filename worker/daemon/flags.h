// The worker's command line and its exit codes (sysexits.h).
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "worker/daemon/config.h"

namespace motley::worker {

struct FlagsResult {
  std::optional<WorkerConfig> config;  // validated; empty: exit with exit_code
  int exit_code = 0;
};

// Reads --config, puts the flags of config_flags.h in, fills defaults (host name, motley-rank beside the program), validates.
// Prints what is wrong.
FlagsResult ParseFlags(int argc, char** argv);

// 78 configuration (no member and no token that counts included), 66 no such file, 69 unavailable, 75 the name
// is taken for now or the coordinator speaks another protocol, 70 else.
int ExitCode(const absl::Status& status);

}  // namespace motley::worker
