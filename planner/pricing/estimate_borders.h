// What passes between stages in a step, as a load on the cluster's links: the part of the estimator (evaluate.h) that knows of
// pipelines that share a network card.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/setting/setting.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// Between a virtual stage and the next: the whole batch one way, nothing else on the links, and what each transfer adds. 0 where
// nothing passes: they are the same stage's, or there is no next.
struct Border {
  double seconds = 0, latency_seconds = 0;
  // A round's.
  double Of(int64_t rounds) const { return seconds / static_cast<double>(std::max<int64_t>(1, rounds)) + latency_seconds; }
  bool operator==(const Border&) const = default;
};

// A unit exchanges samples with the units of the neighbouring stage that stand at the same part of the batch.
struct Borders {
  std::vector<std::vector<Border>> behind;  // by pipeline, element
  // Of the fullest link, for all activations and their gradients of all borders and pipelines together.
  double fullest_seconds = 0;
};
Borders BordersOf(const Setting& setting, const PlanView& view);

}  // namespace motley::planner
