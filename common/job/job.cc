#include "common/job/job.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/beneath.h"
#include "common/base/clean_text.h"
#include "common/base/status_macros.h"
#include "common/base/written_path.h"
#include "common/job/job_fields.h"
#include "common/job/job_input.h"

namespace motley {
namespace {

constexpr size_t kLongestName = 128;
constexpr int64_t kByteVocabulary = 256;
constexpr int64_t kMostKeptOnNodes = 32;  // half of what a node says that it holds (kMostHeldCheckpoints)
constexpr char kDataPath[] = "data.path", kValidationPath[] = "data.validation_path", kFolder[] = "checkpoint.folder",
               kInitial[] = "checkpoint.initial";

// Workers have working directories of their own, so a relative path would name another file on each node.
absl::Status ValidatePath(std::string_view field, const std::string& path, std::string_view what) {
  if (path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(field), " is required: ", std::string(what)));
  }
  const std::optional<std::string> here = HerePath(path);
  if (here || ParseInput(path)) {
    if (field != kFolder) return here ? CheckPath(field, *here) : absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(kFolder, ": ", Quoted(path),
                                                   " is no folder of the nodes; leave the key out, and checkpoints lie on the "
                                                   "nodes' own disks"));
  }
  if (path.front() != '/') {
    const std::string why = WhyNoPath(path, Patterns::kRefuse);
    if (!why.empty()) return absl::InvalidArgumentError(absl::StrCat(std::string(field), ": ", Quoted(path), " ", why));
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(field), " must be an absolute path (the same on every node), got ", Quoted(path)));
  }
  return CheckPath(field, path);
}

// One folder that all nodes share, or each node's own disk.
absl::Status ValidateFolder(const CheckpointSection& given) {
  const CheckpointSection checkpoint = Decided(given);
  if (!IsOnNodesDisks(checkpoint)) {
    return ValidatePath(kFolder, checkpoint.folder,
                        "the folder in which checkpoints are kept, the same on every node; without one leave out "
                        "checkpoint.storage, too: they are kept on the disks of the nodes that train");
  }
  if (checkpoint.keep_latest_k > kMostKeptOnNodes) {
    return absl::InvalidArgumentError(absl::StrCat("checkpoint.keep_latest_k must be at most ", kMostKeptOnNodes,
                                                   " on the nodes' own disks, or 0 for all, got ", checkpoint.keep_latest_k));
  }
  if (checkpoint.folder.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "checkpoint.folder is ", Quoted(checkpoint.folder),
      ", and with checkpoint.storage = \"local\" checkpoints lie on the nodes' own disks; leave out one of the two"));
}

absl::Status ValidateName(const std::string& name) {
  if (name.size() > kLongestName) {
    return absl::InvalidArgumentError(absl::StrCat("name must have at most ", kLongestName, " bytes, got ", name.size()));
  }
  if (CleanLine(name) != name) {
    return absl::InvalidArgumentError(
        absl::StrCat("name must not contain control characters, nor such as are not seen or turn the direction of writing, got ",
                     Quoted(name)));
  }
  return absl::OkStatus();
}

absl::Status ValidateModel(const JobConfig& config, const ModelShape& model) {
  if (config.training.seq_len > model.max_positions) {
    return absl::InvalidArgumentError(absl::StrCat("training.seq_len must be at most ", model.max_positions,
                                                   " (the longest sequence of the model), got ", config.training.seq_len));
  }
  if (model.vocab_size < kByteVocabulary) {
    return absl::InvalidArgumentError(absl::StrCat("model: vocab_size must be at least ", kByteVocabulary,
                                                   " because tokens are bytes, got ", model.vocab_size));
  }
  return absl::OkStatus();
}

absl::Status ValidatePrecision(const TrainingSection& training) {
  if (training.dtype == "float32" || training.mixed_precision_param.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("training.mixed_precision_param is ", Quoted(training.mixed_precision_param),
                                                 " and training.dtype ", Quoted(training.dtype),
                                                 "; mixed precision keeps its state in float32: set training.dtype to float32"));
}

absl::Status ValidateValidation(const DataSection& data) {
  if (data.validation_interval == 0 || HasValidation(data)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("data.validation_interval is ", data.validation_interval,
                                                 " but there is nothing to validate on; set data.validation_samples and "
                                                 "data.validation_fraction above 0, or data.validation_path"));
}

std::string SourceOf(const ModelSection& model) {
  return model.config.empty() ? "model.config_json" : absl::StrCat("model.config ", model.config);
}

}  // namespace

