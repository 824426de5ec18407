// A host's communicator for arrays of a device with a memory of its own: they are copied to pinned memory of the host and back,
// in the lane's stream, around each call. The way of cards that reach each other by nothing faster, and of a card beside a CPU.
// Private to the engine.
#pragma once

#include <memory>

#include "worker/engine/transport/communicator.h"
#include "worker/engine/transport/connect_communicator.h"

namespace motley::engine {

// Every call blocks until its bytes are where they belong. Holds as many pinned bytes for each lane as its largest call needed.
std::unique_ptr<Communicator> StageOn(const CommunicatorOptions& options, std::unique_ptr<Communicator> host);

}  // namespace motley::engine
