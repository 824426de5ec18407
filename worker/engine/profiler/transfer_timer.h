// A timer of a lane whose work is a communicator's: who waits there for a lost peer is woken.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "worker/engine/lanes/lane_timer.h"
#include "worker/engine/transport/communicator.h"

namespace motley::engine {

// Of the lane's stream: its calls do not block. Both must outlive it.
inline LaneTimer TransferTimer(DeviceStream& stream, LanePacer& pacer, Communicator& communicator) {
  return LaneTimer(
      &stream, pacer, [&communicator](const absl::Status& error) { communicator.Abort(std::string(error.message())); },
      [&communicator] { return communicator.Health(); });
}

}  // namespace motley::engine
