// Method:     W(0) = 0, W(g) = min over pieces p of W(max(0, g - p.samples)) + p.seconds.
// Complexity: samples x pieces; dominated pieces (no more samples for no less seconds) are dropped first.
#include "planner/strategies/poplar/poplar_cover.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace motley::planner {
namespace {

// Ascending samples with strictly ascending seconds: what is dearer and smaller than another never helps.
std::vector<size_t> Undominated(const std::vector<CoverPiece>& pieces) {
  std::vector<size_t> kept;
  double cheapest = std::numeric_limits<double>::infinity();
  for (size_t i = pieces.size(); i-- > 0;) {
    if (pieces[i].seconds >= cheapest) continue;
    cheapest = pieces[i].seconds;
    kept.push_back(i);
  }
  return kept;  // descending samples
}

}  // namespace

CheapestCover::CheapestCover(const std::vector<CoverPiece>& pieces, int64_t samples)
    : pieces_(pieces),
      seconds_(static_cast<size_t>(samples) + 1, std::numeric_limits<double>::infinity()),
      piece_(static_cast<size_t>(samples) + 1, 0) {
  const std::vector<size_t> useful = Undominated(pieces);
  seconds_[0] = 0;
  for (int64_t g = 1; g <= samples; ++g) {
    double best = std::numeric_limits<double>::infinity();
    size_t chosen = 0;
    for (const size_t i : useful) {
      const double seconds = seconds_[std::max<int64_t>(0, g - pieces[i].samples)] + pieces[i].seconds;
      if (seconds < best) {
        best = seconds;
        chosen = i;
      }
    }
    seconds_[g] = best;
    piece_[g] = chosen;
  }
}

std::vector<size_t> CheapestCover::Pieces(int64_t samples) const {
  std::vector<size_t> used;
  if (pieces_.empty()) return used;
  while (samples > 0) {
    used.push_back(piece_[samples]);
    samples -= pieces_[used.back()].samples;
  }
  std::sort(used.begin(), used.end(), std::greater<>());
  return used;
}

}  // namespace motley::planner
