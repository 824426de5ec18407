#include "tests/worker/engine/equivalence/difference.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint.h"
#include "common/model/parameters.h"

namespace motley::engine {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr const char* kTensorNames[kNumStateTensors] = {"parameter", "exp_avg", "exp_avg_sq"};

double SquaredDistance(const std::vector<double>& a, const std::vector<double>& b, int64_t begin, int64_t end) {
  double sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

double SquaredNorm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

std::string MostIn(const UnitSpec& unit, const std::vector<double>& a, const std::vector<double>& b) {
  std::string name;
  double most = -1;
  for (const TensorSpec& tensor : unit.tensors) {
    const double squared = SquaredDistance(a, b, tensor.offset_elements, tensor.offset_elements + tensor.num_elements);
    if (squared <= most) continue;
    most = squared;
    name = tensor.name;
  }
  return name;
}

void CompareStates(const TrainingState& a, const TrainingState& b, const std::vector<UnitSpec>& layout, int64_t step,
                   Difference& worst) {
  for (size_t u = 0; u < layout.size(); ++u) {
    for (int t = 0; t < kNumStateTensors; ++t) {
      const std::vector<double>&mine = a[u][t], &expected = b[u][t];
      const double squared = SquaredDistance(mine, expected, 0, layout[u].num_elements);
      if (squared == 0) continue;
      const double relative = std::sqrt(squared / SquaredNorm(expected));
      if (relative <= worst.relative) continue;
      worst.Take(relative, absl::StrCat(kTensorNames[t], " of unit ", u, " after step ", step, ", most in ",
                                        MostIn(layout[u], mine, expected)));
    }
  }
}

double Relative(double a, double b) { return a == b ? 0 : std::abs(a - b) / std::abs(b); }

}  // namespace

void Difference::Take(double other, const std::string& there) {
  if (std::isnan(other)) other = kInfinity;
  if (other <= relative) return;
  relative = other;
  where = there;
}

Differences Compare(const TrainingRun& run, const TrainingRun& reference, const ModelShape& model) {
  Differences differences;
  if (run.steps.size() != reference.steps.size()) differences.curve.Take(kInfinity, "the number of steps");
  for (size_t i = 0; i < std::min(run.steps.size(), reference.steps.size()); ++i) {
    const StepResult &a = run.steps[i], &b = reference.steps[i];
    const std::string step = absl::StrCat(" of step ", b.step);
    differences.curve.Take(Relative(a.loss, b.loss), "loss" + step);
    if (a.skipped != b.skipped) differences.curve.Take(kInfinity, "the skipping" + step);
    if (!b.skipped) differences.curve.Take(Relative(a.grad_norm, b.grad_norm), "grad_norm" + step);
    if (a.has_validation_loss != b.has_validation_loss) differences.curve.Take(kInfinity, "the validation" + step);
    if (b.has_validation_loss) differences.curve.Take(Relative(a.validation_loss, b.validation_loss), "validation_loss" + step);
  }
  if (run.states.size() != reference.states.size()) differences.state.Take(kInfinity, "the number of checkpoints");
  const std::vector<UnitSpec> layout = ParameterLayout(model);
  for (const auto& [step, state] : reference.states) {
    const auto found = run.states.find(step);
    if (found == run.states.end()) {
      differences.state.Take(kInfinity, absl::StrCat("no checkpoint after step ", step));
    } else {
      CompareStates(found->second, state, layout, step, differences.state);
    }
  }
  return differences;
}

std::string Complaint(const Differences& differences, const Limits& limits) {
  std::string complaint;
  const auto check = [&](const Difference& difference, double limit) {
    if (difference.relative <= limit) return;
    absl::StrAppend(&complaint, complaint.empty() ? "" : "; ", difference.where, " differs by ", difference.relative, ", limit ",
                    limit);
  };
  check(differences.curve, limits.curve);
  check(differences.state, limits.state);
  return complaint;
}

}  // namespace motley::engine
