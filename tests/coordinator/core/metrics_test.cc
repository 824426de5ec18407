#include "coordinator/core/metrics.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "tests/common/base/folders.h"

namespace motley::coordinator {
namespace {

// The names between backquotes in the first column of docs/use/metrics.md, section Coordinator.
std::set<std::string> Documented() {
  std::ifstream in(SourceFolder() + "/docs/use/metrics.md");
  std::set<std::string> names;
  bool ours = false;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("## ", 0) == 0) ours = line == "## Coordinator";
    if (ours && line.rfind("| `", 0) == 0) names.insert(line.substr(3, line.find('`', 3) - 3));
  }
  return names;
}

TEST(CoordinatorMetrics, TheDocumentedNamesAreThoseServed) {
  MetricsRegistry registry;
  Metrics m(registry);
  const std::vector<std::string> names = registry.FamilyNames();
  EXPECT_EQ(Documented(), std::set<std::string>(names.begin(), names.end()));
  EXPECT_TRUE(registry.status().ok()) << registry.status();
}

TEST(CoordinatorMetrics, AForgottenJobLeavesNoSeries) {
  MetricsRegistry registry;
  Metrics m(registry);
  for (const char* job : {"gone", "stays"}) {
    const MetricLabels labels = {{"job_id", job}};
    for (GaugeFamily* family : {&m.step, &m.training_tokens, &m.mfu}) family->Set(labels, 1);
    m.steps_repeated.Add(labels);
    m.replans.Add({{"job_id", job}, {"cause", "node_joined"}});
  }
  m.planner_seconds.Set(1);
  m.ForgetJob(JobId("gone"));
  const std::string text = registry.ToText();
  EXPECT_EQ(text.find("gone"), std::string::npos) << text;
  for (const char* name :
       {"motley_job_step{", "motley_job_training_tokens{", "motley_job_replans_total{", "motley_planner_seconds 1"}) {
    EXPECT_NE(text.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace motley::coordinator