std::vector<std::string> ProblemsBesideRanges(const JobConfig& config, bool in_range) {
  std::vector<std::string> problems;
  const auto add = [&](const absl::Status& status) {
    for (const absl::string_view line : absl::StrSplit(status.message(), '\n', absl::SkipEmpty())) problems.emplace_back(line);
  };
  add(ValidateName(config.name));
  const absl::StatusOr<ModelShape> model = ResolveModel(config);
  add(model.status());
  // Combinations of values that are out of range by themselves would say the same twice.
  if (in_range && model.ok()) add(ValidateModel(config, *model));
  add(ValidatePath(kDataPath, config.data.path, "a UTF-8 text file or a folder of them, or tokens"));
  if (!config.data.validation_path.empty()) add(ValidatePath(kValidationPath, config.data.validation_path, ""));
  if (in_range) add(ValidatePrecision(config.training));
  if (in_range) add(ValidateValidation(config.data));
  const CheckpointSection& checkpoint = config.checkpoint;
  add(ValidateFolder(checkpoint));
  if (!checkpoint.initial.empty() && !InitialIsJob(checkpoint)) {
    add(ValidatePath(kInitial, checkpoint.initial, "a folder of checkpoints or of HuggingFace weights, or a job"));
  }
  return problems;
}

std::vector<std::string> ProblemsOfWrittenPaths(const JobConfig& config) {
  std::vector<std::string> problems;
  const std::pair<const char*, const std::string*> paths[] = {{kDataPath, &config.data.path},
                                                              {kValidationPath, &config.data.validation_path},
                                                              {kFolder, &config.checkpoint.folder},
                                                              {kInitial, &config.checkpoint.initial}};
  for (const auto& [key, path] : paths) {
    if (!path->starts_with('/')) continue;
    const std::string why = WhyNoPath(*path, Patterns::kRefuse);
    if (!why.empty()) problems.push_back(absl::StrCat(key, ": ", Quoted(*path), " ", why));
  }
  return problems;
}

absl::Status Validate(const JobConfig& config) {
  std::vector<std::string> problems;
  JobConfig copy = config;  // the table points into a mutable value
  for (const JobField& field : JobFields(copy)) {
    if (std::string complaint = field.Complaint(); !complaint.empty()) problems.push_back(std::move(complaint));
  }
  for (std::string& problem : ProblemsBesideRanges(config, problems.empty())) problems.push_back(std::move(problem));
  return problems.empty() ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

absl::StatusOr<Precision> PrecisionOf(const TrainingSection& training) {
  Precision precision;
  MOTLEY_ASSIGN_OR_RETURN(precision.master, ParseDType(training.dtype));
  MOTLEY_ASSIGN_OR_RETURN(precision.compute,
                          ParseDType(training.mixed_precision_param.empty() ? training.dtype : training.mixed_precision_param));
  return precision;
}

CheckpointSection Decided(CheckpointSection checkpoint) {
  if (checkpoint.storage == "auto") checkpoint.storage = checkpoint.folder.empty() ? "local" : "shared";
  return checkpoint;
}

bool InitialIsJob(const CheckpointSection& checkpoint) {
  return !checkpoint.initial.empty() && checkpoint.initial.find('/') == std::string::npos;
}

absl::StatusOr<ModelShape> ResolveModel(const JobConfig& config) {
  const ModelSection& model = config.model;
  if (!model.config_json.empty()) {
    return ParseHfConfig(model.config_json, SourceOf(model), config.training.seq_len);
  }
  if (!model.config.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.config ", Quoted(model.config),
                     " was not read; send the file's text in model.config_json (`motley submit` does)"));
  }
  absl::StatusOr<ModelShape> shape = ModelFlavor(model.name, model.flavor);
  if (shape.ok()) return shape;
  return absl::InvalidArgumentError(
      absl::StrCat("model.name ", Quoted(model.name), ", model.flavor ", Quoted(model.flavor), ": ", shape.status().message()));
}

std::vector<std::string> TrainingNotes(const JobConfig& config) {
  if (config.model.config_json.empty()) return {};
  absl::StatusOr<HfModel> model = ParseHfModel(config.model.config_json, SourceOf(config.model), config.training.seq_len);
  return model.ok() ? std::move(model->notes) : std::vector<std::string>();
}

double ValidationFraction(const DataSection& data) { return data.validation_path.empty() ? data.validation_fraction : 0; }

bool HasValidation(const DataSection& data) {
  return data.validation_samples > 0 && (!data.validation_path.empty() || data.validation_fraction > 0);
}

std::string ModelName(const ModelSection& model) {
  if (!model.config_json.empty()) return model.config.empty() ? "its config.json" : model.config;
  return model.flavor.empty() ? model.name : absl::StrCat(model.name, " ", model.flavor);
}

double LearningRate(const JobConfig& config, int64_t step) {
  const int64_t steps = config.training.steps;
  const int64_t warmup = std::min(config.lr_scheduler.warmup_steps, steps);
  const double peak = config.optimizer.lr;
  if (step < warmup) return peak * (static_cast<double>(step + 1) / static_cast<double>(warmup));
  if (config.lr_scheduler.decay_type == "constant" || steps == warmup) return peak;
  const double progress = std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(steps - warmup));
  const double decayed =
      config.lr_scheduler.decay_type == "cosine" ? 0.5 * (1.0 + std::cos(std::numbers::pi * progress)) : 1.0 - progress;
  const double floor = config.lr_scheduler.min_lr_factor;
  return peak * (floor + (1.0 - floor) * decayed);
}

}  // namespace motley
