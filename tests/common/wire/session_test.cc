#include "common/wire/session.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

template <typename T>
T ThroughSession(const CoordinatorCommand& command) {
  const auto back = wire::FromProto(wire::ToProto(command));
  EXPECT_TRUE(back.ok() && back->has_value()) << back.status();
  return std::get<T>(**back);
}
template <typename T>
T ThroughSession(const WorkerReport& report) {
  const auto back = wire::FromProto(wire::ToProto(report));
  EXPECT_TRUE(back.has_value());
  return std::get<T>(*back);
}

TEST(SessionTest, WhatIsSaidOfFilesOnNodesDisksComesBack) {
  const auto asked = ThroughSession<HoldingsCommand>(
      CoordinatorCommand(HoldingsCommand{JobId("j"), Epoch(3), JobUid("0a"), "h1", std::string("\0s", 2)}));
  EXPECT_EQ(asked.job_uid, JobUid("0a"));
  EXPECT_EQ(asked.check_id, "h1");
  EXPECT_EQ(asked.files_secret, std::string("\0s", 2));
  StartCommand start{{}, "t"};
  EXPECT_EQ(ThroughSession<StartCommand>(CoordinatorCommand(start)).source, CheckpointSource());
  start.source = {"step-00000040-gen-3",
                  "d",
                  "m",
                  {{NodeName("b"), "10.0.0.2:7", "cc", {JobUid("0a"), 77, std::string("\0p", 2)}, true, {"rank-1.bin"}}},
                  true};
  EXPECT_EQ(ThroughSession<StartCommand>(CoordinatorCommand(start)).source, start.source);
  HoldingsReport holdings{JobId("j"), Epoch(3), "h1", "why", absl::StatusCode::kUnavailable, {}, 7, "cc", 99};
  HeldCheckpoint held;
  held.name = "step-00000040-gen-3", held.manifest_digest = "d", held.mark = "m", held.model = "{}", held.dtype = "float32";
  held.epoch = Epoch(3), held.step = 40, held.data_digest = "dd", held.seed = 5;
  held.files = {{"rank-0.bin", 100, true, "a"}, {"rank-1.bin", 200, false, "b"}};
  holdings.held = {{held}, {{Epoch(2), 20, {{"rank-0.bin", 50, true, ""}}}}};
  const auto said = ThroughSession<HoldingsReport>(WorkerReport(holdings));
  EXPECT_EQ(said.held, holdings.held);
  EXPECT_EQ(said.error + said.check_id + said.certificate, "whyh1cc");
  EXPECT_EQ(said.error_code, absl::StatusCode::kUnavailable);
  EXPECT_EQ(said.port, 7);
  EXPECT_EQ(said.free_bytes, 99);
  const auto copy = ThroughSession<CopyCommand>(
      CoordinatorCommand(CopyCommand{JobId("j"), Epoch(3), JobUid("0a"), "c1", start.source, {"rank-0.bin"}, 1000}));
  EXPECT_EQ(copy.job_uid, JobUid("0a"));
  EXPECT_EQ(copy.copy_id, "c1");
  EXPECT_EQ(copy.source, start.source);
  EXPECT_EQ(copy.files, std::vector<std::string>{"rank-0.bin"});
  EXPECT_EQ(copy.bytes_per_second, 1000);
  const std::vector<DroppedCheckpoint> dropped = {{Epoch(2), 20, "d"}, {Epoch(1), 10, ""}};
  EXPECT_EQ(ThroughSession<DropCommand>(CoordinatorCommand(DropCommand{JobId("j"), Epoch(3), JobUid("0a"), dropped})).checkpoints,
            dropped);
  const auto fetch = ThroughSession<FetchReport>(WorkerReport(FetchReport{
      JobId("j"), Epoch(3), 100, 40, true, "why", absl::StatusCode::kDataLoss, "c1", {{NodeName("b"), "rank-1.bin"}}}));
  EXPECT_EQ(fetch.copy_id, "c1");
  EXPECT_EQ(fetch.damaged_files, (std::vector<DamagedFile>{{NodeName("b"), "rank-1.bin"}}));
  EXPECT_EQ(fetch.bytes, 100);
  EXPECT_EQ(fetch.bytes_here, 40);
  EXPECT_TRUE(fetch.done);
  EXPECT_EQ(fetch.error, "why");
  EXPECT_EQ(fetch.error_code, absl::StatusCode::kDataLoss);
  PublishReport question{JobId("j"), Epoch(3), 40, 0, 1, "publish"};
  question.manifest_digest = "d";
  EXPECT_EQ(ThroughSession<PublishReport>(WorkerReport(question)).manifest_digest, "d");
  PublishAnswerCommand answer{JobId("j"), Epoch(3), 40, 0, true, "", 1};
  answer.mark = "m";
  EXPECT_EQ(ThroughSession<PublishAnswerCommand>(CoordinatorCommand(answer)).mark, "m");
}

