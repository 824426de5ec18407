// A model's units on a card beside the host's.
#include <ATen/ATen.h>

#include <filesystem>
#include <string>
#include <tuple>

#include "tests/worker/engine/device/card.h"
#include "tests/worker/engine/equivalence/tiny_job.h"
#include "worker/engine/model/optimizer.h"
#include "worker/engine/model/unit_model.h"

namespace motley::engine {
namespace {

constexpr int64_t kSamples = 2;

class CardUnitsTest : public CardTest, public testing::WithParamInterface<std::tuple<ModelFamily, DType>> {
 protected:
  // Of one layout on both sides.
  struct Sides {
    at::Tensor host, card;
  };
  Sides Both(const at::Tensor& host) { return {host, host.to(card().tensors())}; }
  Sides Random(at::IntArrayRef shape) { return Both(at::randn(shape, at::kDouble).mul_(0.1).to(type())); }

  at::ScalarType type() const { return std::get<1>(GetParam()) == DType::kFloat64 ? at::kDouble : at::kFloat; }
  double tolerance() const { return type() == at::kDouble ? 1e-10 : 2e-4; }

  void ExpectSame(const Sides& sides, const char* what) {
    const at::Tensor want = sides.host.to(at::kDouble), got = sides.card.cpu().to(at::kDouble);
    EXPECT_LE((got - want).norm().item<double>(), tolerance() * want.norm().item<double>()) << what;
  }
};

TEST_P(CardUnitsTest, AStepOfAModelGivesTheHostsNumbers) {
  const auto [family, dtype] = GetParam();
  const TinyJob job = MakeTinyJob(family, kTinySizes[0], dtype, std::filesystem::temp_directory_path());
  const int64_t seq_len = job.config.training.seq_len;
  UnitModel on_host(job.model, seq_len, dtype), on_card(job.model, seq_len, dtype, card().tensors());
  const std::vector<UnitSpec> layout = ParameterLayout(job.model);
  std::vector<Sides> parameters, gradients;
  for (const UnitSpec& unit : layout) {
    parameters.push_back(Random({unit.num_elements}));
    gradients.push_back(Both(at::zeros({unit.num_elements}, type())));
  }
  const Sides tokens = Both(at::randint(job.model.vocab_size, {kSamples, seq_len}, at::kLong));
  const Sides targets = Both(at::randint(job.model.vocab_size, {kSamples, seq_len}, at::kLong));
  const size_t head = layout.size() - 1;

  Sides x = {on_host.EmbeddingForward(parameters[0].host, tokens.host),
             on_card.EmbeddingForward(parameters[0].card, tokens.card)};
  std::vector<Saved> of_host(layout.size()), of_card(layout.size());
  for (size_t u = 1; u < head; ++u) {
    x = {on_host.LayerForward(parameters[u].host, x.host, &of_host[u]),
         on_card.LayerForward(parameters[u].card, x.card, &of_card[u])};
    ExpectSame(x, "a layer's output");
  }
  ExpectSame({on_host.HeadForward(parameters[head].host, parameters[0].host, x.host, targets.host),
              on_card.HeadForward(parameters[head].card, parameters[0].card, x.card, targets.card)},
             "loss of an evaluation");
  UnitModel::HeadKeep(x.host, of_host[head]);
  UnitModel::HeadKeep(x.card, of_card[head]);
  const HeadGradient by_host = on_host.HeadBackward(parameters[head].host, parameters[0].host, of_host[head], targets.host, 0.01,
                                                    gradients[head].host, gradients[0].host);
  const HeadGradient by_card = on_card.HeadBackward(parameters[head].card, parameters[0].card, of_card[head], targets.card, 0.01,
                                                    gradients[head].card, gradients[0].card);
  ExpectSame({by_host.loss, by_card.loss}, "loss");
  Sides grad = {by_host.input, by_card.input};
  for (size_t u = head - 1; u > 0; --u) {
    grad = {on_host.LayerBackward(parameters[u].host, of_host[u], grad.host, gradients[u].host),
            on_card.LayerBackward(parameters[u].card, of_card[u], grad.card, gradients[u].card)};
    ExpectSame(grad, "the gradient of a layer's input");
  }
  on_host.EmbeddingBackward(tokens.host, grad.host, gradients[0].host);
  on_card.EmbeddingBackward(tokens.card, grad.card, gradients[0].card);
  for (size_t u = 0; u < layout.size(); ++u) {
    ExpectSame(gradients[u], "a unit's gradients");
    ExpectSame({SquaredNorm(gradients[u].host), SquaredNorm(gradients[u].card)}, "their squared norm");
    Sides m = Both(at::zeros_like(parameters[u].host)), v = Both(at::zeros_like(parameters[u].host));
    AdamWStep(job.config.optimizer, 1e-3, 1, 0.5, {gradients[u].host, parameters[u].host, m.host, v.host});
    AdamWStep(job.config.optimizer, 1e-3, 1, 0.5, {gradients[u].card, parameters[u].card, m.card, v.card});
    ExpectSame(parameters[u], "stepped parameters");
    ExpectSame(v, "the second moment");
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CardUnitsTest,
                         testing::Combine(testing::Values(ModelFamily::kGpt2, ModelFamily::kLlama, ModelFamily::kQwen3,
                                                          ModelFamily::kOlmo2, ModelFamily::kGemma3),
                                          testing::Values(DType::kFloat64, DType::kFloat32)),
                         [](const auto& model) {
                           return std::string(TraitsOf(std::get<0>(model.param)).model_type) +
                                  (std::get<1>(model.param) == DType::kFloat64 ? "InFloat64" : "InFloat32");
                         });

}  // namespace
}  // namespace motley::engine
