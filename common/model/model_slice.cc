#include "common/model/model_slice.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace motley {
namespace {

constexpr double kTolerance = 1e-3;

// The first of `rows` rows that part `part` has; of part `parts`, their number.
int64_t FirstRow(int64_t rows, int64_t part, int64_t parts) { return part == parts ? rows : rows / parts * part; }
int64_t RowsOf(int64_t rows, const ModelSlice& slice) {
  return FirstRow(rows, slice.end, slice.parts) - FirstRow(rows, slice.first, slice.parts);
}

// Parts of each, by what is left over (Hamilton's method), one at least.
std::vector<int64_t> NearestParts(std::span<const double> shares, int64_t parts) {
  std::vector<int64_t> nearest;
  for (const double share : shares) {
    nearest.push_back(std::max<int64_t>(1, static_cast<int64_t>(std::floor(share * static_cast<double>(parts)))));
  }
  const auto missing = [&](size_t i) { return shares[i] * static_cast<double>(parts) - static_cast<double>(nearest[i]); };
  for (;;) {
    int64_t sum = 0;
    for (const int64_t n : nearest) sum += n;
    if (sum == parts) return nearest;
    size_t best = nearest.size();
    for (size_t i = 0; i < nearest.size(); ++i) {
      if (sum > parts && nearest[i] == 1) continue;
      if (best == nearest.size() || (sum < parts ? missing(i) > missing(best) : missing(i) < missing(best))) best = i;
    }
    nearest[best] += sum < parts ? 1 : -1;
  }
}

}  // namespace

absl::StatusOr<std::vector<ModelSlice>> SlicesOf(const ModelShape& shape, std::span<const double> tp_shares) {
  const auto ranks = static_cast<int64_t>(tp_shares.size());
  const int64_t parts = ranks == 1 ? 1 : NumParts(shape);
  if (ranks > 1 && !IsDivisible(TraitsOf(shape.family))) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor parallelism over ", ranks, " ranks: a layer of ", std::string(TraitsOf(shape.family).model_type),
                     " has norms over all of its heads together, so no rank computes some of them"));
  }
  if (ranks > parts) {
    return absl::InvalidArgumentError(absl::StrCat("tensor parallelism over ", ranks, " ranks, the model has ", parts,
                                                   " key-value heads; each rank needs one"));
  }
  for (const auto& [rows, what] :
       {std::pair{shape.vocab_size, "tokens"}, std::pair{shape.intermediate_size, "columns of the MLP"}}) {
    if (rows < parts) {
      return absl::InvalidArgumentError(absl::StrCat("tensor parallelism over ", ranks, " ranks: the model has ", rows, " ", what,
                                                     ", fewer than its ", parts, " key-value heads, by which they are divided"));
    }
  }
  const std::vector<int64_t> nearest = NearestParts(tp_shares, parts);
  std::vector<ModelSlice> slices;
  int64_t first = 0;
  bool whole = true;
  for (size_t i = 0; i < tp_shares.size(); ++i) {
    slices.push_back({first, first + nearest[i], parts});
    first += nearest[i];
    whole &= std::abs(tp_shares[i] - static_cast<double>(nearest[i]) / static_cast<double>(parts)) <= kTolerance;
  }
  if (whole) return slices;
  const auto as_share = [parts](std::string* out, int64_t n) {
    absl::StrAppend(out, static_cast<double>(n) / static_cast<double>(parts));
  };
  return absl::InvalidArgumentError(
      absl::StrCat("tp_share ", absl::StrJoin(tp_shares, ", "), " cut a key-value head: the model has ", parts,
                   ", a rank computes whole ones; nearest are ", absl::StrJoin(nearest, ", ", as_share)));
}

ModelShape ShapeOf(const ModelShape& shape, const ModelSlice& slice) {
  ModelShape part = shape;
  part.num_heads = RowsOf(shape.num_heads, slice);
  part.num_kv_heads = RowsOf(shape.num_kv_heads, slice);
  part.intermediate_size = RowsOf(shape.intermediate_size, slice);
  part.vocab_size = RowsOf(shape.vocab_size, slice);
  return part;
}

int64_t FirstToken(const ModelShape& shape, const ModelSlice& slice) {
  return FirstRow(shape.vocab_size, slice.first, slice.parts);
}

std::vector<SliceRun> RunsOf(const UnitSpec& unit, const ModelSlice& slice) {
  std::vector<SliceRun> runs;
  int64_t in_slice = 0;
  const auto add = [&](int64_t in_unit, int64_t elements) {
    if (elements == 0) return;
    if (!runs.empty() && runs.back().in_unit + runs.back().elements == in_unit) {
      runs.back().elements += elements;
    } else {
      runs.push_back({in_unit, in_slice, elements});
    }
    in_slice += elements;
  };
  for (const TensorSpec& tensor : unit.tensors) {
    if (tensor.divided_rows.empty()) {
      add(tensor.offset_elements, tensor.num_elements);
      continue;
    }
    const int64_t row = tensor.num_elements / tensor.shape[0];
    int64_t before = 0;  // rows of the tensor
    for (const int64_t rows : tensor.divided_rows) {
      const int64_t begin = FirstRow(rows, slice.first, slice.parts);
      add(tensor.offset_elements + (before + begin) * row, RowsOf(rows, slice) * row);
      before += rows;
    }
  }
  return runs;
}

}  // namespace motley
