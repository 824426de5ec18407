#include "planner/pricing/worst_memory.h"

#include <algorithm>
#include <map>

#include "planner/plan/each_rank.h"

namespace motley::planner {

double WorstMemory(const Setting& setting, const Plan& plan) {
  std::map<DeviceId, int> index;
  for (int d = 0; d < setting.num_devices(); ++d) index[setting.cluster.devices[d].id] = d;
  double worst = 0;
  ForEachRank(plan, [&](const RankPlan& rank) {
    const auto found = index.find(rank.device);
    if (found == index.end()) return;
    const auto usable = static_cast<double>(setting.UsableBytes(found->second));
    worst = std::max(worst, static_cast<double>(rank.predicted.peak_bytes) / usable);
  });
  return worst;
}

}  // namespace motley::planner
