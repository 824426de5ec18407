// Kernels for PyTorch's device without memory ("meta") where libtorch has none: shapes alone. With them the engine's units run
// there, and call what they call on a card. An operator that is given tensors of two devices fails.
#pragma once

#include <ATen/ATen.h>
#include <torch/library.h>
#include <torch/version.h>

#include <array>
#include <initializer_list>
#include <optional>
#include <tuple>
#include <vector>

namespace motley::engine {

inline const c10::Device kNowhere(c10::kMeta);

inline void ExpectNowhere(std::initializer_list<at::Tensor> tensors) {
  for (const at::Tensor& tensor : tensors) TORCH_CHECK(!tensor.defined() || tensor.is_meta(), "a tensor is on ", tensor.device());
}

// They are there while it lives.
class MetaKernels {
 public:
  MetaKernels() : library_(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__, __LINE__) {
    library_.impl("index_select", IndexSelect);
    library_.impl("abs.out", Abs);
    if (TORCH_VERSION_MINOR >= 11) {
      library_.impl("addmm.dtype_out", AddProduct);
      library_.impl("mm.dtype_out", Product);
    }
    library_.impl("native_layer_norm", LayerNorm);
    library_.impl("native_layer_norm_backward", LayerNormBackward);
    library_.impl("_fused_rms_norm", RmsNorm);
    library_.impl("_fused_rms_norm_backward", RmsNormBackward);
  }

 private:
  // Of norms, in the type of a card's: one number a row.
  static at::Tensor Statistic(const at::Tensor& input) {
    std::vector<int64_t> rows = input.sizes().vec();
    rows.back() = 1;
    return at::empty(rows, input.options().dtype(at::kFloat));
  }

  static at::Tensor IndexSelect(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
    ExpectNowhere({self, index});
    std::vector<int64_t> sizes = self.sizes().vec();
    sizes[dim] = index.numel();
    return at::empty(sizes, self.options());
  }
  static at::Tensor& Abs(const at::Tensor& self, at::Tensor& out) {
    ExpectNowhere({self, out});
    return out;
  }
  static at::Tensor& Product(const at::Tensor& a, const at::Tensor& b, at::ScalarType type, at::Tensor& out) {
    ExpectNowhere({a, b, out});
    TORCH_CHECK(out.scalar_type() == type && out.size(0) == a.size(0) && out.size(1) == b.size(1), "no place for the product");
    return out;
  }
  static at::Tensor& AddProduct(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, at::ScalarType type,
                                const at::Scalar&, const at::Scalar&, at::Tensor& out) {
    ExpectNowhere({self});
    return Product(a, b, type, out);
  }
  static std::tuple<at::Tensor, at::Tensor, at::Tensor> LayerNorm(const at::Tensor& input, at::IntArrayRef,
                                                                  const std::optional<at::Tensor>& weight,
                                                                  const std::optional<at::Tensor>& bias, double) {
    ExpectNowhere({input, weight.value_or(at::Tensor()), bias.value_or(at::Tensor())});
    return {at::empty_like(input), Statistic(input), Statistic(input)};
  }
  static std::tuple<at::Tensor, at::Tensor, at::Tensor> LayerNormBackward(
      const at::Tensor& grad, const at::Tensor& input, at::IntArrayRef, const at::Tensor& mean, const at::Tensor& rstd,
      const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias, std::array<bool, 3>) {
    ExpectNowhere({grad, input, mean, rstd, *weight, *bias});
    return {at::empty_like(input), at::empty_like(*weight), at::empty_like(*bias)};
  }
  static std::tuple<at::Tensor, at::Tensor> RmsNorm(const at::Tensor& input, at::IntArrayRef,
                                                    const std::optional<at::Tensor>& weight, std::optional<double>) {
    ExpectNowhere({input, *weight});
    return {at::empty_like(input), Statistic(input)};
  }
  static std::tuple<at::Tensor, at::Tensor> RmsNormBackward(const at::Tensor& grad, const at::Tensor& input, at::IntArrayRef,
                                                            const at::Tensor& rstd, const std::optional<at::Tensor>& weight,
                                                            std::array<bool, 2>) {
    ExpectNowhere({grad, input, rstd, *weight});
    return {at::empty_like(input), at::empty_like(*weight)};
  }

  torch::Library library_;
};

// Also what a card has for attention in half types, sm_80 and newer.
class CardAttention {
 public:
  CardAttention() : library_(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__, __LINE__) {
    library_.impl("_fused_sdp_choice", Choice);
    library_.impl("_scaled_dot_product_flash_attention", Forward);
    library_.impl("_scaled_dot_product_flash_attention_backward", Backward);
    library_.impl("_flash_attention_forward", ForwardOfDocuments);
    library_.impl("_flash_attention_backward", BackwardOfDocuments);
  }

 private:
  static int64_t Choice(const at::Tensor&, const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, double, bool,
                        std::optional<double>, bool) {
    return static_cast<int64_t>(at::SDPBackend::flash_attention);
  }
  static std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor, at::Tensor, at::Tensor>
  Forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double, bool, bool, std::optional<double>) {
    ExpectNowhere({q, k, v});
    const at::Tensor logsumexp = at::empty({q.size(0), q.size(1), q.size(2)}, q.options().dtype(at::kFloat));
    return {at::empty_like(q), logsumexp,    at::Tensor(), at::Tensor(), q.size(2),
            k.size(2),         at::Tensor(), at::Tensor(), at::Tensor()};
  }
  static std::tuple<at::Tensor, at::Tensor, at::Tensor> Backward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k,
                                                                 const at::Tensor& v, const at::Tensor& output,
                                                                 const at::Tensor& logsumexp, const at::Tensor&,
                                                                 const at::Tensor&, c10::SymInt, c10::SymInt, double, bool,
                                                                 const at::Tensor& seed, const at::Tensor& offset,
                                                                 std::optional<double>) {
    ExpectNowhere({grad, q, k, v, output, logsumexp, seed, offset});
    return {at::empty_like(q), at::empty_like(k), at::empty_like(v)};
  }
  // Of documents one after the other: [tokens, heads, head_dim].
  static std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> ForwardOfDocuments(
      const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::optional<at::Tensor>& cu_q,
      const std::optional<at::Tensor>& cu_k, c10::SymInt, c10::SymInt, double, bool, bool, std::optional<double>,
      std::optional<c10::SymInt>, std::optional<c10::SymInt>, const std::optional<at::Tensor>&,
      const std::optional<at::Tensor>&) {
    ExpectNowhere({q, k, v, *cu_q, *cu_k});
    const at::Tensor logsumexp = at::empty({q.size(1), q.size(0)}, q.options().dtype(at::kFloat));
    return {at::empty_like(q, at::MemoryFormat::Contiguous), logsumexp, at::Tensor(), at::Tensor(), at::Tensor()};
  }
  static std::tuple<at::Tensor, at::Tensor, at::Tensor> BackwardOfDocuments(
      const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& output,
      const at::Tensor& logsumexp, const at::Tensor& cu_q, const at::Tensor& cu_k, c10::SymInt, c10::SymInt, double, bool,
      const at::Tensor& seed, const at::Tensor&, std::optional<double>, std::optional<c10::SymInt>, std::optional<c10::SymInt>) {
    ExpectNowhere({grad, q, k, v, output, logsumexp, cu_q, cu_k, seed});
    return {at::empty_like(q, at::MemoryFormat::Contiguous), at::empty_like(k, at::MemoryFormat::Contiguous),
            at::empty_like(v, at::MemoryFormat::Contiguous)};
  }

  torch::Library library_;
};

}  // namespace motley::engine
