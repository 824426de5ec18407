#include "worker/daemon/kept_steps.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace motley::worker {

void KeptSteps::Clear() {
  steps_.clear();
  spans_ = 0;
}

void KeptSteps::Add(const engine::StepResult& step) {
  steps_.push_back(step);
  spans_ += step.spans.size();
  while (steps_.size() > 1 && (steps_.size() > kMostSteps || spans_ > kMostSpans)) {
    spans_ -= steps_.front().spans.size();
    steps_.pop_front();
  }
}

absl::StatusOr<const engine::StepResult*> KeptSteps::Find(int64_t step) const {
  const engine::StepResult* none = nullptr;
  if (steps_.empty() || step > steps_.back().step) return none;
  const auto found = std::find_if(steps_.begin(), steps_.end(), [step](const auto& kept) { return kept.step == step; });
  if (found != steps_.end()) return &*found;
  return absl::NotFoundError(absl::StrCat("step ", step, " is not kept any more; the ranks keep the newest: steps ",
                                          steps_.front().step, " to ", steps_.back().step));
}

}  // namespace motley::worker
