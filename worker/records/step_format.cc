#include "worker/records/step_format.h"

#include "common/data/loss_figures.h"

namespace motley::worker {
namespace {

using Value = std::optional<double>;

}  // namespace

const std::vector<StepColumn>& StepColumns() {
  static const auto* const columns = new std::vector<StepColumn>{
      {"step", "", [](const StepRecord& r) -> Value { return r.stats.step; }, true},
      {"generation", "", [](const StepRecord& r) -> Value { return r.stats.epoch.value(); }, true},
      {"unix_seconds", "", [](const StepRecord& r) -> Value { return r.unix_seconds; }},
      {"loss", "training/loss", [](const StepRecord& r) -> Value { return r.stats.loss; }},
      {"validation_loss", "training/validation_loss", [](const StepRecord& r) -> Value { return r.stats.validation_loss; }},
      {"grad_norm", "training/grad_norm", [](const StepRecord& r) -> Value { return r.stats.grad_norm; }},
      {"lr", "training/lr", [](const StepRecord& r) -> Value { return r.stats.lr; }},
      {"loss_scale", "training/loss_scale",
       [](const StepRecord& r) -> Value { return r.stats.loss_scale > 0 ? Value(r.stats.loss_scale) : std::nullopt; }},
      {"skipped", "training/skipped",
       [](const StepRecord& r) -> Value { return r.stats.loss_scale > 0 ? Value(r.stats.skipped) : std::nullopt; }, true},
      {"tokens", "training/tokens", [](const StepRecord& r) -> Value { return r.tokens; }, true},
      {"tokens_per_second", "speed/tokens_per_second", [](const StepRecord& r) -> Value { return r.stats.tokens_per_second; }},
      {"step_seconds", "speed/step_seconds", [](const StepRecord& r) -> Value { return r.stats.step_seconds; }},
      {"predicted_step_seconds", "speed/predicted_step_seconds",
       [](const StepRecord& r) -> Value { return r.stats.predicted_step_seconds; }},
      // What is new comes last: some read CSV by the columns' places.
      {"validation_perplexity", "training/validation_perplexity",
       [](const StepRecord& r) -> Value {
         return r.stats.validation_loss ? Value(Perplexity(*r.stats.validation_loss)) : std::nullopt;
       }},
      {"validation_bits_per_byte", "training/validation_bits_per_byte",
       [](const StepRecord& r) -> Value { return r.stats.validation_bits_per_byte; }},
  };
  return *columns;
}

std::vector<StepFormat> StepFormatsOf(const MetricsSection& metrics) {
  std::vector<StepFormat> formats;
  if (metrics.enable_tensorboard) formats.push_back(kTensorBoardFormat);
  if (metrics.step_records == "jsonl") formats.push_back(kJsonLinesFormat);
  if (metrics.step_records == "csv") formats.push_back(kCsvFormat);
  return formats;
}

}  // namespace motley::worker
