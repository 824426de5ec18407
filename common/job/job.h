// A job's configuration as a plain value: the TOML job file's sections and keys (which are torchtitan's), and JobSpec's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/base/dtype.h"
#include "common/device/device.h"
#include "common/model/model.h"

namespace motley {

struct ModelSection {
  std::string name = "gpt2";
  std::string flavor = "debug";
  std::string config;       // path of a HuggingFace config.json, instead of name and flavor
  std::string config_json;  // its text; wins over name and flavor
  friend bool operator==(const ModelSection&, const ModelSection&) = default;
};
struct TrainingSection {
  int64_t steps = 100;
  int64_t seq_len = 128;
  int64_t global_batch_size = 32;
  double max_norm = 1.0;  // 0 = no clipping
  int64_t seed = 0;
  std::string dtype = "float32";                   // of weights, gradients and moments
  std::string mixed_precision_param;               // of gathered weights and of computing; empty = dtype
  std::string mixed_precision_reduce = "float32";  // of gradients and their sums, where the job is mixed
  friend bool operator==(const TrainingSection&, const TrainingSection&) = default;
};
struct OptimizerSection {
  std::string name = "AdamW";
  double lr = 8e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  std::string decay = "all";  // of all parameters, or of matrices alone: not of biases and norms
  friend bool operator==(const OptimizerSection&, const OptimizerSection&) = default;
};
struct LrSchedulerSection {
  int64_t warmup_steps = 10;
  std::string decay_type = "linear";  // linear, cosine, constant
  double min_lr_factor = 0.0;
  friend bool operator==(const LrSchedulerSection&, const LrSchedulerSection&) = default;
};
struct DataSection {
  std::string path;
  double validation_fraction = 0.05;
  int64_t validation_samples = 32;
  int64_t validation_interval = 0;
  std::string validation_path;  // data of the validations; empty: the last part of path
  bool any_tokenizer = false;   // takes data of another tokenizer than the weights' folder has
  friend bool operator==(const DataSection&, const DataSection&) = default;
};
struct CheckpointSection {
  std::string folder;
  std::string storage = "auto";  // "shared": in `folder`; "local": on the disks of the nodes that train; see Decided
  int64_t copies = 1;            // of each file on disks of other nodes; of "local" alone
  int64_t interval = 0;
  int64_t keep_latest_k = 2;
  double interval_minutes = 10;  // of training; 0 = by steps alone
  bool enable_step_zero_checkpoint = false;
  // Folder of a checkpoint, of a job's checkpoints or of HuggingFace's weights, or a job's id; empty: weights from the seed.
  std::string initial;
  friend bool operator==(const CheckpointSection&, const CheckpointSection&) = default;
};
// Else in the folder that all nodes share, where one is given.
inline bool IsOnNodesDisks(const CheckpointSection& checkpoint) { return checkpoint.storage == "local"; }
// Without "auto": who names a folder has one that all nodes share. A job is decided when it is submitted, and stays so.
CheckpointSection Decided(CheckpointSection checkpoint);
// Else a job that ends is gone.
inline bool KeepsCheckpoints(const CheckpointSection& checkpoint) {
  return IsOnNodesDisks(checkpoint) || !checkpoint.folder.empty();
}
struct MetricsSection {
  int64_t log_freq = 1;
  bool enable_tensorboard = false;
  std::string step_records = "none";  // none, jsonl, csv
  friend bool operator==(const MetricsSection&, const MetricsSection&) = default;
};
struct PlannerSection {
  std::string strategy = "cephalo";
  std::string fidelity = "tuned";                 // or "published": with the papers' own limits
  double memory_reserve = kDefaultMemoryReserve;  // share of each device's memory
  std::string recompute = "auto";
  std::string offload = "auto";  // or "never", or kinds: "activations,optimizer" (offload_kinds.h)
  std::string exclude;           // devices and nodes that are not used: "n3,n2/gpu1"
  std::string pins;              // "stage0=n1,stage0=n2/gpu0": must take part
  bool pins_required = true;     // false: those that cannot be kept now are dropped
  int64_t max_tp = 8;
  int64_t budget_nodes = 200'000;  // of a search
  std::string plan_json;
  friend bool operator==(const PlannerSection&, const PlannerSection&) = default;
};

struct JobConfig {
  std::string name;
  ModelSection model;
  TrainingSection training;
  OptimizerSection optimizer;
  LrSchedulerSection lr_scheduler;
  DataSection data;
  CheckpointSection checkpoint;
  MetricsSection metrics;
  PlannerSection planner;
  friend bool operator==(const JobConfig&, const JobConfig&) = default;
};

// The types of a job's numbers.
struct Precision {
  DType master = DType::kFloat32;   // weights as the optimizer has them, gradients, moments, and what checkpoints hold
  DType compute = DType::kFloat32;  // gathered weights, activations, and what stages hand over
  bool mixed() const { return compute != master; }
};
// INVALID_ARGUMENT: a name that is not known. Validate has the combinations that are allowed.
absl::StatusOr<Precision> PrecisionOf(const TrainingSection& training);

// Ranges and combinations; INVALID_ARGUMENT has a line for each field at fault: its path, its value and what is allowed. Reads no
// files.
absl::Status Validate(const JobConfig& config);
// Its lines but for those that JobField::Complaint gives; `in_range`: there are none of these.
std::vector<std::string> ProblemsBesideRanges(const JobConfig& config, bool in_range);
// Of absolute paths, what no shell has expanded: asked of a new job alone, so that one whose folder is called so goes on.
std::vector<std::string> ProblemsOfWrittenPaths(const JobConfig& config);
// The model that the config names: config_json, or name and flavor. (The path in `config` is read by the loader.)
absl::StatusOr<ModelShape> ResolveModel(const JobConfig& config);
// What its config.json says and no job does: dropout.
std::vector<std::string> TrainingNotes(const JobConfig& config);
// Share of data.path's data that is kept for validations; none where these have data of their own.
double ValidationFraction(const DataSection& data);
// Whether there is anything to validate on.
bool HasValidation(const DataSection& data);
// For people: "gpt2 124M", or the path of the config file.
std::string ModelName(const ModelSection& model);
// checkpoint.initial names a job rather than a folder.
bool InitialIsJob(const CheckpointSection& checkpoint);

// Learning rate of optimizer step `step` (0-based), torchtitan's convention. With w = min(warmup_steps, steps):
//   step < w:  lr * (step + 1) / w
//   else:      lr * (f + (1 - f) * d), f = min_lr_factor, p = (step - w) / (steps - w),
//              d = 1 - p (linear), (1 + cos(pi p)) / 2 (cosine), 1 with f ignored (constant)
// The Python oracle repeats the formula (docs/use/job-file.md).
double LearningRate(const JobConfig& config, int64_t step);

}  // namespace motley
