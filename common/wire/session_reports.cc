// What a worker says to the coordinator.
#include <algorithm>
#include <utility>

#include "common/wire/data_summary.h"
#include "common/wire/profile.h"
#include "common/wire/session.h"
#include "common/wire/session_stamp.h"
#include "common/wire/step_spans.h"
#include "common/wire/transport.h"

namespace motley::wire {
namespace {

struct KindRow {
  RankEventKind plain;
  v1::RankEvent::Kind wire;
};
constexpr KindRow kKinds[] = {
    {RankEventKind::kReady, v1::RankEvent::KIND_READY},        {RankEventKind::kFinished, v1::RankEvent::KIND_FINISHED},
    {RankEventKind::kFailed, v1::RankEvent::KIND_FAILED},      {RankEventKind::kDied, v1::RankEvent::KIND_DIED},
    {RankEventKind::kHung, v1::RankEvent::KIND_HUNG},          {RankEventKind::kPeerLost, v1::RankEvent::KIND_PEER_LOST},
    {RankEventKind::kNonFinite, v1::RankEvent::KIND_NONFINITE}};

struct FaultRow {
  Fault plain;
  v1::Fault wire;
};
constexpr FaultRow kFaults[] = {{Fault::kOurs, v1::FAULT_OURS},
                                {Fault::kPeer, v1::FAULT_PEER},
                                {Fault::kStorage, v1::FAULT_STORAGE},
                                {Fault::kDamage, v1::FAULT_DAMAGE},
                                {Fault::kNode, v1::FAULT_NODE}};

v1::Fault WireFault(Fault fault) {
  for (const FaultRow& row : kFaults) {
    if (row.plain == fault) return row.wire;
  }
  return v1::FAULT_UNSPECIFIED;
}
Fault PlainFault(v1::Fault fault) {
  for (const FaultRow& row : kFaults) {
    if (row.wire == fault) return row.plain;
  }
  return Fault::kOurs;
}

struct ReportToProto {
  v1::WorkerMessage out;

