// The end of the step, and state that waits in host memory: rules 20 and 28 of docs/inside/program.md. Part of Validate
// (program.h).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/program/gradient_rules.h"
#include "common/program/program_check.h"

namespace motley {

class StepRules {
 public:
  StepRules(const ProgramCheck& check, const GradientRules& gradients);

  // The present instruction makes a loss, which the scalars are of.
  void MadeLoss() { last_loss_ = check_.at; }
  bool ScalarsReduced() const { return scalars_ >= 0; }
  // That no unit of the range was stepped: it has its new parameters and no gradients.
  absl::Status NotStepped(int32_t unit, int32_t more_units) const;
  // That the gather finds the parameters of the rank's own range.
  absl::Status ParametersThere(int32_t unit) const;

  absl::Status Check(const ReduceScalars& op);
  absl::Status Check(const OptimizerStep& op);
  absl::Status Check(const PrefetchState& op);
  absl::Status Check(const OffloadState& op);
  absl::Status CheckEnd() const;

 private:
  struct Copied {
    int prefetch = -1, offload = -1;
  };
  const Copied& CopiedOf(State state, int32_t unit) const { return copied_[static_cast<size_t>(state)][unit]; }
  Copied& CopiedOf(State state, int32_t unit) { return copied_[static_cast<size_t>(state)][unit]; }
  bool InHost(State state, int32_t unit) const { return check_.index.in_host[static_cast<size_t>(state)][unit]; }
  absl::Status StepUnit(int32_t unit);

  const ProgramCheck& check_;
  const GradientRules& gradients_;
  std::vector<int> stepped_;                      // by unit; -1 = not yet
  std::array<std::vector<Copied>, 2> copied_;     // by State and unit
  int last_loss_ = -1, scalars_ = -1, all_ = -1;  // all_: the step of all units
  bool by_name_ = false;
};

}  // namespace motley
