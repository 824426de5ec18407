// How many kernels a card is given for a layer and one microbatch, both passes: counted from the operators that the layer calls,
// not measured. docs/inside/cuda.md has the figures.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/version.h>

#include <iostream>
#include <ostream>
#include <set>
#include <string>

#include "common/model/model.h"
#include "tests/worker/engine/model/counted_kernels.h"
#include "tests/worker/engine/model/counted_launches.h"
#include "tests/worker/engine/model/meta_kernels.h"
#include "worker/engine/model/unit_bench.h"

namespace motley::engine {
namespace {

constexpr int64_t kSequence = 1024;

struct LayerCase {
  std::string name;
  ModelShape shape;
  int forward, backward;  // kernels
  // With some of our own: PyTorch's that are left, and the own ones.
  int forward_left, backward_left, own;
};
void PrintTo(const LayerCase& layer, std::ostream* out) { *out << layer.name; }

// As many keys as heads: where heads share them, attention's backward has two kernels more.
LayerCase Gpt2Layer() {
  return {"Gpt2",
          {.family = ModelFamily::kGpt2,
           .vocab_size = 50257,
           .hidden_size = 1600,
           .num_layers = 1,
           .num_heads = 25,
           .num_kv_heads = 25,
           .head_dim = 64,
           .intermediate_size = 6400,
           .max_positions = 1024,
           .tie_embeddings = true},
          11,
          32,
          11,
          24,  // without four sums and additions of biases
          8};
}
LayerCase LlamaLayer() {
  return {"Llama",
          {.family = ModelFamily::kLlama,
           .vocab_size = 32000,
           .hidden_size = 4096,
           .num_layers = 1,
           .num_heads = 32,
           .num_kv_heads = 32,
           .head_dim = 128,
           .intermediate_size = 11008,
           .max_positions = 4096,
           .tie_embeddings = false},
          17,
          30,
          10,  // without two of SwiGLU and five of rotary
          20,  // without four and five, and the one that puts gradients of heads together
          4};
}

class LayerKernelsTest : public testing::TestWithParam<LayerCase> {
 protected:
  void Check(SamplesKind samples) { Check(samples, nullptr, GetParam().forward, GetParam().backward); }
  // PyTorch's, of a card with these kernels of our own.
  void Check(SamplesKind samples, const KernelLauncher* own, int forward, int backward);

  template <typename Pass>
  int Count(const char* pass, Pass run) {
    CountedKernels kernels;
    run();
    EXPECT_EQ(kernels.unknown(), std::set<std::string>()) << "give it a row in kernel_table.h";
    std::cout << GetParam().name << ", " << pass << ": " << kernels.total() << " kernels\n";
    for (const auto& [op, launched] : kernels.launched()) std::cout << "  " << launched << " " << op << "\n";
    return kernels.total();
  }

 private:
  MetaKernels kernels_;
  CardAttention attention_;
};

TEST_P(LayerKernelsTest, AreAsMany) { Check(SamplesKind::kWhole); }
// However many documents a row has.
TEST_P(LayerKernelsTest, OfRowsTheyAreNoMore) { Check(SamplesKind::kRows); }

// SwiGLU, rotary, biases. Norms: forward two and the first residual are two of our own; backward two of two each, and both
// additions of what is carried past them, are four. The last residual and the check of its sum are one; that of the gradient
// none.
TEST_P(LayerKernelsTest, WithOwnOnesTheyAreFewer) {
  const CountedLaunches own;
  Check(SamplesKind::kWhole, own.kernels(), GetParam().forward_left - 5, GetParam().backward_left - 7);
  if (!IsSkipped()) EXPECT_EQ(own.count(), GetParam().own + 7);
}

void LayerKernelsTest::Check(SamplesKind samples, const KernelLauncher* own, int forward, int backward) {
  if (TORCH_VERSION_MINOR != 11) GTEST_SKIP() << "the table is of libtorch 2.11";
  const LayerCase& layer = GetParam();
  const Precision precision{.master = DType::kFloat32, .compute = DType::kBFloat16};
  UnitModel model(layer.shape, kSequence, precision.compute, kNowhere, ModelSlice(), own);
  UnitBench unit(model, layer.shape, kSequence, precision, kNowhere, UnitKind::kLayer);
  unit.Prepare(1, samples);
  EXPECT_EQ(Count("forward", [&] { unit.Forward(); }), forward);
  EXPECT_EQ(Count("backward", [&] { unit.Backward(); }), backward);
}

INSTANTIATE_TEST_SUITE_P(Models, LayerKernelsTest, testing::Values(Gpt2Layer(), LlamaLayer()),
                         [](const auto& layer) { return layer.param.name; });

}  // namespace
}  // namespace motley::engine
