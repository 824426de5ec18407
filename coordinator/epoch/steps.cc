#include "coordinator/epoch/steps.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/count.h"
#include "common/base/logging.h"
#include "common/data/loss_figures.h"
#include "common/session/loss_text.h"
#include "coordinator/epoch/copies.h"
#include "coordinator/epoch/storage_blame.h"

namespace motley::coordinator {
namespace {

constexpr size_t kRecentSteps = 20;

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Memory of the device that is fullest for its size, that of all hosts, and the worst lateness, from every rank's newest report.
void AddRanks(const JobRun& run, StepStats* stats) {
  stats->peak_memory_share = 0;
  stats->host_memory_bytes = stats->planned_host_memory_bytes = 0;
  for (const RankRun& rank : run.ranks) {
    const double share =
        rank.capacity_bytes > 0 ? static_cast<double>(rank.peak_bytes) / static_cast<double>(rank.capacity_bytes) : 0;
    const bool fuller =
        share > stats->peak_memory_share || (share == stats->peak_memory_share && rank.peak_bytes > stats->peak_memory_bytes);
    if (fuller) stats->peak_memory_share = share, stats->peak_memory_bytes = rank.peak_bytes;
    stats->host_memory_bytes += rank.host_bytes;
    stats->planned_host_memory_bytes += rank.planned_host_bytes;
    stats->lateness_seconds = std::max(stats->lateness_seconds, rank.lateness_seconds);
  }
}

void SetMetrics(Core& core, const JobRecord& job, const StepStats& stats) {
  const MetricLabels labels = {{"job_id", job.id.value()}};
  core.metrics.step.Set(labels, static_cast<double>(stats.step));
  core.metrics.loss.Set(labels, stats.loss);
  if (stats.validation_loss) {
    core.metrics.validation_loss.Set(labels, *stats.validation_loss);
    core.metrics.validation_perplexity.Set(labels, Perplexity(*stats.validation_loss));
  }
  if (stats.validation_bits_per_byte) core.metrics.validation_bits_per_byte.Set(labels, *stats.validation_bits_per_byte);
  core.metrics.grad_norm.Set(labels, stats.grad_norm);
  core.metrics.learning_rate.Set(labels, stats.lr);
  const TrainingSection& training = job.config.training;
  core.metrics.tokens.Set(labels, static_cast<double>(stats.step * training.global_batch_size * training.seq_len));
  if (const int64_t pass = TrainingTokens(job, job.config); pass > 0)
    core.metrics.training_tokens.Set(labels, static_cast<double>(pass));
  const double ideal = core.state.run->ideal_step_seconds;
  if (ideal > 0 && stats.step_seconds > 0) {
    core.metrics.mfu.Set(labels, ideal / stats.step_seconds);
  } else {
    core.metrics.mfu.Remove(labels);  // one of its devices has no peak, as those of the generation before may have had
  }
  core.metrics.tokens_per_second.Set(labels, stats.tokens_per_second);
  core.metrics.step_seconds.Set(labels, stats.step_seconds);
  core.metrics.predicted_step_seconds.Set(labels, stats.predicted_step_seconds);
  if (stats.predicted_step_seconds > 0) {
    core.metrics.prediction_error_ratio.Set(labels, stats.step_seconds / stats.predicted_step_seconds - 1);
  }
}

// The training's own line in the job's log, as often as the job asks for it.
void LogStep(Core& core, const JobRecord& job, const StepStats& stats) {
  const int64_t every = std::max<int64_t>(1, job.config.metrics.log_freq);
  if (stats.step % every != 0 && stats.step != job.config.training.steps && !stats.validation_loss && !stats.skipped) return;
  std::string line =
      absl::StrFormat("step %d/%d  loss %s  |g| %s  lr %.2e  %.0f tokens/s  step %.3f s", stats.step, job.config.training.steps,
                      LossText(stats.loss), NormText(stats.grad_norm), stats.lr, stats.tokens_per_second, stats.step_seconds);
  if (stats.validation_loss)
    absl::StrAppend(&line, "  validation loss ", ValidationText(*stats.validation_loss, stats.validation_bits_per_byte));
  if (stats.loss_scale > 0)
    absl::StrAppend(&line, stats.skipped ? "  skipped at loss scale " : "  loss scale ", stats.loss_scale);
  core.journal.AddLog(job.id, "training", std::move(line), core.journal.UnixMs());
}

void TellReplan(Core& core, JobRun& run, const JobRecord& job) {
  // One that was resumed and has made no step yet has not paused.
  const bool has_stepped = run.last_step_at != absl::ZeroDuration();
  const double pause = has_stepped ? absl::ToDoubleSeconds(core.clock.Now() - run.last_step_at) : 0;
  const int64_t repeated = std::max<int64_t>(0, run.step_before_replan - run.first_step);
  core.metrics.replans.Add({{"job_id", job.id.value()}, {"cause", run.cause_label}});
  core.metrics.pause_seconds.Add({{"job_id", job.id.value()}}, pause);
  core.metrics.steps_repeated.Add({{"job_id", job.id.value()}}, static_cast<double>(repeated));
  EventRecord event;
  event.job = job.id;
  event.kind = kind::kReplan;
  event.epoch = job.epoch;
  const double tokens = static_cast<double>(job.config.training.global_batch_size * job.config.training.seq_len);
  core.journal.AddLog(
      job.id, "training",
      absl::StrCat("generation ", job.epoch.value(), " goes on from step ", run.first_step, ": ", run.replan_cause),
      core.journal.UnixMs());
  event.message =
      absl::StrFormat("%s; generation %d on %s, pause %.1f s, %s repeated, predicted %.3f s a step (%.0f tokens/s)",
                      run.replan_cause, job.epoch.value(), Count(run.ranks.size(), "device"), pause, Count(repeated, "step"),
                      job.predicted_step_seconds, job.predicted_step_seconds > 0 ? tokens / job.predicted_step_seconds : 0);
  run.replan_cause.clear();
  core.Emit(std::move(event));
}

// A coordinator that was killed tells from it how many steps are repeated. Watchers have the step already, so they hear nothing.
void StoreStep(Core& core, JobRun& run, const JobRecord& job) {
  const absl::Duration now = core.clock.Now();
  if (now - run.step_stored_at < core.config.step_stored_every) return;
  run.step_stored_at = now;
  Batch batch;
  batch.jobs.push_back(job);
  core.journal.histories().AddDue(&batch);
  if (absl::Status status = core.store.Commit(batch); !status.ok()) {
    LogWarning(absl::StrCat("step ", job.step, " of job ", job.id.value(), " not stored: ", std::string(status.message())));
    return;
  }
  core.journal.histories().Stored(batch);
}

void WatchPrediction(Core& core, JobRun& run, const JobRecord& job, const StepStats& stats) {
  if (!run.prediction.OnStep(stats.predicted_step_seconds, stats.step_seconds)) return;
  EventRecord event;
  event.job = job.id;
  event.kind = kind::kPredictionOff;
  event.epoch = job.epoch;
  event.message = run.prediction.sentence();
  core.Emit(std::move(event));
}

MetricLabels SlowLabels(const JobId& job, const DeviceId& device) {
  return {{"job_id", job.value()}, {"node", NodeOf(device).value()}, {"device", device.value()}};
}

// Said when another rank is named than before, and when none is any more.
void WatchSlowRank(Core& core, JobRun& run, const JobRecord& job, const StepReport& report) {
  const DeviceId before = run.slow_rank.slow() ? run.slow_rank.slow()->device : DeviceId();
  run.slow_rank.OnReport(report.rank, report.stats.step, report.stats.step_seconds, report.lanes);
  const DeviceId now = run.slow_rank.slow() ? run.slow_rank.slow()->device : DeviceId();
  if (now == before) return;
  if (!before.empty()) core.metrics.slow_rank.Set(SlowLabels(job.id, before), 0);
  if (!now.empty()) core.metrics.slow_rank.Set(SlowLabels(job.id, now), 1);
  EventRecord event;
  event.job = job.id;
  event.kind = kind::kSlowRank;
  event.device = now.empty() ? before : now;
  event.node = NodeOf(event.device);
  event.epoch = job.epoch;
  event.message = now.empty() ? absl::StrCat(before.value(), " is as fast as predicted again") : run.slow_rank.Sentence(job.id);
  core.Emit(std::move(event));
}

}  // namespace

void WatchRanks(Core& core, const std::vector<RankAssignment>& ranks) {
  JobRun& run = *core.state.run;
  for (const DeviceId& device : run.slow_rank.devices()) core.metrics.slow_rank.Remove(SlowLabels(run.job, device));
  std::vector<DeviceId> devices;
  std::vector<LaneSeconds> predicted;
  for (const RankAssignment& rank : ranks) {
    devices.push_back(rank.device.id);
    predicted.push_back(rank.predicted_lanes);
    core.metrics.slow_rank.Set(SlowLabels(run.job, rank.device.id), 0);
  }
  run.slow_rank.Begin(std::move(devices), std::move(predicted), ranks.empty() ? 0 : ranks.front().predicted_step_seconds);
  run.prediction.Begin(ranks.empty() ? std::vector<DeviceDescription>() : run.considered);
}

void OnStep(Core& core, const StepReport& report) {
  JobRun& run = *core.state.run;
  JobRecord& job = core.state.jobs.at(run.job);
  if (report.rank < 0 || static_cast<size_t>(report.rank) >= run.ranks.size()) return;
  RankRun& rank = run.ranks[report.rank];
  rank.ready = true;
  rank.peak_bytes = report.peak_memory_bytes;
  rank.host_bytes = report.host_memory_bytes;
  rank.held_bytes = report.held_memory_bytes;
  rank.memory = report.memory;
  rank.lateness_seconds = report.lateness_seconds;
  rank.lanes = report.lanes;
  rank.step_seconds = report.stats.step_seconds;
  rank.step = report.stats.step;
  WatchSlowRank(core, run, job, report);
  if (report.rank != 0 || report.stats.step <= job.step) return;

  StepStats stats = report.stats;
  stats.epoch = job.epoch;
  stats.predicted_step_seconds = job.predicted_step_seconds;
  if (stats.step_seconds > 0) {
    stats.tokens_per_second =
        static_cast<double>(job.config.training.global_batch_size * job.config.training.seq_len) / stats.step_seconds;
  }
  run.recent_step_seconds.push_back(stats.step_seconds);
  if (run.recent_step_seconds.size() > kRecentSteps) run.recent_step_seconds.erase(run.recent_step_seconds.begin());
  run.typical_step_seconds = Median(run.recent_step_seconds);
  stats.elapsed_seconds = static_cast<double>(core.journal.UnixMs() - job.started_unix_ms) / 1e3;
  stats.remaining_seconds = static_cast<double>(job.config.training.steps - stats.step) * run.typical_step_seconds;
  AddRanks(run, &stats);
  job.step = stats.step;
  job.last_step = stats;
  for (const RankRun& of : run.ranks) {
    job.last_step.ranks.push_back({of.device, of.held_bytes, of.peak_bytes, of.host_bytes, of.memory});
  }
  ++run.epoch_steps;
  run.has_run = true;
  run.trouble = {};
  run.aside.times = 0;
  run.aside.most_tried = 0;
  if (!run.replan_cause.empty()) {
    // Steps that the old epoch still reports (it finishes one before it saves; a restarted coordinator hears what it missed)
    // belong to what is being replanned.
    if (run.stage == Stage::kStarting || run.stage == Stage::kRunning) {
      TellReplan(core, run, job);
    } else {
      run.step_before_replan = stats.step;
    }
  }
  run.last_step_at = core.clock.Now();
  core.copy_rate.OnStep(stats.step_seconds, AreCopied(core));
  SetMetrics(core, job, stats);
  WatchPrediction(core, run, job, stats);
  core.journal.PublishStep(job.id, stats);
  LogStep(core, job, stats);
  StoreStep(core, run, job);
}

void OnCheckpointFailed(Core& core, const NodeName& node, const CheckpointFailedReport& report) {
  JobRun& run = *core.state.run;
  EventRecord event;
  event.job = run.job;
  event.kind = kind::kCheckpointFailed;
  event.node = report.blamed.empty() ? node : NodeOf(report.blamed);
  event.device = report.blamed;
  event.epoch = report.epoch;
  const bool ends = run.stage == Stage::kStopping;
  event.message = absl::StrFormat("the checkpoint of step %d could not be written: %s%s", report.step, report.message,
                                  ends ? "" : "; training goes on and it is tried again");
  run.checkpoint_trouble = event.message;
  core.metrics.checkpoint_failures.Add({{"job_id", run.job.value()}});
  core.Emit(std::move(event));
  BlameForSave(core, report);
}

void OnCheckpoint(Core& core, const NodeName& node, const CheckpointReport& report) {
  JobRun& run = *core.state.run;
  JobRecord& job = core.state.jobs.at(run.job);
  run.deaths.clear();  // durable progress: deaths are in a row no more
  run.checkpoint_trouble.clear();
  run.storage_blame = {};
  run.altered_ways.clear();
  run.odd_nodes.clear();  // the others can do what the node that was left out cannot
  run.saved_step = report.step;
  run.save_seconds = report.seconds;
  job.newest_checkpoint = report.folder;
  job.has_unnamed_checkpoints |= report.job_uid.empty();
  job.adopted.clear();  // it has one of its own
  Batch batch;
  batch.jobs.push_back(job);
  EventRecord event;
  event.job = job.id;
  event.kind = kind::kCheckpoint;
  event.node = node;
  event.epoch = job.epoch;
  event.message = absl::StrFormat("step %d saved in %s: %.1f MiB in %.2f s", report.step, report.folder,
                                  static_cast<double>(report.bytes) / (1 << 20), report.seconds);
  batch.events.push_back(std::move(event));
  if (absl::Status status = core.journal.Commit(batch); !status.ok()) {
    LogError(absl::StrCat("checkpoint of job ", job.id.value(), " not recorded: ", std::string(status.message())));
  }
  core.metrics.checkpoints.Add({{"job_id", job.id.value()}});
  core.metrics.checkpoint_bytes.Set({{"job_id", job.id.value()}}, static_cast<double>(report.bytes));
  if (report.free_bytes > 0) {
    core.metrics.checkpoint_free_bytes.Set({{"job_id", job.id.value()}}, static_cast<double>(report.free_bytes));
  }
  core.metrics.last_checkpoint_timestamp.Set({{"job_id", job.id.value()}}, static_cast<double>(core.journal.UnixMs()) / 1e3);
  LookAfterCopies(core, job);
}

}  // namespace motley::coordinator
