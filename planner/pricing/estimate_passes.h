// Layered and GPipe as two passes over a pipeline's stages, forward, then backward: the part of the estimator (evaluate.h) for
// schedules that keep all activations.
#pragma once

#include <vector>

#include "planner/pricing/estimate_borders.h"
#include "planner/pricing/estimate_stage.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// When the pipeline's last stage has ended its last backward and reduction. Follows each actor's microbatches at the stages'
// borders, each microbatch when its samples have come. `stages`: of the view, whose samples are assigned; `borders`: of the
// pipeline. O(actors x microbatches x ministages).
double EndOfPasses(const PipelineView& pipeline, const std::vector<StageEstimate>& stages, const std::vector<Border>& borders);

}  // namespace motley::planner
