#include "coordinator/periodic/metrics_updater.h"

#include <map>
#include <string>

#include "coordinator/state/membership.h"

namespace motley::coordinator {

void UpdateMetrics(Core& core) {
  // States that nobody is in are zero, not absent: an alert may ask for them.
  std::map<std::string, int> nodes = {{"ready", 0},   {"probing", 0}, {"refused", 0}, {"held", 0}, {"draining", 0},
                                      {"drained", 0}, {"leaving", 0}, {"left", 0},    {"lost", 0}};
  std::map<std::string, int> devices = nodes;  // of a node that is not ready: its state
  devices.erase("ready");
  devices.insert({{"idle", 0}, {"profiling", 0}, {"training", 0}, {"unused", 0}});
  std::map<std::string, int> jobs;
  for (int phase = 0; phase < kNumJobPhases; ++phase) jobs[std::string(JobPhaseName(static_cast<JobPhase>(phase)))] = 0;
  for (const auto& [name, node] : core.state.nodes) {
    if (node.forgotten || !node.connected) core.metrics.files_free_bytes.Remove({{"node", name.value()}});
    if (node.forgotten) continue;
    ++nodes[NodeStateName(core.state, node)];
    JobId job;
    for (const DeviceDescription& device : node.description.devices) ++devices[DeviceStateName(core.state, device.id, &job)];
  }
  for (const auto& [id, job] : core.state.jobs) ++jobs[std::string(JobPhaseName(job.phase))];
  for (const auto& [state, count] : nodes) core.metrics.nodes.Set({{"state", state}}, count);
  for (const auto& [state, count] : devices) core.metrics.devices.Set({{"state", state}}, count);
  for (const auto& [state, count] : jobs) core.metrics.jobs.Set({{"state", state}}, count);
  if (!core.state.run) return;
  const JobRecord& job = core.state.jobs.at(core.state.run->job);
  core.metrics.step.Set({{"job_id", job.id.value()}}, static_cast<double>(job.step));
  core.metrics.steps_target.Set({{"job_id", job.id.value()}}, static_cast<double>(job.config.training.steps));
  // What has not happened yet is zero, so that a curve begins where the job does.
  for (CounterFamily* of_job : {&core.metrics.pause_seconds, &core.metrics.steps_repeated, &core.metrics.checkpoints,
                                &core.metrics.checkpoint_failures}) {
    of_job->Add({{"job_id", job.id.value()}}, 0);
  }
  for (const char* cause : {"joined", "drained", "node_lost"}) {  // the commonest
    core.metrics.replans.Add({{"job_id", job.id.value()}, {"cause", cause}}, 0);
  }
  core.metrics.epoch.Set({{"job_id", job.id.value()}}, static_cast<double>(job.epoch.value()));
}

}  // namespace motley::coordinator
