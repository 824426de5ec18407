// Pipelines whose first and last stage share a node. Both ends of a tied model compute with one table: they exchange it and its
// gradients in every step, which between nodes may take longer than all of the step's compute.
#pragma once

#include <vector>

#include "planner/search/turn_stages.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// Of a model whose head is its embedding: each pair of groups of one node at the ends; each group cut in two, one half at either
// end. Nothing of other models, of one group, and where stages are pinned.
std::vector<TurnChoice> WithEndsTogether(const Setting& setting, const TurnChoice& choice);

}  // namespace motley::planner
