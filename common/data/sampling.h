// Which samples form step s: a pure function of (seed, data digest, sequence length, global batch, s). No rank, no plan,
// so the order survives replans. docs/use/training-semantics.md gives the formula; the Python oracle repeats it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace motley {

// Stable 64-bit mixing used for every keyed decision (splitmix64 finaliser).
uint64_t Mix64(uint64_t x);
// FNV-1a of the text, then Mix64.
uint64_t HashText(std::string_view text);

// A pseudo-random permutation of [0, n) without state: a 4-round Feistel network over the next even power of two, walking
// cycles back into range.
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t key);
  uint64_t operator()(uint64_t index) const;  // index < n

 private:
  uint64_t n_, key_;
  int half_bits_;
};

class SampleOrder {
 public:
  // num_samples: training samples in the data (at least one).
  SampleOrder(int64_t seed, std::string_view data_digest, int64_t seq_len, int64_t num_samples);
  // The sample indices of global batch positions [begin, begin + count) of step `step` with batch size `global_batch`.
  // Position p = step * global_batch + begin + i; pass over the data p / num_samples, own permutation for each pass.
  std::vector<int64_t> Samples(int64_t step, int64_t global_batch, int64_t begin, int64_t count) const;

 private:
  uint64_t key_;
  int64_t num_samples_;
};

}  // namespace motley