TEST(SessionTest, CommandsComeBackAsTheyWere) {
  const auto check = ThroughSession<StorageCheckCommand>(
      CoordinatorCommand(StorageCheckCommand{JobId("j"), Epoch(3), "/d", "/c", "t", true, "p1", "/i"}));
  EXPECT_EQ(check.job, JobId("j"));
  EXPECT_EQ(check.epoch, Epoch(3));
  EXPECT_EQ(check.data_path + check.checkpoint_folder + check.token + check.check_id + check.initial, "/d/ctp1/i");
  EXPECT_TRUE(check.write_token);
  const auto reach = ThroughSession<ReachCheckCommand>(
      CoordinatorCommand(ReachCheckCommand{"p2", {{NodeName("n"), "10.0.0.1", 7}}, "s", true, true}));
  EXPECT_EQ(reach.secret, "s");
  EXPECT_TRUE(reach.burst);
  EXPECT_TRUE(reach.large);
  StorageCheckCommand verify{JobId("j"), Epoch(3), "", "", "", false, "second"};
  verify.verify_checkpoint = "/c/j/step-00000040-gen-3";
  verify.job_uid = JobUid("0a1b");
  EXPECT_EQ(ThroughSession<StorageCheckCommand>(CoordinatorCommand(verify)).verify_checkpoint, "/c/j/step-00000040-gen-3");
  EXPECT_EQ(ThroughSession<StorageCheckCommand>(CoordinatorCommand(verify)).job_uid, JobUid("0a1b"));
  StorageCheckCommand over{JobId("j"), Epoch(3), "", "", "", false, ""};
  EXPECT_FALSE(ThroughSession<StorageCheckCommand>(CoordinatorCommand(over)).over);
  over.over = true;
  EXPECT_TRUE(ThroughSession<StorageCheckCommand>(CoordinatorCommand(over)).over);
  ASSERT_EQ(reach.targets.size(), 1u);
  EXPECT_EQ(reach.check_id + reach.targets[0].node.value() + reach.targets[0].address, "p2n10.0.0.1");
  EXPECT_EQ(reach.targets[0].port, 7);
  const auto stop =
      ThroughSession<StopCommand>(CoordinatorCommand(StopCommand{JobId("j"), Epoch(4), true, "why", std::string("\0t", 2)}));
  EXPECT_TRUE(stop.save);
  EXPECT_EQ(stop.token, std::string("\0t", 2));
  EXPECT_EQ(stop.reason, "why");
  const auto value =
      ThroughSession<KvValueCommand>(CoordinatorCommand(KvValueCommand{JobId("j"), Epoch(4), "k", std::string("\0v", 2), 5}));
  EXPECT_EQ(value.value, std::string("\0v", 2));
  EXPECT_EQ(value.rank, 5);
  const auto answer =
      ThroughSession<PublishAnswerCommand>(CoordinatorCommand(PublishAnswerCommand{JobId("j"), Epoch(4), 9, 1, true, "r", 11}));
  EXPECT_TRUE(answer.allowed);
  EXPECT_EQ(answer.question, 11);
  EXPECT_EQ(ThroughSession<HeartbeatAnswer>(CoordinatorCommand(HeartbeatAnswer{{"id", 6, "t"}})).store_mark,
            (StoreMark{"id", 6, "t"}));
  EXPECT_EQ(ThroughSession<StartCommand>(CoordinatorCommand(StartCommand{{}, "t"})).token, "t");
  EXPECT_EQ(
      ThroughSession<ProfileCommand>(CoordinatorCommand(ProfileCommand{JobId("j"), Epoch(4), {}, {}, true, "p", "t"})).token,
      "t");
  EXPECT_TRUE(ThroughSession<StartCommand>(CoordinatorCommand(StartCommand{})).ranks.empty());
}

