// The worker's Prometheus metrics (docs/use/metrics.md). Thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/device/device.h"
#include "common/metrics/metrics.h"
#include "common/session/session.h"

namespace motley::worker {

class WorkerMetrics {
 public:
  // Every series exists from the start, with 0.
  WorkerMetrics(MetricsRegistry& registry, std::string node, const std::vector<DeviceDescription>& devices);

  void SetConnected(bool connected);
  void SetRanksRunning(int count);
  // kind: finished, failed, died, hung, killed.
  void RankExited(const std::string& kind);
  // An assignment begins (or ends: no samples, no share).
  void Assigned(const RankAssignment& assignment);
  void Released(const DeviceId& device);
  void Step(const DeviceId& device, const StepReport& report);

 private:
  MetricLabels Device(const DeviceId& device) const;
  void ForgetJob(const DeviceId& device);
  void SetPredicted(const MetricLabels& device, const LaneSeconds& seconds);
  void AddMeasured(const MetricLabels& device, const LaneSeconds& seconds);

  const std::string node_;
  std::map<DeviceId, MetricLabels> jobs_;  // labels of the devices' series of motley_device_job
  GaugeFamily build_info_, connected_, ranks_running_, memory_capacity_, memory_peak_, host_memory_, host_offered_, batch_size_,
      shard_ratio_;
  GaugeFamily job_, step_seconds_, predicted_busy_, predicted_wait_;
  CounterFamily rank_exits_, busy_, wait_, lateness_, steps_;
};

}  // namespace motley::worker
