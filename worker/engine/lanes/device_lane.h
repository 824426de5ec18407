// A lane: what a device runs one after another. The interface of every back end; on a CPU it is a thread (host_lane.h), on a GPU
// a stream (stream_lane.h).
//
// One thread, the issuer, gives all lanes of a device their work. It waits for none of it before Finish, but for a stream's work
// that reads numbers back, or of which too much has not ended. Emulated time is the lane's affair (lane_pacer.h): work neither
// takes nor returns a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/program/step_spans.h"

namespace motley::engine {

// A point of a lane: all that was run on it before. Made by Record. Lanes of one device wait for each other's, whatever their
// back ends.
class LaneEvent {
 public:
  virtual ~LaneEvent() = default;
  // Whether it has been reached. An error of the device. Thread-safe.
  virtual absl::StatusOr<bool> Fired() const = 0;
  // By the lane's schedule. Once fired.
  virtual absl::Duration end() const = 0;
};
using LaneEventPtr = std::shared_ptr<const LaneEvent>;

// A piece of work. Runs on the lane, after everything that the lane was given before it.
struct LaneWork {
  std::function<absl::Status()> run;
  // What a declared speed slows down; nothing: it takes no time of its own (links have their own clocks).
  std::optional<double> flops;
  InstructionSpan* span = nullptr;  // filled in when it has ended, by the lane's schedule; readable after Finish
  // Needs numbers on the host that the lane's earlier work makes, or what it waits for: runs when all of that has ended.
  bool reads_back = false;
};

class DeviceLane {
 public:
  virtual ~DeviceLane() = default;
  // A step begins now: by the lane's schedule nothing that is run from here on begins earlier.
  virtual void Begin() = 0;
  // What is run from here on starts after `event`, another lane's too.
  virtual void Wait(LaneEventPtr event) = 0;
  virtual void Run(LaneWork work) = 0;
  virtual LaneEventPtr Record() = 0;
  // Blocks until all work has ended. The first error of any of the device's lanes: it ends them all, what they had not begun
  // does not run, nor anything later.
  virtual absl::Status Finish() = 0;
};

}  // namespace motley::engine
