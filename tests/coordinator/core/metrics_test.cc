#include "coordinator/core/metrics.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

namespace motley::coordinator {
namespace {

// The names between backquotes in the first column of docs/metrics.md, section Coordinator.
std::set<std::string> Documented() {
  std::ifstream in(std::string(MOTLEY_SOURCE_DIR) + "/docs/metrics.md");
  std::set<std::string> names;
  bool ours = false;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("## ", 0) == 0) ours = line == "## Coordinator";
    if (ours && line.rfind("| `", 0) == 0) names.insert(line.substr(3, line.find('`', 3) - 3));
  }
  return names;
}

TEST(CoordinatorMetrics, EveryDocumentedNameIsServed) {
  MetricsRegistry registry;
  Metrics m(registry);
  for (GaugeFamily* family : {&m.nodes,
                              &m.devices,
                              &m.jobs,
                              &m.step,
                              &m.steps_target,
                              &m.loss,
                              &m.validation_loss,
                              &m.grad_norm,
                              &m.learning_rate,
                              &m.tokens_per_second,
                              &m.step_seconds,
                              &m.predicted_step_seconds,
                              &m.prediction_error_ratio,
                              &m.epoch,
                              &m.last_checkpoint_timestamp,
                              &m.planner_seconds,
                              &m.tokens,
                              &m.mfu,
                              &m.checkpoint_bytes,
                              &m.checkpoint_free_bytes,
                              &m.training_tokens}) {
    family->Set(1);
  }
  for (CounterFamily* family :
       {&m.replans, &m.pause_seconds, &m.steps_repeated, &m.checkpoints, &m.checkpoint_failures, &m.events, &m.foreign_reports}) {
    family->Add({}, 1);
  }
  const std::string text = registry.ToText();
  const std::set<std::string> names = Documented();
  EXPECT_EQ(names.size(), 30u);
  for (const std::string& name : names) EXPECT_NE(text.find("# TYPE " + name + " "), std::string::npos) << name;
  EXPECT_TRUE(registry.status().ok()) << registry.status();
}

}  // namespace
}  // namespace motley::coordinator
