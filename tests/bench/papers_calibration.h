// Constants calibrated on all models but one, and judged on that one: what a reader may expect of a model that nobody measured.
#pragma once

#include <cmath>
#include <string_view>
#include <vector>

#include "tests/bench/papers_model.h"

namespace motley::bench {

// Cells of one system, simulated under every candidate.
struct Trial {
  const Experiment* experiment = nullptr;
  Cell cell;
  std::vector<Outcome> outcomes;  // by candidate
};

// Mean error over all models but `without`.
inline double MeanError(const std::vector<Trial>& trials, size_t candidate, std::string_view without) {
  double sum = 0, count = 0;
  for (const Trial& trial : trials) {
    if (trial.cell.model == without || !trial.outcomes[candidate].status.ok()) continue;
    sum += std::abs(trial.outcomes[candidate].ratio() - 1);
    count += 1;
  }
  return count > 0 ? sum / count : 0;
}

// Among the candidates of this compute factor (0 = any) the one with the least mean error over all models but `without`; of
// equals the first.
inline size_t BestCandidate(const std::vector<Trial>& trials, const std::vector<Constants>& candidates, std::string_view without,
                            int compute_percent = 0) {
  size_t best = candidates.size();
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (compute_percent != 0 && candidates[i].compute_percent != compute_percent) continue;
    if (best == candidates.size() || MeanError(trials, i, without) < MeanError(trials, best, without)) best = i;
  }
  return best;
}

}  // namespace motley::bench
