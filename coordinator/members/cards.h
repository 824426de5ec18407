// What workers say of their cards after they joined.
#pragma once

#include "coordinator/core/core.h"

namespace motley::coordinator {

// Keeps it in the node's description. A card that is lost is an event and the end of the epoch that uses it, and no plan uses it
// any more.
void OnCard(Core& core, const NodeName& node, const CardReport& report);

}  // namespace motley::coordinator
