// When the ranks save while they train: whichever of checkpoint.interval (steps) and interval_minutes comes first. Rank 0
// decides, by its own steady clock; the decision travels with the step's scalars, so that all ranks save after the same
// step. Torch-free.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/job/job.h"

namespace motley::engine {

// After a checkpoint that could not be written training goes on for so long: what writes megabytes into a full disk at every
// step trains no more, and a person who frees space waits for half a minute.
inline constexpr absl::Duration kCheckpointRetry = absl::Seconds(30);

class CheckpointSchedule {
 public:
  // `clock` must outlive the schedule.
  CheckpointSchedule(const CheckpointSection& config, const Clock& clock) : config_(config), clock_(clock), since_(clock.Now()) {}

  // Training begins: restoring and the first save do not count.
  void Begin() { since_ = clock_.Now(); }
  // Asked before the step after which `steps_done` steps are done.
  bool Due(int64_t steps_done) const {
    if (config_.folder.empty()) return false;
    const absl::Duration now = clock_.Now();
    if (failed_at_) return now - *failed_at_ >= kCheckpointRetry;
    if (config_.interval > 0 && steps_done % config_.interval == 0) return true;
    return config_.interval_minutes > 0 && now - since_ >= absl::Minutes(config_.interval_minutes);
  }
  void Saved() {
    since_ = clock_.Now();
    failed_at_.reset();
  }
  // What is done again where nothing is saved now.
  absl::Duration Unsaved() const { return clock_.Now() - since_; }
  void Failed() { failed_at_ = clock_.Now(); }

 private:
  const CheckpointSection config_;
  const Clock& clock_;
  absl::Duration since_;
  std::optional<absl::Duration> failed_at_;
};

}  // namespace motley::engine
