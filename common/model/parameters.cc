#include "common/model/parameters.h"

#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"

namespace motley {
namespace {

constexpr double kInitStd = 0.02;

// Which dimension of a product's matrix tensor parallelism divides.
enum class Divided { kOutputs, kInputs };

// Collects the tensors of one unit; `names` are the checkpoint's, with the unit's prefix.
class UnitBuilder {
 public:
  UnitBuilder(const FamilyTraits& traits, UnitKind kind, int64_t layer) : traits_(traits) {
    unit_.kind = kind;
    unit_.layer = layer;
    if (layer >= 0) prefix_ = absl::StrCat(std::string(traits.names.layers), layer, ".");
  }
  void Norm(std::string_view name, int64_t size) {
    Whole(name, kWeightSuffix, {size}, traits_.norm == NormKind::kRmsNormPlusOne ? InitKind::kZeros : InitKind::kOnes);
    if (traits_.biases.norm) Whole(name, kBiasSuffix, {size}, InitKind::kZeros);
  }
  // [rows, columns], which no layout of products turns around.
  void Vocabulary(std::string_view name, int64_t rows, int64_t columns) {
    Add(Tensor(name, kWeightSuffix, {rows, columns}, InitKind::kNormal, kInitStd), {rows});
  }
  void Positions(std::string_view name, int64_t rows, int64_t columns) {
    Whole(name, kWeightSuffix, {rows, columns}, InitKind::kNormal);
  }
  // One product of `outs` outputs together, stored under one name or under a name for each of them: first the weights, then the
  // biases, so that the engine finds each of the two in one piece.
  void ByOutputs(std::span<const std::string_view> names, int64_t in, const std::vector<int64_t>& outs, bool bias) {
    const bool fused = names.size() == 1;
    const auto rows_of = [&](size_t i) { return fused ? outs : std::vector{outs[i]}; };
    for (size_t i = 0; i < names.size(); ++i) {
      const std::vector<int64_t> rows = rows_of(i);
      Add(Matrix(names[i], Sum(rows), in, Divided::kOutputs, kInitStd), rows);
    }
    for (size_t i = 0; bias && i < names.size(); ++i) {
      const std::vector<int64_t> rows = rows_of(i);
      Add(Tensor(names[i], kBiasSuffix, {Sum(rows)}, InitKind::kZeros, 0), rows);
    }
  }
  // A product whose inputs are divided: each rank adds its part of all outputs, the bias is added once.
  void ByInputs(std::string_view name, int64_t in, int64_t out, bool bias, double std) {
    Add(Matrix(name, in, out, Divided::kInputs, std), {in});
    if (bias) Whole(name, kBiasSuffix, {out}, InitKind::kZeros);
  }
  UnitSpec Take() {
    unit_.divided_elements = unit_.num_elements;
    for (TensorSpec& tensor : whole_) Append(std::move(tensor));
    return std::move(unit_);
  }

 private:
  static int64_t Sum(const std::vector<int64_t>& extents) { return std::accumulate(extents.begin(), extents.end(), int64_t{0}); }
  TensorSpec Tensor(std::string_view name, std::string_view suffix, std::vector<int64_t> shape, InitKind init, double std) const {
    TensorSpec tensor;
    tensor.name = absl::StrCat(prefix_, std::string(name), std::string(suffix));
    tensor.num_elements = 1;
    for (const int64_t extent : shape) tensor.num_elements *= extent;
    tensor.shape = std::move(shape);
    tensor.init = init;
    tensor.init_std = std;
    return tensor;
  }
  TensorSpec Matrix(std::string_view name, int64_t rows, int64_t columns, Divided divided, double std) const {
    TensorSpec tensor = Tensor(name, kWeightSuffix, {rows, columns}, InitKind::kNormal, std);
    const bool outputs_first = traits_.weights == WeightLayout::kOutIn;
    tensor.transposed = outputs_first != (divided == Divided::kOutputs);
    return tensor;
  }
  void Add(TensorSpec tensor, std::vector<int64_t> divided_rows) {
    tensor.divided_rows = std::move(divided_rows);
    Append(std::move(tensor));
  }
  void Whole(std::string_view name, std::string_view suffix, std::vector<int64_t> shape, InitKind init) {
    whole_.push_back(Tensor(name, suffix, std::move(shape), init, init == InitKind::kNormal ? kInitStd : 0));
  }
  void Append(TensorSpec tensor) {
    tensor.offset_elements = unit_.num_elements;
    unit_.num_elements += tensor.num_elements;
    unit_.tensors.push_back(std::move(tensor));
  }

  const FamilyTraits& traits_;
  std::string prefix_;
  UnitSpec unit_;
  std::vector<TensorSpec> whole_;  // behind the others
};

UnitSpec LayerUnit(const ModelShape& s, const FamilyTraits& traits, int64_t layer) {
  const TensorNames& names = traits.names;
  const int64_t h = s.hidden_size, q = s.num_heads * s.head_dim, kv = s.num_kv_heads * s.head_dim, up = s.intermediate_size;
  // GPT-2 scales what is added to the residual stream, twice a layer, so that its variance does not grow with depth.
  const double residual_std =
      traits.residuals_by_depth ? kInitStd / std::sqrt(2.0 * static_cast<double>(s.num_layers)) : kInitStd;
  UnitBuilder b(traits, UnitKind::kLayer, layer);
  b.Norm(names.norm1, h);
  b.ByOutputs(names.qkv, h, {q, kv, kv}, traits.biases.qkv);
  const bool whole = traits.head_norm == HeadNorm::kWhole;
  for (size_t i = 0; i < names.head_norm.size(); ++i) b.Norm(names.head_norm[i], whole ? (i == 0 ? q : kv) : s.head_dim);
  b.ByInputs(names.out, q, h, traits.biases.out, residual_std);
  if (!names.behind1.empty()) b.Norm(names.behind1, h);
  b.Norm(names.norm2, h);
  b.ByOutputs(names.up, h, std::vector<int64_t>(static_cast<size_t>(UpProductsOf(traits.activation)), up), traits.biases.mlp);
  b.ByInputs(names.down, up, h, traits.biases.mlp, residual_std);
  if (!names.behind2.empty()) b.Norm(names.behind2, h);
  return b.Take();
}

}  // namespace

std::vector<UnitSpec> ParameterLayout(const ModelShape& shape) {
  const FamilyTraits& traits = TraitsOf(shape.family);
  const int64_t h = shape.hidden_size;
  std::vector<UnitSpec> units;
  units.reserve(static_cast<size_t>(NumUnits(shape)));

  UnitBuilder embedding(traits, UnitKind::kEmbedding, -1);
  embedding.Vocabulary(traits.names.tokens, shape.vocab_size, h);
  if (!traits.names.positions.empty()) embedding.Positions(traits.names.positions, shape.max_positions, h);
  units.push_back(embedding.Take());

  for (int64_t layer = 0; layer < shape.num_layers; ++layer) units.push_back(LayerUnit(shape, traits, layer));

  UnitBuilder head(traits, UnitKind::kHead, -1);
  head.Norm(traits.names.final_norm, h);
  if (!shape.tie_embeddings) head.Vocabulary(kHeadName, shape.vocab_size, h);
  units.push_back(head.Take());
  return units;
}

int64_t NumParameters(const ModelShape& shape) {
  int64_t sum = 0;
  for (const UnitSpec& unit : ParameterLayout(shape)) sum += unit.num_elements;
  return sum;
}

}  // namespace motley
