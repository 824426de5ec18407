// A stream's lane with a thread of its own that gives the stream its work: where other lanes of the device are threads, a stream
// that is to wait for one of them holds up this thread and not the issuer of all lanes (docs/cuda.md).
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "worker/engine/lanes/device_lane.h"
#include "worker/engine/lanes/device_lanes.h"
#include "worker/engine/lanes/device_stream.h"
#include "worker/engine/lanes/stream_lane.h"

namespace motley::engine {

class QueuedLane : public DeviceLane {
 public:
  // `on_start` runs on the lane's thread before any work and before the constructor returns. All must outlive the lane.
  QueuedLane(DeviceLanes& lanes, DeviceStream& stream, const std::function<void()>& on_start);
  // What is queued is dropped.
  ~QueuedLane() override;

  void Begin() override;
  void Wait(LaneEventPtr event) override;
  void Run(LaneWork work) override;
  LaneEventPtr Record() override;
  absl::Status Finish() override;

 private:
  class Promise;

  void Add(std::function<void()> call);
  void Loop();

  DeviceLanes& lanes_;
  StreamLane stream_;  // the thread's alone, but for Begin
  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool idle_ ABSL_GUARDED_BY(mutex_) = false;  // nothing queued and nothing under way
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace motley::engine
