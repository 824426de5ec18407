// Which NCCL a build of motley-rank opens: it is the rank that knows where to look.
#pragma once

#include <string>

namespace motley::worker {

// 22809 is 2.28.9; 0: none, or the program does not say it within seconds. Blocks; starts the program (`--nccl`), so it belongs
// where the devices are looked for and not where they are used.
int NcclOf(const std::string& rank_binary);

}  // namespace motley::worker
