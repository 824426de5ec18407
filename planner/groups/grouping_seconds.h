// A first guess at what a division into groups can reach, to choose those that are worth an exact split.
#pragma once

#include <vector>

#include "planner/setting/setting.h"

namespace motley::planner {

// Rough seconds of a step on groups of devices that hold layers in proportion to their speed, in this order. The longest of
//   compute    a group's layers for the whole batch, every device at the rate of its even part of the batch
//   state      the cheaper of: gathered twice and reduced once for each layer, hidden behind compute; or reduced and gathered
//   once, after it borders    activations and gradients to and from the groups before and after, over the network cards of the
//   smaller side
double RoughSeconds(const Setting& setting, const std::vector<std::vector<int>>& groups);

}  // namespace motley::planner
