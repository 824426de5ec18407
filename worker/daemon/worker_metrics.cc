#include "worker/daemon/worker_metrics.h"

#include <utility>

#include "common/base/version.h"

namespace motley::worker {
namespace {

MetricLabels DeviceOfJob(MetricLabels device, const JobId& job) {
  device.insert({"job_id", job.value()});
  return device;
}

}  // namespace

WorkerMetrics::WorkerMetrics(MetricsRegistry& r, std::string node, const std::vector<DeviceDescription>& devices)
    : node_(std::move(node)),
      build_info_(r.Gauge("motley_build_info", "Always 1; the version is a label")),
      connected_(r.Gauge("motley_worker_connected", "1 while the session with the coordinator lives")),
      ranks_running_(r.Gauge("motley_ranks_running", "Rank processes of this node")),
      memory_capacity_(r.Gauge("motley_device_memory_capacity_bytes", "Memory that the device may use; 0 = not limited")),
      memory_peak_(r.Gauge("motley_device_memory_peak_bytes", "Peak of the newest step")),
      batch_size_(r.Gauge("motley_device_batch_size", "Samples per step assigned")),
      shard_ratio_(r.Gauge("motley_device_shard_ratio", "Share of the training state")),
      job_(r.Gauge("motley_device_job", "1 while the device trains this job; joins the device's series to a job")),
      step_seconds_(r.Gauge("motley_device_step_seconds", "Newest step")),
      rank_exits_(r.Counter("motley_rank_exits_total", "Ranks that ended, by kind")),
      busy_(r.Counter("motley_device_busy_seconds_total", "Compute lane")),
      collective_(r.Counter("motley_device_collective_seconds_total", "Collective lane")),
      lateness_(r.Counter("motley_device_lateness_seconds_total", "How late the host made emulated instructions")),
      steps_(r.Counter("motley_device_steps_total", "Optimizer steps done")) {
  build_info_.Set({{"version", kVersion}}, 1);
  SetConnected(false);
  SetRanksRunning(0);
  for (const char* kind : {"finished", "failed", "died", "hung", "killed"}) rank_exits_.Add({{"node", node_}, {"kind", kind}}, 0);
  for (const DeviceDescription& device : devices) {
    const MetricLabels labels = Device(device.id);
    memory_capacity_.Set(labels, static_cast<double>(device.memory_bytes));
    for (GaugeFamily* gauge : {&memory_peak_, &batch_size_, &shard_ratio_, &step_seconds_}) gauge->Set(labels, 0);
    for (CounterFamily* counter : {&busy_, &collective_, &lateness_, &steps_}) counter->Add(labels, 0);
  }
}

MetricLabels WorkerMetrics::Device(const DeviceId& device) const {
  return {{"node", node_}, {"device", device.value().substr(device.value().find('/') + 1)}};
}

void WorkerMetrics::SetConnected(bool connected) { connected_.Set({{"node", node_}}, connected ? 1 : 0); }
void WorkerMetrics::SetRanksRunning(int count) { ranks_running_.Set({{"node", node_}}, count); }
void WorkerMetrics::RankExited(const std::string& kind) { rank_exits_.Add({{"node", node_}, {"kind", kind}}); }

void WorkerMetrics::Assigned(const RankAssignment& assignment) {
  const MetricLabels labels = Device(assignment.device.id);
  ForgetJob(assignment.device.id);
  jobs_[assignment.device.id] = assignment.job;
  job_.Set(DeviceOfJob(labels, assignment.job), 1);
  batch_size_.Set(labels, static_cast<double>(assignment.batch_size));
  shard_ratio_.Set(labels, assignment.shard_ratio);
}

void WorkerMetrics::ForgetJob(const DeviceId& device) {
  const auto job = jobs_.find(device);
  if (job == jobs_.end()) return;
  job_.Remove(DeviceOfJob(Device(device), job->second));
  jobs_.erase(job);
}

void WorkerMetrics::Released(const DeviceId& device) {
  ForgetJob(device);
  const MetricLabels labels = Device(device);
  for (GaugeFamily* gauge : {&memory_peak_, &batch_size_, &shard_ratio_, &step_seconds_}) gauge->Set(labels, 0);
}

void WorkerMetrics::Step(const DeviceId& device, const StepReport& report) {
  const MetricLabels labels = Device(device);
  memory_peak_.Set(labels, static_cast<double>(report.peak_memory_bytes));
  step_seconds_.Set(labels, report.stats.step_seconds);
  busy_.Add(labels, report.busy_seconds);
  collective_.Add(labels, report.collective_seconds);
  lateness_.Add(labels, report.lateness_seconds);
  steps_.Add(labels);
}

}  // namespace motley::worker
