// What climbers of one setting have made of plans: different moves, and different starts, lead to the same ones. Thread-safe.
#pragma once

#include <optional>
#include <unordered_map>

#include "absl/synchronization/mutex.h"
#include "planner/plan/layout_digest.h"
#include "planner/pricing/evaluate.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// Of an evaluation: fitting comes first, then speed.
struct ClimbScore {
  static constexpr double kWorthIt = 0.999;  // a gain below a thousandth is noise of the model
  double overflow = 0, seconds = 0;
  bool Better(const ClimbScore& other) const;
};

class SeenPlans {
 public:
  struct Simulated {
    ClimbScore score;
    size_t tasks = 0;  // of its graph
  };

  // EstimatePlan; nothing where that has an error.
  std::optional<QuickPrice> Estimate(const Setting& setting, const Plan& plan);
  std::optional<Simulated> Find(const LayoutDigest& plan) const;
  void Note(const LayoutDigest& plan, const Simulated& simulated);

 private:
  mutable absl::Mutex mutex_;
  std::unordered_map<LayoutDigest, std::optional<QuickPrice>, LayoutDigestHash> estimated_;
  std::unordered_map<LayoutDigest, Simulated, LayoutDigestHash> simulated_;
};

}  // namespace motley::planner
