#include "coordinator/periodic/ring_pruner.h"

#include <algorithm>
#include <string>
#include <vector>

#include "coordinator/state/cause.h"

namespace motley::coordinator {
namespace {

void RemoveSeries(Metrics& m, const JobId& job) {
  const MetricLabels labels = {{"job_id", job.value()}};
  for (GaugeFamily* family :
       {&m.step, &m.steps_target, &m.loss, &m.validation_loss, &m.grad_norm, &m.learning_rate, &m.tokens_per_second,
        &m.step_seconds, &m.predicted_step_seconds, &m.prediction_error_ratio, &m.epoch, &m.last_checkpoint_timestamp, &m.tokens,
        &m.mfu, &m.checkpoint_bytes, &m.checkpoint_free_bytes}) {
    family->Remove(labels);
  }
  for (const std::string& cause : CauseLabels()) m.replans.Remove({{"job_id", job.value()}, {"cause", cause}});
  for (CounterFamily* family : {&m.pause_seconds, &m.steps_repeated, &m.checkpoints, &m.checkpoint_failures})
    family->Remove(labels);
}

}  // namespace

void ForgetInMemory(Core& core, const JobId& job) {
  core.journal.Forget(job);
  core.state.ran_on.erase(job);
  RemoveSeries(core.metrics, job);
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
