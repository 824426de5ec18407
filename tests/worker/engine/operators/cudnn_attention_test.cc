// cuDNN's attention by a stand-in of the host: the arguments that it is given, what is made of its results, and what flash does
// in its place. Its numbers are a card's to show (device/card_rows_test.cc).
#include "worker/engine/operators/cudnn_attention.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <tuple>

#include "tests/worker/engine/model/autograd_oracle.h"
#include "worker/engine/operators/attention.h"
#include "worker/engine/operators/attention_kernels.h"

namespace motley::engine {
namespace {

// cuDNN's operators and flash's on the host, with the textbook's numbers and the shapes of theirs, while it lives.
class CudnnOnHost {
 public:
  // How often each was called, and what cuDNN cannot.
  struct State {
    int cudnn = 0, flash = 0;
    bool refuses_forward = false, refuses_backward = false, is_full = false;
  };
  CudnnOnHost() : library_(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__) {
    now() = {};
    library_.impl("_scaled_dot_product_cudnn_attention", CudnnForward);
    library_.impl("_scaled_dot_product_cudnn_attention_backward", CudnnBackward);
    library_.impl("_scaled_dot_product_flash_attention", FlashForward);
    library_.impl("_scaled_dot_product_flash_attention_backward", FlashBackward);
    library_.impl("_flash_attention_forward", FlashOfWindow);
  }
  static State& now() {
    static State state;
    return state;
  }

 private:
  using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
  using Nine =
      std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor, at::Tensor, at::Tensor>;

  static Nine AsNine(const at::Tensor& output, const at::Tensor& logsumexp) {
    return {output, logsumexp, {}, {}, output.size(2), output.size(2), {}, {}, {}};
  }
  static AttentionForm FormOf(std::optional<double> scale) { return {.scale = scale.value_or(0)}; }
  static Three AsThree(const AttentionHeads& made) { return {made.q, made.k, made.v}; }

  static Nine CudnnForward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::optional<at::Tensor>& bias,
                           bool keeps, double dropout, bool causal, bool debug, std::optional<double> scale) {
    ++now().cudnn;
    TORCH_CHECK_WITH(OutOfMemoryError, !now().is_full, "the card is full");
    TORCH_CHECK(!now().refuses_forward, "no plan for this shape");
    TORCH_CHECK(!bias && keeps && dropout == 0 && causal && !debug && q.stride(-1) == 1, "a causal one that trains");
    const AttentionResult made = MathAttention().forward({q, k, v}, FormOf(scale));
    return AsNine(made.output, made.logsumexp.unsqueeze(-1));
  }
  static Three CudnnBackward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const at::Tensor& output, const at::Tensor& logsumexp, const at::Tensor& seed,
                             const at::Tensor& offset, const at::Tensor& bias, const at::Tensor& cu_q, const at::Tensor& cu_k,
                             c10::SymInt most_q, c10::SymInt most_k, double dropout, bool causal, std::optional<double> scale) {
    ++now().cudnn;
    TORCH_CHECK(!now().refuses_backward, "no plan for this shape");
    TORCH_CHECK(seed.defined() && offset.defined() && !bias.defined() && !cu_q.defined() && !cu_k.defined(), "nothing beside");
    TORCH_CHECK(most_q.expect_int() == q.size(2) && most_k.expect_int() == k.size(2) && dropout == 0 && causal, "as forward");
    TORCH_CHECK(logsumexp.dim() == 4 && logsumexp.size(-1) == 1 && output.sizes() == q.sizes(), "as its forward made them");
    return AsThree(MathAttention().backward(grad, {q, k, v}, {output, logsumexp.squeeze(-1)}, FormOf(scale)));
  }
  static Nine FlashForward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double, bool, bool,
                           std::optional<double> scale) {
    ++now().flash;
    const AttentionResult made = MathAttention().forward({q, k, v}, FormOf(scale));
    return AsNine(made.output, made.logsumexp);
  }
  static Three FlashBackward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const at::Tensor& output, const at::Tensor& logsumexp, const at::Tensor&, const at::Tensor&,
                             c10::SymInt, c10::SymInt, double, bool, const at::Tensor&, const at::Tensor&,
                             std::optional<double> scale) {
    ++now().flash;
    TORCH_CHECK(logsumexp.dim() == 3, "as its forward would have made them");
    return AsThree(MathAttention().backward(grad, {q, k, v}, {output, logsumexp}, FormOf(scale)));
  }
  static std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> FlashOfWindow(
      const at::Tensor& q, const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
      const std::optional<at::Tensor>&, c10::SymInt, c10::SymInt, double, bool, bool, std::optional<double>,
      std::optional<c10::SymInt>, std::optional<c10::SymInt>, const std::optional<at::Tensor>&,
      const std::optional<at::Tensor>&) {
    ++now().flash;
    return {q, at::zeros({q.size(0), q.size(2), q.size(1)}, q.options()), {}, {}, {}};
  }

  torch::Library library_;
};

struct Case {
  int64_t samples, heads, kv_heads, seq_len, head_dim;
};

