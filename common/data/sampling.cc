#include "common/data/sampling.h"

namespace motley {
namespace {
constexpr int kFeistelRounds = 4;
}  // namespace

uint64_t Mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t HashText(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    hash ^= static_cast<uint8_t>(c);
    hash *= 0x100000001b3ULL;
  }
  return Mix64(hash);
}

Permutation::Permutation(uint64_t n, uint64_t key) : n_(n), key_(key), half_bits_(1) {
  while (half_bits_ < 32 && (uint64_t{1} << (2 * half_bits_)) < n) ++half_bits_;
}

uint64_t Permutation::operator()(uint64_t index) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t value = index;
  // Invariant: each pass is a bijection of the power of two, so following its cycle from inside [0, n) comes back to it.
  // The power is less than 4 n (or 4), so fewer than four passes are expected.
  do {
    uint64_t left = value >> half_bits_, right = value & mask;
    for (int round = 0; round < kFeistelRounds; ++round) {
      const uint64_t next = left ^ (Mix64(Mix64(key_ + static_cast<uint64_t>(round)) ^ right) & mask);
      left = right;
      right = next;
    }
    value = (left << half_bits_) | right;
  } while (value >= n_);
  return value;
}

SampleOrder::SampleOrder(int64_t seed, std::string_view data_digest, int64_t seq_len, int64_t num_samples)
    : key_(Mix64(Mix64(Mix64(static_cast<uint64_t>(seed)) ^ HashText(data_digest)) ^ static_cast<uint64_t>(seq_len))),
      num_samples_(num_samples) {}

std::vector<int64_t> SampleOrder::Samples(int64_t step, int64_t global_batch, int64_t begin, int64_t count) const {
  std::vector<int64_t> samples;
  samples.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t position = step * global_batch + begin + i;
    const uint64_t pass = static_cast<uint64_t>(position / num_samples_);
    const Permutation permutation(static_cast<uint64_t>(num_samples_), Mix64(key_ + pass));
    samples.push_back(static_cast<int64_t>(permutation(static_cast<uint64_t>(position % num_samples_))));
  }
  return samples;
}

}  // namespace motley
