// The groups of a pipeline's ranks that meet in collectives. Part of the program writer.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model/model_slice.h"
#include "common/program/ownership.h"
#include "planner/lowering/model_blocks.h"
#include "planner/lowering/stage_steps.h"
#include "planner/setting/setting.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

struct PipelinePlaces {
  // By stage; then what the fields below name. Members by node, so that one hop of a ring enters a node and one leaves it.
  std::vector<std::vector<int32_t>> groups;
  // By pipeline: the ranks of a tied embedding's two ends, where they are on two stages; else -1.
  std::vector<int32_t> tied_group;
  // By unit of the model: the ranks of all pipelines that hold it. Of one pipeline empty.
  std::vector<int32_t> sum_group;
  // Of several pipelines, units of the model: in which order all ranks gather their parameters and sum their gradients.
  std::vector<int32_t> gather_order, sum_order;
  // By rank: its tensor-parallel unit, else -1.
  std::vector<int32_t> tp_group;
  // By rank and unit of the model: with whom it gathers and reduces which elements of its array, or of its shard. Empty of units
  // that all have whole: those are of the groups above.
  std::vector<std::vector<SharedElements>> gathered, reduced;
  // The same of what ranks of tensor-parallel units gather from shards of their stage's and sum into them.
  std::vector<std::vector<SharedElements>> in_turn;
};

// `slices`: of the model, by rank. `ownership`: of the plan.
PipelinePlaces PlacesOf(const Setting& setting, const PlanView& view, const std::vector<ModelSlice>& slices,
                        const Ownership& ownership);

// Fills in both orders of what `sum_group` says. `elements`: by unit.
void OrderRings(const std::vector<int64_t>& elements, PipelinePlaces* places);

// By block: the stages that compute with it, of all pipelines, ascending.
std::vector<std::vector<int>> HoldersOf(const PlanView& view, const ModelBlocks& blocks, bool tied);

}  // namespace motley::planner
