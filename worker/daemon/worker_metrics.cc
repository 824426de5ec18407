#include "worker/daemon/worker_metrics.h"

#include <array>
#include <utility>

#include "common/base/version.h"

namespace motley::worker {
namespace {

MetricLabels With(MetricLabels device, const char* label, const std::string& value) {
  device.insert({label, value});
  return device;
}

// By Lane, as the metrics' label `lane` has it.
constexpr std::array<const char*, kNumLanes> kLanes = {"compute", "collective", "send", "receive", "copy"};
// What the compute lane waits for, as the metrics' label `for` has it.
constexpr std::pair<const char*, double LaneSeconds::*> kWaits[] = {{"collective", &LaneSeconds::collective},
                                                                    {"hand_over", &LaneSeconds::hand_over},
                                                                    {"bubble", &LaneSeconds::bubble},
                                                                    {"copy", &LaneSeconds::copy},
                                                                    {"host", &LaneSeconds::host}};

}  // namespace

WorkerMetrics::WorkerMetrics(MetricsRegistry& r, std::string node, const std::vector<DeviceDescription>& devices)
    : node_(std::move(node)),
      build_info_(r.Gauge("motley_build_info", "Always 1; the version is a label")),
      connected_(r.Gauge("motley_worker_connected", "1 while the session with the coordinator lives")),
      ranks_running_(r.Gauge("motley_ranks_running", "Rank processes of this node")),
      memory_capacity_(r.Gauge("motley_device_memory_capacity_bytes", "Memory that the device may use; 0 = not limited")),
      memory_peak_(r.Gauge("motley_device_memory_peak_bytes", "Peak of the newest step")),
      host_memory_(r.Gauge("motley_device_host_memory_bytes", "What the device's rank keeps in the host's memory")),
      host_offered_(
          r.Gauge("motley_node_host_memory_offered_bytes", "What all ranks of the node may keep in its memory; 0 = none")),
      batch_size_(r.Gauge("motley_device_batch_size", "Samples per step assigned")),
      shard_ratio_(r.Gauge("motley_device_shard_ratio", "Share of its stage's training state")),
      job_(r.Gauge("motley_device_job", "1 while the device trains this job; joins the device's series to a job")),
      step_seconds_(r.Gauge("motley_device_step_seconds", "Newest step")),
      predicted_busy_(r.Gauge("motley_device_predicted_busy_seconds", "Of a step, by lane, as the plan's simulation has it")),
      predicted_wait_(
          r.Gauge("motley_device_predicted_wait_seconds", "Of a step's compute lane, by what it waits for, simulated")),
      rank_exits_(r.Counter("motley_rank_exits_total", "Ranks that ended, by kind")),
      busy_(r.Counter("motley_device_busy_seconds_total", "What the device's lanes did, by lane")),
      wait_(r.Counter("motley_device_wait_seconds_total", "What the compute lane waited for: the rest of the steps")),
      lateness_(r.Counter("motley_device_lateness_seconds_total", "How late the host made emulated instructions")),
      steps_(r.Counter("motley_device_steps_total", "Optimizer steps done")) {
  build_info_.Set({{"version", kVersion}}, 1);
  SetConnected(false);
  // Its devices all say the same.
  host_offered_.Set({{"node", node_}}, devices.empty() ? 0 : static_cast<double>(devices[0].node_host_memory_bytes));
  SetRanksRunning(0);
  for (const char* kind : {"finished", "failed", "died", "hung", "killed"}) rank_exits_.Add({{"node", node_}, {"kind", kind}}, 0);
  for (const DeviceDescription& device : devices) {
    const MetricLabels labels = Device(device.id);
    memory_capacity_.Set(labels, static_cast<double>(device.memory_bytes));
    for (GaugeFamily* gauge : {&memory_peak_, &host_memory_, &batch_size_, &shard_ratio_, &step_seconds_}) gauge->Set(labels, 0);
    for (CounterFamily* counter : {&lateness_, &steps_}) counter->Add(labels, 0);
    SetPredicted(labels, {});
    AddMeasured(labels, {});
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
  MetricLabels job = With(labels, "job_id", assignment.job.value());
  job = With(With(job, "pipeline", std::to_string(assignment.pipeline)), "stage", std::to_string(assignment.stage));
  jobs_[assignment.device.id] = job;
  job_.Set(job, 1);
  SetPredicted(labels, assignment.predicted_lanes);
  batch_size_.Set(labels, static_cast<double>(BatchSize(assignment)));
  shard_ratio_.Set(labels, OwnedShare(assignment));
}

void WorkerMetrics::ForgetJob(const DeviceId& device) {
  const auto job = jobs_.find(device);
  if (job == jobs_.end()) return;
  job_.Remove(job->second);
  jobs_.erase(job);
}

void WorkerMetrics::Released(const DeviceId& device) {
  ForgetJob(device);
  const MetricLabels labels = Device(device);
  for (GaugeFamily* gauge : {&memory_peak_, &host_memory_, &batch_size_, &shard_ratio_, &step_seconds_}) gauge->Set(labels, 0);
  SetPredicted(labels, {});
}

void WorkerMetrics::SetPredicted(const MetricLabels& device, const LaneSeconds& seconds) {
  for (size_t lane = 0; lane < kNumLanes; ++lane) predicted_busy_.Set(With(device, "lane", kLanes[lane]), seconds.busy[lane]);
  for (const auto& [name, wait] : kWaits) predicted_wait_.Set(With(device, "for", name), seconds.*wait);
}

void WorkerMetrics::AddMeasured(const MetricLabels& device, const LaneSeconds& seconds) {
  for (size_t lane = 0; lane < kNumLanes; ++lane) busy_.Add(With(device, "lane", kLanes[lane]), seconds.busy[lane]);
  for (const auto& [name, wait] : kWaits) wait_.Add(With(device, "for", name), seconds.*wait);
}

void WorkerMetrics::Step(const DeviceId& device, const StepReport& report) {
  const MetricLabels labels = Device(device);
  memory_peak_.Set(labels, static_cast<double>(report.peak_memory_bytes));
  host_memory_.Set(labels, static_cast<double>(report.host_memory_bytes));
  step_seconds_.Set(labels, report.stats.step_seconds);
  AddMeasured(labels, report.lanes);
  lateness_.Add(labels, report.lateness_seconds);
  steps_.Add(labels);
}

}  // namespace motley::worker
