#include "worker/engine/operators/head_norm.h"

#include <array>

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/half.h"

namespace motley::engine {
namespace {

// Queries or keys: columns of the projection that are groups of so many, each of which is normalised by itself.
struct Part {
  int64_t first = 0, groups = 0, size = 0;
  // [rows, groups, size] of [rows, columns], a view.
  at::Tensor Of(const at::Tensor& rows) const { return rows.narrow(-1, first, groups * size).unflatten(-1, {groups, size}); }
};

std::array<Part, 2> PartsOf(const HeadLayout& layout, HeadNorm kind) {
  const int64_t queries = layout.heads * layout.head_dim, keys = layout.kv_heads * layout.head_dim;
  if (kind == HeadNorm::kWhole) return {Part{0, 1, queries}, Part{queries, 1, keys}};
  return {Part{0, layout.heads, layout.head_dim}, Part{queries, layout.kv_heads, layout.head_dim}};
}

// What is multiplied by, of the weights that are stored.
at::Tensor Factor(const at::Tensor& weights, NormKind norm) {
  return norm == NormKind::kRmsNormPlusOne ? Widened(weights).add(1) : weights;
}

}  // namespace

// y = w * n with n = x * rstd, rstd = (mean(x^2) + eps)^(-1/2).
HeadNormSaved HeadNormForward(at::Tensor& qkv, const HeadLayout& layout, HeadNorm kind, const at::Tensor& weights, double eps,
                              NormKind norm) {
  const std::array parts = PartsOf(layout, kind);
  const at::Tensor raw =
      qkv.narrow(-1, 0, (layout.heads + layout.kv_heads) * layout.head_dim).clone(at::MemoryFormat::Contiguous);
  std::array<at::Tensor, 2> rstds;
  int64_t weight = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const at::Tensor x = Widened(parts[i].Of(raw));
    const at::Tensor rstd = at::square(x).mean(-1, /*keepdim=*/true).add_(eps).rsqrt_();
    parts[i].Of(qkv).copy_(at::mul(x, rstd).mul_(Factor(weights.narrow(0, weight, parts[i].size), norm)));
    rstds[i] = rstd.squeeze(-1);
    weight += parts[i].size;
  }
  return {raw, at::cat(at::TensorList(rstds), 1)};
}

// With g = w * dy:  dx = rstd * (g - n * mean(g * n)),  dw = sum over rows and groups of dy * n.
at::Tensor HeadNormBackward(at::Tensor& grad_qkv, const HeadNormSaved& saved, const HeadLayout& layout, HeadNorm kind,
                            const at::Tensor& weights, NormKind norm) {
  std::array<at::Tensor, 2> grad_weights;
  int64_t weight = 0, group = 0;
  const std::array parts = PartsOf(layout, kind);
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const at::Tensor rstd = saved.rstd.narrow(1, group, part.groups).unsqueeze(-1), grad = Widened(part.Of(grad_qkv));
    at::Tensor normed = at::mul(Widened(part.Of(saved.raw)), rstd);
    grad_weights[i] = at::mul(grad, normed).sum(at::IntArrayRef{0, 1});
    at::Tensor grad_input = at::mul(grad, Factor(weights.narrow(0, weight, part.size), norm));
    const at::Tensor projection = at::mul(grad_input, normed).mean(-1, /*keepdim=*/true);
    part.Of(grad_qkv).copy_(grad_input.sub_(normed.mul_(projection)).mul_(rstd));
    weight += part.size;
    group += part.groups;
  }
  return at::cat(at::TensorList(grad_weights));
}

}  // namespace motley::engine
