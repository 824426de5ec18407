#include "tests/worker/engine/equivalence/tiny_job.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/worker/engine/rows_folder.h"

namespace motley::engine {
namespace {

constexpr char kText[] = "text.txt", kRows[] = "rows";
constexpr int64_t kTinySeqLen = 16;
constexpr int64_t kKvHeads = 2;

// ", windows in layers 0,2"; empty: none has one.
std::string WindowsOf(const ModelShape& model) {
  std::vector<size_t> layers;
  for (size_t layer = 0; layer < model.layer_kinds.size(); ++layer) {
    if (model.layer_kinds[layer].window > 0) layers.push_back(layer);
  }
  return layers.empty() ? "" : absl::StrCat(", windows in layers ", absl::StrJoin(layers, ","));
}

}  // namespace

std::string TinyJob::Name() const {
  const DType compute = PrecisionOf(config.training)->compute;
  return absl::StrCat(std::string(TraitsOf(model.family).model_type), ", ", model.num_layers, " layers, batch ",
                      config.training.global_batch_size, ", ", std::string(DTypeName(compute)),
                      model.num_kv_heads == kKvHeads ? "" : absl::StrCat(", ", model.num_kv_heads, " heads"), WindowsOf(model),
                      std::filesystem::path(config.data.path).filename() == kRows ? ", rows" : "",
                      config.training.max_norm == 0 ? ", unclipped" : "", overflowing_step >= 0 ? ", overflowing" : "");
}

TinyJob MakeTinyJob(ModelFamily family, TinySize size, DType compute, const std::filesystem::path& folder) {
  TinyJob job;
  const bool gpt2 = family == ModelFamily::kGpt2;
  job.model = {.family = family,
               .vocab_size = 256,
               .hidden_size = 16,
               .num_layers = size.layers,
               .num_heads = gpt2 ? 2 : 4,
               .num_kv_heads = kKvHeads,
               .head_dim = gpt2 ? 8 : 4,
               .intermediate_size = gpt2 ? 64 : 40,
               .max_positions = 32,
               .tie_embeddings = gpt2};
  job.config.training = {.steps = IsHalf(compute) ? kHalfSteps : kTinySteps,
                         .seq_len = kTinySeqLen,
                         .global_batch_size = size.batch,
                         .max_norm = 0.3,
                         .seed = 3,
                         .dtype = compute == DType::kFloat64 ? "float64" : "float32",
                         .mixed_precision_param = IsHalf(compute) ? std::string(DTypeName(compute)) : ""};
  job.config.optimizer.lr = 2e-3;
  job.config.lr_scheduler.warmup_steps = 2;
  job.config.data.path = (folder / kText).string();
  job.config.data.validation_samples = 4;
  job.config.data.validation_interval = 3;
  job.config.checkpoint.folder = (folder / "checkpoints").string();
  job.config.checkpoint.interval = 1;
  job.config.checkpoint.keep_latest_k = 0;
  return job;
}

TinyJob WithHeads(TinyJob job, int64_t kv_heads) {
  ModelShape& model = job.model;
  const int64_t queries = model.num_heads / model.num_kv_heads;
  model.num_kv_heads = kv_heads;
  model.num_heads = queries * kv_heads;
  model.head_dim = queries == 1 ? 4 : 2;
  model.hidden_size = model.num_heads * model.head_dim;
  model.intermediate_size = 2 * model.hidden_size + 5;
  model.vocab_size = 259;
  return job;
}

TinyJob OnRows(TinyJob job) {
  job.config.data.path = (std::filesystem::path(job.config.data.path).parent_path() / kRows).string();
  return job;
}

TinyJob Widened(TinyJob job) {
  constexpr int64_t kTimes = 6, kVocabulary = 1024, kSeqLen = 64;
  job.model.hidden_size *= kTimes;
  job.model.intermediate_size *= kTimes;
  job.model.head_dim *= kTimes;
  job.model.vocab_size = kVocabulary;
  job.model.max_positions = 2 * kSeqLen;
  job.config.training.seq_len = kSeqLen;
  job.config.training.steps = 2;
  job.config.checkpoint = {};
  return job;
}

void WriteTinyText(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::ofstream text(folder / kText);
  for (int i = 0; i < 400; ++i) text << "line " << i * 37 % 101 << " of a small text; the quick brown fox number " << i << ".\n";
}

void WriteTinyRows(const std::filesystem::path& folder) {
  WriteRowsFolder(folder / kRows, kTinySeqLen, DrawRows(6, 120, kTinySeqLen));
}

}  // namespace motley::engine
