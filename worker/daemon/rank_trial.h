// Whether the ranks of this node start at all: asked when the worker starts, so that its log says what is wrong before a job
// finds out.
#pragma once

#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "worker/daemon/offer.h"

namespace motley::worker {

// FAILED_PRECONDITION: the program does not load or is another libtorch's; says what it printed, which is the loader's line.
// Blocks for as long as libtorch takes to load.
absl::Status TryRank(const std::string& rank_binary, const std::stop_token& stop = {});

// By build: the devices that have it.
std::set<std::string> RankBinaries(const std::vector<OfferedDevice>& devices);

// Tries each build once, on a thread of its own, and logs those that do not start. They stay offered: somebody may mend them, and
// every epoch starts new processes.
class RankTrial {
 public:
  explicit RankTrial(std::set<std::string> rank_binaries);

 private:
  std::jthread thread_;
};

}  // namespace motley::worker
