// Makes a plan that fails smaller, for as long as it fails.
#pragma once

#include <functional>
#include <vector>

#include "tests/worker/engine/equivalence/equivalence.h"

namespace motley::engine {

// One step smaller, each in another way and each valid: a stage merged into its neighbour, a rank less, ministages joined, a
// layer less, a simpler schedule, one microbatch a rank, ZeRO 0, nothing recomputed, even shares. What removes most comes first.
std::vector<PlannedJob> SmallerPlans(const PlannedJob& planned);

// Takes the first smaller plan that fails, again and again, until none does. `fails` is asked at most `most_questions` times.
PlannedJob Shrink(PlannedJob failing, const std::function<bool(const PlannedJob&)>& fails, int most_questions = 300);

}  // namespace motley::engine