TEST(SessionTest, AssignmentsThatDoNotParseAreNamed) {
  v1::CoordinatorMessage message;
  message.mutable_start_epoch()->add_ranks()->set_rank(7);
  message.mutable_start_epoch()->mutable_ranks(0)->mutable_device()->set_id("n/gpu0");
  const absl::Status refused = wire::FromProto(message).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  auto answers = wire::Refusals(message, refused);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(std::get<RankReport>(answers[0]).device, DeviceId("n/gpu0"));
  EXPECT_NE(std::get<RankReport>(answers[0]).message.find("rank must be in"), std::string::npos);
  *message.mutable_profile_request()->add_ranks() = v1::RankAssignment();
  message.mutable_profile_request()->set_check_id("probe");
  answers = wire::Refusals(message, wire::FromProto(message).status());
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(std::get<ProfileReport>(answers[0]).check_id, "probe");
  message.mutable_welcome();
  const auto welcome = wire::FromProto(message);
  ASSERT_TRUE(welcome.ok());
  EXPECT_FALSE(welcome->has_value());
}

TEST(SessionTest, ReportsComeBackAsTheyWere) {
  for (const RankEventKind kind : {RankEventKind::kReady, RankEventKind::kFinished, RankEventKind::kFailed, RankEventKind::kDied,
                                   RankEventKind::kHung, RankEventKind::kPeerLost, RankEventKind::kNonFinite}) {
    const auto rank = ThroughSession<RankReport>(
        WorkerReport(RankReport{JobId("j"), Epoch(2), 3, DeviceId("n/gpu0"), kind, "m", Fault::kDamage, "/c/step-1"}));
    EXPECT_EQ(rank.kind, kind);
    EXPECT_EQ(rank.fault, Fault::kDamage);
    EXPECT_EQ(rank.damaged_checkpoint, "/c/step-1");
    EXPECT_EQ(rank.device, DeviceId("n/gpu0"));
  }
  RankReport ready{JobId("j"), Epoch(2), 0, DeviceId("n/gpu0"), RankEventKind::kReady};
  ready.transports = {
      {2, {DeviceId("n/gpu0"), DeviceId("m/gpu0")}, Transport::kNccl, "", {}, NcclLinks{{"NVLink", "RoCE"}, {"mlx5_0"}, 8}},
      {{}, {DeviceId("n/gpu0"), DeviceId("m/cpu0")}, Transport::kTcp, "m/cpu0 has no NCCL", Transport::kNccl},
      {0, {DeviceId("n/gpu0")}, Transport::kNone, "", {}}};
  ready.context_bytes = int64_t{3} << 30;
  EXPECT_EQ(ThroughSession<RankReport>(WorkerReport(ready)).transports, ready.transports);
  EXPECT_EQ(ThroughSession<RankReport>(WorkerReport(ready)).context_bytes, ready.context_bytes);
  EXPECT_EQ(ThroughSession<RankReport>(WorkerReport(ready)).shortage, std::nullopt);
  RankReport full{JobId("j"), Epoch(2), 0, DeviceId("n/gpu0"), RankEventKind::kFailed, "full", Fault::kMemory};
  for (const MemoryTier tier : {MemoryTier::kDevice, MemoryTier::kHost}) {
    full.shortage = {tier, int64_t{7} << 30, 5, int64_t{6} << 30, "step 3, instruction 17 (forward)"};
    EXPECT_EQ(ThroughSession<RankReport>(WorkerReport(full)).shortage, full.shortage);
    EXPECT_EQ(ThroughSession<RankReport>(WorkerReport(full)).fault, Fault::kMemory);
  }
  v1::WorkerMessage of_newer = wire::ToProto(WorkerReport(ready));
  of_newer.mutable_rank_event()->mutable_transports(0)->set_transport(static_cast<v1::Transport>(77));
  const std::optional<WorkerReport> understood = wire::FromProto(of_newer);
  ASSERT_TRUE(understood.has_value());
  EXPECT_EQ(std::get<RankReport>(*understood).transports.size(), 2u) << "what a newer worker says is left out";
  StepReport step{JobId("j"), Epoch(2), 1, {}, 5, 0.5, {{1, 2, 3, 4}, 5, 6, 7, 8}};
  step.stats.step = 8;
  step.stats.loss = 2.5;
  step.stats.validation_loss = 3.5;
  step.stats.validation_bits_per_byte = 1.25;
  step.stats.loss_scale = 4096;
  step.stats.skipped = true;
  const auto step_back = ThroughSession<StepReport>(WorkerReport(step));
  EXPECT_EQ(step_back.stats.step, 8);
  EXPECT_EQ(step_back.stats.validation_loss, 3.5);
  EXPECT_EQ(step_back.stats.validation_bits_per_byte, 1.25);
  step.stats.validation_bits_per_byte.reset();
  EXPECT_EQ(ThroughSession<StepReport>(WorkerReport(step)).stats.validation_bits_per_byte, std::nullopt);
  EXPECT_EQ(step_back.stats.loss_scale, 4096);
  EXPECT_TRUE(step_back.stats.skipped);
  EXPECT_EQ(step_back.memory, std::nullopt) << "as of a worker that does not measure it";
  step.memory = {{1, 2, 3, 4, 5, 6, 7, 8, 9}, true, {10, 11, 12, 13}};
  EXPECT_EQ(ThroughSession<StepReport>(WorkerReport(step)).memory, step.memory);
  EXPECT_EQ(step_back.lanes.busy, step.lanes.busy);
  EXPECT_EQ(step_back.lanes.collective, 5);
  EXPECT_EQ(step_back.lanes.hand_over, 6);
  EXPECT_EQ(step_back.lanes.bubble, 7);
  EXPECT_EQ(step_back.lanes.host, 8);
  // Of two lanes: the second begins before the first has ended, the third before the second began.
  const std::vector<InstructionSpan> spans = {
      {absl::Nanoseconds(5), absl::Seconds(2)}, {absl::Seconds(1), absl::Seconds(1)}, {absl::Milliseconds(3), absl::Seconds(4)}};
  const auto trace = ThroughSession<TraceReport>(WorkerReport(TraceReport{JobId("j"), Epoch(2), 1, 8, "e", 4.5, spans}));
  EXPECT_EQ(trace.spans, spans);
  EXPECT_EQ(trace.step, 8);
  EXPECT_EQ(trace.rank, 1);
  EXPECT_EQ(trace.error, "e");
  EXPECT_EQ(trace.step_seconds, 4.5);
  const DataSummary data = {4, "d", DataKind::kRows, 5, 6, 7, 8, 9, 10, "t"}, validation = {1, "v", DataKind::kStream};
  const auto storage = ThroughSession<StorageReport>(WorkerReport(
      StorageReport{JobId("j"), Epoch(2), "e", data, true, "p", absl::StatusCode::kOk, validation, "weights", "tokenizer"}));
  EXPECT_EQ(storage.error + storage.check_id + storage.initial_digest + storage.initial_tokenizer, "epweightstokenizer");
  EXPECT_EQ(storage.data, data);
  EXPECT_EQ(storage.validation, validation);
  EXPECT_TRUE(storage.token_seen);
  const auto reach = ThroughSession<ReachReport>(WorkerReport(ReachReport{"p", {{NodeName("n"), "refused", 0.5, 2e6, "eth1"}}}));
  const auto heartbeat = ThroughSession<HeartbeatReport>(WorkerReport(HeartbeatReport{1234, "comparing"}));
  EXPECT_EQ(heartbeat.unix_ms, 1234);
  EXPECT_EQ(heartbeat.doing, "comparing");
  ASSERT_EQ(reach.answers.size(), 1u);
  EXPECT_EQ(reach.answers[0].error + reach.answers[0].other_card, "refusedeth1");
  EXPECT_EQ(reach.answers[0].connect_seconds, 0.5);
  EXPECT_EQ(reach.answers[0].bytes_per_second, 2e6);
  EXPECT_EQ(ThroughSession<CheckpointFailedReport>(WorkerReport(CheckpointFailedReport{JobId("j"), Epoch(2), 6, "EIO"})).message,
            "EIO");
  EXPECT_EQ(ThroughSession<LogReport>(WorkerReport(LogReport{JobId("j"), Epoch(2), "s", "t", 9})).epoch, Epoch(2));
  EXPECT_EQ(ThroughSession<LeavingReport>(WorkerReport(LeavingReport{90})).stop_seconds, 90);
  const auto card = ThroughSession<CardReport>(WorkerReport(CardReport{DeviceId("n/gpu0"), "hot", "gone", 7}));
  EXPECT_EQ(card.device, DeviceId("n/gpu0"));
  EXPECT_EQ(card.health + card.lost, "hotgone");
  EXPECT_EQ(card.used_by_others_bytes, 7);
  EXPECT_EQ(ThroughSession<PublishReport>(WorkerReport(PublishReport{JobId("j"), Epoch(2), 6, 0, 4, "delete"})).purpose,
            "delete");
}

