#include "coordinator/rpc/views.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/data/loss_figures.h"
#include "common/device/device_kinds.h"
#include "common/device/rank_builds.h"
#include "common/device/transport_choice.h"
#include "common/wire/device.h"
#include "common/wire/job.h"
#include "common/wire/profile.h"
#include "coordinator/epoch/copies.h"
#include "coordinator/state/data_address.h"
#include "coordinator/state/membership.h"
#include "coordinator/state/queue.h"

namespace motley::coordinator {

v1::JobState StateOf(JobPhase phase) {
  switch (phase) {
    case JobPhase::kQueued:
      return v1::JOB_STATE_QUEUED;
    case JobPhase::kWaiting:
      return v1::JOB_STATE_WAITING;
    case JobPhase::kProfiling:
      return v1::JOB_STATE_PROFILING;
    case JobPhase::kPlanning:
      return v1::JOB_STATE_PLANNING;
    case JobPhase::kStarting:
      return v1::JOB_STATE_STARTING;
    case JobPhase::kRunning:
      return v1::JOB_STATE_RUNNING;
    case JobPhase::kReplanning:
      return v1::JOB_STATE_REPLANNING;
    case JobPhase::kSucceeded:
      return v1::JOB_STATE_SUCCEEDED;
    case JobPhase::kFailed:
      return v1::JOB_STATE_FAILED;
    case JobPhase::kStopped:
      return v1::JOB_STATE_STOPPED;
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

v1::StepRecord View(const StepStats& step) {
  v1::StepRecord out;
  out.set_step(step.step);
  out.set_epoch(step.epoch.value());
  out.set_loss(step.loss);
  out.set_grad_norm(step.grad_norm);
  out.set_lr(step.lr);
  out.set_tokens_per_second(step.tokens_per_second);
  out.set_peak_memory_bytes(step.peak_memory_bytes);
  out.set_peak_memory_share(step.peak_memory_share);
  out.set_host_memory_bytes(step.host_memory_bytes);
  out.set_planned_host_memory_bytes(step.planned_host_memory_bytes);
  out.set_step_seconds(step.step_seconds);
  out.set_predicted_step_seconds(step.predicted_step_seconds);
  out.set_elapsed_seconds(step.elapsed_seconds);
  out.set_remaining_seconds(step.remaining_seconds);
  out.set_has_validation_loss(step.validation_loss.has_value());
  out.set_validation_loss(step.validation_loss.value_or(0));
  if (step.validation_loss) out.set_validation_perplexity(Perplexity(*step.validation_loss));
  if (step.validation_bits_per_byte) out.set_validation_bits_per_byte(*step.validation_bits_per_byte);
  out.set_lateness_seconds(step.lateness_seconds);
  out.set_loss_scale(step.loss_scale);
  out.set_skipped(step.skipped);
  return out;
}

v1::JobSpec BriefSpec(const JobConfig& config) {
  v1::JobSpec spec = wire::ToProto(config);
  spec.mutable_model()->clear_config_json();
  spec.mutable_planner()->clear_plan_json();
  return spec;
}

v1::Job View(const JobRecord& job) {
  v1::Job out = View(static_cast<const JobStatus&>(job));
  *out.mutable_spec() = wire::ToProto(job.config);
  out.set_training_tokens(TrainingTokens(job, job.config));
  return out;
}

v1::Job View(const Core& core, const JobRecord& job) {
  v1::Job out = View(job);
  const std::string queue = QueueSentence(core.journal.UnixMs(), core.state, job);
  if (!queue.empty()) out.set_reason(queue);
  if (std::optional<v1::CopyProgress> copying = CopyingOf(core, job.id)) *out.mutable_copying() = *std::move(copying);
  return out;
}

v1::Job View(const JobStatus& job) {
  v1::Job out;
  out.set_id(job.id.value());
  out.set_state(StateOf(job.phase));
  out.set_reason(job.reason);
  out.set_epoch(job.epoch.value());
  out.set_step(job.step);
  out.set_submitted_unix_ms(job.submitted_unix_ms);
  out.set_started_unix_ms(job.started_unix_ms);
  out.set_finished_unix_ms(job.finished_unix_ms);
  if (job.last_step.step > 0) *out.mutable_last_step() = View(job.last_step);
  out.set_newest_checkpoint(job.newest_checkpoint);
  out.set_safe_checkpoint(job.safe_checkpoint);
  out.set_predicted_step_seconds(job.predicted_step_seconds);
  out.set_error_code(static_cast<int>(job.error_code));
  out.set_owner(job.owner);
  out.set_uid(job.uid.value());
  out.set_owns_unnamed_checkpoints(job.has_unnamed_checkpoints);
  return out;
}

v1::Event View(const EventRecord& event) {
  v1::Event out;
  out.set_sequence(event.sequence);
  out.set_unix_ms(event.unix_ms);
  out.set_job_id(event.job.value());
  out.set_kind(event.kind);
  out.set_node(event.node.value());
  out.set_device(event.device.value());
  out.set_epoch(event.epoch.value());
  out.set_message(event.message);
  return out;
}

v1::LogLine View(const LogRecord& line) {
  v1::LogLine out;
  out.set_unix_ms(line.unix_ms);
  out.set_source(line.source);
  out.set_text(line.text);
  out.set_sequence(line.sequence);
  return out;
}

v1::JobHistory View(const History& history) {
  v1::JobHistory out;
  out.set_steps_per_bucket(history.steps_per_bucket());
  out.set_last_step(history.last_step());
  for (const HistoryBucket& bucket : history.buckets()) {
    out.add_loss(bucket.loss);
    out.add_least_loss(bucket.least_loss);
    out.add_most_loss(bucket.most_loss);
    out.add_tokens_per_second(bucket.tokens_per_second);
    out.add_step_seconds(bucket.step_seconds);
    out.add_grad_norm(bucket.grad_norm);
    out.add_lr(bucket.lr);
    out.add_validation_loss(bucket.validation_loss);
  }
  return out;
}

namespace {

v1::Card View(const CardDescription& card) {
  v1::Card out;
  out.set_name(card.name);
  out.set_uuid(card.uuid);
  out.set_bus(card.bus);
  out.set_driver(card.driver);
  out.set_driver_cuda(CudaVersion(card.driver_cuda));
  out.set_compute_capability(absl::StrCat(card.compute_capability / 10, ".", card.compute_capability % 10));
  out.set_used_by_others_bytes(card.used_by_others_bytes);
  out.set_pcie_generation(card.pcie_generation);
  out.set_pcie_lanes(card.pcie_lanes);
  out.set_host_link_bytes_per_second(HostLinkBytesPerSecond(card));
  for (const std::string& peer : card.nvlink_peers) out.add_nvlink_peers(peer);
  for (const std::string& peer : card.p2p_peers) out.add_p2p_peers(peer);
  out.set_power_limit_watts(card.power_limit_watts);
  out.set_health(card.health);
  out.set_lost(card.lost);
  out.set_note(card.note);
  out.set_kernels(card.kernels);
  out.set_why_no_kernels(card.why_no_kernels);
  if (card.nccl_version > 0) out.set_nccl(NcclVersionText(card.nccl_version));
  return out;
}

}  // namespace

v1::Node View(const ClusterState& state, const NodeRecord& node) {
  v1::Node out;
  out.set_name(node.description.name.value());
  out.set_state(NodeStateName(state, node));
  out.set_reason(node.reason.empty() ? WhyDataAddressIsWrong(state, node) : node.reason);
  out.set_version(node.description.version);
  out.set_registered_unix_ms(node.registered_unix_ms);
  out.set_last_seen_unix_ms(node.last_seen_unix_ms);
  out.set_address(node.description.data_address);
  for (const DeviceDescription& device : node.description.devices) {
    v1::Device* view = out.add_devices();
    view->set_id(device.id.value());
    view->set_model(device.model);
    view->set_kind(RowOf(device.kind).name);
    view->set_memory_bytes(device.memory_bytes);
    view->set_declared_flops_per_second(device.flops_per_second);
    view->set_libtorch(device.libtorch);
    view->set_host_link_bytes_per_second(device.host_link_bytes_per_second);
    out.set_offered_host_memory_bytes(device.node_host_memory_bytes);  // its devices all say the same
    if (device.kind == DeviceKind::kCuda) *view->mutable_card() = View(device.card);
    if (auto speed = state.speeds.find(device.id); speed != state.speeds.end()) {
      view->set_measured_tokens_per_second(speed->second.tokens_per_second);
      view->set_measured_flops_per_second(speed->second.flops_per_second);
      view->set_measured_model(speed->second.model);
      view->set_measured_attention(speed->second.attention);
      if (speed->second.load != CardLoad()) *view->mutable_measured_load() = wire::ToProto(speed->second.load);
      view->set_measured_cut_short(speed->second.cut_short);
      view->set_usable_memory_bytes(speed->second.usable_bytes);
      view->set_memory_corrections(speed->second.memory_corrections);
      view->set_probed_samples(speed->second.probed_samples);
    }
    JobId job;
    view->set_state(DeviceStateName(state, device.id, &job));
    view->set_job_id(job.value());
  }
  for (const UnusedCard& card : node.description.unused_cards) {
    v1::CardNotUsed* unused = out.add_unused_cards();
    unused->set_card(card.card);
    unused->set_reason(card.reason);
  }
  out.set_host_memory_bytes(node.description.host_memory_bytes);
  if (const auto member = state.members.find(node.description.name); member != state.members.end()) {
    out.set_member_since_unix_ms(member->second.joined_unix_ms);
    out.set_certificate_until_unix_ms(member->second.until_unix_ms);
  }
  return out;
}

}  // namespace motley::coordinator
