// The rows of the comparison: clusters of the papers with the models and batches of their tables, and ordinary labs. Fixed before
// any strategy was run on them.
#pragma once

#include <cstdint>
#include <vector>

namespace motley::planner {

struct UnifyRow {
  const char* cluster;
  const char* model;
  int64_t global_batch, seq_len;
  const char* dtype;
};

// Batches: Cephalo tables 4 and 5; Zorse 1 M tokens a step, Poplar 2 M; HexiScale and Baton do not give theirs in samples.
inline const std::vector<UnifyRow>& UnifyRows() {
  static const std::vector<UnifyRow> rows = {
      {"cephalo-a", "vit-g", 128, 512, "float32"},
      {"cephalo-a", "vit-g", 256, 512, "float32"},
      {"cephalo-a", "vit-e", 128, 512, "float32"},
      {"cephalo-a", "vit-e", 256, 512, "float32"},
      {"cephalo-a", "bert-large", 128, 512, "float32"},
      {"cephalo-a", "bert-large", 256, 512, "float32"},
      {"cephalo-a", "bert-xlarge", 128, 512, "float32"},
      {"cephalo-a", "bert-xlarge", 256, 512, "float32"},
      {"cephalo-a", "gpt-1.3b", 128, 512, "float32"},
      {"cephalo-a", "gpt-1.3b", 256, 512, "float32"},
      {"cephalo-a", "gpt-2.7b", 128, 512, "float32"},
      {"cephalo-a", "gpt-2.7b", 256, 512, "float32"},
      {"cephalo-a", "llama-tiny", 128, 512, "float32"},
      {"cephalo-a", "llama-tiny", 256, 512, "float32"},
      {"cephalo-a", "llama-3b", 128, 512, "float32"},
      {"cephalo-a", "llama-3b", 256, 512, "float32"},
      {"cephalo-b", "vit-e", 512, 512, "float32"},
      {"cephalo-b", "vit-e", 1024, 512, "float32"},
      {"cephalo-b", "gpt-6.7b", 512, 512, "float32"},
      {"cephalo-b", "gpt-6.7b", 1024, 512, "float32"},
      {"cephalo-b", "llama-7b", 512, 512, "float32"},
      {"cephalo-b", "llama-7b", 1024, 512, "float32"},
      {"zorse-a", "llama-7b", 256, 4096, "float16"},
      {"zorse-a", "llama-13b", 256, 4096, "float16"},
      {"zorse-a", "llama-33b", 256, 4096, "float16"},
      {"zorse-a", "llama-65b", 256, 4096, "float16"},
      {"zorse-b", "llama-7b", 1024, 1024, "float16"},
      {"zorse-b", "llama-13b", 1024, 1024, "float16"},
      {"zorse-b", "llama-33b", 1024, 1024, "float16"},
      {"zorse-c", "llama-7b", 2048, 512, "float16"},
      {"zorse-c", "llama-13b", 2048, 512, "float16"},
      {"zorse-c", "llama-33b", 2048, 512, "float16"},
      {"poplar-a", "llama-0.5b", 1024, 2048, "float16"},
      {"poplar-a", "bert-large", 4096, 512, "float16"},
      {"poplar-a", "llama-tiny", 1024, 2048, "float16"},
      {"poplar-b", "llama-0.5b", 1024, 2048, "float16"},
      {"poplar-b", "bert-large", 4096, 512, "float16"},
      {"poplar-c", "llama-0.5b", 1024, 2048, "float16"},
      {"poplar-c", "llama-tiny", 1024, 2048, "float16"},
      {"poplar-c", "llama-3b", 1024, 2048, "float16"},
      {"hexiscale-1", "llama2-7b", 256, 2048, "float16"},
      {"hexiscale-1", "llama2-13b", 256, 2048, "float16"},
      {"hexiscale-2", "llama2-7b", 256, 2048, "float16"},
      {"hexiscale-2", "llama2-13b", 256, 2048, "float16"},
      {"hexiscale-3", "llama2-13b", 256, 2048, "float16"},
      {"hexiscale-3", "llama-33b", 256, 2048, "float16"},
      {"hexiscale-240", "llama-33b", 1024, 2048, "float16"},
      {"hexiscale-240", "llama2-70b", 1024, 2048, "float16"},
      {"baton", "gpt3-1b", 32, 1024, "float16"},
      {"baton", "gpt3-1b", 128, 1024, "float16"},
      {"baton", "gpt-2.7b", 64, 1024, "float16"},
      {"a6000-l4-p40", "gpt2-1.5b", 128, 1024, "float16"},
      {"a6000-l4-p40", "llama-7b", 128, 1024, "float16"},
      {"a6000-l4-p40", "llama-13b", 256, 1024, "float16"},
      {"h200-and-a100", "gpt2-1.5b", 256, 1024, "float16"},
      {"h200-and-a100", "llama-7b", 256, 1024, "float16"},
      {"two-4090", "gpt2-124m", 64, 1024, "float32"},
      {"two-4090", "gpt2-1.5b", 64, 1024, "float32"},
      {"eight-h100", "llama3-8b", 128, 4096, "bfloat16"},
      {"eight-h100", "llama2-70b", 128, 4096, "bfloat16"},
  };
  return rows;
}

}  // namespace motley::planner
