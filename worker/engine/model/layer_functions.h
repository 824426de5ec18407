// The layer's operators as functions, one row for each row of common/model/layer_table.h. A function reads and writes what its
// row there says and nothing else; what is freed when is the walk's. May throw c10::Error.
#pragma once

#include "common/model/model_family.h"
#include "common/model/op.h"
#include "worker/engine/model/layer_frame.h"

namespace motley::engine {

using LayerFunction = void (*)(LayerFrame& frame);

struct LayerFunctions {
  LayerFunction forward;
  LayerFunction backward_input;   // from the gradients of what it makes those of what it reads
  LayerFunction backward_weight;  // adds to the unit's gradients; nullptr: no weights
};

// Of an operator of a layer whose norms stand there.
const LayerFunctions& FunctionsOf(Op op, NormPlaces norms);

// The forward of two operators in one, where the second follows the first and is not kept from it by a segment or a set of
// operators; nullptr: each runs by itself.
LayerFunction JoinedForward(Op op, Op next, NormPlaces norms);

}  // namespace motley::engine
