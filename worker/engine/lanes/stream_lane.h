// A lane of a device with streams: work is enqueued on the caller's thread, nobody waits for it (docs/inside/cuda.md).
#pragma once

#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "worker/engine/lanes/device_lane.h"
#include "worker/engine/lanes/device_lanes.h"
#include "worker/engine/lanes/device_stream.h"

namespace motley::engine {

// After an error: gives the stream some seconds to get rid of what it runs.
void Drain(const DeviceStream& stream);

// All calls from one thread.
class StreamLane : public DeviceLane {
 public:
  // Both must outlive the lane.
  StreamLane(DeviceLanes& lanes, DeviceStream& stream) : lanes_(lanes), stream_(stream) {}

  void Begin() override;
  // A thread's event is awaited by the caller: a stream cannot. So a device some of whose lanes are threads gives its streams
  // threads, too (queued_lane.h).
  void Wait(LaneEventPtr event) override;
  // Work that reads back waits here for the lane. So does work with FLOPs while too much of it has not ended: a card takes about
  // a thousand launches that wait, of all lanes together, and the peer may wait for another lane's.
  void Run(LaneWork work) override;
  LaneEventPtr Record() override;
  absl::Status Finish() override;

 private:
  class Event;
  struct Ran {
    StreamMarkPtr begin, end;
    InstructionSpan* span;
  };

  absl::Status AwaitAll();
  absl::Status AwaitPlace();
  void Note(const absl::Status& status);

  DeviceLanes& lanes_;
  DeviceStream& stream_;
  std::vector<Ran> ran_;                  // of this step
  std::deque<StreamMarkPtr> unfinished_;  // ends of the newest work with FLOPs, as far as is known
};

}  // namespace motley::engine
