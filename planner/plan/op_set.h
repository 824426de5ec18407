// The text of a set of a layer's operators, as plans write it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/model/op_set.h"

namespace motley::planner {

using motley::OpSet;

// "none", "full", or operators' names in execution order: "norm1,activation".
std::string ToText(OpSet set);
// INVALID_ARGUMENT names the nearest operator.
absl::StatusOr<OpSet> ParseOpSet(std::string_view text);

}  // namespace motley::planner