TEST(SessionTest, AHelloWithWhatNoDeviceHasIsRefused) {
  NodeDescription node{NodeName("n1"), "0.1", 42, "127.0.0.1", {}, {}, {}, 0};
  DeviceDescription& device = node.devices.emplace_back();
  device.id = DeviceId("n1/gpu0");
  const auto memory = [&](DeviceKind kind, int64_t bytes) {
    device.kind = kind;
    device.memory_bytes = bytes;
    return wire::FromProto(wire::ToProto(node)).status();
  };
  for (const int64_t bytes : {int64_t{100}, (int64_t{1} << 20) - 1, int64_t{4'000'000'000'001}, int64_t{1} << 50}) {
    for (const DeviceKind kind : {DeviceKind::kCpu, DeviceKind::kEmulated, DeviceKind::kCuda}) {
      const absl::Status status = memory(kind, bytes);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bytes;
      EXPECT_NE(status.message().find("device 'n1/gpu0': memory_bytes is "), std::string::npos) << status;
    }
  }
  EXPECT_TRUE(memory(DeviceKind::kEmulated, int64_t{1} << 20).ok());
  EXPECT_TRUE(memory(DeviceKind::kCuda, 4'000'000'000'000).ok());
  EXPECT_TRUE(memory(DeviceKind::kCpu, 0).ok()) << "not limited";
  EXPECT_FALSE(memory(DeviceKind::kEmulated, 0).ok());
  EXPECT_TRUE(memory(DeviceKind::kEmulated, int64_t{1} << 30).ok());
  v1::Hello hello = wire::ToProto(node);
  hello.mutable_devices(0)->set_link_latency_seconds(1e300);
  EXPECT_NE(wire::FromProto(hello).status().message().find("link_latency_seconds is inf"), std::string::npos);
  device.host_link_bytes_per_second = 2e9;
  device.host_root = 255;
  device.node_host_memory_bytes = int64_t{1} << 40;
  EXPECT_TRUE(wire::FromProto(wire::ToProto(node)).ok());
  hello = wire::ToProto(node);
  hello.mutable_devices(0)->set_host_link_bytes_per_second(1);
  EXPECT_NE(wire::FromProto(hello).status().message().find("'n1/gpu0': host_link_bytes_per_second is 1;"), std::string::npos);
  hello = wire::ToProto(node);
  hello.mutable_devices(0)->set_host_root(256);
  EXPECT_NE(wire::FromProto(hello).status().message().find("'n1/gpu0': host_root is 256;"), std::string::npos);
  hello = wire::ToProto(node);
  hello.mutable_devices(0)->set_node_host_memory_bytes(100);
  EXPECT_NE(wire::FromProto(hello).status().message().find("'n1/gpu0': node_host_memory_bytes is 100;"), std::string::npos);
}

