// What passes between stages in a step, as a load on the cluster's links: the part of the estimator (evaluate.h) that knows of
// pipelines that share a network card.
#pragma once

#include <vector>

#include "planner/setting/setting.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// A unit exchanges samples with the units of the neighbouring stage that stand at the same part of the batch.
struct Borders {
  // By stage of the view: the whole batch from it to the next stage, one way, nothing else on the links; 0 for a pipeline's last.
  std::vector<double> seconds, latency_seconds;
  // Of the fullest link, for all activations and their gradients of all borders and pipelines together.
  double fullest_seconds = 0;
};
Borders BordersOf(const Setting& setting, const PlanView& view);

}  // namespace motley::planner
