// Says how long work takes on a lane of a device: by marks of the lane's stream, or, on a device without streams, by the lane's
// schedule, which is the host's clock where no speed is declared. docs/inside/profiles.md
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "worker/engine/lanes/device_lanes.h"
#include "worker/engine/lanes/device_stream.h"
#include "worker/engine/lanes/lane_pacer.h"

namespace motley::engine {

// Of one piece of work.
class LaneTime {
 public:
  // Once LaneTimer::Await has said OK.
  double seconds() const { return end_ == nullptr ? seconds_ : absl::ToDoubleSeconds(end_->At() - begin_->At()); }
  // Of a piece in a stream, by the device's clock.
  absl::Duration begin() const { return begin_->At(); }
  absl::Duration end() const { return end_->At(); }

 private:
  friend class LaneTimer;
  StreamMarkPtr begin_, end_;  // null: no stream
  double seconds_ = 0;
};

// Pieces follow each other on the lane in the order of calls. On a stream they are enqueued and nobody waits for them before
// Await, so what the host takes between them is in no figure as long as the stream has work. After an error no piece runs; a
// timer is for one series of measurements. One thread.
class LaneTimer {
 public:
  using Work = std::function<absl::Status()>;

  // `stream` null: the device has none. Both must outlive the timer, as what work uses must live until Await. `on_error` ends
  // what the stream waits for in vain, `health` says whether its peers are well: of work that has peers.
  LaneTimer(DeviceStream* stream, LanePacer& pacer, std::function<void(const absl::Status&)> on_error = {},
            std::function<absl::Status()> health = {})
      : stream_(stream), pacer_(pacer), lanes_(clock_, std::move(on_error), std::move(health)) {}

  bool on_stream() const { return stream_ != nullptr; }
  // Before the first piece: blocks until the device has done what it was given before.
  void Settle();
  // Unmeasured.
  void Run(Work work);
  // `flops`: of a device with a declared speed.
  LaneTime Measure(std::optional<double> flops, Work work);
  // Blocks until all has ended. The first error of any piece, of the device or of `health`; what a piece threw is thrown again.
  absl::Status Await();

 private:
  // On the lane.
  void Do(const Work& work);
  StreamMarkPtr Mark();
  void Note(const absl::Status& status);

  DeviceStream* const stream_;
  LanePacer& pacer_;
  SystemClock clock_;
  DeviceLanes lanes_;  // keeps the first error
  absl::Mutex mutex_;
  std::exception_ptr thrown_ ABSL_GUARDED_BY(mutex_);  // by a piece
};

}  // namespace motley::engine
