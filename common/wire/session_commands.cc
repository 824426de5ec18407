// What the coordinator says to a worker.
#include <utility>

#include "common/base/status_macros.h"
#include "common/wire/assignment.h"
#include "common/wire/session.h"
#include "common/wire/session_stamp.h"

namespace motley::wire {
namespace {

struct CommandToProto {
  v1::CoordinatorMessage out;

  void operator()(const StorageCheckCommand& command) {
    v1::StorageCheck* check = Stamp(command, out.mutable_storage_check());
    check->set_data_path(command.data_path);
    check->set_checkpoint_folder(command.checkpoint_folder);
    check->set_token(command.token);
    check->set_write_token(command.write_token);
    check->set_check_id(command.check_id);
    check->set_initial(command.initial);
    check->set_over(command.over);
    check->set_verify_checkpoint(command.verify_checkpoint);
    check->set_job_uid(command.job_uid.value());
    check->set_validation_path(command.validation_path);
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
    check->set_secret(command.secret);
    check->set_burst(command.burst);
    check->set_large_packets(command.large);
  }
  void operator()(const ProfileCommand& command) {
    v1::ProfileRequest* request = Stamp(command, out.mutable_profile_request());
    for (const RankAssignment& rank : command.ranks) *request->add_ranks() = ToProto(rank);
    request->set_compute(!command.compute_devices.empty());
    for (const DeviceId& device : command.compute_devices) request->add_compute_device_ids(device.value());
    request->set_collectives(command.collectives);
    request->set_check_id(command.check_id);
    request->set_token(command.token);
  }
  void operator()(const StartCommand& command) {
    out.mutable_start_epoch()->set_token(command.token);
    for (const RankAssignment& rank : command.ranks) *out.mutable_start_epoch()->add_ranks() = ToProto(rank);
  }
  void operator()(const StopCommand& command) {
    v1::StopEpoch* stop = Stamp(command, out.mutable_stop_epoch());
    stop->set_save(command.save);
    stop->set_reason(command.reason);
    stop->set_token(command.token);
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
  void operator()(const TraceCommand& command) {
    v1::TraceRequest* request = Stamp(command, out.mutable_trace_request());
    request->set_rank(command.rank);
    request->set_step(command.step);
  }
  void operator()(const HeartbeatAnswer& command) {
    *out.mutable_heartbeat_answer()->mutable_store_mark() = ToProto(command.store_mark);
  }
  void operator()(const AuthoritiesCommand& command) { out.mutable_authorities()->set_authorities(command.authorities); }
  void operator()(const CertificateCommand& command) {
    out.mutable_renewal()->set_certificate(command.certificate);
    out.mutable_renewal()->set_error(command.error);
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
  ProfileCommand command{JobId(in.job_id()), Epoch(in.epoch()), {}, {}, in.collectives(), in.check_id(), in.token()};
  MOTLEY_ASSIGN_OR_RETURN(command.ranks, RanksFromProto(in.ranks()));
  for (const std::string& device : in.compute_device_ids()) command.compute_devices.push_back(DeviceId(device));
  return command;
}

ReachCheckCommand ReachFromProto(const v1::ReachCheck& in) {
  ReachCheckCommand command{in.check_id(), {}, in.secret(), in.burst(), in.large_packets()};
  for (const v1::ReachTarget& target : in.targets()) {
    command.targets.push_back({NodeName(target.node()), target.address(), target.port()});
  }
  return command;
}

}  // namespace

v1::CoordinatorMessage ToProto(const CoordinatorCommand& command) {
  CommandToProto convert;
  std::visit(convert, command);
  return std::move(convert.out);
}

absl::StatusOr<std::optional<CoordinatorCommand>> FromProto(const v1::CoordinatorMessage& message) {
  switch (message.message_case()) {
    case v1::CoordinatorMessage::kStorageCheck: {
      const auto& in = message.storage_check();
      return StorageCheckCommand{JobId(in.job_id()), Epoch(in.epoch()),      in.data_path(),       in.checkpoint_folder(),
                                 in.token(),         in.write_token(),       in.check_id(),        in.initial(),
                                 in.over(),          in.verify_checkpoint(), JobUid(in.job_uid()), in.validation_path()};
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
      command.token = message.start_epoch().token();
      return command;
    }
    case v1::CoordinatorMessage::kStopEpoch: {
      const auto& in = message.stop_epoch();
      return StopCommand{JobId(in.job_id()), Epoch(in.epoch()), in.save(), in.reason(), in.token()};
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
    case v1::CoordinatorMessage::kTraceRequest: {
      const auto& in = message.trace_request();
      return TraceCommand{JobId(in.job_id()), Epoch(in.epoch()), in.rank(), in.step()};
    }
    case v1::CoordinatorMessage::kAuthorities:
      return AuthoritiesCommand{message.authorities().authorities()};
    case v1::CoordinatorMessage::kRenewal:
      return CertificateCommand{message.renewal().certificate(), message.renewal().error()};
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

}  // namespace motley::wire
