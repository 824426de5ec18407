// What the ranks of one stage do together in a step: the units' uses in their order, which buffer each uses, and the collectives
// after each use. All ranks of the stage walk the same script, whatever their microbatches, so that collectives match. Part of
// the program writer.
//
// A *use* is one unit's forward or backward of one microbatch (in a layered stage that gathers: of all of a rank's microbatches).
// Gathered units live in two buffers: a use that does not find its unit takes the buffer whose last use is longest ago, and the
// gather into it follows that use. Units that stay have a buffer each, their home.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "common/program/program.h"
#include "planner/lowering/step_lowering_orders.h"
#include "planner/lowering/step_lowering_view.h"
#include "planner/plan/schedule.h"
#include "planner/setting/setting.h"

namespace motley::planner {

inline constexpr int64_t kAllRounds = -1;

struct UnitUse {
  bool backward = false;
  int32_t unit = 0;
  int32_t virtual_stage = 0;
  int32_t place = 0, num_places = 1;        // among the virtual stage's units, in the order of the pass
  int64_t round = 0;                        // kAllRounds: the rank's microbatches, in turn
  int32_t parameters = -1, gradients = -1;  // buffers
  // The stage's ranks must have passed this use before one begins; -1 = none.
  int32_t waits_for = -1;
};

// After a use, in this order.
struct AfterUse {
  struct UnitInBuffer {
    int32_t unit = 0, buffer = 0;
  };
  std::vector<int32_t> released;       // parameter buffers
  std::vector<UnitInBuffer> gathered;  // into parameter buffers
  std::vector<UnitInBuffer> reduced;   // from gradient buffers
};

struct StageScript {
  std::vector<int32_t> units;  // that the stage holds, ascending
  std::vector<UnitUse> uses;
  AfterUse before;              // of the first use
  std::vector<AfterUse> after;  // by use
  std::vector<UnitBuffer> parameter_buffers, gradient_buffers;
  // A tied embedding's buffers where its two ends are on two stages: gathered before and reduced behind everything else by the
  // ranks of both; -1 = none.
  int32_t tied_parameters = -1, tied_gradients = -1;
  // The head's buffers of a tied embedding on the same rank; -1 = not tied.
  int32_t head_parameters = -1, head_gradients = -1;
};

// `schedule`: of the stage, which stands for the pipeline's elements as virtual stages. `training`: with backwards.
StageScript ScriptOf(const Setting& setting, const PlanView& view, int stage, const StageSchedule& schedule, bool training);

Part PartOf(const Element& element);

// Units of the model that a chunk computes, in the order of the pass.
std::vector<int32_t> UnitsOf(const Part& part, bool backward);

}  // namespace motley::planner
