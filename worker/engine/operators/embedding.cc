#include "worker/engine/operators/embedding.h"

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/vocabulary_part.h"

namespace motley::engine {
namespace {

void AddPositions(at::Tensor& output, const at::Tensor& position_table) {
  if (position_table.defined()) output.add_(position_table.narrow(0, 0, output.size(1)));
}

void AddToPositions(const at::Tensor& by_sample, at::Tensor& grad_positions) {
  if (grad_positions.defined()) grad_positions.narrow(0, 0, by_sample.size(1)).add_(by_sample.sum(0));
}

}  // namespace

at::Tensor EmbedForward(const at::Tensor& tokens, const at::Tensor& token_table, const at::Tensor& position_table) {
  at::Tensor output =
      token_table.index_select(0, tokens.reshape({-1})).view({tokens.size(0), tokens.size(1), token_table.size(1)});
  AddPositions(output, position_table);
  return output;
}

void EmbedBackward(const at::Tensor& tokens, const at::Tensor& grad_output, at::Tensor& grad_tokens, at::Tensor& grad_positions) {
  const at::Tensor rows = grad_output.reshape({-1, grad_output.size(-1)}).to(grad_tokens.scalar_type());
  grad_tokens.index_add_(0, tokens.reshape({-1}), rows);
  AddToPositions(rows.view(grad_output.sizes()), grad_positions);
}

at::Tensor EmbedPartForward(const at::Tensor& tokens, const at::Tensor& token_table, const at::Tensor& position_table,
                            int64_t first) {
  const RowsOfPart rows = RowsInPart(tokens, first, token_table.size(0));
  at::Tensor output = token_table.index_select(0, rows.index)
                          .masked_fill_(rows.elsewhere.unsqueeze(1), 0)
                          .view({tokens.size(0), tokens.size(1), token_table.size(1)});
  AddPositions(output, position_table);
  return output;
}

void EmbedPartBackward(const at::Tensor& tokens, const at::Tensor& grad_output, at::Tensor& grad_tokens,
                       at::Tensor& grad_positions, int64_t first) {
  const RowsOfPart rows = RowsInPart(tokens, first, grad_tokens.size(0));
  const at::Tensor grads = grad_output.reshape({-1, grad_output.size(-1)}).to(grad_tokens.scalar_type());
  grad_tokens.index_add_(0, rows.index, grads.masked_fill(rows.elsewhere.unsqueeze(1), 0));
  AddToPositions(grads.view(grad_output.sizes()), grad_positions);
}

}  // namespace motley::engine
