#include "common/wire/session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "common/wire/assignment.h"
#include "common/wire/device.h"
#include "common/wire/profile.h"

namespace motley::wire {
namespace {

// Job and epoch stand in every message about a job.
template <typename Message, typename Value>
Message* Stamp(const Value& value, Message* message) {
  message->set_job_id(value.job.value());
  message->set_epoch(value.epoch.value());
  return message;
}

struct CommandToProto {
  v1::CoordinatorMessage out;

  void operator()(const StorageCheckCommand& command) {
    v1::StorageCheck* check = Stamp(command, out.mutable_storage_check());
    check->set_data_path(command.data_path);
    check->set_checkpoint_folder(command.checkpoint_folder);
    check->set_token(command.token);
    check->set_write_token(command.write_token);
    check->set_check_id(command.check_id);
  }
  void operator()(const ReachCheckCommand& command) {
    v1::ReachCheck* check = out.mutable_reach_check();
    check->set_check_id(command.check_id);
    for (const ReachTarget& target : command.targets) {
      v1::ReachTarget* to = check->add_targets();
      to->set_node(target.node.value());
      to->set_address(target.address);
      to->set_port(target.port);
    }
  }
  void operator()(const ProfileCommand& command) {
    v1::ProfileRequest* request = Stamp(command, out.mutable_profile_request());
    for (const RankAssignment& rank : command.ranks) *request->add_ranks() = ToProto(rank);
    request->set_compute(!command.compute_devices.empty());
    for (const DeviceId& device : command.compute_devices) request->add_compute_device_ids(device.value());
    request->set_collectives(command.collectives);
    request->set_check_id(command.check_id);
  }
  void operator()(const StartCommand& command) {
    out.mutable_start_epoch();
    for (const RankAssignment& rank : command.ranks) *out.mutable_start_epoch()->add_ranks() = ToProto(rank);
  }
  void operator()(const StopCommand& command) {
    v1::StopEpoch* stop = Stamp(command, out.mutable_stop_epoch());
    stop->set_save(command.save);
    stop->set_reason(command.reason);
  }
  void operator()(const KvValueCommand& command) {
    v1::KvValue* value = Stamp(command, out.mutable_kv_value());
    value->set_key(command.key);
    value->set_value(command.value);
    value->set_rank(command.rank);
  }
  void operator()(const PublishAnswerCommand& command) {
    v1::PublishAnswer* answer = Stamp(command, out.mutable_publish_answer());
    answer->set_step(command.step);
    answer->set_rank(command.rank);
    answer->set_allowed(command.allowed);
    answer->set_reason(command.reason);
    answer->set_question(command.question);
  }
  void operator()(const HeartbeatAnswer& command) {
    *out.mutable_heartbeat_answer()->mutable_store_mark() = ToProto(command.store_mark);
  }
};

absl::StatusOr<std::vector<RankAssignment>> RanksFromProto(const google::protobuf::RepeatedPtrField<v1::RankAssignment>& in) {
  std::vector<RankAssignment> ranks;
  for (const v1::RankAssignment& rank : in) {
    MOTLEY_ASSIGN_OR_RETURN(RankAssignment assignment, FromProto(rank));
    ranks.push_back(std::move(assignment));
  }
  return ranks;
}

absl::StatusOr<ProfileCommand> ProfileFromProto(const v1::ProfileRequest& in) {
  ProfileCommand command{JobId(in.job_id()), Epoch(in.epoch()), {}, {}, in.collectives(), in.check_id()};
  MOTLEY_ASSIGN_OR_RETURN(command.ranks, RanksFromProto(in.ranks()));
  for (const std::string& device : in.compute_device_ids()) command.compute_devices.push_back(DeviceId(device));
  return command;
}

ReachCheckCommand ReachFromProto(const v1::ReachCheck& in) {
  ReachCheckCommand command{in.check_id(), {}};
  for (const v1::ReachTarget& target : in.targets()) {
    command.targets.push_back({NodeName(target.node()), target.address(), target.port()});
  }
  return command;
}

struct KindRow {
  RankEventKind plain;
  v1::RankEvent::Kind wire;
};
constexpr KindRow kKinds[] = {{RankEventKind::kReady, v1::RankEvent::KIND_READY},
                              {RankEventKind::kFinished, v1::RankEvent::KIND_FINISHED},
                              {RankEventKind::kFailed, v1::RankEvent::KIND_FAILED},
                              {RankEventKind::kDied, v1::RankEvent::KIND_DIED},
                              {RankEventKind::kHung, v1::RankEvent::KIND_HUNG},
                              {RankEventKind::kPeerLost, v1::RankEvent::KIND_PEER_LOST},
                              {RankEventKind::kNonFinite, v1::RankEvent::KIND_NONFINITE}};

struct FaultRow {
  Fault plain;
  v1::Fault wire;
};
constexpr FaultRow kFaults[] = {{Fault::kOurs, v1::FAULT_OURS},
                                {Fault::kPeer, v1::FAULT_PEER},
                                {Fault::kStorage, v1::FAULT_STORAGE},
                                {Fault::kDamage, v1::FAULT_DAMAGE}};

struct ReportToProto {
  v1::WorkerMessage out;

