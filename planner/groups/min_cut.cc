#include "planner/groups/min_cut.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace motley::planner {

MinCut FindMinCut(const EdgeWeights& weights, const std::vector<int>& vertices) {
  const size_t n = vertices.size();
  std::vector<double> w(n * n, 0);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      if (i != j) w[i * n + j] = weights[vertices[i]][vertices[j]];
    }
  }
  std::vector<std::vector<int>> merged(n);  // by remaining vertex: what it stands for
  for (size_t i = 0; i < n; ++i) merged[i] = {vertices[i]};
  std::vector<size_t> left(n);
  for (size_t i = 0; i < n; ++i) left[i] = i;

  MinCut best;
  best.weight = std::numeric_limits<double>::infinity();
  std::vector<double> tied(n);  // weight to the vertices already taken in this phase
  std::vector<size_t> open;     // not taken yet
  while (left.size() > 1) {
    std::fill(tied.begin(), tied.end(), 0.0);
    open = left;
    size_t previous = left[0], last = left[0], next = 0;  // next: into `open`
    while (!open.empty()) {
      previous = last;
      last = open[next];
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(next));
      const double* row = &w[last * n];
      double most = -1;
      for (size_t i = 0; i < open.size(); ++i) {
        const double weight = tied[open[i]] += row[open[i]];
        if (weight > most) most = weight, next = i;
      }
    }
    // Invariant: the phase's cut, `last` against all others, is the lightest that separates `previous` from `last`.
    if (tied[last] < best.weight) {
      best.weight = tied[last];
      best.side = merged[last];
    }
    merged[previous].insert(merged[previous].end(), merged[last].begin(), merged[last].end());
    for (size_t v : left) {
      if (v == previous || v == last) continue;
      w[previous * n + v] += w[last * n + v];
      w[v * n + previous] = w[previous * n + v];
    }
    left.erase(std::find(left.begin(), left.end(), last));
  }
  std::sort(best.side.begin(), best.side.end());
  return best;
}

}  // namespace motley::planner