  void operator()(const HeartbeatReport& report) {
    out.mutable_heartbeat()->set_unix_ms(report.unix_ms);
    out.mutable_heartbeat()->set_doing(report.doing);
  }
  void operator()(const StorageReport& report) {
    v1::StorageCheckResult* result = Stamp(report, out.mutable_storage_check_result());
    result->set_error(report.error);
    result->set_data_bytes(report.data.bytes);
    result->set_data_digest(report.data.digest);
    *result->mutable_data() = ToProto(report.data);
    if (!report.validation.digest.empty()) *result->mutable_validation() = ToProto(report.validation);
    result->set_initial_digest(report.initial_digest);
    result->set_initial_tokenizer(report.initial_tokenizer);
    result->set_token_seen(report.token_seen);
    result->set_check_id(report.check_id);
    result->set_error_code(static_cast<int>(report.error_code));
  }
  void operator()(const ReachReport& report) {
    v1::ReachResult* result = out.mutable_reach_result();
    result->set_check_id(report.check_id);
    for (const ReachAnswer& answer : report.answers) {
      v1::ReachAnswer* to = result->add_answers();
      to->set_node(answer.node.value());
      to->set_error(answer.error);
      to->set_connect_seconds(answer.connect_seconds);
      to->set_other_card(answer.other_card);
      to->set_bytes_per_second(answer.bytes_per_second);
    }
  }
  void operator()(const ProfileReport& report) {
    v1::ProfileResult* result = Stamp(report, out.mutable_profile_result());
    result->set_error(report.error);
    for (const ComputeProfile& profile : report.compute) *result->add_compute() = ToProto(profile);
    if (!report.collectives.points.empty()) *result->mutable_collectives() = ToProto(report.collectives);
    result->set_check_id(report.check_id);
    result->set_fault(WireFault(report.fault));
  }
  void operator()(const RankReport& report) {
    v1::RankEvent* event = Stamp(report, out.mutable_rank_event());
    event->set_rank(report.rank);
    event->set_device_id(report.device.value());
    event->set_message(report.message);
    for (const KindRow& row : kKinds) {
      if (row.plain == report.kind) event->set_kind(row.wire);
    }
    event->set_fault(WireFault(report.fault));
    event->set_damaged_checkpoint(report.damaged_checkpoint);
    for (const TransportUse& use : report.transports) *event->add_transports() = ToProto(use);
    event->set_context_bytes(report.context_bytes);
  }
  void operator()(const StepReport& report) {
    v1::StepReport* to = Stamp(report, out.mutable_step_report());
    to->set_rank(report.rank);
    *to->mutable_lanes() = ToProto(report.lanes);
    to->set_peak_memory_bytes(report.peak_memory_bytes);
    to->set_host_memory_bytes(report.host_memory_bytes);
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
    if (report.stats.validation_bits_per_byte) record->set_validation_bits_per_byte(*report.stats.validation_bits_per_byte);
    record->set_peak_memory_bytes(report.peak_memory_bytes);
    record->set_lateness_seconds(report.stats.lateness_seconds);
    record->set_loss_scale(report.stats.loss_scale);
    record->set_skipped(report.stats.skipped);
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
    published->set_free_bytes(report.free_bytes);
    published->set_job_uid(report.job_uid.value());
  }
  void operator()(const CheckpointFailedReport& report) {
    v1::CheckpointFailed* failed = Stamp(report, out.mutable_checkpoint_failed());
    failed->set_step(report.step);
    failed->set_message(report.message);
    failed->set_blamed_device_id(report.blamed.value());
  }
  void operator()(const LogReport& report) {
    v1::LogChunk* log = Stamp(report, out.mutable_log());
    log->set_source(report.source);
    log->set_text(report.text);
    log->set_unix_ms(report.unix_ms);
  }
  void operator()(const TraceReport& report) { *out.mutable_trace_result() = ToProto(report); }
  void operator()(const LeavingReport& report) { out.mutable_leaving()->set_stop_seconds(report.stop_seconds); }
  void operator()(const CardReport& report) {
    v1::CardState* card = out.mutable_card_state();
    card->set_device_id(report.device.value());
    card->set_health(report.health);
    card->set_lost(report.lost);
    card->set_used_by_others_bytes(report.used_by_others_bytes);
  }
  void operator()(const RenewalReport& report) {
    out.mutable_renewal_request()->set_signing_request(report.signing_request);
    out.mutable_renewal_request()->set_stored(report.stored);
  }
};

std::optional<WorkerReport> RankFromProto(const v1::RankEvent& in) {
  for (const KindRow& row : kKinds) {
    if (row.wire != in.kind()) continue;
    RankReport report{JobId(in.job_id()), Epoch(in.epoch()), in.rank(), DeviceId(in.device_id()), row.plain, in.message()};
    report.fault = PlainFault(in.fault());
    report.damaged_checkpoint = in.damaged_checkpoint();
    report.transports = FromProto(in.transports());
    report.context_bytes = in.context_bytes();
    return report;
  }
  return std::nullopt;
}

StepReport StepFromProto(const v1::StepReport& in) {
  StepReport report{JobId(in.job_id()),    Epoch(in.epoch()),     in.rank(), {}, in.peak_memory_bytes(), in.lateness_seconds(),
                    FromProto(in.lanes()), in.host_memory_bytes()};
  const v1::StepRecord& record = in.record();
  report.stats.step = record.step();
  report.stats.epoch = Epoch(in.epoch());
  report.stats.loss = record.loss();
  report.stats.grad_norm = record.grad_norm();
  report.stats.lr = record.lr();
  report.stats.step_seconds = record.step_seconds();
  report.stats.lateness_seconds = record.lateness_seconds();
  report.stats.loss_scale = record.loss_scale();
  report.stats.skipped = record.skipped();
  if (record.has_validation_loss()) report.stats.validation_loss = record.validation_loss();
  if (record.has_validation_bits_per_byte()) report.stats.validation_bits_per_byte = record.validation_bits_per_byte();
  return report;
}

ProfileReport ProfileFromProto(const v1::ProfileResult& in) {
  ProfileReport report{JobId(in.job_id()), Epoch(in.epoch()), in.error(), {}, FromProto(in.collectives()), in.check_id()};
  for (const v1::ComputeProfile& profile : in.compute()) report.compute.push_back(FromProto(profile));
  report.fault = PlainFault(in.fault());
  return report;
}

ReachReport ReachFromProto(const v1::ReachResult& in) {
  ReachReport report{in.check_id(), {}};
  for (const v1::ReachAnswer& answer : in.answers()) {
    report.answers.push_back(
        {NodeName(answer.node()), answer.error(), answer.connect_seconds(), answer.bytes_per_second(), answer.other_card()});
  }
  return report;
}

}  // namespace

v1::WorkerMessage ToProto(const WorkerReport& report) {
  ReportToProto convert;
  std::visit(convert, report);
  return std::move(convert.out);
}

std::optional<WorkerReport> FromProto(const v1::WorkerMessage& message) {
  switch (message.message_case()) {
    case v1::WorkerMessage::kHeartbeat:
      return HeartbeatReport{message.heartbeat().unix_ms(), message.heartbeat().doing()};
    case v1::WorkerMessage::kStorageCheckResult: {
      const auto& in = message.storage_check_result();
      // A worker of before DataSummary reads text alone.
      const DataSummary data = in.has_data() ? FromProto(in.data()) : TextSummary(in.data_bytes(), in.data_digest());
      return StorageReport{JobId(in.job_id()),
                           Epoch(in.epoch()),
                           in.error(),
                           data,
                           in.token_seen(),
                           in.check_id(),
                           absl::StatusCode(in.error_code()),
                           FromProto(in.validation()),
                           in.initial_digest(),
                           in.initial_tokenizer()};
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
      return CheckpointReport{JobId(in.job_id()),
                              Epoch(in.epoch()),
                              in.step(),
                              in.folder(),
                              in.bytes(),
                              in.seconds(),
                              std::max<int64_t>(in.free_bytes(), 0),
                              JobUid(in.job_uid())};
    }
    case v1::WorkerMessage::kCheckpointFailed: {
      const auto& in = message.checkpoint_failed();
      return CheckpointFailedReport{JobId(in.job_id()), Epoch(in.epoch()), in.step(), in.message(),
                                    DeviceId(in.blamed_device_id())};
    }
    case v1::WorkerMessage::kLog: {
      const auto& in = message.log();
      return LogReport{JobId(in.job_id()), Epoch(in.epoch()), in.source(), in.text(), in.unix_ms()};
    }
    case v1::WorkerMessage::kTraceResult:
      return FromProto(message.trace_result());
    case v1::WorkerMessage::kLeaving:
      return LeavingReport{message.leaving().stop_seconds()};
    case v1::WorkerMessage::kCardState: {
      const auto& in = message.card_state();
      return CardReport{DeviceId(in.device_id()), in.health(), in.lost(), std::max<int64_t>(in.used_by_others_bytes(), 0)};
    }
    case v1::WorkerMessage::kRenewalRequest:
      return RenewalReport{message.renewal_request().signing_request(), message.renewal_request().stored()};
    default:
      return std::nullopt;
  }
}

}  // namespace motley::wire
