// Of `motley estimate`: on the cards alone, and with the hosts' memory.
#pragma once

#include <ostream>

#include "coordinator/client/json.h"
#include "coordinator/client/screen.h"
#include "planner/answers/tier_fits.h"

namespace motley::client {

// A table of both answers; where nothing may be offloaded one line that says why.
void PrintTiers(std::ostream& out, const Screen& screen, const planner::TierFits& tiers);

// `on_cards`, `with_offload`, `no_offload_because`.
Json ToJson(const planner::TierFits& tiers);

}  // namespace motley::client
