// The passes over a layer, each a walk over the table of its operators (layer_table.h): which of their functions run, in which
// order, and what is freed behind each. The engine runs them (worker/engine/model/layer_walk.h), and what a pass holds at its
// fullest is counted from them (pass_bytes.h).
#pragma once

#include <vector>

#include "common/model/layer_table.h"

namespace motley {

// An operator's functions.
enum class OpFunction { kForward, kBackwardInput, kBackwardWeight };

struct PassStep {
  const LayerOperator* op = nullptr;
  OpFunction does = OpFunction::kForward;
  // What it uses and nothing behind it needs any more.
  ValueSet values, gradients;
};
using LayerPass = std::vector<PassStep>;

// Of a family, or of its layers without rotary positions; they live as long as the program runs.
struct LayerPasses {
  LayerPass forward;   // frees what a backward would need, too: whoever keeps it says so
  LayerPass backward;  // of the input and the weights
  // Its two halves. Between them stay WaitingValues and WaitingGradients.
  LayerPass backward_input, backward_weight;
};
const LayerPasses& PassesOf(const FamilyTraits& traits, bool rotary = true);

}  // namespace motley
