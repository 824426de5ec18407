#include "common/session/overlap_text.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace motley {

std::string OverlapText(const std::vector<Overlap>& overlap) {
  if (overlap.empty()) return "";
  Overlap most;
  for (const Overlap& of_rank : overlap) {
    most.compute = std::max(most.compute, of_rank.compute);
    most.collectives = std::max(most.collectives, of_rank.collectives);
  }
  return absl::StrFormat("compute takes up to %.3g times as long beside collectives, collectives %.3g times beside compute",
                         most.compute, most.collectives);
}

}  // namespace motley
