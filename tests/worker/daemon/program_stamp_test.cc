#include "worker/daemon/program_stamp.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <optional>

#include "tests/common/base/patience.h"
#include "tests/common/base/temp_folder.h"
#include "tests/worker/daemon/test_assignment.h"
#include "worker/daemon/supervisor.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

TEST(ProgramStampTest, AFileThatTookItsPlaceIsAnother) {
  const TempFolder folder;
  const std::string path = folder.Write("motley-rank", "the build of before");
  const ProgramStamp before = StampOf(path);
  EXPECT_EQ(StampOf(path), before);
  std::filesystem::rename(folder.Write("motley-rank.new", "the build of before"), path);
  EXPECT_NE(StampOf(path), before) << "of the same size, even";
  EXPECT_EQ(StampOf(folder / "none"), ProgramStamp());
}

// An upgrade puts another build in its place, which the others' ranks may not understand.
TEST(ProgramStampTest, ARankWhoseProgramWasReplacedIsNotStarted) {
  const TempFolder folder;
  OfferedDevice device;
  device.description.id = DeviceId("n1/gpu0");
  device.rank_binary = folder.Write("motley-rank", "the build of before");
  SupervisorConfig config;
  config.devices.push_back(device);
  config.roots = FileRoots({"/data"});
  const SystemClock clock;
  MetricsRegistry registry;
  WorkerMetrics metrics(registry, "n1", {});
  Outbox outbox;
  Supervisor supervisor(config, clock, outbox, metrics);
  std::filesystem::rename(folder.Write("motley-rank.new", "the next build"), device.rank_binary);
  supervisor.Start({{TestAssignment("train")}});
  outbox.Wait(Patience(absl::Seconds(20)), /*for_reports=*/true);
  const std::optional<WorkerReport> report = outbox.TryPop();
  ASSERT_TRUE(report && std::holds_alternative<RankReport>(*report));
  EXPECT_EQ(std::get<RankReport>(*report).kind, RankEventKind::kDied) << "the job goes on without the device, and does not fail";
  EXPECT_THAT(std::get<RankReport>(*report).message, HasSubstr("was replaced since this worker was started"));
}

}  // namespace
}  // namespace motley::worker
