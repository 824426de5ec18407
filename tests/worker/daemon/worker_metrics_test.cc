#include "worker/daemon/worker_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

TEST(WorkerMetricsTest, EveryLaneAndEveryWaitHasASeries) {
  MetricsRegistry registry;
  DeviceDescription device;
  device.id = DeviceId("n1/gpu0");
  WorkerMetrics metrics(registry, "n1", {device});
  StepReport report;
  for (size_t lane = 0; lane < kNumLanes; ++lane) report.lanes.busy[lane] = 10 + static_cast<double>(lane);
  report.lanes.collective = 1, report.lanes.hand_over = 2, report.lanes.bubble = 3, report.lanes.host = 4, report.lanes.copy = 5;
  metrics.Step(device.id, report);
  const std::string text = registry.ToText();
  const char* const lanes[] = {"compute", "collective", "send", "receive", "copy"};
  for (int lane = 0; lane < kNumLanes; ++lane) {
    EXPECT_THAT(text, HasSubstr("motley_device_busy_seconds_total{device=\"gpu0\",lane=\"" + std::string(lanes[lane]) +
                                "\",node=\"n1\"} " + std::to_string(10 + lane)));
  }
  const char* const waits[] = {"collective", "hand_over", "bubble", "host", "copy"};
  for (int wait = 0; wait < 5; ++wait) {
    EXPECT_THAT(text, HasSubstr("motley_device_wait_seconds_total{device=\"gpu0\",for=\"" + std::string(waits[wait]) +
                                "\",node=\"n1\"} " + std::to_string(1 + wait)));
  }
  EXPECT_EQ(registry.status(), absl::OkStatus());
}

}  // namespace
}  // namespace motley::worker
