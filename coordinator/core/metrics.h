// The coordinator's Prometheus families; docs/use/metrics.md says what each means.
#pragma once

#include "common/base/ids.h"
#include "common/metrics/metrics.h"

namespace motley::coordinator {

// What bytes of files on the nodes' disks moved for.
inline constexpr const char *kBytesOfCopies = "copy", *kBytesOfStarts = "start", *kBytesOfInputs = "input",
                            *kBytesOfUploads = "upload", *kBytesOfExports = "export";

struct Metrics {
  explicit Metrics(MetricsRegistry& registry);
  // All series of the job, of whatever family.
  void ForgetJob(const JobId& job) { registry.RemoveSeries("job_id", job.value()); }

  MetricsRegistry& registry;

  GaugeFamily nodes, devices, jobs;
  GaugeFamily step, steps_target, loss, validation_loss, validation_perplexity, validation_bits_per_byte;
  GaugeFamily grad_norm, learning_rate, tokens_per_second, tokens, training_tokens;
  GaugeFamily mfu, step_seconds;
  GaugeFamily predicted_step_seconds, prediction_error_ratio, slow_rank, epoch;
  CounterFamily replans, pause_seconds, steps_repeated, checkpoints, checkpoint_failures;
  GaugeFamily checkpoint_bytes, checkpoint_free_bytes, last_checkpoint_timestamp, planner_seconds;
  GaugeFamily safe_checkpoint_step, copies_missing, files_free_bytes;
  CounterFamily files_bytes;
  GaugeFamily store_findings, backup_failing, last_backup_timestamp;
  CounterFamily events, foreign_reports;
};

}  // namespace motley::coordinator
