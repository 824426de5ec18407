// What tells plans apart that do different things: who computes, keeps and sends what. For memories of searches, not for files.
#pragma once

#include <cstddef>
#include <cstdint>

#include "planner/plan/plan.h"

namespace motley::planner {

// 128 bits: plans that differ and have the same do not happen.
struct LayoutDigest {
  uint64_t first = 0, second = 0;
  friend bool operator==(const LayoutDigest&, const LayoutDigest&) = default;
};
struct LayoutDigestHash {
  size_t operator()(const LayoutDigest& digest) const { return static_cast<size_t>(digest.first); }
};

// Nothing of what found the plan, was predicted or is left out counts; nor do owners and schedules, which follow from the rest of
// a plan that is not finished.
LayoutDigest DigestOf(const Plan& plan);

}  // namespace motley::planner
