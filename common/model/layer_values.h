// The tensors inside a layer, by name: what its operators hand to each other. Plain values.
#pragma once

#include <cstdint>

namespace motley {

enum class LayerValue {
  kInput,
  kMean1,  // of each token; undefined for a norm that has none
  kRstd1,
  kScale1,  // the norm's weight and bias: parameters, whose gradients the norm's backward makes with that of its input
  kShift1,
  kNormed1,
  kHeads,       // queries, keys and values side by side, normed where heads are, rotated where positions are rotary
  kRawHeads,    // queries and keys before their norm
  kHeadsRstd,   // of each of them
  kHeadsScale,  // the weights of the norms of queries and keys
  kLogsumexp,
  kAttended,
  kProjected1,   // what attention adds to the residual stream, before the norm behind it
  kBehindRstd1,  // of the norm behind attention, where there is one before it as well, and its weight
  kBehindScale1,
  kResidual,  // the second norm's input, where norms come before
  kMean2,
  kRstd2,
  kScale2,
  kShift2,
  kNormed2,
  kUp,
  kActivated,
  kProjected2,  // what the MLP adds, before the norm behind it
  kBehindRstd2,
  kBehindScale2,
  kOutput,
};
inline constexpr int kNumLayerValues = static_cast<int>(LayerValue::kOutput) + 1;

class ValueSet {
 public:
  constexpr ValueSet() = default;
  template <typename... Values>
  static constexpr ValueSet Of(Values... values) {
    return ValueSet((uint32_t{0} | ... | (uint32_t{1} << static_cast<int>(values))));
  }
  constexpr bool Has(LayerValue value) const { return (bits_ >> static_cast<int>(value)) & 1; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool Meets(ValueSet other) const { return (bits_ & other.bits_) != 0; }
  constexpr ValueSet Without(ValueSet other) const { return ValueSet(bits_ & ~other.bits_); }
  friend constexpr ValueSet operator|(ValueSet a, ValueSet b) { return ValueSet(a.bits_ | b.bits_); }
  friend constexpr ValueSet operator&(ValueSet a, ValueSet b) { return ValueSet(a.bits_ & b.bits_); }
  friend constexpr bool operator==(ValueSet, ValueSet) = default;

  // Calls visit(value) for each, in their order.
  template <typename Visit>
  constexpr void ForEach(const Visit& visit) const {
    for (int i = 0; i < kNumLayerValues; ++i) {
      if (Has(static_cast<LayerValue>(i))) visit(static_cast<LayerValue>(i));
    }
  }

 private:
  constexpr explicit ValueSet(uint32_t bits) : bits_(bits) {}
  uint32_t bits_ = 0;
};

}  // namespace motley
