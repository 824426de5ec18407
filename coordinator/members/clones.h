// Workers that say to be a node that is there already: its machine, or the folder of its identity, was copied. Each is refused;
// people are told once, however often it tries.
#pragma once

#include <string>

#include "coordinator/core/core.h"

namespace motley::coordinator {

// One was refused that came from this address. It may also be the node itself, started anew before its loss was noticed.
void NoteClone(Core& core, const NodeName& node, const std::string& address);

// Of those after whose refusal the node itself was heard, as it would not be if it had come back: an event each. For a periodic
// job.
void SayClones(Core& core);

}  // namespace motley::coordinator