  void operator()(const HeartbeatReport&) { out.mutable_heartbeat(); }
  void operator()(const StorageReport& report) {
    v1::StorageCheckResult* result = Stamp(report, out.mutable_storage_check_result());
    result->set_error(report.error);
    result->set_data_bytes(report.data_bytes);
    result->set_data_digest(report.data_digest);
    result->set_token_seen(report.token_seen);
    result->set_check_id(report.check_id);
  }
  void operator()(const ReachReport& report) {
    v1::ReachResult* result = out.mutable_reach_result();
    result->set_check_id(report.check_id);
    for (const ReachAnswer& answer : report.answers) {
      v1::ReachAnswer* to = result->add_answers();
      to->set_node(answer.node.value());
      to->set_error(answer.error);
    }
  }
  void operator()(const ProfileReport& report) {
    v1::ProfileResult* result = Stamp(report, out.mutable_profile_result());
    result->set_error(report.error);
    for (const ComputeProfile& profile : report.compute) *result->add_compute() = ToProto(profile);
    if (!report.collectives.points.empty()) *result->mutable_collectives() = ToProto(report.collectives);
    result->set_check_id(report.check_id);
  }
  void operator()(const RankReport& report) {
    v1::RankEvent* event = Stamp(report, out.mutable_rank_event());
    event->set_rank(report.rank);
    event->set_device_id(report.device.value());
    event->set_message(report.message);
    for (const KindRow& row : kKinds) {
      if (row.plain == report.kind) event->set_kind(row.wire);
    }
    for (const FaultRow& row : kFaults) {
      if (row.plain == report.fault) event->set_fault(row.wire);
    }
    event->set_damaged_checkpoint(report.damaged_checkpoint);
  }
  void operator()(const StepReport& report) {
    v1::StepReport* to = Stamp(report, out.mutable_step_report());
    to->set_rank(report.rank);
    to->set_busy_seconds(report.busy_seconds);
    to->set_collective_seconds(report.collective_seconds);
    to->set_peak_memory_bytes(report.peak_memory_bytes);
    to->set_lateness_seconds(report.lateness_seconds);
    v1::StepRecord* record = to->mutable_record();
    record->set_step(report.stats.step);
    record->set_epoch(report.epoch.value());
    record->set_loss(report.stats.loss);
    record->set_grad_norm(report.stats.grad_norm);
    record->set_lr(report.stats.lr);
    record->set_step_seconds(report.stats.step_seconds);
    record->set_has_validation_loss(report.stats.validation_loss.has_value());
    record->set_validation_loss(report.stats.validation_loss.value_or(0));
    record->set_peak_memory_bytes(report.peak_memory_bytes);
    record->set_lateness_seconds(report.stats.lateness_seconds);
  }
  void operator()(const KvSetReport& report) {
    v1::KvSet* set = Stamp(report, out.mutable_kv_set());
    set->set_key(report.key);
    set->set_value(report.value);
  }
  void operator()(const KvGetReport& report) {
    v1::KvGet* get = Stamp(report, out.mutable_kv_get());
    get->set_key(report.key);
    get->set_rank(report.rank);
  }
  void operator()(const PublishReport& report) {
    v1::PublishRequest* request = Stamp(report, out.mutable_publish_request());
    request->set_step(report.step);
    request->set_rank(report.rank);
    request->set_question(report.question);
    request->set_purpose(report.purpose);
  }
  void operator()(const CheckpointReport& report) {
    v1::CheckpointPublished* published = Stamp(report, out.mutable_checkpoint_published());
    published->set_step(report.step);
    published->set_folder(report.folder);
    published->set_bytes(report.bytes);
    published->set_seconds(report.seconds);
  }
  void operator()(const CheckpointFailedReport& report) {
    v1::CheckpointFailed* failed = Stamp(report, out.mutable_checkpoint_failed());
    failed->set_step(report.step);
    failed->set_message(report.message);
  }
  void operator()(const LogReport& report) {
    v1::LogChunk* log = Stamp(report, out.mutable_log());
    log->set_source(report.source);
    log->set_text(report.text);
    log->set_unix_ms(report.unix_ms);
  }
  void operator()(const LeavingReport& report) { out.mutable_leaving()->set_stop_seconds(report.stop_seconds); }
};

std::optional<WorkerReport> RankFromProto(const v1::RankEvent& in) {
  for (const KindRow& row : kKinds) {
    if (row.wire != in.kind()) continue;
    RankReport report{JobId(in.job_id()), Epoch(in.epoch()), in.rank(), DeviceId(in.device_id()), row.plain, in.message()};
    for (const FaultRow& fault : kFaults) {
      if (fault.wire == in.fault()) report.fault = fault.plain;
    }
    report.damaged_checkpoint = in.damaged_checkpoint();
    return report;
  }
  return std::nullopt;
}

StepReport StepFromProto(const v1::StepReport& in) {
  StepReport report{JobId(in.job_id()), Epoch(in.epoch()),     in.rank(),         {}, in.peak_memory_bytes(),
                    in.lateness_seconds(), in.busy_seconds(), in.collective_seconds()};
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
  ProfileReport report{JobId(in.job_id()), Epoch(in.epoch()), in.error(), {}, FromProto(in.collectives()), in.check_id()};
  for (const v1::ComputeProfile& profile : in.compute()) report.compute.push_back(FromProto(profile));
  return report;
}

ReachReport ReachFromProto(const v1::ReachResult& in) {
  ReachReport report{in.check_id(), {}};
  for (const v1::ReachAnswer& answer : in.answers()) report.answers.push_back({NodeName(answer.node()), answer.error()});
  return report;
}

}  // namespace

v1::StoreMark ToProto(const StoreMark& mark) {
  v1::StoreMark out;
  out.set_store_id(mark.store_id);
  out.set_commits(mark.commits);
  return out;
}
StoreMark FromProto(const v1::StoreMark& mark) { return {mark.store_id(), mark.commits()}; }

v1::Hello ToProto(const NodeDescription& node) {
  v1::Hello hello;
  hello.set_node(node.name.value());
  hello.set_version(node.version);
  hello.set_incarnation(node.incarnation);
  hello.set_data_address(node.data_address);
  for (const DeviceDescription& device : node.devices) *hello.add_devices() = ToProto(device);
  for (const auto& [job, epoch] : node.newest_epochs) {
    v1::JobEpoch* newest = hello.add_newest_epochs();
    newest->set_job_id(job.value());
    newest->set_epoch(epoch.value());
  }
  *hello.mutable_store_mark() = ToProto(node.store_mark);
  hello.set_reach_port(node.reach_port);
  return hello;
}

absl::StatusOr<NodeDescription> FromProto(const v1::Hello& hello) {
  NodeDescription node{NodeName(hello.node()), hello.version(), hello.incarnation(), hello.data_address(), {}, {}, {}, 0};
  for (const v1::DeviceDescription& device : hello.devices()) {
    MOTLEY_ASSIGN_OR_RETURN(DeviceDescription description, FromProto(device));
    node.devices.push_back(std::move(description));
  }
  for (const v1::JobEpoch& newest : hello.newest_epochs()) {
    node.newest_epochs.emplace_back(JobId(newest.job_id()), Epoch(newest.epoch()));
  }
  node.store_mark = FromProto(hello.store_mark());
  node.reach_port = hello.reach_port();
  return node;
}

v1::CoordinatorMessage ToProto(const CoordinatorCommand& command) {
  CommandToProto convert;
  std::visit(convert, command);
  return std::move(convert.out);
}

absl::StatusOr<std::optional<CoordinatorCommand>> FromProto(const v1::CoordinatorMessage& message) {
  switch (message.message_case()) {
    case v1::CoordinatorMessage::kStorageCheck: {
      const auto& in = message.storage_check();
      return StorageCheckCommand{JobId(in.job_id()),     Epoch(in.epoch()), in.data_path(),   in.checkpoint_folder(),
                                 in.token(), in.write_token(),  in.check_id()};
    }
    case v1::CoordinatorMessage::kReachCheck:
      return ReachFromProto(message.reach_check());
    case v1::CoordinatorMessage::kProfileRequest: {
      MOTLEY_ASSIGN_OR_RETURN(ProfileCommand command, ProfileFromProto(message.profile_request()));
      return command;
    }
    case v1::CoordinatorMessage::kStartEpoch: {
      StartCommand command;
      MOTLEY_ASSIGN_OR_RETURN(command.ranks, RanksFromProto(message.start_epoch().ranks()));
      return command;
    }
    case v1::CoordinatorMessage::kStopEpoch: {
      const auto& in = message.stop_epoch();
      return StopCommand{JobId(in.job_id()), Epoch(in.epoch()), in.save(), in.reason()};
    }
    case v1::CoordinatorMessage::kKvValue: {
      const auto& in = message.kv_value();
      return KvValueCommand{JobId(in.job_id()), Epoch(in.epoch()), in.key(), in.value(), in.rank()};
    }
    case v1::CoordinatorMessage::kPublishAnswer: {
      const auto& in = message.publish_answer();
      return PublishAnswerCommand{JobId(in.job_id()), Epoch(in.epoch()), in.step(),    in.rank(),
                                  in.allowed(),       in.reason(),       in.question()};
    }
    case v1::CoordinatorMessage::kHeartbeatAnswer:
      return HeartbeatAnswer{FromProto(message.heartbeat_answer().store_mark())};
    default:
      return std::optional<CoordinatorCommand>();
  }
}

std::vector<WorkerReport> Refusals(const v1::CoordinatorMessage& message, const absl::Status& why) {
  const std::string text = absl::StrCat("the assignment cannot be read: ", why.message());
  std::vector<WorkerReport> reports;
  if (message.has_profile_request()) {
    const v1::ProfileRequest& in = message.profile_request();
    reports.push_back(ProfileReport{JobId(in.job_id()), Epoch(in.epoch()), text, {}, {}, in.check_id()});
  }
  for (const v1::RankAssignment& rank : message.start_epoch().ranks()) {
    reports.push_back(RankReport{JobId(rank.job_id()), Epoch(rank.epoch()), rank.rank(), DeviceId(rank.device().id()),
                                 RankEventKind::kFailed, text, Fault::kOurs, ""});
  }
  return reports;
}

v1::WorkerMessage ToProto(const WorkerReport& report) {
  ReportToProto convert;
  std::visit(convert, report);
  return std::move(convert.out);
}

std::optional<WorkerReport> FromProto(const v1::WorkerMessage& message) {
  switch (message.message_case()) {
    case v1::WorkerMessage::kHeartbeat:
      return HeartbeatReport{};
    case v1::WorkerMessage::kStorageCheckResult: {
      const auto& in = message.storage_check_result();
      return StorageReport{JobId(in.job_id()), Epoch(in.epoch()), in.error(),    in.data_bytes(),
                           in.data_digest(),   in.token_seen(),   in.check_id()};
    }
    case v1::WorkerMessage::kReachResult:
      return ReachFromProto(message.reach_result());
    case v1::WorkerMessage::kProfileResult:
      return ProfileFromProto(message.profile_result());
    case v1::WorkerMessage::kRankEvent:
      return RankFromProto(message.rank_event());
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
      return PublishReport{JobId(in.job_id()), Epoch(in.epoch()), in.step(), in.rank(), in.question(), in.purpose()};
    }
    case v1::WorkerMessage::kCheckpointPublished: {
      const auto& in = message.checkpoint_published();
      return CheckpointReport{JobId(in.job_id()), Epoch(in.epoch()), in.step(), in.folder(), in.bytes(), in.seconds()};
    }
    case v1::WorkerMessage::kCheckpointFailed: {
      const auto& in = message.checkpoint_failed();
      return CheckpointFailedReport{JobId(in.job_id()), Epoch(in.epoch()), in.step(), in.message()};
    }
    case v1::WorkerMessage::kLog: {
      const auto& in = message.log();
      return LogReport{JobId(in.job_id()), Epoch(in.epoch()), in.source(), in.text(), in.unix_ms()};
    }
    case v1::WorkerMessage::kLeaving:
      return LeavingReport{message.leaving().stop_seconds()};
    default:
      return std::nullopt;
  }
}

}  // namespace motley::wire
