// Which NCCL a build of motley-rank opens: it is the rank that knows where to look.
#pragma once

#include <string>

namespace motley::worker {

// "2.28.9"; empty: none, or the program does not say it within seconds. Blocks; starts the program (`--nccl`), so it belongs
// where the devices are looked for and not where they are used.
std::string NcclOf(const std::string& rank_binary);

}  // namespace motley::worker
