// What a rank's calls carry, by what they are for.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/session/assignment.h"
#include "worker/engine/base/rank_host.h"

namespace motley::engine {

struct CountedBytes {
  int64_t gathered = 0, reduced = 0;  // arrays of collectives over more than one rank
  int64_t handed_over = 0;            // sent
  void Add(const CountedBytes& other) {
    gathered += other.gathered;
    reduced += other.reduced;
    handed_over += other.handed_over;
  }
};

// Runs the rank's assignment over a communicator that counts, together with the others'. Errors of the run.
absl::StatusOr<CountedBytes> TrainCounting(const RankAssignment& assignment, RankHost& host);

}  // namespace motley::engine
