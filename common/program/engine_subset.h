// The part of the program language that the engine runs (docs/inside/program.md, "What the engine runs"). The coordinator asks
// before it sends a program, the rank before it starts.
#pragma once

#include "absl/status/status.h"
#include "common/program/program.h"

namespace motley {

// UNIMPLEMENTED names the rank, the first instruction that the engine has no code for, and what it is. Of `program`, which need
// not pass Validate.
absl::Status RunsInEngine(const Program& program);

}  // namespace motley
