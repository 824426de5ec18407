// A set of a layer's operators: what a rank recomputes in the backward pass (Baton: recomputation by operator).
// None() and All() are the two ends that other systems know. A plain value.
#pragma once

#include <cstdint>

#include "common/model/op.h"

namespace motley {

class OpSet {
 public:
  constexpr OpSet() = default;
  static constexpr OpSet None() { return OpSet(); }
  static constexpr OpSet All() { return OpSet(~uint32_t{0}); }
  constexpr bool all() const { return bits_ == ~uint32_t{0}; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool Has(Op op) const { return (bits_ >> static_cast<int>(op)) & 1; }
  constexpr OpSet With(Op op) const { return all() ? *this : OpSet(bits_ | (uint32_t{1} << static_cast<int>(op))); }
  constexpr OpSet Without(OpSet other) const { return OpSet(bits_ & ~other.bits_); }
  // As programs write it (Forward::operators): 0 means all, so an empty set has no such form.
  static constexpr OpSet OfProgram(uint32_t operators) { return operators == 0 ? All() : OpSet(operators); }
  constexpr uint32_t InProgram() const { return all() ? 0 : bits_; }
  friend constexpr OpSet operator|(OpSet a, OpSet b) { return OpSet(a.bits_ | b.bits_); }
  friend constexpr OpSet operator&(OpSet a, OpSet b) { return OpSet(a.bits_ & b.bits_); }
  friend constexpr auto operator<=>(const OpSet&, const OpSet&) = default;

 private:
  constexpr explicit OpSet(uint32_t bits) : bits_(bits) {}
  uint32_t bits_ = 0;
};

}  // namespace motley
