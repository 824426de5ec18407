// Every operator in both half types against itself in float64, which the other tests hold against autograd. Weights' gradients
// are float32, as the engine has them.
#include <functional>

#include "tests/worker/engine/model/autograd_oracle.h"
#include "worker/engine/operators/activation.h"
#include "worker/engine/operators/attention.h"
#include "worker/engine/operators/embedding.h"
#include "worker/engine/operators/fused_rms_norm.h"
#include "worker/engine/operators/head_norm.h"
#include "worker/engine/operators/lm_head_loss.h"
#include "worker/engine/operators/norm.h"
#include "worker/engine/operators/projection.h"
#include "worker/engine/operators/rotary.h"

namespace motley::engine {
namespace {

using Tensors = std::vector<at::Tensor>;
// Runs an operator on inputs of one type, with gradients of weights in another.
using Operator = std::function<Tensors(const Tensors& inputs, at::ScalarType gradients)>;

class HalfTest : public testing::TestWithParam<at::ScalarType> {
 protected:
  // A few roundings of the type: 8 bits of bfloat16, 11 of float16.
  double tolerance() const { return GetParam() == at::kBFloat16 ? 1.5e-2 : 2e-3; }
  at::Tensor Make(at::IntArrayRef shape, double scale = 1.0) const { return Random(shape, GetParam(), scale); }

