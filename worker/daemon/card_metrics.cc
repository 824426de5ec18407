#include "worker/daemon/card_metrics.h"

#include <utility>

namespace motley::worker {
namespace {

// What the card does not say has no series.
void SetOrRemove(GaugeFamily& gauge, const MetricLabels& labels, double value) {
  if (value < 0) return gauge.Remove(labels);
  gauge.Set(labels, value);
}

}  // namespace

CardMetrics::CardMetrics(MetricsRegistry& r, std::string node)
    : node_(std::move(node)),
      lost_(r.Gauge("motley_device_lost", "1 when the card cannot be used until its worker starts again")),
      utilization_(r.Gauge("motley_device_utilization_ratio", "Share of the time in which the card ran a kernel, of anybody")),
      memory_used_(r.Gauge("motley_device_memory_used_bytes", "Of the card's memory, by anybody")),
      power_(r.Gauge("motley_device_power_watts", "That the card draws")),
      temperature_(r.Gauge("motley_device_temperature_celsius", "Of the card's die")),
      clock_(r.Gauge("motley_device_clock_hertz", "Of the card's processors")),
      slowed_(r.Gauge("motley_device_throttled", "1 while the card runs slower than it could, by reason")),
      ecc_errors_(r.Counter("motley_device_ecc_errors_total", "Memory errors that ECC could not correct")),
      xid_errors_(r.Counter("motley_device_xid_errors_total", "Errors (Xid) that the driver reported of the card")) {}

void CardMetrics::Set(const DeviceId& device, const CardSample& sample, bool lost, int64_t errors, int64_t xids) {
  const MetricLabels labels = {{"node", node_}, {"device", device.value().substr(device.value().find('/') + 1)}};
  lost_.Set(labels, lost ? 1 : 0);
  SetOrRemove(utilization_, labels, sample.utilization);
  SetOrRemove(memory_used_, labels, static_cast<double>(sample.used_bytes));
  SetOrRemove(power_, labels, sample.watts);
  SetOrRemove(temperature_, labels, sample.temperature_celsius);
  SetOrRemove(clock_, labels, sample.clock_mhz < 0 ? -1 : 1e6 * static_cast<double>(sample.clock_mhz));
  for (const SlowDown& slow : kSlowDowns) {
    MetricLabels with_reason = labels;
    with_reason.insert({"reason", slow.label});
    slowed_.Set(with_reason, (sample.slow_downs & slow.bit) != 0 ? 1 : 0);
  }
  ecc_errors_.Add(labels, static_cast<double>(errors));
  xid_errors_.Add(labels, static_cast<double>(xids));
}

}  // namespace motley::worker
