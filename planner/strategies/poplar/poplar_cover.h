// The cheapest way to cover samples with pieces: an unbounded knapsack. Poplar needs it twice: a device's samples from
// microbatches, a step's samples from rounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace motley::planner {

// A piece covers at most `samples` (>= 1) and costs `seconds` (>= 0).
struct CoverPiece {
  int64_t samples = 0;
  double seconds = 0;
};

class CheapestCover {
 public:
  // `pieces` ascending in samples. O(samples x pieces). Of equal costs the largest piece wins.
  CheapestCover(const std::vector<CoverPiece>& pieces, int64_t samples);

  int64_t samples() const { return static_cast<int64_t>(seconds_.size()) - 1; }
  double Seconds(int64_t samples) const { return seconds_[samples]; }  // infinite without pieces; never falls
  const std::vector<double>& seconds() const { return seconds_; }
  // Indices of the pieces that cover `samples`, descending; together they may cover more.
  std::vector<size_t> Pieces(int64_t samples) const;

 private:
  std::vector<CoverPiece> pieces_;
  std::vector<double> seconds_;
  std::vector<size_t> piece_;  // the last one, by samples
};

}  // namespace motley::planner
