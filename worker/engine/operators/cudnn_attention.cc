#include "worker/engine/operators/cudnn_attention.h"

#include <set>
#include <tuple>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/attention_groups.h"

namespace motley::engine {
namespace {

// Of all ranks of the process: a card's lanes ask from several threads.
class Refusals {
 public:
  bool Has(const AttentionHeads& heads) {
    const absl::MutexLock lock(&mutex_);
    return shapes_.contains(ShapeOf(heads));
  }
  void Add(const AttentionHeads& heads, const c10::Error& error) {
    const absl::MutexLock lock(&mutex_);
    if (!shapes_.insert(ShapeOf(heads)).second) return;
    // In the rank's log.
    TORCH_WARN("cuDNN's attention refuses ", heads.q.size(0), " samples of ", heads.q.size(2), " tokens, ", heads.q.size(1),
               " heads of ", heads.q.size(3), " over ", heads.k.size(1), " of keys, in ", at::toString(heads.q.scalar_type()),
               "; flash attention does these from now on: ", error.what_without_backtrace());
  }

 private:
  using Shape = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, at::ScalarType>;
  static Shape ShapeOf(const AttentionHeads& heads) {
    return {heads.q.size(0), heads.q.size(1), heads.q.size(2), heads.q.size(3), heads.k.size(1), heads.q.scalar_type()};
  }

  absl::Mutex mutex_;
  std::set<Shape> shapes_ ABSL_GUARDED_BY(mutex_);
};

Refusals& TheRefusals() {
  static auto* const refusals = new Refusals();
  return *refusals;
}

// What `cudnn` makes, or `flash` where the former cannot. A card that is full is no refusal.
template <typename Cudnn, typename Flash>
auto Either(const AttentionHeads& heads, const AttentionForm& form, const Cudnn& cudnn, const Flash& flash) {
  if (form.WindowOver(heads.q.size(2)) != 0 || TheRefusals().Has(heads)) return flash();
  try {
    return cudnn();
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    TheRefusals().Add(heads, error);
  }
  return flash();
}

}  // namespace

bool CudnnRefused(const AttentionHeads& heads) { return TheRefusals().Has(heads); }

AttentionResult CudnnAttentionForward(const AttentionHeads& heads, const AttentionForm& form) {
  const auto cudnn = [&] {
    auto made = at::_scaled_dot_product_cudnn_attention(heads.q, heads.k, heads.v, std::nullopt, /*compute_log_sumexp=*/true,
                                                        kNoDropout, kCausal, /*return_debug_mask=*/false, ScaleForKernel(form));
    return AttentionResult{std::get<0>(made), std::get<1>(made).view(heads.q.sizes().slice(0, 3))};
  };
  return Either(heads, form, cudnn, [&] { return FlashAttention().forward(heads, form); });
}

AttentionHeads CudnnAttentionBackward(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved,
                                      const AttentionForm& form) {
  const auto cudnn = [&] {
    const at::Tensor none;
    const at::Tensor no_seed = at::empty({}, heads.q.options().dtype(at::kLong));  // of a dropout that there is not: never read
    const int64_t seq_len = heads.q.size(2);
    auto [q, k, v] = at::_scaled_dot_product_cudnn_attention_backward(
        grad_output, heads.q, heads.k, heads.v, saved.output, saved.logsumexp.unsqueeze(-1), no_seed, no_seed, none, none, none,
        seq_len, seq_len, kNoDropout, kCausal, ScaleForKernel(form));
    return AttentionHeads{q, k, v};
  };
  return Either(heads, form, cudnn, [&] { return FlashAttention().backward(grad_output, heads, saved, form); });
}

}  // namespace motley::engine
