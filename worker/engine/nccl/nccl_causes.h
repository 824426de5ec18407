// Why NCCL mostly fails on a machine, from what it says and what the machine allows. Pure. docs/inside/nccl.md
#pragma once

#include <string>

#include "common/device/machine_limits.h"

namespace motley::engine {

// The likely cause of what NCCL said, and what mends it. Never empty: where nothing is known, how to make NCCL say more.
std::string LikelyCause(const std::string& said, const MachineLimits& limits);

}  // namespace motley::engine
