// What the coordinator says to a worker.
#include <tuple>

#include "common/wire/assignment.h"
#include "common/wire/both_ways.h"
#include "common/wire/files.h"
#include "common/wire/session.h"

namespace motley::wire {
namespace {

// Beside the lists below.
using wire::FromProto;
using wire::ToProto;

WIRE_MESSAGE(v1::StorageCheck, StorageCheckCommand) {
  WIRE_STAMP();
  WIRE_FIELD(data_path, plain.data_path);
  WIRE_FIELD(checkpoint_folder, plain.checkpoint_folder);
  WIRE_FIELD(token, plain.token);
  WIRE_FIELD(write_token, plain.write_token);
  WIRE_FIELD(check_id, plain.check_id);
  WIRE_FIELD(initial, plain.initial);
  WIRE_FIELD(over, plain.over);
  WIRE_FIELD(verify_checkpoint, plain.verify_checkpoint);
  WIRE_FIELD(job_uid, plain.job_uid);
  WIRE_FIELD(validation_path, plain.validation_path);
  if constexpr (Way::kWrites) {
    if (plain.sample) *proto.mutable_sample() = ToProto(*plain.sample);
  } else {
    if (proto.has_sample()) plain.sample = FromProto(proto.sample());
  }
}

WIRE_MESSAGE(v1::ReachTarget, ReachTarget) {
  WIRE_FIELD(node, plain.node);
  WIRE_FIELD(address, plain.address);
  WIRE_FIELD(port, plain.port);
}

WIRE_MESSAGE(v1::ReachCheck, ReachCheckCommand) {
  WIRE_FIELD(check_id, plain.check_id);
  WIRE_PARTS(targets, plain.targets);
  WIRE_FIELD(secret, plain.secret);
  WIRE_FIELD(burst, plain.burst);
  WIRE_FIELD(large_packets, plain.large);
}

WIRE_CHECKED_MESSAGE(v1::ProfileRequest, ProfileCommand) {
  WIRE_STAMP();
  WIRE_PARTS(ranks, plain.ranks);
  if constexpr (Way::kWrites) proto.set_compute(!plain.compute_devices.empty());
  WIRE_LIST(compute_device_ids, plain.compute_devices);
  WIRE_FIELD(collectives, plain.collectives);
  WIRE_FIELD(check_id, plain.check_id);
  WIRE_FIELD(token, plain.token);
  WIRE_FIELD(trial, plain.trial);
}

WIRE_CHECKED_MESSAGE(v1::StartEpoch, StartCommand) {
  WIRE_FIELD(token, plain.token);
  WIRE_PARTS(ranks, plain.ranks);
  if (!Way::kWrites || !plain.source.name.empty()) WIRE_PART(source, plain.source);
}

WIRE_MESSAGE(v1::StopEpoch, StopCommand) {
  WIRE_STAMP();
  WIRE_FIELD(save, plain.save);
  WIRE_FIELD(reason, plain.reason);
  WIRE_FIELD(token, plain.token);
}

WIRE_MESSAGE(v1::KvValue, KvValueCommand) {
  WIRE_STAMP();
  WIRE_FIELD(key, plain.key);
  WIRE_FIELD(value, plain.value);
  WIRE_FIELD(rank, plain.rank);
}

WIRE_MESSAGE(v1::PublishAnswer, PublishAnswerCommand) {
  WIRE_STAMP();
  WIRE_FIELD(step, plain.step);
  WIRE_FIELD(rank, plain.rank);
  WIRE_FIELD(allowed, plain.allowed);
  WIRE_FIELD(reason, plain.reason);
  WIRE_FIELD(question, plain.question);
  WIRE_FIELD(mark, plain.mark);
}

WIRE_MESSAGE(v1::TraceRequest, TraceCommand) {
  WIRE_STAMP();
  WIRE_FIELD(rank, plain.rank);
  WIRE_FIELD(step, plain.step);
}

WIRE_MESSAGE(v1::HeartbeatAnswer, HeartbeatAnswer) {
  WIRE_PART(store_mark, plain.store_mark);
  WIRE_FIELD(knows_leaving, plain.knows_leaving);
  WIRE_FIELD(awaits_files, plain.awaits_files);
}

WIRE_MESSAGE(v1::Authorities, AuthoritiesCommand) { WIRE_FIELD(authorities, plain.authorities); }

WIRE_MESSAGE(v1::Renewal, CertificateCommand) {
  WIRE_FIELD(certificate, plain.certificate);
  WIRE_FIELD(error, plain.error);
}

constexpr std::tuple kCommands = {
    WIRE_KIND(v1::CoordinatorMessage, storage_check, StorageCheckCommand),
    WIRE_KIND(v1::CoordinatorMessage, reach_check, ReachCheckCommand),
    WIRE_KIND(v1::CoordinatorMessage, profile_request, ProfileCommand),
    WIRE_KIND(v1::CoordinatorMessage, start_epoch, StartCommand),
    WIRE_KIND(v1::CoordinatorMessage, stop_epoch, StopCommand),
    WIRE_KIND(v1::CoordinatorMessage, kv_value, KvValueCommand),
    WIRE_KIND(v1::CoordinatorMessage, publish_answer, PublishAnswerCommand),
    WIRE_KIND(v1::CoordinatorMessage, heartbeat_answer, HeartbeatAnswer),
    WIRE_KIND(v1::CoordinatorMessage, trace_request, TraceCommand),
    WIRE_KIND(v1::CoordinatorMessage, authorities, AuthoritiesCommand),
    WIRE_KIND(v1::CoordinatorMessage, renewal, CertificateCommand),
    WIRE_KIND(v1::CoordinatorMessage, holdings_request, HoldingsCommand),
    WIRE_KIND(v1::CoordinatorMessage, copy_request, CopyCommand),
    WIRE_KIND(v1::CoordinatorMessage, drop_request, DropCommand),
    WIRE_KIND(v1::CoordinatorMessage, carry_request, CarryCommand),
};

}  // namespace

v1::CoordinatorMessage ToProto(const CoordinatorCommand& command) { return WriteKind(kCommands, command); }

absl::StatusOr<std::optional<CoordinatorCommand>> FromProto(const v1::CoordinatorMessage& message) {
  return ReadKind(kCommands, message);
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
