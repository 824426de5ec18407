#include "worker/engine/operators/embedding.h"

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/vocabulary_part.h"

namespace motley::engine {
namespace {

void AddPositions(at::Tensor& output, const at::Tensor& position_table, const Borders* borders) {
  if (!position_table.defined()) return;
  if (borders == nullptr) {
    output.add_(position_table.narrow(0, 0, output.size(1)));
  } else {
    output.add_(position_table.index_select(0, borders->positions).view(output.sizes()));
  }
}

void AddToPositions(const at::Tensor& by_sample, at::Tensor& grad_positions, const Borders* borders) {
  if (!grad_positions.defined()) return;
  if (borders == nullptr) {
    grad_positions.narrow(0, 0, by_sample.size(1)).add_(by_sample.sum(0));
  } else {
    grad_positions.index_add_(0, borders->positions, by_sample.flatten(0, 1));
  }
}

}  // namespace

at::Tensor EmbedForward(const at::Tensor& tokens, const at::Tensor& token_table, const at::Tensor& position_table,
                        const Borders* borders) {
  at::Tensor output =
      token_table.index_select(0, tokens.reshape({-1})).view({tokens.size(0), tokens.size(1), token_table.size(1)});
  AddPositions(output, position_table, borders);
  return output;
}

void EmbedBackward(const at::Tensor& tokens, const at::Tensor& grad_output, at::Tensor& grad_tokens, at::Tensor& grad_positions,
                   const Borders* borders) {
  const at::Tensor rows = grad_output.reshape({-1, grad_output.size(-1)}).to(grad_tokens.scalar_type());
  grad_tokens.index_add_(0, tokens.reshape({-1}), rows);
  AddToPositions(rows.view(grad_output.sizes()), grad_positions, borders);
}

at::Tensor EmbedPartForward(const at::Tensor& tokens, const at::Tensor& token_table, const at::Tensor& position_table,
                            int64_t first, const Borders* borders) {
  const RowsOfPart rows = RowsInPart(tokens, first, token_table.size(0));
  at::Tensor output = token_table.index_select(0, rows.index)
                          .masked_fill_(rows.elsewhere.unsqueeze(1), 0)
                          .view({tokens.size(0), tokens.size(1), token_table.size(1)});
  AddPositions(output, position_table, borders);
  return output;
}

void EmbedPartBackward(const at::Tensor& tokens, const at::Tensor& grad_output, at::Tensor& grad_tokens,
                       at::Tensor& grad_positions, int64_t first, const Borders* borders) {
  const RowsOfPart rows = RowsInPart(tokens, first, grad_tokens.size(0));
  const at::Tensor grads = grad_output.reshape({-1, grad_output.size(-1)}).to(grad_tokens.scalar_type());
  grad_tokens.index_add_(0, rows.index, grads.masked_fill(rows.elsewhere.unsqueeze(1), 0));
  AddToPositions(grads.view(grad_output.sizes()), grad_positions, borders);
}

}  // namespace motley::engine
