// Token lookup, with learned positions where the family has them.
#pragma once

#include <ATen/core/Tensor.h>

namespace motley::engine {

// tokens [samples, seq_len] int64; token_table [vocab, hidden]; position_table [max_positions, hidden] or undefined.
// Returns [samples, seq_len, hidden].
at::Tensor EmbedForward(const at::Tensor& tokens, const at::Tensor& token_table, const at::Tensor& position_table);
// The same with rows [first, first + token_table.size(0)) of the vocabulary: a token elsewhere is a row of zeros, to which
// another rank's is added.
at::Tensor EmbedPartForward(const at::Tensor& tokens, const at::Tensor& token_table, const at::Tensor& position_table,
                            int64_t first);
// Adds to the tables' gradients (grad_positions may be undefined), in their type.
void EmbedBackward(const at::Tensor& tokens, const at::Tensor& grad_output, at::Tensor& grad_tokens, at::Tensor& grad_positions);
void EmbedPartBackward(const at::Tensor& tokens, const at::Tensor& grad_output, at::Tensor& grad_tokens,
                       at::Tensor& grad_positions, int64_t first);

}  // namespace motley::engine
