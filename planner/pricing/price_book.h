// Prices of one setting's plans, each asked once: several strategies find one plan, and a part of a cluster is searched again
// when the answer uses it. Thread-safe.
#pragma once

#include <optional>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "planner/plan/layout_digest.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

class PriceBook {
 public:
  struct Known {
    double seconds = 0;
    absl::Status fits;  // RESOURCE_EXHAUSTED: what it lacks as scheduled
  };
  // Price's, or its error. `setting`: always the same.
  absl::StatusOr<Known> PriceOf(const Setting& setting, const Plan& plan);

 private:
  struct Entry {
    absl::Mutex mutex;  // held by who asks first: the others wait
    std::optional<absl::StatusOr<Known>> known;
  };
  Entry& EntryOf(const Plan& plan);

  absl::Mutex mutex_;
  std::unordered_map<LayoutDigest, Entry, LayoutDigestHash> entries_;
};

}  // namespace motley::planner
