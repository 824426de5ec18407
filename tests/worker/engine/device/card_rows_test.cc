// Attention inside the documents of rows, on a card beside the host: its kernels of each type.
#include <ATen/ATen.h>

#include <vector>

#include "tests/worker/engine/device/card.h"
#include "worker/engine/operators/attention.h"

namespace motley::engine {
namespace {

constexpr int64_t kSeqLenOfRows = 512;
constexpr HeadLayout kHeadsOfRows{.heads = 8, .kv_heads = 2, .head_dim = 64};

class CardRowsTest : public CardTest, public testing::WithParamInterface<at::ScalarType> {
 protected:
  // Of numbers of the type itself, against float64.
  double limit() const { return GetParam() == at::kDouble ? 1e-12 : GetParam() == at::kFloat ? 1e-4 : 2e-2; }

  void Check(const std::vector<DocumentLengths>& lengths) {
    const auto samples = static_cast<int64_t>(lengths.size());
    const Borders on_host = MakeBorders(lengths, at::kCPU), on_card = MakeBorders(lengths, card().tensors());
    const at::Tensor qkv = at::randn({samples, kSeqLenOfRows, kHeadsOfRows.width()}, at::kDouble).to(GetParam());
    const at::Tensor grad =
        at::randn({samples, kSeqLenOfRows, kHeadsOfRows.heads * kHeadsOfRows.head_dim}, at::kDouble).to(GetParam());
    const at::Tensor exact = qkv.to(at::kDouble), there = qkv.to(card().tensors());
    const AttentionOutput want = AttentionForward(exact, kHeadsOfRows, &on_host);
    const AttentionOutput got = AttentionForward(there, kHeadsOfRows, &on_card);
    EXPECT_EQ(got.logsumexp.numel(), samples * kHeadsOfRows.heads * kSeqLenOfRows);
    ExpectNear(got.output, want.output, "output");
    ExpectNear(AttentionBackward(grad.to(card().tensors()), there, got, kHeadsOfRows, &on_card),
               AttentionBackward(grad.to(at::kDouble), exact, want, kHeadsOfRows, &on_host), "gradient");
  }
  void ExpectNear(const at::Tensor& got, const at::Tensor& want, const char* what) const {
    EXPECT_LE((got.cpu().to(at::kDouble) - want).norm().item<double>(), limit() * want.norm().item<double>()) << what;
  }
};

TEST_P(CardRowsTest, DocumentsGiveTheHostsNumbers) { Check({{300, 1, 211}, {512}, {128, 128, 128, 128}}); }
// Where ATen takes cuDNN's attention, it is this one.
TEST_P(CardRowsTest, WholeSamplesToo) { Check({{512}, {512}}); }
TEST_P(CardRowsTest, DocumentsOfOneTokenToo) { Check({DocumentLengths(kSeqLenOfRows, 1)}); }
TEST_P(CardRowsTest, ManyShortOnesBesideALongOneToo) {
  DocumentLengths lengths(kSeqLenOfRows / 2, 1);
  lengths.push_back(kSeqLenOfRows / 2);
  Check({lengths, lengths});
}

INSTANTIATE_TEST_SUITE_P(Types, CardRowsTest, testing::Values(at::kDouble, at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& type) { return std::string(at::toString(type.param)); });

}  // namespace
}  // namespace motley::engine
