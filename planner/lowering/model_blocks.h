// The model as blocks, each a run of its units: what the passes call units. Of programs that run every unit is a block; those of
// searches have as few as the step's course allows.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/setting/setting.h"
#include "planner/view/part.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

struct ModelBlocks {
  std::vector<Part> parts;        // in the model's order: the embedding first, the head last
  std::vector<int64_t> elements;  // by block
  int32_t head() const { return static_cast<int32_t>(parts.size()) - 1; }
};

ModelBlocks UnitsAsBlocks(const Setting& setting);

// A ministage is one block where its parameters are fetched from host memory in turn; a few where they are gathered for every
// microbatch or its gradients reduced; its units where ranks gather each on its own.
ModelBlocks CoarseBlocks(const Setting& setting, const PlanView& view);

// In forward order.
std::vector<int32_t> BlocksOf(const ModelBlocks& blocks, const Element& element);

}  // namespace motley::planner
