#include "coordinator/core/metrics.h"

#include "common/base/version.h"
#include "coordinator/state/sender.h"

namespace motley::coordinator {

Metrics::Metrics(MetricsRegistry& r)
    : registry(r),
      nodes(r.Gauge("motley_nodes", "Nodes by state")),
      devices(r.Gauge("motley_devices", "Devices by state")),
      jobs(r.Gauge("motley_jobs", "Jobs by state")),
      step(r.Gauge("motley_job_step", "Optimizer steps done")),
      steps_target(r.Gauge("motley_job_steps_target", "Optimizer steps asked for")),
      loss(r.Gauge("motley_job_loss", "Training loss of the newest step")),
      validation_loss(r.Gauge("motley_job_validation_loss", "Newest validation loss")),
      validation_perplexity(r.Gauge("motley_job_validation_perplexity", "e to the newest validation loss")),
      validation_bits_per_byte(r.Gauge("motley_job_validation_bpb", "Newest validation loss in bits for each byte of its text")),
      grad_norm(r.Gauge("motley_job_grad_norm", "Gradient norm before clipping")),
      learning_rate(r.Gauge("motley_job_learning_rate", "Learning rate of the newest step")),
      tokens_per_second(r.Gauge("motley_job_tokens_per_second", "Tokens per second of the newest step")),
      tokens(r.Gauge("motley_job_tokens", "Tokens trained on, steps that were repeated once")),
      training_tokens(r.Gauge("motley_job_training_tokens", "Tokens of one pass over the data, the validation part not counted")),
      mfu(r.Gauge("motley_job_mfu_ratio", "FLOPs of the model's step over the peak of its devices, recomputation not counted")),
      step_seconds(r.Gauge("motley_job_step_seconds", "Measured time of the newest step")),
      predicted_step_seconds(r.Gauge("motley_job_predicted_step_seconds", "Simulated time of a step")),
      prediction_error_ratio(r.Gauge("motley_job_prediction_error_ratio", "Measured over predicted step time, minus one")),
      slow_rank(r.Gauge("motley_job_slow_device", "1: all other devices of the job wait for it")),
      epoch(r.Gauge("motley_job_generation", "How many times the job was planned")),
      replans(r.Counter("motley_job_replans_total", "Generations after the first, by cause")),
      pause_seconds(
          r.Counter("motley_job_pause_seconds_total", "Time between the last step of a generation and the first of the next")),
      steps_repeated(r.Counter("motley_job_steps_repeated_total", "Steps done twice because a checkpoint was older")),
      checkpoints(r.Counter("motley_job_checkpoints_total", "Checkpoints published")),
      checkpoint_failures(r.Counter("motley_job_checkpoint_failures_total", "Checkpoints that could not be written")),
      checkpoint_bytes(r.Gauge("motley_job_checkpoint_bytes", "Size of the newest checkpoint")),
      checkpoint_free_bytes(
          r.Gauge("motley_job_checkpoint_free_bytes", "Free in the file system of the checkpoints when the newest was written")),
      last_checkpoint_timestamp(r.Gauge("motley_job_last_checkpoint_timestamp_seconds", "Unix time of the newest checkpoint")),
      planner_seconds(r.Gauge("motley_planner_seconds", "Time that the newest plan took")),
      safe_checkpoint_step(
          r.Gauge("motley_job_safe_checkpoint_step", "Step of the newest checkpoint that lies on as many nodes as asked for")),
      copies_missing(
          r.Gauge("motley_job_copies_missing", "Copies of files that the newest checkpoint on the nodes' disks lacks")),
      files_free_bytes(r.Gauge("motley_node_files_free_bytes", "Free on the node's disk for copies and data of jobs")),
      files_bytes(r.Counter("motley_files_bytes_total", "Bytes of files on the nodes' disks that moved, by what for")),
      store_findings(r.Gauge("motley_store_findings", "What was damaged or older in the database when the coordinator started")),
      backup_failing(r.Gauge("motley_store_backup_failing", "1: the newest backup of the store could not be made")),
      last_backup_timestamp(r.Gauge("motley_store_last_backup_timestamp_seconds", "Unix time of the store's newest backup")),
      events(r.Counter("motley_events_total", "Events by kind")),
      foreign_reports(
          r.Counter("motley_foreign_reports_total", "Reports dropped because their worker may not make them, by kind")) {
  store_findings.Set(0);
  backup_failing.Set(0);
  for (const char* purpose : {kBytesOfCopies, kBytesOfStarts, kBytesOfInputs, kBytesOfUploads, kBytesOfExports})
    files_bytes.Add({{"purpose", purpose}}, 0);
  for (const char* kind : ReportKinds()) foreign_reports.Add({{"kind", kind}}, 0);
  for (const char* kind : {kHelloGeneration, kHelloMark, kHelloTerm}) foreign_reports.Add({{"kind", kind}}, 0);
  r.Gauge("motley_build_info", "Always 1; the version is a label").Set({{"version", kVersion}}, 1);
}

}  // namespace motley::coordinator
