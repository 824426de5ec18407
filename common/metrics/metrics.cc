#include "common/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <exception>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/tcp_listener.h"

namespace motley {
namespace {

template <typename T>
void RemoveFrom(prometheus::Family<T>& family, const std::string& label, const std::string& value) {
  for (const prometheus::MetricFamily& collected : family.Collect()) {
    for (const prometheus::ClientMetric& metric : collected.metric) {
      MetricLabels labels;
      for (const auto& pair : metric.label) labels[pair.name] = pair.value;
      const auto found = labels.find(label);
      if (found != labels.end() && found->second == value) family.Remove(&family.Add(labels));
    }
  }
}

}  // namespace

struct MetricsRegistry::State {
  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  mutable std::mutex mutex;
  absl::Status first_error;  // guarded by mutex, as what follows
  std::vector<prometheus::Family<prometheus::Gauge>*> gauges;
  std::vector<prometheus::Family<prometheus::Counter>*> counters;
};

MetricsRegistry::MetricsRegistry() : state_(std::make_unique<State>()) {}
MetricsRegistry::~MetricsRegistry() = default;

void MetricsRegistry::Fail(const std::string& what) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->first_error.ok()) state_->first_error = absl::InternalError(what);
}

absl::Status MetricsRegistry::status() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->first_error;
}

void MetricsRegistry::RemoveSeries(const std::string& label, const std::string& value) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  for (auto* family : state_->gauges) RemoveFrom(*family, label, value);
  for (auto* family : state_->counters) RemoveFrom(*family, label, value);
}

std::vector<std::string> MetricsRegistry::FamilyNames() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  std::set<std::string> names;
  for (const auto* family : state_->gauges) names.insert(family->GetName());
  for (const auto* family : state_->counters) names.insert(family->GetName());
  return {names.begin(), names.end()};
}

std::string MetricsRegistry::ToText() const { return prometheus::TextSerializer().Serialize(state_->registry->Collect()); }

GaugeFamily MetricsRegistry::Gauge(const std::string& name, const std::string& help) {
  try {
    auto* family = &prometheus::BuildGauge().Name(name).Help(help).Register(*state_->registry);
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->gauges.push_back(family);
    return GaugeFamily(this, family);
  } catch (const std::exception& e) {
    Fail(absl::StrCat("gauge '", name, "': ", e.what()));
    return GaugeFamily(this, nullptr);
  }
}

CounterFamily MetricsRegistry::Counter(const std::string& name, const std::string& help) {
  try {
    auto* family = &prometheus::BuildCounter().Name(name).Help(help).Register(*state_->registry);
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->counters.push_back(family);
    return CounterFamily(this, family);
  } catch (const std::exception& e) {
    Fail(absl::StrCat("counter '", name, "': ", e.what()));
    return CounterFamily(this, nullptr);
  }
}

void GaugeFamily::Set(const MetricLabels& labels, double value) {
  if (family_ == nullptr) return;
  try {
    family_->Add(labels).Set(value);
  } catch (const std::exception& e) {
    registry_->Fail(absl::StrCat("labels of gauge '", family_->GetName(), "': ", e.what()));
  }
}

void GaugeFamily::Remove(const MetricLabels& labels) {
  if (family_ != nullptr && family_->Has(labels)) family_->Remove(&family_->Add(labels));
}

void CounterFamily::Add(const MetricLabels& labels, double by) {
  if (family_ == nullptr || by < 0) return;
  try {
    family_->Add(labels).Increment(by);
  } catch (const std::exception& e) {
    registry_->Fail(absl::StrCat("labels of counter '", family_->GetName(), "': ", e.what()));
  }
}

void CounterFamily::Remove(const MetricLabels& labels) {
  if (family_ != nullptr && family_->Has(labels)) family_->Remove(&family_->Add(labels));
}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& address, const MetricsRegistry& registry,
                                                                    TextRoute others) {
  MOTLEY_ASSIGN_OR_RETURN(TcpListener listener, TcpListener::Open("the metrics address", address));
  auto server = std::unique_ptr<MetricsServer>(new MetricsServer());
  server->address_ = listener.address();
  const auto route = [&registry, others = std::move(others)](const TextRequest& request) {
    if (request.path == "/metrics") return TextAnswerOf(registry.ToText());
    return others ? others(request) : NoSuchPath("/metrics");
  };
  server->server_ = std::make_unique<TextServer>(std::move(listener), route);
  return server;
}

MetricsServer::~MetricsServer() = default;

int MetricsServer::port() const { return server_->port(); }

}  // namespace motley
