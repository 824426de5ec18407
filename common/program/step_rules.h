// The end of the step: rule 20 of docs/inside/program.md. Part of Validate (program.h).
#pragma once

#include <cstdint>
#include <vector>

#include "common/program/copy_rules.h"
#include "common/program/gradient_rules.h"
#include "common/program/program_check.h"

namespace motley {

class StepRules {
 public:
  StepRules(const ProgramCheck& check, GradientRules& gradients, CopyRules& copies)
      : check_(check), gradients_(gradients), copies_(copies), stepped_(check.program.num_units, -1) {}

  // The present instruction makes a loss, which the scalars are of.
  void MadeLoss() { last_loss_ = check_.at; }
  bool ScalarsReduced() const { return scalars_ >= 0; }
  // That no unit of the range was stepped: it has its new parameters and no gradients.
  absl::Status NotStepped(int32_t unit, int32_t more_units) const;

  absl::Status Check(const ReduceScalars& op);
  absl::Status Check(const OptimizerStep& op);
  absl::Status CheckEnd() const;

 private:
  absl::Status StepUnit(const OptimizerStep& op, int32_t unit);

  const ProgramCheck& check_;
  GradientRules& gradients_;
  CopyRules& copies_;
  std::vector<int> stepped_;                      // by unit; -1 = not yet
  int last_loss_ = -1, scalars_ = -1, all_ = -1;  // all_: the step of all units
  bool by_name_ = false;
};

}  // namespace motley
