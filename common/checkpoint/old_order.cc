#include "common/checkpoint/old_order.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/model/parameters.h"

namespace motley {
namespace {

// The products and norms of a unit, in the old order. Of each the weights came first, then the biases.
std::vector<std::span<const std::string_view>> OldGroups(const TensorNames& names, UnitKind kind) {
  const auto one = [](const std::string_view& name) { return std::span(&name, 1); };
  static constexpr std::string_view kHead = kHeadName;
  switch (kind) {
    case UnitKind::kEmbedding:
      return {one(names.tokens), one(names.positions)};
    case UnitKind::kLayer:
      return {one(names.norm1), names.qkv, one(names.out), one(names.norm2), names.up, one(names.down)};
    case UnitKind::kHead:
      return {one(names.final_norm), one(kHead)};
  }
  return {};
}

// First element of each tensor in the old array, by the tensor's place in `unit`.
std::vector<int64_t> OldOffsets(const FamilyTraits& traits, const UnitSpec& unit) {
  std::map<std::string_view, size_t> by_name;
  for (size_t i = 0; i < unit.tensors.size(); ++i) by_name[unit.tensors[i].name] = i;
  const std::string prefix = unit.kind == UnitKind::kLayer ? absl::StrCat(std::string(traits.names.layers), unit.layer, ".") : "";
  std::vector<int64_t> offsets(unit.tensors.size(), 0);
  int64_t next = 0;
  for (const std::span<const std::string_view> group : OldGroups(traits.names, unit.kind)) {
    for (const std::string_view suffix : {kWeightSuffix, kBiasSuffix}) {
      for (const std::string_view name : group) {
        const auto found = by_name.find(absl::StrCat(prefix, std::string(name), std::string(suffix)));
        if (found == by_name.end()) continue;  // not every family has it
        offsets[found->second] = next;
        next += unit.tensors[found->second].num_elements;
      }
    }
  }
  return offsets;
}

int64_t CeilOf(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

}  // namespace

std::vector<OldRun> OldRunsOf(const ModelShape& shape, int unit, int64_t begin, int64_t end) {
  const UnitSpec spec = ParameterLayout(shape)[static_cast<size_t>(unit)];
  const std::vector<int64_t> offsets = OldOffsets(TraitsOf(shape.family), spec);
  std::vector<OldRun> runs;
  for (size_t t = 0; t < spec.tensors.size(); ++t) {
    const TensorSpec& tensor = spec.tensors[t];
    const int64_t from = std::max(begin - tensor.offset_elements, int64_t{0});
    const int64_t to = std::min(end - tensor.offset_elements, tensor.num_elements);
    if (from >= to) continue;
    const int64_t tensor_at = tensor.offset_elements - begin;
    if (!tensor.transposed) {
      runs.push_back({.begin = offsets[t] + from, .elements = to - from, .at = tensor_at + from});
      continue;
    }
    const int64_t columns = tensor.shape[1];  // each was a row
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t first = CeilOf(from - column, columns), last = CeilOf(to - column, columns);
      if (first == last) continue;
      const int64_t element = first * columns + column;
      runs.push_back({.begin = offsets[t] + tensor.named_element(element),
                      .elements = last - first,
                      .at = tensor_at + element,
                      .stride = columns});
    }
  }
  return runs;
}

}  // namespace motley
