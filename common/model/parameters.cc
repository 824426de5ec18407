#include "common/model/parameters.h"

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace motley {
namespace {

constexpr double kInitStd = 0.02;

// Appends tensors to one unit; `names` are the checkpoint's, with the unit's prefix.
class UnitBuilder {
 public:
  UnitBuilder(const FamilyTraits& traits, UnitKind kind, int64_t layer) : traits_(traits) {
    unit_.kind = kind;
    unit_.layer = layer;
    if (layer >= 0) prefix_ = absl::StrCat(std::string(traits.names.layers), layer, ".");
  }
  void Norm(std::string_view name, int64_t size) {
    Add(name, kWeightSuffix, {size}, InitKind::kOnes, 0);
    if (traits_.biases.norm) Add(name, kBiasSuffix, {size}, InitKind::kZeros, 0);
  }
  // [rows, columns], which no layout of products turns around.
  void Table(std::string_view name, int64_t rows, int64_t columns) {
    Add(name, kWeightSuffix, {rows, columns}, InitKind::kNormal, kInitStd);
  }
  // One product of `outs` outputs together, stored under one name or under a name for each of them: first the weights, then the
  // biases, so that the engine finds each of the two in one piece.
  void Product(std::span<const std::string_view> names, int64_t in, std::vector<int64_t> outs, bool bias, double std = kInitStd) {
    if (names.size() == 1) outs = {std::accumulate(outs.begin(), outs.end(), int64_t{0})};
    for (size_t i = 0; i < names.size(); ++i) Add(names[i], kWeightSuffix, Matrix(in, outs[i]), InitKind::kNormal, std);
    for (size_t i = 0; bias && i < names.size(); ++i) Add(names[i], kBiasSuffix, {outs[i]}, InitKind::kZeros, 0);
  }
  UnitSpec Take() { return std::move(unit_); }

 private:
  std::vector<int64_t> Matrix(int64_t in, int64_t out) const {
    switch (traits_.weights) {
      case WeightLayout::kInOut:
        return {in, out};
      case WeightLayout::kOutIn:
        return {out, in};
    }
    std::abort();
  }
  void Add(std::string_view name, std::string_view suffix, std::vector<int64_t> shape, InitKind init, double std) {
    TensorSpec tensor;
    tensor.name = absl::StrCat(prefix_, std::string(name), std::string(suffix));
    tensor.num_elements = 1;
    for (const int64_t extent : shape) tensor.num_elements *= extent;
    tensor.shape = std::move(shape);
    tensor.offset_elements = unit_.num_elements;
    tensor.init = init;
    tensor.init_std = std;
    unit_.num_elements += tensor.num_elements;
    unit_.tensors.push_back(std::move(tensor));
  }

  const FamilyTraits& traits_;
  std::string prefix_;
  UnitSpec unit_;
};

UnitSpec LayerUnit(const ModelShape& s, const FamilyTraits& traits, int64_t layer) {
  const TensorNames& names = traits.names;
  const int64_t h = s.hidden_size, q = s.num_heads * s.head_dim, kv = s.num_kv_heads * s.head_dim, up = s.intermediate_size;
  // GPT-2 scales what is added to the residual stream, twice a layer, so that its variance does not grow with depth.
  const double residual_std =
      traits.residuals_by_depth ? kInitStd / std::sqrt(2.0 * static_cast<double>(s.num_layers)) : kInitStd;
  UnitBuilder b(traits, UnitKind::kLayer, layer);
  b.Norm(names.norm1, h);
  b.Product(names.qkv, h, {q, kv, kv}, traits.biases.qkv);
  b.Product({&names.out, 1}, q, {h}, traits.biases.out, residual_std);
  b.Norm(names.norm2, h);
  b.Product(names.up, h, std::vector<int64_t>(names.up.size(), up), traits.biases.mlp);
  b.Product({&names.down, 1}, up, {h}, traits.biases.mlp, residual_std);
  return b.Take();
}

}  // namespace

std::vector<UnitSpec> ParameterLayout(const ModelShape& shape) {
  const FamilyTraits& traits = TraitsOf(shape.family);
  const int64_t h = shape.hidden_size;
  std::vector<UnitSpec> units;
  units.reserve(static_cast<size_t>(NumUnits(shape)));

  UnitBuilder embedding(traits, UnitKind::kEmbedding, -1);
  embedding.Table(traits.names.tokens, shape.vocab_size, h);
  if (!traits.names.positions.empty()) embedding.Table(traits.names.positions, shape.max_positions, h);
  units.push_back(embedding.Take());

  for (int64_t layer = 0; layer < shape.num_layers; ++layer) units.push_back(LayerUnit(shape, traits, layer));

  UnitBuilder head(traits, UnitKind::kHead, -1);
  head.Norm(traits.names.final_norm, h);
  if (!shape.tie_embeddings) head.Table(kHeadName, shape.vocab_size, h);
  units.push_back(head.Take());
  return units;
}

int64_t NumParameters(const ModelShape& shape) {
  int64_t sum = 0;
  for (const UnitSpec& unit : ParameterLayout(shape)) sum += unit.num_elements;
  return sum;
}

}  // namespace motley
