#include "worker/engine/operators/embedding.h"

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {

at::Tensor EmbedForward(const at::Tensor& tokens, const at::Tensor& token_table, const at::Tensor& position_table) {
  at::Tensor output =
      token_table.index_select(0, tokens.reshape({-1})).view({tokens.size(0), tokens.size(1), token_table.size(1)});
  if (position_table.defined()) output.add_(position_table.narrow(0, 0, tokens.size(1)));
  return output;
}

void EmbedBackward(const at::Tensor& tokens, const at::Tensor& grad_output, at::Tensor& grad_tokens, at::Tensor& grad_positions) {
  const at::Tensor rows = grad_output.reshape({-1, grad_output.size(-1)}).to(grad_tokens.scalar_type());
  grad_tokens.index_add_(0, tokens.reshape({-1}), rows);
  if (grad_positions.defined()) grad_positions.narrow(0, 0, tokens.size(1)).add_(rows.view(grad_output.sizes()).sum(0));
}

}  // namespace motley::engine
