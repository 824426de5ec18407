#include "coordinator/periodic/metrics_updater.h"

#include <gmock/gmock.h>

#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

using testing::HasSubstr;

using MetricsUpdaterTest = CoreTest;

// A curve that begins with the first event shows neither that nothing happened before nor, as a rate, the first one.
TEST_F(MetricsUpdaterTest, WhatHasNotHappenedToAJobYetIsZero) {
  AddRun("j");
  UpdateMetrics(*core_);
  const std::string text = registry_.ToText();
  for (const char* name : {"pause_seconds", "steps_repeated", "checkpoints", "checkpoint_failures"}) {
    EXPECT_THAT(text, HasSubstr(std::string("motley_job_") + name + "_total{job_id=\"j\"} 0\n"));
  }
  EXPECT_THAT(text, HasSubstr("motley_job_replans_total{cause=\"node_lost\",job_id=\"j\"} 0\n"));
  core_->metrics.checkpoints.Add({{"job_id", "j"}});
  UpdateMetrics(*core_);
  EXPECT_THAT(registry_.ToText(), HasSubstr("motley_job_checkpoints_total{job_id=\"j\"} 1\n"));
}

}  // namespace
}  // namespace motley::coordinator
