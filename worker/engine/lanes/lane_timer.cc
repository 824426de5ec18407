#include "worker/engine/lanes/lane_timer.h"

#include "absl/status/statusor.h"
#include "worker/engine/lanes/stream_lane.h"

namespace motley::engine {

void LaneTimer::Settle() {
  if (stream_ != nullptr) Note(stream_->Settle());
}

void LaneTimer::Run(Work work) {
  if (!lanes_.error().ok()) return;
  if (stream_ == nullptr) return Do(work);
  // The work's error is this timer's and not the stream's: another series may follow on it.
  Note(stream_->Launch([this, work = std::move(work)] {
    Do(work);
    return absl::OkStatus();
  }));
}

LaneTime LaneTimer::Measure(std::optional<double> flops, Work work) {
  LaneTime time;
  if (!lanes_.error().ok()) return time;
  if (stream_ == nullptr) {
    const absl::Duration ready = clock_.Now();
    pacer_.Begin(ready);
    Do(work);
    if (!lanes_.error().ok()) return time;
    pacer_.End(flops);
    time.seconds_ = absl::ToDoubleSeconds(pacer_.end() - ready);
    return time;
  }
  time.begin_ = Mark();
  Run(std::move(work));
  time.end_ = Mark();
  return time;
}

absl::Status LaneTimer::Await() {
  if (const StreamMarkPtr mark = stream_ == nullptr ? nullptr : Mark(); mark != nullptr) Note(lanes_.Await(*mark));
  const absl::Status error = lanes_.error();
  if (error.ok()) return error;
  // What it was given still uses the caller's things.
  if (stream_ != nullptr) Drain(*stream_);
  absl::MutexLock lock(&mutex_);
  if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  return error;
}

void LaneTimer::Do(const Work& work) {
  if (!lanes_.error().ok()) return;
  try {
    Note(work());
  } catch (...) {
    {
      absl::MutexLock lock(&mutex_);
      thrown_ = std::current_exception();
    }
    Note(absl::InternalError("measured work threw"));
  }
}

StreamMarkPtr LaneTimer::Mark() {
  absl::StatusOr<StreamMarkPtr> mark = stream_->Mark();
  Note(mark.status());
  return mark.ok() ? *std::move(mark) : nullptr;
}

void LaneTimer::Note(const absl::Status& status) {
  if (!status.ok()) lanes_.Fail(status);
}

}  // namespace motley::engine
