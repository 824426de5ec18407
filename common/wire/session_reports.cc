// What a worker says to the coordinator.
#include <tuple>

#include "common/wire/both_ways.h"
#include "common/wire/files.h"
#include "common/wire/profile.h"
#include "common/wire/session.h"
#include "common/wire/step_spans.h"
#include "common/wire/transport.h"

namespace motley::wire {
namespace {

// Beside the lists below.
using wire::FromProto;
using wire::ToProto;

constexpr EnumRow<RankEventKind, v1::RankEvent::Kind> kKinds[] = {
    {RankEventKind::kReady, v1::RankEvent::KIND_READY},        {RankEventKind::kFinished, v1::RankEvent::KIND_FINISHED},
    {RankEventKind::kFailed, v1::RankEvent::KIND_FAILED},      {RankEventKind::kDied, v1::RankEvent::KIND_DIED},
    {RankEventKind::kHung, v1::RankEvent::KIND_HUNG},          {RankEventKind::kPeerLost, v1::RankEvent::KIND_PEER_LOST},
    {RankEventKind::kNonFinite, v1::RankEvent::KIND_NONFINITE}};

constexpr EnumRow<Fault, v1::Fault> kFaults[] = {{Fault::kOurs, v1::FAULT_OURS},       {Fault::kPeer, v1::FAULT_PEER},
                                                 {Fault::kStorage, v1::FAULT_STORAGE}, {Fault::kDamage, v1::FAULT_DAMAGE},
                                                 {Fault::kNode, v1::FAULT_NODE},       {Fault::kMemory, v1::FAULT_MEMORY}};

v1::Fault WireFault(Fault fault) { return WireOf(kFaults, fault).value_or(v1::FAULT_UNSPECIFIED); }
Fault PlainFault(v1::Fault fault) { return PlainOf(kFaults, fault).value_or(Fault::kOurs); }

WIRE_MESSAGE(v1::Heartbeat, HeartbeatReport) {
  WIRE_FIELD(unix_ms, plain.unix_ms);
  WIRE_FIELD(doing, plain.doing);
}

WIRE_MESSAGE(v1::DataSummary, DataSummary) {
  WIRE_FIELD(bytes, plain.bytes);
  WIRE_FIELD(digest, plain.digest);
  if constexpr (Way::kWrites) {
    proto.set_kind(static_cast<v1::DataSummary::Kind>(plain.kind));
  } else if (v1::DataSummary::Kind_IsValid(proto.kind())) {
    plain.kind = static_cast<DataKind>(proto.kind());
  }
  WIRE_FIELD(tokens, plain.tokens);
  WIRE_FIELD(rows, plain.rows);
  WIRE_FIELD(row_tokens, plain.row_tokens);
  WIRE_FIELD(greatest_token, plain.greatest_token);
  WIRE_FIELD(trained_tokens, plain.trained_tokens);
  WIRE_FIELD(source_bytes, plain.source_bytes);
  WIRE_FIELD(tokenizer, plain.tokenizer);
}

WIRE_MESSAGE(v1::StorageCheckResult, StorageReport) {
  WIRE_STAMP();
  WIRE_FIELD(error, plain.error);
  WIRE_FIELD(data_bytes, plain.data.bytes);
  WIRE_FIELD(data_digest, plain.data.digest);
  WIRE_PART(data, plain.data);
  if constexpr (!Way::kWrites) {
    // A worker of before DataSummary reads text alone.
    if (!proto.has_data()) plain.data = TextSummary(proto.data_bytes(), proto.data_digest());
  }
  if (!Way::kWrites || !plain.validation.digest.empty()) WIRE_PART(validation, plain.validation);
  WIRE_FIELD(initial_digest, plain.initial_digest);
  WIRE_FIELD(initial_tokenizer, plain.initial_tokenizer);
  WIRE_FIELD(token_seen, plain.token_seen);
  WIRE_FIELD(check_id, plain.check_id);
  WIRE_FIELD(error_code, plain.error_code);
  if constexpr (Way::kWrites) {
    proto.set_sampled(static_cast<v1::Sampled>(plain.sampled));
  } else if (v1::Sampled_IsValid(proto.sampled())) {
    plain.sampled = static_cast<Sampled>(proto.sampled());
  }
}

WIRE_MESSAGE(v1::ReachAnswer, ReachAnswer) {
  WIRE_FIELD(node, plain.node);
  WIRE_FIELD(error, plain.error);
  WIRE_FIELD(connect_seconds, plain.connect_seconds);
  WIRE_FIELD(other_card, plain.other_card);
  WIRE_FIELD(bytes_per_second, plain.bytes_per_second);
}

WIRE_MESSAGE(v1::ReachResult, ReachReport) {
  WIRE_FIELD(check_id, plain.check_id);
  WIRE_PARTS(answers, plain.answers);
}

WIRE_MESSAGE(v1::ProfileResult, ProfileReport) {
  WIRE_STAMP();
  WIRE_FIELD(error, plain.error);
  WIRE_PARTS(compute, plain.compute);
  if (!Way::kWrites || !plain.collectives.points.empty()) WIRE_PART(collectives, plain.collectives);
  WIRE_FIELD(check_id, plain.check_id);
  if constexpr (Way::kWrites) {
    proto.set_fault(WireFault(plain.fault));
    if (plain.trial) *proto.mutable_trial() = ToProto(*plain.trial);
  } else {
    plain.fault = PlainFault(proto.fault());
    if (proto.has_trial()) plain.trial = FromProto(proto.trial());
  }
}

WIRE_MESSAGE(v1::MemoryShortage, MemoryShortage) {
  if constexpr (Way::kWrites) {
    proto.set_tier(plain.tier == MemoryTier::kHost ? v1::MemoryShortage::TIER_HOST : v1::MemoryShortage::TIER_DEVICE);
  } else {
    plain.tier = proto.tier() == v1::MemoryShortage::TIER_HOST ? MemoryTier::kHost : MemoryTier::kDevice;
  }
  WIRE_COUNT(held_bytes, plain.held_bytes);
  WIRE_COUNT(asked_bytes, plain.asked_bytes);
  WIRE_COUNT(planned_bytes, plain.planned_bytes);
  WIRE_FIELD(where, plain.where);
}

// UNIMPLEMENTED: of a kind that this version does not know.
WIRE_CHECKED_MESSAGE(v1::RankEvent, RankReport) {
  WIRE_STAMP();
  WIRE_FIELD(rank, plain.rank);
  WIRE_FIELD(device_id, plain.device);
  WIRE_FIELD(message, plain.message);
  if constexpr (Way::kWrites) {
    if (const auto kind = WireOf(kKinds, plain.kind)) proto.set_kind(*kind);
    proto.set_fault(WireFault(plain.fault));
    for (const TransportUse& use : plain.transports) *proto.add_transports() = ToProto(use);
    if (plain.shortage) *proto.mutable_shortage() = ToProto(*plain.shortage);
  } else {
    if (const auto kind = PlainOf(kKinds, proto.kind())) {
      plain.kind = *kind;
    } else {
      way.status.Update(absl::UnimplementedError("a rank's event of a kind that is not known"));
    }
    plain.fault = PlainFault(proto.fault());
    plain.transports = FromProto(proto.transports());
    if (proto.has_shortage()) plain.shortage = FromProto(proto.shortage());
  }
  WIRE_FIELD(damaged_checkpoint, plain.damaged_checkpoint);
  WIRE_FIELD(context_bytes, plain.context_bytes);
  WIRE_OPTIONAL(host_offer_bytes, plain.host_offer_bytes);
  if constexpr (!Way::kWrites) {
    if (plain.host_offer_bytes) plain.host_offer_bytes = std::max<int64_t>(0, *plain.host_offer_bytes);
  }
}

WIRE_MESSAGE(v1::StepRecord, StepStats) {
  WIRE_FIELD(step, plain.step);
  WIRE_FIELD(epoch, plain.epoch);
  WIRE_FIELD(loss, plain.loss);
  WIRE_FIELD(grad_norm, plain.grad_norm);
  WIRE_FIELD(lr, plain.lr);
  WIRE_FIELD(step_seconds, plain.step_seconds);
  if constexpr (Way::kWrites) {
    proto.set_has_validation_loss(plain.validation_loss.has_value());
    proto.set_validation_loss(plain.validation_loss.value_or(0));
  } else if (proto.has_validation_loss()) {
    plain.validation_loss = proto.validation_loss();
  }
  WIRE_OPTIONAL(validation_bits_per_byte, plain.validation_bits_per_byte);
  WIRE_FIELD(lateness_seconds, plain.lateness_seconds);
  WIRE_FIELD(loss_scale, plain.loss_scale);
  WIRE_FIELD(skipped, plain.skipped);
}

WIRE_MESSAGE(v1::MeasuredMemory, MeasuredMemory) {
  WIRE_COUNT(parameters, plain.most.parameters);
  WIRE_COUNT(gradients, plain.most.gradients);
  WIRE_COUNT(optimizer, plain.most.optimizer);
  WIRE_COUNT(gathered, plain.most.gathered);
  WIRE_COUNT(slots, plain.most.slots);
  WIRE_COUNT(boundaries, plain.most.boundaries);
  WIRE_COUNT(saved, plain.most.saved);
  WIRE_COUNT(workspace, plain.most.workspace);
  WIRE_COUNT(context, plain.most.context);
  WIRE_FIELD(has_passes, plain.has_passes);
  WIRE_COUNT(host_inputs, plain.host.inputs);
  WIRE_COUNT(host_parameters, plain.host.parameters);
  WIRE_COUNT(host_gradients, plain.host.gradients);
  WIRE_COUNT(host_optimizer, plain.host.optimizer);
}

WIRE_MESSAGE(v1::StepReport, StepReport) {
  WIRE_STAMP();
  WIRE_FIELD(rank, plain.rank);
  WIRE_PART(lanes, plain.lanes);
  WIRE_FIELD(peak_memory_bytes, plain.peak_memory_bytes);
  WIRE_FIELD(host_memory_bytes, plain.host_memory_bytes);
  WIRE_FIELD(held_memory_bytes, plain.held_memory_bytes);
  if constexpr (Way::kWrites) {
    if (plain.memory) *proto.mutable_memory() = ToProto(*plain.memory);
  } else if (proto.has_memory()) {
    plain.memory = FromProto(proto.memory());
  }
  WIRE_FIELD(lateness_seconds, plain.lateness_seconds);
  WIRE_PART(record, plain.stats);
  if constexpr (Way::kWrites) {
    proto.mutable_record()->set_epoch(plain.epoch.value());
    proto.mutable_record()->set_peak_memory_bytes(plain.peak_memory_bytes);
  } else {
    plain.stats.epoch = plain.epoch;
  }
}

WIRE_MESSAGE(v1::KvSet, KvSetReport) {
  WIRE_STAMP();
  WIRE_FIELD(key, plain.key);
  WIRE_FIELD(value, plain.value);
}

WIRE_MESSAGE(v1::KvGet, KvGetReport) {
  WIRE_STAMP();
  WIRE_FIELD(key, plain.key);
  WIRE_FIELD(rank, plain.rank);
}

WIRE_MESSAGE(v1::PublishRequest, PublishReport) {
  WIRE_STAMP();
  WIRE_FIELD(step, plain.step);
  WIRE_FIELD(rank, plain.rank);
  WIRE_FIELD(question, plain.question);
  WIRE_FIELD(purpose, plain.purpose);
  WIRE_FIELD(manifest_sha256, plain.manifest_digest);
}

WIRE_MESSAGE(v1::CheckpointPublished, CheckpointReport) {
  WIRE_STAMP();
  WIRE_FIELD(step, plain.step);
  WIRE_FIELD(folder, plain.folder);
  WIRE_FIELD(bytes, plain.bytes);
  WIRE_FIELD(seconds, plain.seconds);
  WIRE_COUNT(free_bytes, plain.free_bytes);
  WIRE_FIELD(job_uid, plain.job_uid);
}

WIRE_MESSAGE(v1::CheckpointFailed, CheckpointFailedReport) {
  WIRE_STAMP();
  WIRE_FIELD(step, plain.step);
  WIRE_FIELD(message, plain.message);
  WIRE_FIELD(blamed_device_id, plain.blamed);
}

WIRE_MESSAGE(v1::LogChunk, LogReport) {
  WIRE_STAMP();
  WIRE_FIELD(source, plain.source);
  WIRE_FIELD(text, plain.text);
  WIRE_FIELD(unix_ms, plain.unix_ms);
}

WIRE_MESSAGE(v1::Leaving, LeavingReport) { WIRE_FIELD(stop_seconds, plain.stop_seconds); }

WIRE_MESSAGE(v1::CardState, CardReport) {
  WIRE_FIELD(device_id, plain.device);
  WIRE_FIELD(health, plain.health);
  WIRE_FIELD(lost, plain.lost);
  WIRE_COUNT(used_by_others_bytes, plain.used_by_others_bytes);
}

WIRE_MESSAGE(v1::RenewalRequest, RenewalReport) {
  WIRE_FIELD(signing_request, plain.signing_request);
  WIRE_FIELD(stored, plain.stored);
}

constexpr std::tuple kReports = {
    WIRE_KIND(v1::WorkerMessage, heartbeat, HeartbeatReport),
    WIRE_KIND(v1::WorkerMessage, storage_check_result, StorageReport),
    WIRE_KIND(v1::WorkerMessage, reach_result, ReachReport),
    WIRE_KIND(v1::WorkerMessage, profile_result, ProfileReport),
    WIRE_KIND(v1::WorkerMessage, rank_event, RankReport),
    WIRE_KIND(v1::WorkerMessage, step_report, StepReport),
    WIRE_KIND(v1::WorkerMessage, kv_set, KvSetReport),
    WIRE_KIND(v1::WorkerMessage, kv_get, KvGetReport),
    WIRE_KIND(v1::WorkerMessage, publish_request, PublishReport),
    WIRE_KIND(v1::WorkerMessage, checkpoint_published, CheckpointReport),
    WIRE_KIND(v1::WorkerMessage, checkpoint_failed, CheckpointFailedReport),
    WIRE_KIND(v1::WorkerMessage, log, LogReport),
    WIRE_KIND(v1::WorkerMessage, leaving, LeavingReport),
    WIRE_KIND(v1::WorkerMessage, trace_result, TraceReport),
    WIRE_KIND(v1::WorkerMessage, card_state, CardReport),
    WIRE_KIND(v1::WorkerMessage, renewal_request, RenewalReport),
    WIRE_KIND(v1::WorkerMessage, holdings, HoldingsReport),
    WIRE_KIND(v1::WorkerMessage, fetch_progress, FetchReport),
};

}  // namespace

v1::WorkerMessage ToProto(const WorkerReport& report) { return WriteKind(kReports, report); }

std::optional<WorkerReport> FromProto(const v1::WorkerMessage& message) {
  return ReadKind(kReports, message).value_or(std::nullopt);
}

}  // namespace motley::wire
