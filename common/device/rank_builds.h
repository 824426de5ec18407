// The builds of motley-rank: which libtorch, which CUDA, and the cards that its kernels were compiled for. A table, so that the
// worker can say what a card needs before anything is started.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace motley {

struct RankBuild {
  std::string_view libtorch;       // "2.11.0"
  int cuda = 0;                    // 13000 is 13.0
  std::string_view driver_branch;  // the oldest driver that runs it: "580"
  std::vector<int> architectures;  // 86 is sm_86
};

// Newest first.
const std::vector<RankBuild>& RankBuilds();

// "motley-rank" for the newest, else "motley-rank-2.7.1".
std::string RankBinaryName(const RankBuild& build);
// "13.0" of 13000.
std::string CudaVersion(int cuda);

// Whether the build has kernels that a card of this compute capability runs: same major number, minor not above the card's.
bool Covers(const RankBuild& build, int compute_capability);
// Whether a driver runs the build. Within a major number of CUDA older drivers run newer builds.
bool Runs(const RankBuild& build, int driver_cuda);

// The newest of the present builds (names of libtorch) that covers the card and that its driver runs. FAILED_PRECONDITION says
// what is in the way, the card's architecture, an absent build or the driver, with what helps.
absl::StatusOr<RankBuild> ChooseRankBuild(int compute_capability, int driver_cuda, const std::string& driver,
                                          const std::vector<std::string>& present);

}  // namespace motley
