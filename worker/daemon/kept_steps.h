// The newest steps of an epoch with their instructions' times, for whoever asks to see one (docs/use/timelines.md). Not
// thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <set>

#include "absl/status/statusor.h"
#include "worker/engine/base/rank_host.h"

namespace motley::worker {

class KeptSteps {
 public:
  static constexpr size_t kMostSteps = 16;
  static constexpr size_t kMostSpans = 4 << 20;  // of all of them together: 64 MiB

  // Another epoch begins.
  void Clear();
  void Add(const engine::StepResult& step);
  // Null: it is to come. NOT_FOUND: it is over and not kept; says which are.
  absl::StatusOr<const engine::StepResult*> Find(int64_t step) const;

 private:
  std::deque<engine::StepResult> steps_;  // the newest last
  size_t spans_ = 0;
};

}  // namespace motley::worker
