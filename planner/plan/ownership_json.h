// The JSON form of a plan's ownership (docs/use/plan-language.md): blocks that are owned alike once, naming devices and never
// ranks. Part of the plan's JSON form.
#pragma once

#include "nlohmann/json_fwd.hpp"
#include "planner/plan/plan.h"
#include "planner/util/json_reader.h"

namespace motley::planner {

// Of a plan that has one.
nlohmann::ordered_json OwnershipToJson(const Plan& plan);

// Into a plan whose pipelines have been read. Fails where a device is not the plan's, a block is named twice or not at all, or a
// rank has a shard_ratio beside it; whether every element has one owner is Validate's.
void ReadOwnership(const JsonReader& reader, Plan* plan);

}  // namespace motley::planner
