// Token lookup, with learned positions where the family has them.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/engine/operators/borders.h"

namespace motley::engine {

// tokens [samples, seq_len] int64; token_table [vocab, hidden]; position_table [max_positions, hidden] or undefined.
// Returns [samples, seq_len, hidden]. Positions are those of the borders, where there are any, else 0, 1, ... in each sample.
at::Tensor EmbedForward(const at::Tensor& tokens, const at::Tensor& token_table, const at::Tensor& position_table,
                        const Borders* borders = nullptr);
// The same with rows [first, first + token_table.size(0)) of the vocabulary: a token elsewhere is a row of zeros, to which
// another rank's is added.
at::Tensor EmbedPartForward(const at::Tensor& tokens, const at::Tensor& token_table, const at::Tensor& position_table,
                            int64_t first, const Borders* borders = nullptr);
// Adds to the tables' gradients (grad_positions may be undefined), in their type.
void EmbedBackward(const at::Tensor& tokens, const at::Tensor& grad_output, at::Tensor& grad_tokens, at::Tensor& grad_positions,
                   const Borders* borders = nullptr);
void EmbedPartBackward(const at::Tensor& tokens, const at::Tensor& grad_output, at::Tensor& grad_tokens,
                       at::Tensor& grad_positions, int64_t first, const Borders* borders = nullptr);

}  // namespace motley::engine
