// Neighbours of a pipeline over groups: what climbing over the groups themselves tries next. Layers, batches, recomputation and
// shards are made anew for each (PlanTurns), which is what moves of a finished plan (plan_moves.h) cannot do.
#pragma once

#include <vector>

#include "planner/search/turn_stages.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// Each differs in one thing: two neighbouring groups joined or exchanged; a group cut in two; a node's devices of a group, half
// of them or one unit to another group (of many groups: a near one), to a group of their own next to it, or left out; devices
// that are left out taken in; the degree of a group, or of all groups of its card; microbatches, those in flight, schedule, ZeRO
// stage, offload; the ends of a tied model on one node (tied_ends.h). Of devices that are alike only the first are moved. Groups
// stay as they are where stages are pinned.
std::vector<TurnChoice> Regrouped(const Setting& setting, const TurnChoice& choice);

}  // namespace motley::planner
