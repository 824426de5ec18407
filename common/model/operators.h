// What each explicit operator of a unit costs. The engine allocates by it, the planner and the simulator price by it, an emulated
// device is slowed down by it: one count, so that they cannot disagree. Of a layer it is counted from layer_table.h.
//
// FLOPs count multiply and add as two. Matrix products and attention count; norms, activations and residuals count
// their element operations. Attention is causal and counted at half the full square.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/dtype.h"
#include "common/model/layer_values.h"
#include "common/model/model.h"
#include "common/model/op.h"
#include "common/model/op_set.h"
#include "common/model/parameters.h"

namespace motley {

// Bytes stand with the operator that makes a tensor: recomputing the operator is what frees them.
struct OpCost {
  Op op = Op::kNorm1;
  bool divided = true;         // by tensor parallelism: its work
  bool output_divided = true;  // what it keeps, likewise
  bool is_matrix = false;      // its FLOPs run on matrix units
  double forward_flops = 0;
  double backward_input_flops = 0, backward_weight_flops = 0;  // of the two halves of its backward
  double activation_bytes = 0;                                 // read and written forward
  double weight_bytes = 0;                                     // read forward, whatever the samples
  int64_t output_bytes = 0;                                    // what it makes and the backward needs
  double matrix_flops() const { return is_matrix ? forward_flops : 0; }
  double backward_flops() const { return backward_input_flops + backward_weight_flops; }
};

// In execution order, for one microbatch of `samples` sequences of `seq_len` tokens. Flash attention: no score matrix in memory.
std::vector<OpCost> UnitOperators(const ModelShape& shape, UnitKind unit, int64_t samples, int64_t seq_len, DType dtype);

// Whether a whole unit's forward computes nothing in a step: a head keeps its input, and its backward makes each chunk's logits
// once, loss and gradients from them. A part of a head runs forward, as an evaluation's head does (docs/inside/operators.md).
constexpr bool TrainsInBackward(UnitKind unit) { return unit == UnitKind::kHead; }

// Of a forward, a head's being an evaluation's.
double ForwardFlops(const ModelShape& shape, UnitKind unit, int64_t samples, int64_t seq_len);
double BackwardFlops(const ModelShape& shape, UnitKind unit, int64_t samples, int64_t seq_len);
// Kept of a whole unit from forward to backward when nothing is recomputed: what operators make, and the unit's input. Of a head
// its input.
int64_t SavedBytes(const ModelShape& shape, UnitKind unit, int64_t samples, int64_t seq_len, DType dtype);
// What stays of a layer or embedding between the two halves of a backward, the gradient of its output included. A head makes its
// weights' gradients with that of its input: nothing of a microbatch waits.
int64_t WaitingBytes(const ModelShape& shape, UnitKind unit, int64_t samples, int64_t seq_len, DType dtype);
// A tensor inside a layer. Gradients have the bytes of their values, a norm's weights those of its columns.
int64_t ValueBytes(const ModelShape& shape, LayerValue value, int64_t samples, int64_t seq_len, DType dtype);
// The unit's input activation (samples x seq_len x hidden): all that full recomputation keeps.
int64_t BoundaryBytes(const ModelShape& shape, int64_t samples, int64_t seq_len, DType dtype);
// Rows of logits that the LM head computes at once; bounds the head's workspace.
inline constexpr int64_t kHeadChunkTokens = 1024, kMostHeadRows = 4096;
// Of cards that have room: up to kMostHeadRows, as many as have float32 logits of a GiB at most; a power of two. The fewer
// chunks, the fewer times the weights' gradient is read and written.
int64_t HeadRowsOfCards(int64_t vocab_size);
// What the loss must know of a row that ranks divide: the logsumexp of each one's part, and the target's logit.
inline constexpr int64_t kNumbersOfALogitsRow = 2;
// Columns of the room of their logits: rows begin at multiples of 64, since a card's products read and write rows of another
// length (50257 words) without their fast loads.
inline constexpr int64_t kLogitColumns = 64;
constexpr int64_t LogitColumns(int64_t words) { return (words + kLogitColumns - 1) / kLogitColumns * kLogitColumns; }

// FLOPs of AdamW per owned element.
inline constexpr double kOptimizerFlopsPerElement = 12;

}  // namespace motley
