// Words of the plan's text: names, numbers, lists of devices, runs of microbatches, layers. docs/use/plan-language.md has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "planner/plan/plan.h"

namespace motley::planner {

// A name as one word: quoted like a JSON string when it has spaces or signs that the text uses itself, or is empty.
std::string QuotedWord(const std::string& name);
// A part of a whole, with three decimals.
std::string ShareText(double share);
// "n1/gpu0..7,n2/gpu0": consecutive numbers at the end of a name are a range.
std::string DevicesText(const std::vector<DeviceId>& devices);
// "11 = 2x4+3": runs of equal microbatches. "0": none.
std::string BatchText(const std::vector<int64_t>& microbatches);
// "0-5,12-17"; "0-31/8" is four ranges of eight layers.
std::string LayersText(const std::vector<LayerRange>& ministages);
// "at_end", "in_turn".
std::string_view WordOf(OptimizerSteps steps);
// INVALID_ARGUMENT names the word and both.
absl::StatusOr<OptimizerSteps> ParseOptimizerSteps(std::string_view word);

}  // namespace motley::planner
