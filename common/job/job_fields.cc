#include "common/job/job_fields.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/dtype.h"
#include "common/base/parse_json.h"

namespace motley {
namespace {

// Paths and names fit by far; the two documents are larger. A job is stored, sent to every rank and shown in one piece.
constexpr size_t kMaxTextBytes = 4096;
constexpr size_t kMaxDocumentBytes = 1 << 20;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
// Of a step. Eight devices, no two alike: the explained answer takes 5 s with this many, most of it plans of alternatives.
constexpr double kMostSamples = 65536;

JobField Text(std::string_view section, std::string_view key, std::string& value, std::vector<std::string_view> choices = {}) {
  return {section, key, &value, 0, 0, false, false, std::move(choices), kMaxTextBytes};
}

JobField WithHint(JobField field, std::string_view hint) {
  field.hint = hint;
  return field;
}

JobField NameOfType(std::string_view section, std::string_view key, std::string& value, std::vector<std::string_view> choices) {
  JobField field = Text(section, key, value, std::move(choices));
  field.names_dtype = true;
  return field;
}

JobField Document(std::string_view section, std::string_view key, std::string& value) {
  return {section, key, &value, 0, 0, false, false, {}, kMaxDocumentBytes};
}

JobField Integer(std::string_view section, std::string_view key, int64_t& value, double min, double max = kUnlimited) {
  return {section, key, &value, min, max, false, false, {}, 0};
}

JobField Number(std::string_view section, std::string_view key, double& value, double min, double max = kUnlimited) {
  return {section, key, &value, min, max, false, false, {}, 0};
}

JobField Flag(std::string_view section, std::string_view key, bool& value) { return {section, key, &value, 0, 1}; }

JobField MoreThan(JobField field) {
  field.min_exclusive = true;
  return field;
}

JobField LessThan(JobField field) {
  field.max_exclusive = true;
  return field;
}

// The shortest text that reads back as the same double, always recognisable as a number with a point or an exponent.
std::string NumberText(double value) { return nlohmann::json(value).dump(); }

}  // namespace

std::string JobField::Path() const {
  return section.empty() ? std::string(key) : absl::StrCat(std::string(section), ".", std::string(key));
}

std::string JobField::TypeName() const {
  if (std::holds_alternative<std::string*>(value)) return "a string";
  if (std::holds_alternative<bool*>(value)) return "true or false";
  return std::holds_alternative<int64_t*>(value) ? "an integer" : "a number";
}

std::string JobField::ValueText() const {
  if (const auto* text = std::get_if<std::string*>(&value)) {
    return JsonText(**text);
  }
  if (const auto* integer = std::get_if<int64_t*>(&value)) return absl::StrCat(**integer);
  if (const auto* flag = std::get_if<bool*>(&value)) return **flag ? "true" : "false";
  return NumberText(*std::get<double*>(value));
}

void JobField::SetText(std::string text) const {
  std::string& value_text = *std::get<std::string*>(value);
  value_text = std::move(text);
  if (!names_dtype) return;
  if (const absl::StatusOr<DType> dtype = ParseDType(value_text); dtype.ok()) value_text = std::string(DTypeName(*dtype));
}

std::string JobField::Complaint() const {
  if (const auto* text = std::get_if<std::string*>(&value)) {
    if ((*text)->size() > max_bytes) {
      return absl::StrCat(Path(), " must be at most ", max_bytes, " bytes, got ", (*text)->size(), " bytes");
    }
    if (choices.empty()) return "";
    for (std::string_view choice : choices) {
      if (**text == choice) return "";
    }
    std::vector<std::string> shown;
    for (std::string_view choice : choices) {
      if (!choice.empty()) shown.emplace_back(choice);
    }
    return absl::StrCat(Path(), shown.size() == 1 ? " must be " : " must be one of ", absl::StrJoin(shown, ", "), "; got ",
                        Echo(ValueText()), std::string(hint));
  }
  if (std::holds_alternative<bool*>(value)) return "";
  const auto* integer = std::get_if<int64_t*>(&value);
  const double number = integer != nullptr ? static_cast<double>(**integer) : *std::get<double*>(value);
  if (!std::isfinite(number)) return absl::StrCat(Path(), " must be a finite number, got ", number);
  if (number < min || (min_exclusive && number == min)) {
    return absl::StrCat(Path(), " must be ", min_exclusive ? "greater than " : "at least ", min, ", got ", ValueText());
  }
  if (number > max || (max_exclusive && number == max)) {
    return absl::StrCat(Path(), " must be ", max_exclusive ? "less than " : "at most ", max, ", got ", ValueText());
  }
  return "";
}

std::vector<JobField> JobFields(JobConfig& c) {
  return {
      Text("", "name", c.name),
      Text("model", "name", c.model.name),
      Text("model", "flavor", c.model.flavor),
      Text("model", "config", c.model.config),
      Document("model", "config_json", c.model.config_json),
      Integer("training", "steps", c.training.steps, 1, 1e9),
      Integer("training", "seq_len", c.training.seq_len, 1, 1 << 20),
      Integer("training", "global_batch_size", c.training.global_batch_size, 1, kMostSamples),
      Number("training", "max_norm", c.training.max_norm, 0),
      Integer("training", "seed", c.training.seed, 0),
      WithHint(NameOfType("training", "dtype", c.training.dtype, {"float32", "float64"}),
               " (the type of weights and moments; to compute in a half type set training.mixed_precision_param)"),
      NameOfType("training", "mixed_precision_param", c.training.mixed_precision_param, {"", "float32", "bfloat16", "float16"}),
      WithHint(NameOfType("training", "mixed_precision_reduce", c.training.mixed_precision_reduce, {"float32"}),
               " (a sum over microbatches and ranks in a half type loses what is small)"),
      Text("optimizer", "name", c.optimizer.name, {"AdamW"}),
      MoreThan(Number("optimizer", "lr", c.optimizer.lr, 0)),
      LessThan(Number("optimizer", "beta1", c.optimizer.beta1, 0, 1)),
      LessThan(Number("optimizer", "beta2", c.optimizer.beta2, 0, 1)),
      MoreThan(Number("optimizer", "eps", c.optimizer.eps, 0)),
      Number("optimizer", "weight_decay", c.optimizer.weight_decay, 0),
      Text("optimizer", "decay", c.optimizer.decay, {"all", "matrices"}),
      Integer("lr_scheduler", "warmup_steps", c.lr_scheduler.warmup_steps, 0),
      Text("lr_scheduler", "decay_type", c.lr_scheduler.decay_type, {"linear", "cosine", "constant"}),
      Number("lr_scheduler", "min_lr_factor", c.lr_scheduler.min_lr_factor, 0, 1),
      Text("data", "path", c.data.path),
      Number("data", "validation_fraction", c.data.validation_fraction, 0, 0.9),
      Integer("data", "validation_samples", c.data.validation_samples, 0, 1 << 20),
      Integer("data", "validation_interval", c.data.validation_interval, 0),
      Text("data", "validation_path", c.data.validation_path),
      Flag("data", "any_tokenizer", c.data.any_tokenizer),
      Text("checkpoint", "folder", c.checkpoint.folder),
      Text("checkpoint", "storage", c.checkpoint.storage, {"auto", "shared", "local"}),
      Integer("checkpoint", "copies", c.checkpoint.copies, 0, 15),
      Integer("checkpoint", "interval", c.checkpoint.interval, 0),
      Integer("checkpoint", "keep_latest_k", c.checkpoint.keep_latest_k, 0),
      Number("checkpoint", "interval_minutes", c.checkpoint.interval_minutes, 0, 1e6),
      Flag("checkpoint", "enable_step_zero_checkpoint", c.checkpoint.enable_step_zero_checkpoint),
      Text("checkpoint", "initial", c.checkpoint.initial),
      Integer("metrics", "log_freq", c.metrics.log_freq, 1),
      Flag("metrics", "enable_tensorboard", c.metrics.enable_tensorboard),
      Text("metrics", "step_records", c.metrics.step_records, {"none", "jsonl", "csv"}),
      Text("planner", "strategy", c.planner.strategy),
      Text("planner", "fidelity", c.planner.fidelity, {"tuned", "published"}),
      Number("planner", "memory_reserve", c.planner.memory_reserve, 0, 0.5),
      Text("planner", "recompute", c.planner.recompute, {"auto", "none", "full"}),
      Text("planner", "offload", c.planner.offload),
      Text("planner", "exclude", c.planner.exclude),
      Text("planner", "pins", c.planner.pins),
      Flag("planner", "pins_required", c.planner.pins_required),
      Integer("planner", "max_tp", c.planner.max_tp, 1, 1 << 14),
      Integer("planner", "budget_nodes", c.planner.budget_nodes, 1, 1e15),
      Document("planner", "plan_json", c.planner.plan_json),
  };
}

}  // namespace motley
