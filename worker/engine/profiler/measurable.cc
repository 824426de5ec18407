#include "worker/engine/profiler/measurable.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "common/model/parameters.h"
#include "worker/engine/model/instruction_flops.h"

namespace motley::engine {
namespace {

constexpr double kLongestSeconds = 240;
// Sizes of one and of two samples, each as passes of the whole unit, as halves and as a part.
constexpr double kPassesMeasured = (1 + 2) * 3;

// Of one sample, forward and backward.
double DeclaredSeconds(const RankAssignment& assignment, UnitKind kind) {
  Program program;
  program.num_units = static_cast<int32_t>(NumUnits(assignment.model));
  program.microbatches = {{1}};
  const InstructionFlops flops(assignment.model, ModelSlice(), assignment.config.training.seq_len, program, {});
  Forward forward{};
  Backward backward{};
  forward.unit = backward.unit = static_cast<int32_t>(FirstUnitOf(kind, assignment.model));
  forward.keep = Keep::kNothing;  // as a head's is measured
  return (flops.Of(forward).value_or(0) + flops.Of(backward).value_or(0)) / assignment.device.flops_per_second;
}

}  // namespace

absl::Status CheckMeasurable(const RankAssignment& assignment) {
  if (assignment.device.flops_per_second <= 0) return absl::OkStatus();
  const double embedding = DeclaredSeconds(assignment, UnitKind::kEmbedding);
  const double layer = DeclaredSeconds(assignment, UnitKind::kLayer), head = DeclaredSeconds(assignment, UnitKind::kHead);
  const double all = kPassesMeasured * (embedding + layer + head);
  if (all <= kLongestSeconds) return absl::OkStatus();
  const double longest = std::max({embedding, layer, head});
  const std::string unit = longest == head ? "head" : longest == layer ? "layer" : "embedding";
  return absl::FailedPreconditionError(absl::StrFormat(
      "the model is too large to be measured at the declared speed of %s: one sample's passes through its %s take %.3g s, the "
      "whole measurement about %.0f s (at most %.0f s); train a smaller model, a shorter sequence, or declare a faster device",
      assignment.device.id.value(), unit, longest, all, kLongestSeconds));
}

}  // namespace motley::engine
