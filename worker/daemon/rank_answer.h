// What a build of motley-rank answers to one flag, beside any job.
#pragma once

#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace motley::worker {

struct RankAnswer {
  std::string last_line;  // of all that it printed
  std::string how;        // it ended, if not with 0: "exited with status 127"
};

// Starts the program, which loads libtorch, and blocks until its output has ended, and then until itself has, for no longer than
// `to_end`; after half a minute in all, or when `stop` is asked for, it is killed. NOT_FOUND or PERMISSION_DENIED when it cannot
// be run.
absl::StatusOr<RankAnswer> AskRank(const std::string& rank_binary, const std::string& flag, absl::Duration to_end,
                                   const std::stop_token& stop = {});

}  // namespace motley::worker
