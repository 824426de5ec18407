#include "worker/engine/lanes/stream_lane.h"

#include <utility>

#include "absl/time/clock.h"
#include "common/program/launch_ahead.h"

namespace motley::engine {
namespace {

// An aborted communicator's kernels end by themselves. What is not over then is left to the end of the process.
constexpr absl::Duration kDrain = absl::Seconds(5);

}  // namespace

void Drain(const DeviceStream& stream) {
  const absl::Time until = absl::Now() + kDrain;
  while (!stream.Idle() && absl::Now() < until) absl::SleepFor(absl::Milliseconds(1));
}

class StreamLane::Event : public LaneEvent {
 public:
  explicit Event(StreamMarkPtr mark) : mark_(std::move(mark)) {}

  absl::StatusOr<bool> Fired() const override { return mark_->Reached(); }
  absl::Duration end() const override { return mark_->At(); }
  const StreamMarkPtr& mark() const { return mark_; }

 private:
  const StreamMarkPtr mark_;
};

void StreamLane::Begin() {
  ran_.clear();
  unfinished_.clear();
  Note(stream_.Settle());
}

void StreamLane::Wait(LaneEventPtr event) {
  if (event == nullptr || !lanes_.error().ok()) return;  // null: an error came before it was recorded
  if (const auto* const streams = dynamic_cast<const Event*>(event.get())) {
    Note(stream_.Wait(streams->mark()));
  } else {
    Note(lanes_.Await(*event));
  }
}

void StreamLane::Run(LaneWork work) {
  if (!lanes_.error().ok()) return;
  if (work.reads_back && !AwaitAll().ok()) return;
  if (work.flops && !AwaitPlace().ok()) return;
  absl::StatusOr<StreamMarkPtr> begin = stream_.Mark();
  Note(begin.status());
  Note(stream_.Launch(std::move(work.run)));
  absl::StatusOr<StreamMarkPtr> end = stream_.Mark();
  Note(end.status());
  if (end.ok() && work.flops) unfinished_.push_back(*end);
  if (begin.ok() && end.ok()) ran_.push_back({*std::move(begin), *std::move(end), work.span});
}

LaneEventPtr StreamLane::Record() {
  if (!lanes_.error().ok()) return nullptr;
  absl::StatusOr<StreamMarkPtr> mark = stream_.Mark();
  Note(mark.status());
  return mark.ok() ? std::make_shared<const Event>(*std::move(mark)) : nullptr;
}

absl::Status StreamLane::Finish() {
  if (lanes_.error().ok() && AwaitAll().ok()) {
    for (const Ran& ran : ran_) {
      if (ran.span != nullptr) *ran.span = {ran.begin->At(), ran.end->At()};
    }
  }
  const absl::Status error = lanes_.error();
  if (!error.ok()) Drain(stream_);
  return error;
}

absl::Status StreamLane::AwaitAll() {
  absl::StatusOr<StreamMarkPtr> here = stream_.Mark();
  Note(here.status());
  return here.ok() ? lanes_.Await(**here) : lanes_.error();
}

absl::Status StreamLane::AwaitPlace() {
  if (unfinished_.size() < kMostUnfinishedPasses) return absl::OkStatus();
  const StreamMarkPtr oldest = std::move(unfinished_.front());
  unfinished_.pop_front();
  return lanes_.Await(*oldest);
}

void StreamLane::Note(const absl::Status& status) {
  if (!status.ok()) lanes_.Fail(status);
}

}  // namespace motley::engine