// Each test has shapes of its own: what cuDNN refused stays so in the process.
class CudnnAttentionTest : public OperatorTest {
 protected:
  AttentionHeads MakeHeads(const Case& of) {
    const at::Tensor qkv = Make({of.samples, of.seq_len, of.heads + 2 * of.kv_heads, of.head_dim}).transpose(1, 2);
    return {qkv.narrow(1, 0, of.heads), qkv.narrow(1, of.heads, of.kv_heads), qkv.narrow(1, of.heads + of.kv_heads, of.kv_heads)};
  }

  // Forward and backward against the textbook.
  void Check(const Case& of, const AttentionForm& form = {}) {
    const AttentionHeads heads = MakeHeads(of);
    const at::Tensor grad = Make({of.samples, of.heads, of.seq_len, of.head_dim});
    const AttentionResult want = MathAttention().forward(heads, form), got = CudnnAttention().forward(heads, form);
    ExpectNear(got.output, want.output, tolerance(), "output");
    ExpectNear(got.logsumexp, want.logsumexp, tolerance(), "logarithms of sums");
    const AttentionHeads wanted = MathAttention().backward(grad, heads, want, form);
    const AttentionHeads made = CudnnAttention().backward(grad, heads, got, form);
    ExpectNear(made.q, wanted.q, tolerance(), "gradient of q");
    ExpectNear(made.k, wanted.k, tolerance(), "gradient of k");
    ExpectNear(made.v, wanted.v, tolerance(), "gradient of v");
  }
};

TEST_P(CudnnAttentionTest, EqualsTheTextbook) {
  const CudnnOnHost library;
  Check({2, 4, 4, 9, 8});
  Check({2, 6, 2, 9, 8});  // groups as they are
  Check({1, 2, 1, 5, 16}, {.scale = 0.5});
  EXPECT_EQ(library.now().cudnn, 6);
  EXPECT_EQ(library.now().flash, 0);
}

TEST_P(CudnnAttentionTest, FlashDoesWhatItsForwardRefusesAndIsNotAskedAgain) {
  const CudnnOnHost library;
  library.now().refuses_forward = true;
  Check({2, 4, 2, 11, 8});
  EXPECT_EQ(library.now().cudnn, 1);
  EXPECT_EQ(library.now().flash, 2);
  EXPECT_TRUE(CudnnRefused(MakeHeads({2, 4, 2, 11, 8})));
  EXPECT_FALSE(CudnnRefused(MakeHeads({2, 4, 2, 12, 8}))) << "another shape";
  library.now().refuses_forward = false;
  Check({2, 4, 2, 11, 8});
  EXPECT_EQ(library.now().cudnn, 1);
  Check({2, 4, 2, 12, 8});  // another shape
  EXPECT_EQ(library.now().cudnn, 3);
}

TEST_P(CudnnAttentionTest, FlashDoesABackwardThatItRefuses) {
  const CudnnOnHost library;
  library.now().refuses_backward = true;
  Check({3, 4, 2, 7, 8});
  EXPECT_EQ(library.now().cudnn, 2);
  EXPECT_EQ(library.now().flash, 1);
}

TEST_P(CudnnAttentionTest, WindowsAreOfFlash) {
  const CudnnOnHost library;
  CudnnAttention().forward(MakeHeads({1, 2, 2, 13, 8}), {.window = 4});
  EXPECT_EQ(library.now().cudnn, 0);
  EXPECT_EQ(library.now().flash, 1);
  Check({1, 2, 2, 13, 8}, {.window = 13});  // leaves none out
  EXPECT_EQ(library.now().cudnn, 2);
}

// The rank says which bytes there are, and the job is planned again.
TEST_P(CudnnAttentionTest, ACardThatIsFullIsNoRefusal) {
  const CudnnOnHost library;
  library.now().is_full = true;
  EXPECT_THROW(CudnnAttention().forward(MakeHeads({1, 2, 2, 14, 8}), {}), c10::OutOfMemoryError);
  library.now().is_full = false;
  Check({1, 2, 2, 14, 8});
  EXPECT_EQ(library.now().flash, 0);
}

MOTLEY_BOTH_DTYPES(CudnnAttentionTest);

TEST(KernelOfHalfTypesTest, TakesCudnnWhereATenDoesAndItsBackwardIsThere) {
  constexpr int64_t kMath = 0, kFlash = 1, kEfficient = 2, kCudnn = 3;
  for (const int64_t head_dim : {64, 80, 96, 128}) EXPECT_EQ(KernelOfHalfTypes(kCudnn, head_dim), &CudnnAttention()) << head_dim;
  EXPECT_EQ(KernelOfHalfTypes(kCudnn, 192), &FlashAttention());
  EXPECT_EQ(KernelOfHalfTypes(kCudnn, 256), &EfficientAttention());
  EXPECT_EQ(KernelOfHalfTypes(kCudnn, 100), &MathAttention());
  EXPECT_EQ(KernelOfHalfTypes(kFlash, 64), &FlashAttention());
  EXPECT_EQ(KernelOfHalfTypes(kMath, 64), nullptr);
  EXPECT_EQ(KernelOfHalfTypes(kEfficient, 64), nullptr);
}

}  // namespace
}  // namespace motley::engine
