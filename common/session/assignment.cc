#include "common/session/assignment.h"

namespace motley {

int64_t BatchSize(const RankAssignment& assignment) {
  int64_t samples = 0;
  for (const Microbatch& microbatch : assignment.program.microbatches) samples += microbatch.samples;
  return samples;
}

double OwnedShare(const RankAssignment& assignment) {
  int64_t owned = 0, whole = 0;
  const Ownership& ownership = assignment.ownership;
  for (int32_t block = 0; block < ownership.num_blocks(); ++block) {
    const int64_t own = ownership.NumOwned(block, assignment.rank);
    if (own == 0) continue;  // another stage's
    owned += own;
    whole += ownership.NumElements(block);
  }
  return whole > 0 ? static_cast<double>(owned) / static_cast<double>(whole) : 0;
}

}  // namespace motley
