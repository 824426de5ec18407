#include "worker/engine/step_scalars.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace motley::engine {
namespace {

std::string DescribeUnit(int unit, int num_units) {
  if (unit == 0) return "the embedding";
  if (unit == num_units - 1) return "the head";
  return absl::StrCat("layer ", unit - 1);
}

}  // namespace

std::string DescribePosition(int64_t position, int num_units) {
  const int at = static_cast<int>(position);
  if (at < num_units) return absl::StrCat("the forward of ", DescribeUnit(at, num_units));
  if (at < 2 * num_units) return absl::StrCat("the backward of ", DescribeUnit(2 * num_units - 1 - at, num_units));
  return absl::StrCat("the summed gradients of ", DescribeUnit(at - 2 * num_units, num_units));
}

SummedScalars::SummedScalars(const std::vector<std::vector<double>>& by_rank) {
  for (size_t r = 0; r < by_rank.size(); ++r) {
    const std::vector<double>& v = by_rank[r];
    sum.loss_sum += v[0];
    sum.tokens += v[1];
    sum.squared_norm += v[2];
    const int64_t not_finite = static_cast<int64_t>(v[3]);
    if (not_finite < sum.not_finite) {
      sum.not_finite = not_finite;
      first_not_finite_rank = static_cast<int>(r);
    }
    sum.stop = sum.stop || v[4] != 0;
    sum.save = sum.save || v[5] != 0;
    sum.checkpoint = sum.checkpoint || v[6] != 0;
    trained_tokens.push_back(static_cast<int64_t>(v[7]));
    sum.touched = sum.touched || v[8] != 0;
  }
}

bool SummedScalars::counts() const {
  return trained_tokens.front() > 0 && std::all_of(trained_tokens.begin(), trained_tokens.end(),
                                                   [this](int64_t tokens) { return tokens == trained_tokens[0]; });
}

}  // namespace motley::engine
