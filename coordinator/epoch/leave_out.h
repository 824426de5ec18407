// Nodes and devices without which a job goes on until their worker is started anew.
#pragma once

#include <string>

#include "coordinator/core/core.h"

namespace motley::coordinator {

// With an event, and a node that is there says it, too.
void LeaveOut(Core& core, const NodeName& node, const std::string& why);
void LeaveOutDevice(Core& core, const DeviceId& device, const std::string& why);

// A node is met again by the same worker: it says still why the job goes on without it.
void RemindOfLeftOut(Core& core, const NodeName& node);

}  // namespace motley::coordinator
