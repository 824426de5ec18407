#include "planner/split/table_growth.h"

#include <algorithm>

#include "planner/util/infinity.h"

namespace motley::planner {
namespace {

bool LongEnough(const SplitProblem& problem, const SplitKind& kind, double seconds) {
  const int64_t size = kind.largest_size();
  if (size < 1) return false;
  const bool keep = kind.allow_keep && ActivationBytes(kind, false, size, size) <= kind.capacity_bytes;
  const bool recompute = kind.allow_recompute && ActivationBytes(kind, true, size, size) <= kind.capacity_bytes;
  if (!keep && !recompute) return true;
  const size_t m = static_cast<size_t>(size);
  const double backward =
      std::min(keep ? kind.backward_seconds[m] : kInfinity, recompute ? kind.recompute_seconds[m] : kInfinity);
  const SkewLevel& floor = problem.levels.front();
  return std::max(kind.forward_seconds[m], floor.forward_seconds) + std::max(backward, floor.backward_seconds) >= seconds;
}

}  // namespace

int64_t CountDevices(const SplitProblem& problem) {
  int64_t count = 0;
  for (const SplitKind& kind : problem.kinds) count += kind.count;
  return count;
}

void StartTables(const SplitProblem& problem, int64_t largest, const ExtendTables& extend) {
  if (!extend) return;
  const int64_t part = 2 * problem.batch / std::max<int64_t>(1, CountDevices(problem)) + 4;
  const int64_t first = std::min({largest, problem.batch, part});
  for (size_t k = 0; k < problem.kinds.size(); ++k) {
    if (problem.kinds[k].largest_size() < first) extend(k, first);
  }
}

bool GrowTables(const SplitProblem& problem, int64_t largest, double seconds, const ExtendTables& extend) {
  if (!extend) return false;
  bool grown = false;
  for (size_t k = 0; k < problem.kinds.size(); ++k) {
    const int64_t size = problem.kinds[k].largest_size(), most = std::min(largest, problem.batch);
    if (size >= most || LongEnough(problem, problem.kinds[k], seconds)) continue;
    extend(k, std::min(most, 2 * size));
    grown = true;
  }
  return grown;
}

}  // namespace motley::planner
