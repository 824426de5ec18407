#include "common/wire/rank.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

template <typename T>
T ThroughRank(const RankCommand& command) {
  const auto back = wire::FromProto(wire::ToProto(command));
  EXPECT_TRUE(back.ok()) << back.status();
  return std::get<T>(*back);
}
template <typename T>
T ThroughRank(const WorkerReport& report) {
  const auto back = wire::FromProto(wire::ToProto(RankMessage(report)));
  EXPECT_TRUE(back.has_value());
  return std::get<T>(std::get<WorkerReport>(*back));
}

RankAssignment Assignment() {
  RankAssignment assignment;
  assignment.job = JobId("j");
  assignment.epoch = Epoch(3);
  assignment.rank = 1;
  assignment.devices = {DeviceId("n/gpu0"), DeviceId("n/gpu1")};
  assignment.data_addresses = {"127.0.0.1", "127.0.0.1"};
  assignment.model = *ModelFlavor("gpt2", "debug");
  assignment.device.id = assignment.devices[1];
  return assignment;
}

TEST(RankWire, CommandsComeBackAsTheyWere) {
  const auto start = ThroughRank<StartCommand>(RankCommand(StartCommand{{Assignment()}}));
  ASSERT_EQ(start.ranks.size(), 1u);
  EXPECT_EQ(start.ranks[0].device.id, DeviceId("n/gpu1"));
  const auto profile = ThroughRank<ProfileCommand>(
      RankCommand(ProfileCommand{JobId("j"), Epoch(3), {Assignment()}, {DeviceId("n/gpu1")}, true, "probe"}));
  EXPECT_EQ(profile.compute_devices, std::vector<DeviceId>{DeviceId("n/gpu1")});
  EXPECT_TRUE(profile.collectives);
  EXPECT_EQ(profile.check_id, "probe");
  EXPECT_FALSE(profile.trial);
  ProfileCommand trial{JobId("j"), Epoch(3), {Assignment()}, {}, false, "memory-1"};
  trial.trial = true;
  EXPECT_TRUE(ThroughRank<ProfileCommand>(RankCommand(trial)).trial);
  EXPECT_TRUE(ThroughRank<StopCommand>(RankCommand(StopCommand{JobId("j"), Epoch(3), true, "why"})).save);
  EXPECT_EQ(ThroughRank<KvValueCommand>(RankCommand(KvValueCommand{JobId("j"), Epoch(3), "k", "v", 2})).value, "v");
  EXPECT_EQ(
      ThroughRank<PublishAnswerCommand>(RankCommand(PublishAnswerCommand{JobId("j"), Epoch(3), 4, 0, true, "", 9})).question, 9);
}

TEST(RankWire, WhatARankSaysComesBackAsItWas) {
  EXPECT_EQ(
      ThroughRank<RankReport>(WorkerReport(RankReport{JobId("j"), Epoch(3), 1, DeviceId("n/gpu1"), RankEventKind::kHung, "m"}))
          .message,
      "m");
  const StepReport step = ThroughRank<StepReport>(WorkerReport(StepReport{JobId("j"), Epoch(3), 1, {}, 77, 0, {}, 88, 55}));
  EXPECT_EQ(step.held_memory_bytes, 55);
  RankReport short_of{JobId("j"), Epoch(3), 1, DeviceId("a/gpu0"), RankEventKind::kFailed, "too little"};
  EXPECT_EQ(ThroughRank<RankReport>(WorkerReport(short_of)).host_offer_bytes, std::nullopt);
  short_of.host_offer_bytes = 0;
  EXPECT_EQ(ThroughRank<RankReport>(WorkerReport(short_of)).host_offer_bytes, 0) << "nothing is there";
  EXPECT_EQ(step.peak_memory_bytes, 77);
  EXPECT_EQ(step.host_memory_bytes, 88);
  EXPECT_EQ(ThroughRank<KvSetReport>(WorkerReport(KvSetReport{JobId("j"), Epoch(3), "k", "v"})).value, "v");
  EXPECT_EQ(ThroughRank<KvGetReport>(WorkerReport(KvGetReport{JobId("j"), Epoch(3), "k", 1})).rank, 1);
  EXPECT_EQ(ThroughRank<PublishReport>(WorkerReport(PublishReport{JobId("j"), Epoch(3), 4, 0, 5, "delete"})).purpose, "delete");
  const auto checkpoint =
      ThroughRank<CheckpointReport>(WorkerReport(CheckpointReport{JobId("j"), Epoch(3), 4, "/c", 6, 0.5, 7, JobUid("0a1b")}));
  EXPECT_EQ(checkpoint.folder, "/c");
  EXPECT_EQ(checkpoint.job_uid, JobUid("0a1b"));
  const auto failed = ThroughRank<CheckpointFailedReport>(
      WorkerReport(CheckpointFailedReport{JobId("j"), Epoch(3), 4, "EIO", DeviceId("n2/gpu0")}));
  EXPECT_EQ(failed.message, "EIO");
  EXPECT_EQ(failed.blamed, DeviceId("n2/gpu0"));
  EXPECT_EQ(ThroughRank<ProfileReport>(WorkerReport(ProfileReport{JobId("j"), Epoch(3), "e"})).error, "e");
  EXPECT_FALSE(ThroughRank<ProfileReport>(WorkerReport(ProfileReport())).trial);
  ProfileReport trial;
  trial.trial = MemoryTrial{4, 0.5, 600};
  EXPECT_EQ(ThroughRank<ProfileReport>(WorkerReport(trial)).trial, trial.trial);
  EXPECT_EQ(ThroughRank<LogReport>(WorkerReport(LogReport{JobId("j"), Epoch(3), "s", "t", 8})).text, "t");
  const auto progress = wire::FromProto(wire::ToProto(RankMessage(ProgressReport{Epoch(3), 4, 5, "forward"})));
  EXPECT_EQ(std::get<ProgressReport>(*progress).doing, "forward");
  EXPECT_EQ(std::get<ProgressReport>(*progress).instruction, 5);
}

TEST(RankWire, WhatIsNotForARankIsAnError) {
  EXPECT_EQ(wire::FromProto(v1::ToRank()).status().code(), absl::StatusCode::kInvalidArgument);
  v1::ToRank two = wire::ToProto(RankCommand(ProfileCommand{JobId("j"), Epoch(3), {Assignment(), Assignment()}}));
  EXPECT_EQ(wire::FromProto(two).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(wire::FromProto(v1::FromRank()).has_value());
}

}  // namespace
}  // namespace motley
