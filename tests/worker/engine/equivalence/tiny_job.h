// Jobs of a second: tiny models on a little text, with clipping, warm-up and weight decay, and a checkpoint after every step.
// Those of half types are longer, so that rounding could add up.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/job/job.h"
#include "common/model/model.h"

namespace motley::engine {

inline constexpr int64_t kTinySteps = 5, kHalfSteps = 20;

struct TinyJob {
  ModelShape model;
  JobConfig config;
  int64_t overflowing_step = -1;  // from 0: a gradient's; -1: none
  // "gpt2, 5 layers, batch 8, float64": two of one name are the same job. With more heads "..., 6 heads", without
  // clipping "..., unclipped".
  std::string Name() const;
};

// A model's layers and the global batch.
struct TinySize {
  int64_t layers = 0, batch = 0;
};
inline constexpr TinySize kTinySizes[] = {{3, 9}, {5, 8}, {8, 12}};

// GPT-2 ties its embeddings and has biases; Llama does neither and has two query heads for each head of keys and values. The data
// and the checkpoints are in `folder`.
// Of a half type the job is mixed: its master is float32.
TinyJob MakeTinyJob(ModelFamily family, TinySize size, DType compute, const std::filesystem::path& folder);
// With so many heads of keys and values, which divide neither the vocabulary nor the MLP's columns: to be cut among several
// ranks.
TinyJob WithHeads(TinyJob job, int64_t kv_heads);

// On packed rows of which some tokens are trained on.
TinyJob OnRows(TinyJob job);

// Hundreds of times as many bytes, two steps and no checkpoint.
TinyJob Widened(TinyJob job);

// A text of some ten thousand bytes, where MakeTinyJob looks for it.
void WriteTinyText(const std::filesystem::path& folder);
// Rows for tiny jobs, where OnRows looks for them.
void WriteTinyRows(const std::filesystem::path& folder);

}  // namespace motley::engine