TEST(SessionTest, HelloComesBackAsItWas) {
  NodeDescription node{NodeName("n1"), "0.1", 42, "127.0.0.1", {}, {{JobId("j"), Epoch(9), "t", "k"}}, {"store", 77, "u"}, 4567};
  node.unused_cards = {{"NVIDIA T4 at 0000:3b:00.0", "others use it"}};
  node.host_memory_bytes = 1 << 30;
  node.files_not_held = "the kernel has no Landlock";
  node.user = "872:871";
  node.protocol = 7;
  node.rank_build = "ranks-0001/3/2";
  node.coordinators = {"a.lab:7073", "b.lab:7073"};
  node.term_certificate = "PEM";
  const auto back = wire::FromProto(wire::ToProto(node));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->newest_epochs, node.newest_epochs);
  EXPECT_EQ(back->store_mark, node.store_mark);
  EXPECT_EQ(back->reach_port, 4567);
  EXPECT_EQ(back->unused_cards, node.unused_cards);
  EXPECT_EQ(back->host_memory_bytes, 1 << 30);
  EXPECT_EQ(back->files_not_held, node.files_not_held);
  EXPECT_EQ(back->user, node.user);
  EXPECT_EQ(back->protocol, 7);
  EXPECT_EQ(back->rank_build, node.rank_build);
  EXPECT_EQ(back->coordinators, node.coordinators);
  EXPECT_EQ(back->term_certificate, node.term_certificate);
  EXPECT_EQ(back->incarnation, 42);
  EXPECT_EQ(wire::FromProto(v1::Hello())->protocol, 1) << "of before it was said";
}

}  // namespace
}  // namespace motley
