// Rotary positions and the gradients of heads by kernels of our own, which a fake driver runs over host memory, beside PyTorch's
// operators. In half types the bits are the same.
#include "worker/engine/operators/own_rotary.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/worker/engine/kernels/open_fake_kernels.h"
#include "worker/engine/operators/attention.h"

namespace motley::engine {
namespace {

constexpr int64_t kSamples = 2, kSeqLen = 7;
const auto kTypes = {at::kBFloat16, at::kHalf, at::kFloat};

class OwnRotaryTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(kernels_.ok()) << kernels_.status(); }
  const KernelLauncher* kernels() const { return kernels_->get(); }
  static at::Tensor Draw(at::IntArrayRef sizes, at::ScalarType type) {
    at::manual_seed(7);
    return (at::randn(sizes) * 2).to(type);
  }
  static RotaryTables Tables(const HeadLayout& layout, at::ScalarType type, bool by_document = false) {
    const RotaryTables tables = MakeRotaryTables(kSeqLen, layout.head_dim, 100.0, type);
    if (!by_document) return tables;
    return TablesAt(tables, at::tensor({0, 1, 2, 3, 0, 1, 2, 0, 1, 0, 1, 2, 3, 4}, at::kInt), kSamples);
  }
  static void ExpectSame(const at::Tensor& got, const at::Tensor& want) {
    ASSERT_EQ(got.sizes(), want.sizes());
    if (want.scalar_type() == at::kFloat) {
      EXPECT_LT((got - want).abs().max().item<double>(), 2e-6);
    } else {
      EXPECT_TRUE(got.equal(want)) << got.ne(want).sum().item<int64_t>() << " of " << got.numel() << " differ";
    }
  }

  const absl::StatusOr<std::unique_ptr<KernelLauncher>> kernels_ = LoadFakeKernels();
};

TEST_F(OwnRotaryTest, IsPyTorchsThereAndBack) {
  for (const int64_t head_dim : {16, 64, 80, 96, 128, 256}) {
    const HeadLayout layout{3, 1, head_dim};
    for (const at::ScalarType type : kTypes) {
      for (const bool by_document : {false, true}) {
        const RotaryTables tables = Tables(layout, type, by_document);
        const at::Tensor rows = Draw({kSamples, kSeqLen, layout.width()}, type);
        at::Tensor forward = rows.clone(), backward = rows.clone(), want_forward = rows.clone(), want_backward = rows.clone();
        const long before = FakeLaunches();
        RotaryForward(tables, forward, 4, kernels());
        RotaryBackward(tables, backward, 4, kernels());
        EXPECT_EQ(FakeLaunches(), before + 2);
        RotaryForward(tables, want_forward, 4);
        RotaryBackward(tables, want_backward, 4);
        ExpectSame(forward, want_forward);
        ExpectSame(backward, want_backward);
        EXPECT_FALSE(forward.equal(rows));
      }
    }
  }
}

TEST_F(OwnRotaryTest, WhatTheyDoNotTakeIsPyTorchsToTheBit) {
  const long before = FakeLaunches();
  const auto expect_same = [&](const RotaryTables& tables, const at::Tensor& rows) {
    at::Tensor got = rows.clone(), want = rows.clone();
    RotaryForward(tables, got, 1, kernels());
    RotaryForward(tables, want, 1);
    EXPECT_TRUE(got.equal(want));
  };
  const HeadLayout odd{1, 1, 24}, even{1, 1, 16};
  expect_same(Tables(odd, at::kBFloat16), Draw({kSamples, kSeqLen, odd.width()}, at::kBFloat16));  // half a head of 12
  expect_same(Tables(even, at::kDouble), Draw({kSamples, kSeqLen, even.width()}, at::kDouble));
  EXPECT_EQ(FakeLaunches(), before);
}

// With heads as ATen's kernels lay their gradients: positions before heads, heads before positions.
TEST_F(OwnRotaryTest, GradientsSideBySideAreTurnedBack) {
  const HeadLayout layout{4, 2, 80};
  for (const at::ScalarType type : kTypes) {
    for (const bool heads_first : {false, true}) {
      const auto draw = [&](int64_t heads) {
        return heads_first ? Draw({kSamples, heads, kSeqLen, layout.head_dim}, type)
                           : Draw({kSamples, kSeqLen, heads, layout.head_dim}, type).transpose(1, 2);
      };
      const AttentionHeads grads = {draw(4), draw(2), draw(2) + 1};
      const RotaryTables tables = Tables(layout, type, heads_first);
      ASSERT_TRUE(ArePackedByKernels(kernels(), grads, tables));
      at::Tensor want = at::cat({grads.q.transpose(1, 2), grads.k.transpose(1, 2), grads.v.transpose(1, 2)}, 2).flatten(2);
      RotaryBackward(tables, want, 6);
      ExpectSame(OwnPackHeads(*kernels(), grads, tables), want);
      EXPECT_FALSE(ArePackedByKernels(nullptr, grads, tables));
      EXPECT_FALSE(ArePackedByKernels(kernels(), {grads.q.transpose(2, 3), grads.k, grads.v}, tables));
    }
  }
}

TEST_F(OwnRotaryTest, AttentionsBackwardTurnsBackWithAndWithoutKernels) {
  const HeadLayout layout{4, 2, 16};
  const at::Tensor qkv = Draw({kSamples, kSeqLen, layout.width()}, at::kFloat), grad = Draw({kSamples, kSeqLen, 64}, at::kFloat);
  const AttentionOutput saved = AttentionForward(qkv, layout);
  const RotaryTables tables = Tables(layout, at::kFloat), none;
  at::Tensor want = AttentionBackward(grad, qkv, saved, layout);
  EXPECT_TRUE(AttentionBackward(grad, qkv, saved, layout, nullptr, {}, {&none, kernels()}).equal(want)) << "nothing was turned";
  RotaryBackward(tables, want, 6);
  EXPECT_TRUE(AttentionBackward(grad, qkv, saved, layout, nullptr, {}, {&tables, nullptr}).equal(want));
  const long before = FakeLaunches();
  ExpectSame(AttentionBackward(grad, qkv, saved, layout, nullptr, {}, {&tables, kernels()}), want);
  EXPECT_EQ(FakeLaunches(), before + 1);
}

}  // namespace
}  // namespace motley::engine
