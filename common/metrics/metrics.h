// Prometheus metrics behind a small face: families of gauges and counters with labels, and the HTTP listener that serves
// them. prometheus-cpp throws; nothing here does.
//
// A registry is handed in, never global. Families are made once at start, then set by labels. A bad metric or label name
// is a bug of ours: the update is dropped and the first one is kept in MetricsRegistry::status() (tests look at it).
// Thread-safe throughout.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/metrics/text_server.h"

namespace prometheus {
class Counter;
class Gauge;
class Registry;
template <typename T>
class Family;
}  // namespace prometheus

namespace motley {

using MetricLabels = std::map<std::string, std::string>;
class MetricsRegistry;

// A value that goes up and down. Valid while its registry lives; copying copies the handle.
class GaugeFamily {
 public:
  void Set(const MetricLabels& labels, double value);
  void Set(double value) { Set({}, value); }
  // The series disappears from the next scrape (a device that left, a job that ended).
  void Remove(const MetricLabels& labels);

 private:
  friend class MetricsRegistry;
  GaugeFamily(MetricsRegistry* registry, prometheus::Family<prometheus::Gauge>* family) : registry_(registry), family_(family) {}
  MetricsRegistry* registry_;
  prometheus::Family<prometheus::Gauge>* family_;  // null after a bad name
};

// A value that only grows. Names end in _total.
class CounterFamily {
 public:
  // `by` below 0 is dropped.
  void Add(const MetricLabels& labels, double by = 1);
  void Remove(const MetricLabels& labels);

 private:
  friend class MetricsRegistry;
  CounterFamily(MetricsRegistry* registry, prometheus::Family<prometheus::Counter>* family)
      : registry_(registry), family_(family) {}
  MetricsRegistry* registry_;
  prometheus::Family<prometheus::Counter>* family_;
};

class MetricsRegistry {
 public:
  MetricsRegistry();
  ~MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  // The same name again returns the same family.
  GaugeFamily Gauge(const std::string& name, const std::string& help);
  CounterFamily Counter(const std::string& name, const std::string& help);

  // Every series whose label `label` is `value` disappears, whatever its family: an owner that is gone leaves none behind.
  void RemoveSeries(const std::string& label, const std::string& value);
  // Of all families, sorted, those without a series too.
  std::vector<std::string> FamilyNames() const;

  // The first wrong use of this registry; OK in a correct program.
  absl::Status status() const;
  // What a scrape would see (Prometheus text format).
  std::string ToText() const;

 private:
  friend class GaugeFamily;
  friend class CounterFamily;
  friend class MetricsServer;
  void Fail(const std::string& what);

  struct State;
  std::unique_ptr<State> state_;
};

// Serves GET /metrics from a thread of its own until destroyed, and what `others` answers.
class MetricsServer {
 public:
  // `address` is "host:port"; port 0 takes a free one. UNAVAILABLE when the port is taken or the address is not of this
  // machine, INVALID_ARGUMENT when it is not host:port. `registry` must outlive the server.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const std::string& address, const MetricsRegistry& registry,
                                                              TextRoute others = nullptr);
  ~MetricsServer();

  int port() const;
  // "host:port" with the port really taken.
  const std::string& address() const { return address_; }

 private:
  MetricsServer() = default;
  std::unique_ptr<TextServer> server_;
  std::string address_;
};

}  // namespace motley
