// Where a pipeline's virtual stages lie. A virtual stage is one ministage of a stage; they are numbered in the order in which a
// microbatch passes them. Everybody who asks which stage comes next, or which holds the embedding and the head, asks here.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/schedule_family.h"

namespace motley::planner {

struct VirtualStage {
  size_t stage = 0, ministage = 0;
  friend bool operator==(const VirtualStage&, const VirtualStage&) = default;
};

// In the order of the pass: by their layers. Which order a family of schedules may have, Validate says.
std::vector<VirtualStage> VirtualStagesOf(const PipelinePlan& pipeline);

// The stages of the first virtual stage and of the last one.
size_t EmbeddingStage(const PipelinePlan& pipeline);
size_t HeadStage(const PipelinePlan& pipeline);

// Where the map puts them, of a pipeline whose stages have as many ministages each.
std::vector<VirtualStage> MappedStages(VirtualStageMap map, size_t stages, size_t ministages);

std::string_view MapName(VirtualStageMap map);  // "round robin", "in a V"

}  // namespace motley::planner
