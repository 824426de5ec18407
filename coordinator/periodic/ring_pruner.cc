#include "coordinator/periodic/ring_pruner.h"

#include <algorithm>
#include <vector>

namespace motley::coordinator {
void ForgetInMemory(Core& core, const JobId& job) {
  core.journal.Forget(job);
  core.state.ran_on.erase(job);
  core.metrics.ForgetJob(job);
}

void PruneRings(Core& core) {
  std::vector<const JobRecord*> finished;
  for (const auto& [id, job] : core.state.jobs) {
    if (IsFinal(job.phase)) finished.push_back(&job);
  }
  if (finished.size() <= core.config.jobs_with_rings) return;
  std::sort(finished.begin(), finished.end(),
            [](const auto* a, const auto* b) { return a->finished_unix_ms > b->finished_unix_ms; });
  for (size_t i = core.config.jobs_with_rings; i < finished.size(); ++i) {
    ForgetInMemory(core, finished[i]->id);
  }
}

}  // namespace motley::coordinator
