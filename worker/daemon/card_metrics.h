// How this node's cards are, as metrics (docs/use/metrics.md). Thread-safe.
#pragma once

#include <map>
#include <string>

#include "common/base/ids.h"
#include "common/metrics/metrics.h"
#include "worker/daemon/nvml_cards.h"

namespace motley::worker {

class CardMetrics {
 public:
  CardMetrics(MetricsRegistry& registry, std::string node);

  // `errors` and `xids`: since the last look.
  void Set(const DeviceId& device, const CardSample& sample, bool lost, int64_t errors, int64_t xids);

 private:
  const std::string node_;
  GaugeFamily lost_, utilization_, memory_used_, power_, temperature_, clock_, slowed_;
  CounterFamily ecc_errors_, xid_errors_;
};

}  // namespace motley::worker