  void ExpectLikeFloat64(const Tensors& inputs, const Operator& run) const {
    c10::NoGradGuard no_grad;
    Tensors wide;
    for (const at::Tensor& input : inputs) wide.push_back(input.to(at::kDouble));
    const Tensors got = run(inputs, at::kFloat), want = run(wide, at::kDouble);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) ExpectNear(got[i], want[i], tolerance(), "output " + std::to_string(i));
  }
  static at::Tensor Zeros(const at::Tensor& like, at::ScalarType type) { return at::zeros(like.sizes(), type); }
};

TEST_P(HalfTest, Projection) {
  for (const WeightLayout layout : {WeightLayout::kInOut, WeightLayout::kOutIn}) {
    const at::Tensor w = layout == WeightLayout::kInOut ? Make({24, 40}) : Make({40, 24});
    ExpectLikeFloat64({Make({9, 24}), w, Make({40}), Make({9, 40})}, [layout](const Tensors& in, at::ScalarType type) {
      at::Tensor dw = Zeros(in[1], type), db = Zeros(in[2], type);
      ProjectionBackwardWeight(in[3], in[0], layout, dw, db);
      return Tensors{ProjectionForward(in[0], in[1], in[2], layout), ProjectionBackwardInput(in[3], in[1], layout), dw, db};
    });
  }
}

TEST_P(HalfTest, Norms) {
  for (const NormKind kind : {NormKind::kLayerNorm, NormKind::kRmsNorm, NormKind::kRmsNormPlusOne}) {
    const bool bias = kind == NormKind::kLayerNorm;
    ExpectLikeFloat64({Make({12, 32}), Make({32}), Make({32}), Make({12, 32})}, [&](const Tensors& in, at::ScalarType type) {
      NormStats stats;
      const at::Tensor none, b = bias ? in[2] : none;
      const at::Tensor y = NormForward(kind, in[0], in[1], b, 1e-5, stats);
      EXPECT_EQ(stats.rstd.scalar_type(), type) << "statistics of half tensors are float32";
      EXPECT_EQ(y.scalar_type(), in[0].scalar_type());
      const auto [dx, dw, db] = NormBackward(kind, in[3], in[0], in[1], b, stats);
      EXPECT_EQ(dw.scalar_type(), type) << "and so are the sums for the weights";
      EXPECT_EQ(dx.scalar_type(), in[0].scalar_type());
      return bias ? Tensors{y, stats.rstd, dx, dw, db} : Tensors{y, stats.rstd, dx, dw};
    });
  }
}

// Squares beyond float16's range: 300^2 x 64.
TEST_P(HalfTest, NormsOfLargeActivationsStayFinite) {
  for (const NormKind kind : {NormKind::kLayerNorm, NormKind::kRmsNorm, NormKind::kRmsNormPlusOne}) {
    ExpectLikeFloat64({Make({4, 64}, 300), Make({64}), Make({64})}, [&](const Tensors& in, at::ScalarType) {
      NormStats stats;
      return Tensors{NormForward(kind, in[0], in[1], kind == NormKind::kLayerNorm ? in[2] : at::Tensor(), 1e-5, stats)};
    });
  }
}

TEST_P(HalfTest, FusedRmsNorm) {
  if (!HasFusedRmsNorm(at::empty({}, at::kMeta))) GTEST_SKIP() << "this libtorch has no fused RMSNorm";
  for (const double scale : {1.0, 300.0}) {
    ExpectLikeFloat64({Make({12, 64}, scale), Make({64})}, [](const Tensors& in, at::ScalarType) {
      const FusedRmsNorm made = FusedRmsNormForward(in[0], in[1], 1e-5);
      EXPECT_EQ(made.output.scalar_type(), in[0].scalar_type());
      return Tensors{made.output, made.rstd};
    });
  }
}

TEST_P(HalfTest, Activations) {
  for (const ActivationKind kind : {ActivationKind::kGeluTanh, ActivationKind::kSwiGlu, ActivationKind::kGeGlu}) {
    const int64_t out = 32 / UpProductsOf(kind);
    ExpectLikeFloat64({Make({10, 32}), Make({10, out})}, [kind](const Tensors& in, at::ScalarType) {
      return Tensors{ActivationForward(kind, in[0]), ActivationBackward(kind, in[1], in[0])};
    });
  }
}

TEST_P(HalfTest, Attention) {
  const HeadLayout layout{4, 2, 8};
  ExpectLikeFloat64({Make({2, 13, layout.width()}), Make({2, 13, 32})}, [&](const Tensors& in, at::ScalarType) {
    const AttentionOutput kept = AttentionForward(in[0], layout);
    return Tensors{kept.output, kept.logsumexp, AttentionBackward(in[1], in[0], kept, layout)};
  });
}

TEST_P(HalfTest, Rotary) {
  ExpectLikeFloat64({Make({2, 11, 3 * 8})}, [](const Tensors& in, at::ScalarType) {
    const RotaryTables tables = MakeRotaryTables(11, 8, 500.0, in[0].scalar_type());
    at::Tensor forward = in[0].clone(), backward = in[0].clone();
    RotaryForward(tables, forward, 3);
    RotaryBackward(tables, backward, 3);
    return Tensors{forward, backward};
  });
}

TEST_P(HalfTest, HeadNorms) {
  const HeadLayout layout{4, 2, 8};
  for (const HeadNorm kind : {HeadNorm::kByHead, HeadNorm::kWhole}) {
    const int64_t weights = kind == HeadNorm::kByHead ? 16 : 48;
    ExpectLikeFloat64({Make({9, layout.width()}, 30), Make({weights}), Make({9, layout.width()})},
                      [&](const Tensors& in, at::ScalarType type) {
                        at::Tensor forward = in[0].clone(), backward = in[2].clone();
                        const HeadNormSaved saved = HeadNormForward(forward, layout, kind, in[1], 1e-5);
                        EXPECT_EQ(saved.rstd.scalar_type(), type) << "statistics of half tensors are float32";
                        EXPECT_EQ(saved.raw.scalar_type(), in[0].scalar_type());
                        const at::Tensor dw = HeadNormBackward(backward, saved, layout, kind, in[1]);
                        EXPECT_EQ(dw.scalar_type(), type) << "and so are the sums for the weights";
                        return Tensors{forward, backward, saved.raw, saved.rstd, dw};
                      });
  }
}

TEST_P(HalfTest, Embedding) {
  const at::Tensor tokens = at::randint(50, {3, 11}, at::kLong);
  ExpectLikeFloat64({Make({50, 16}), Make({20, 16}), Make({3, 11, 16})}, [&](const Tensors& in, at::ScalarType type) {
    at::Tensor dt = Zeros(in[0], type), dp = Zeros(in[1], type);
    EmbedBackward(tokens, in[2], dt, dp);
    return Tensors{EmbedForward(tokens, in[0], in[1]), dt, dp};
  });
}

TEST_P(HalfTest, LmHeadLoss) {
  const at::Tensor targets = at::randint(60, {14}, at::kLong);
  ExpectLikeFloat64({Make({14, 16}), Make({60, 16})}, [&](const Tensors& in, at::ScalarType type) {
    at::Tensor dw = Zeros(in[1], type);
    const LmHeadGradient made = LmHeadLossBackward(in[0], in[1], targets, 8, dw);
    EXPECT_EQ(made.normed.scalar_type(), in[0].scalar_type());
    return Tensors{made.loss, made.normed, dw};
  });
}

// What a half sum over microbatches would lose: the hundred ones beside 2048 (float16) or 256 (bfloat16).
TEST_P(HalfTest, GradientsAddUpInFloat32) {
  const at::Tensor one = at::ones({1, 1}, GetParam());
  at::Tensor sum = at::full({1, 1}, GetParam() == at::kHalf ? 2048.0 : 256.0, at::kFloat), none;
  const double before = sum.item<double>();
  for (int microbatch = 0; microbatch < 100; ++microbatch) ProjectionBackwardWeight(one, one, WeightLayout::kInOut, sum, none);
  EXPECT_EQ(sum.item<double>(), before + 100);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, HalfTest, testing::Values(at::kHalf, at::kBFloat16),
                         [](const auto& info) { return std::string(at::toString(info.param)); });

}  // namespace
}  // namespace motley::engine
