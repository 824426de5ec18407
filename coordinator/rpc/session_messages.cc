#include "coordinator/rpc/session_messages.h"

#include <limits>

#include "common/status_macros.h"
#include "common/wire/assignment.h"
#include "common/wire/device.h"
#include "common/wire/profile.h"

namespace motley::coordinator {
namespace {

struct CommandToProto {
  v1::CoordinatorMessage out;

  // Job and epoch stand in every message.
  template <typename Message, typename Command>
  static void Stamp(const Command& command, Message* message) {
    message->set_job_id(command.job.value());
    message->set_epoch(command.epoch.value());
  }
  void operator()(const StorageCheckCommand& command) {
    v1::StorageCheck* check = out.mutable_storage_check();
    Stamp(command, check);
    check->set_data_path(command.data_path);
    check->set_checkpoint_folder(command.checkpoint_folder);
    check->set_token(command.token);
    check->set_write_token(command.write_token);
  }
  void operator()(const ProfileCommand& command) {
    v1::ProfileRequest* request = out.mutable_profile_request();
    Stamp(command, request);
    for (const RankAssignment& rank : command.ranks) *request->add_ranks() = wire::ToProto(rank);
    request->set_compute(!command.compute_devices.empty());
    for (const DeviceId& device : command.compute_devices) request->add_compute_device_ids(device.value());
    request->set_collectives(command.collectives);
  }
  void operator()(const StartCommand& command) {
    for (const RankAssignment& rank : command.ranks) *out.mutable_start_epoch()->add_ranks() = wire::ToProto(rank);
  }
  void operator()(const StopCommand& command) {
    v1::StopEpoch* stop = out.mutable_stop_epoch();
    Stamp(command, stop);
    stop->set_save(command.save);
    stop->set_reason(command.reason);
  }
  void operator()(const KvValueCommand& command) {
    v1::KvValue* value = out.mutable_kv_value();
    Stamp(command, value);
    value->set_key(command.key);
    value->set_value(command.value);
    value->set_rank(command.rank);
  }
  void operator()(const PublishAnswerCommand& command) {
    v1::PublishAnswer* answer = out.mutable_publish_answer();
    Stamp(command, answer);
    answer->set_step(command.step);
    answer->set_rank(command.rank);
    answer->set_allowed(command.allowed);
    answer->set_reason(command.reason);
  }
};

std::optional<RankEventKind> KindOf(v1::RankEvent::Kind kind) {
  switch (kind) {
    case v1::RankEvent::KIND_READY:
      return RankEventKind::kReady;
    case v1::RankEvent::KIND_FINISHED:
      return RankEventKind::kFinished;
    case v1::RankEvent::KIND_FAILED:
      return RankEventKind::kFailed;
    case v1::RankEvent::KIND_DIED:
      return RankEventKind::kDied;
    case v1::RankEvent::KIND_HUNG:
      return RankEventKind::kHung;
    case v1::RankEvent::KIND_PEER_LOST:
      return RankEventKind::kPeerLost;
    case v1::RankEvent::KIND_NONFINITE:
      return RankEventKind::kNonFinite;
    default:
      return std::nullopt;
  }
}

StepReport StepFromProto(const v1::StepReport& in) {
  StepReport report{JobId(in.job_id()), Epoch(in.epoch()), in.rank(), {}, in.peak_memory_bytes(), in.lateness_seconds()};
  const v1::StepRecord& record = in.record();
  report.stats.step = record.step();
  report.stats.epoch = Epoch(in.epoch());
  report.stats.loss = record.loss();
  report.stats.grad_norm = record.grad_norm();
  report.stats.lr = record.lr();
  report.stats.step_seconds = record.step_seconds();
  report.stats.lateness_seconds = record.lateness_seconds();
  if (record.has_validation_loss()) report.stats.validation_loss = record.validation_loss();
  return report;
}

ProfileReport ProfileFromProto(const v1::ProfileResult& in) {
  ProfileReport report{JobId(in.job_id()), Epoch(in.epoch()), in.error(), {}, wire::FromProto(in.collectives())};
  for (const v1::ComputeProfile& profile : in.compute()) report.compute.push_back(wire::FromProto(profile));
  return report;
}

}  // namespace

v1::CoordinatorMessage ToProto(const WorkerCommand& command) {
  CommandToProto convert;
  std::visit(convert, command);
  return std::move(convert.out);
}

absl::StatusOr<NodeDescription> FromProto(const v1::Hello& hello) {
  NodeDescription node{NodeName(hello.node()), hello.version(), hello.incarnation(), hello.data_address(), {}};
  for (const v1::DeviceDescription& device : hello.devices()) {
    MOTLEY_ASSIGN_OR_RETURN(DeviceDescription description, wire::FromProto(device));
    node.devices.push_back(std::move(description));
  }
  return node;
}

std::optional<WorkerReport> FromProto(const v1::WorkerMessage& message) {
  switch (message.message_case()) {
    case v1::WorkerMessage::kHeartbeat:
      return HeartbeatReport{};
    case v1::WorkerMessage::kStorageCheckResult: {
      const auto& in = message.storage_check_result();
      return StorageReport{JobId(in.job_id()), Epoch(in.epoch()), in.error(), in.data_bytes(), in.data_digest(), in.token_seen()};
    }
    case v1::WorkerMessage::kProfileResult:
      return ProfileFromProto(message.profile_result());
    case v1::WorkerMessage::kRankEvent: {
      const auto& in = message.rank_event();
      const std::optional<RankEventKind> kind = KindOf(in.kind());
      if (!kind) return std::nullopt;
      return RankReport{JobId(in.job_id()), Epoch(in.epoch()), in.rank(), DeviceId(in.device_id()), *kind, in.message()};
    }
    case v1::WorkerMessage::kStepReport:
      return StepFromProto(message.step_report());
    case v1::WorkerMessage::kKvSet: {
      const auto& in = message.kv_set();
      return KvSetReport{JobId(in.job_id()), Epoch(in.epoch()), in.key(), in.value()};
    }
    case v1::WorkerMessage::kKvGet: {
      const auto& in = message.kv_get();
      return KvGetReport{JobId(in.job_id()), Epoch(in.epoch()), in.key(), in.rank()};
    }
    case v1::WorkerMessage::kPublishRequest: {
      const auto& in = message.publish_request();
      return PublishReport{JobId(in.job_id()), Epoch(in.epoch()), in.step(), in.rank()};
    }
    case v1::WorkerMessage::kCheckpointPublished: {
      const auto& in = message.checkpoint_published();
      return CheckpointReport{JobId(in.job_id()), Epoch(in.epoch()), in.step(), in.folder(), in.bytes(), in.seconds()};
    }
    case v1::WorkerMessage::kLog: {
      const auto& in = message.log();
      return LogReport{JobId(in.job_id()), in.source(), in.text(), in.unix_ms()};
    }
    default:
      return std::nullopt;
  }
}

}  // namespace motley::coordinator
