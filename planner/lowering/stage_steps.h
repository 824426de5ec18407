// What the ranks of one stage do together in a step: a list of *steps* (a unit's forward or backward of one microbatch), the
// buffers that each step finds its unit in, and the collectives behind it. All ranks of the stage go through one list, whatever
// their microbatches, so that collectives match. The first passes of the program writer fill it in. A "unit" here is what the
// traits list: a unit of the model, or in a search a block of several (model_blocks.h).
#pragma once

#include <cstdint>
#include <vector>

#include "common/program/program.h"
#include "planner/plan/schedule.h"
#include "planner/plan/state_in_turn.h"

namespace motley::planner {

inline constexpr int64_t kAllRounds = -1;

// A gather into a parameter buffer, or a reduction out of a gradient buffer.
struct UnitCollective {
  int32_t unit = 0, buffer = 0, group = 0;
  int32_t more_units = 0;  // of a gather
  ArrayRange elements;     // of the unit's array
};

using UnitCollectives = std::vector<UnitCollective>;

// Elements of a rank's array of a unit, and who has the same; by groups in the order in which all of them meet.
struct MetElements {
  int32_t group = 0;
  ArrayRange elements;
};
using SharedElements = std::vector<MetElements>;

struct StageStep {
  ActionKind kind = ActionKind::kForward;
  int32_t unit = 0, virtual_stage = 0;
  int32_t place = 0, num_places = 1;        // among the virtual stage's units, in the order of the pass
  int64_t round = 0;                        // kAllRounds: the rank's microbatches, in turn
  int32_t more_units = 0;                   // of units `unit` to `unit + more_units`, whose places follow each other
  int32_t parameters = -1, gradients = -1;  // buffers
  int32_t waits_for = -1;                   // a step that all ranks must have passed before one begins this one; -1 = none
  // Behind it, in this order.
  std::vector<int32_t> released;  // parameter buffers
  UnitCollectives gathered, reduced;
  // A backward of which the weights' gradients are apart hands over what its first part makes.
  bool backward() const { return kind != ActionKind::kForward; }
  bool hands_over() const { return kind != ActionKind::kWeightGradient; }
  bool needs_parameters() const { return kind != ActionKind::kWeightGradient; }
  bool makes_gradients() const { return kind == ActionKind::kBackward || kind == ActionKind::kWeightGradient; }
  int32_t last_place() const { return place + more_units; }
  int32_t last_unit() const { return unit + more_units; }
};

struct StageSteps {
  UnitCollectives gathered;  // before the first step
  std::vector<StageStep> steps;
  std::vector<UnitBuffer> parameter_buffers, gradient_buffers;
  int32_t tied_parameters = -1, tied_gradients = -1;  // where a tied head finds unit 0; -1 = none is here
  int32_t group = 0;                                  // what collectives name the stage's ranks by
};

// What the passes ask of a stage.
struct StageTraits {
  std::vector<std::vector<int32_t>> units_of;   // by virtual stage of the pipeline, in forward order; none where it is elsewhere
  std::vector<int32_t> units;                   // the same, ascending
  std::vector<int64_t> elements;                // by unit of the model
  bool tied = false;                            // the head computes with unit 0's array
  bool by_block = false;                        // all of a rank's microbatches pass a unit before the next
  bool gathers_in_turn = false;                 // else every unit's parameters have a home
  bool gathers_by_ministage = false;            // what is gathered in turn: all units of a virtual stage, not one
  int32_t parameters_in_turn = kBuffersInTurn;  // buffers of what is gathered in turn
  bool reduces_in_turn = false;                 // else every unit's gradients have a home
  bool reduces_every_round = false;             // what is reduced in turn
  // Every unit's gradients are summed once, as their sum leaves the buffer whole: the head of a tied model waits with its part.
  bool sums_once = false;
  // What makes the programs of searches coarser. None is true of ranks' programs.
  bool alone = false;  // nobody shares the stage's state: what it would gather and reduce among itself is left out
  bool joins = false;  // neighbouring units are one step where nothing of them comes or goes apart
  // What is gathered in turn comes unit by unit while the units before are computed: a pass of a virtual stage waits for its
  // first unit, and its last one for all others. For programs whose units are blocks: two buffers of blocks would keep them
  // waiting.
  bool streams = false;
  int32_t group = 0;        // the stage's ranks
  int32_t tied_group = -1;  // the ranks of both ends of a tied embedding, where they are two stages
  // Of several pipelines, by unit of the model: all ranks that hold it. They share what they own of it, so its parameters and its
  // gradients have homes, whole or of shards, gathered and summed once by all of them. Else empty.
  std::vector<int32_t> sum_group;
  std::vector<int32_t> gather_order, sum_order;  // the model's units as the pipelines gather and sum them
  bool sums_at_once = false;                     // where they can begin; else behind what the stage gathers and reduces in turn
  bool across() const { return !sum_group.empty(); }
  // Whether the stage's ranks keep shards of the unit between two uses of it, beside what they own. A tied embedding is at both
  // ends of a step and stays whole.
  bool KeepsShards(int32_t unit) const { return across() && !(tied && unit == 0); }
  int32_t head() const { return static_cast<int32_t>(elements.size()) - 1; }
  bool has_embedding() const { return units.front() == 0; }
  bool has_head() const { return units.back() == head(); }
};

}  // namespace motley::planner
