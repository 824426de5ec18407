// Products that are added to float32 gradients on a card, beside the host's in float64.
#include <ATen/ATen.h>
#include <torch/version.h>

#include <string>

#include "tests/worker/engine/device/card.h"
#include "worker/engine/operators/half.h"

namespace motley::engine {
namespace {

class CardProductsTest : public CardTest, public testing::WithParamInterface<at::ScalarType> {};

TEST_P(CardProductsTest, AreAddedInPlace) {
  if (TORCH_VERSION_MINOR < 11) GTEST_SKIP() << "libtorch 2.7 has no such product";
  const at::TensorOptions on_card = at::TensorOptions().device(card().tensors());
  // As a head's gradient of logits: rows that are longer than their words.
  const at::Tensor rows = at::randn({300, 320}, on_card.dtype(GetParam())).narrow(1, 0, 257);
  const at::Tensor x = at::randn({300, 128}, on_card.dtype(GetParam()));
  at::Tensor sum = at::randn({257, 128}, on_card.dtype(at::kFloat));
  const auto wide = [](const at::Tensor& t) { return t.cpu().to(at::kDouble); };
  const at::Tensor want = wide(sum) + at::mm(wide(rows).t(), wide(x));
  const void* const place = sum.const_data_ptr();
  at::Tensor other = at::zeros_like(sum);
  AddProduct(other, rows.t(), x);  // cuBLAS gets its room
  card().Synchronize();
  card().ResetPeak();
  const int64_t before = card().CurrentBytes();
  AddProduct(sum, rows.t(), x);
  card().Synchronize();
  EXPECT_EQ(sum.const_data_ptr(), place);
  EXPECT_LT(card().PeakBytes() - before, sum.nbytes() / 2) << "the product was made apart";
  EXPECT_LE((wide(sum) - want).norm().item<double>(), 1e-5 * want.norm().item<double>());
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CardProductsTest, testing::Values(at::kHalf, at::kBFloat16),
                         [](const auto& info) { return std::string(at::toString(info.param)); });

}  // namespace
}  // namespace motley::engine
