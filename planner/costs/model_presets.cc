// The named models. Sizes of the papers' models are those of their tables and of the authors' published model_stats.json (which
// gives hidden size, layers and parameters of a layer; the intermediate size follows from these). Vocabularies are the public
// models'; the authors' own runs had 49,152 rows and an untied head. Sequences are bounded generously where a paper trains beyond
// the original's.
#include <vector>

#include "planner/costs/workload.h"

namespace motley::planner {
namespace {

struct Sizes {
  int64_t hidden, layers, heads, kv_heads, intermediate, vocab, positions;
};

ModelShape Gpt(const Sizes& s, bool tied = true) {
  ModelShape shape;
  shape.family = ModelFamily::kGpt2;
  shape.vocab_size = s.vocab;
  shape.hidden_size = s.hidden;
  shape.num_layers = s.layers;
  shape.num_heads = s.heads;
  shape.num_kv_heads = s.heads;
  shape.head_dim = s.hidden / s.heads;
  shape.intermediate_size = s.intermediate;
  shape.max_positions = s.positions;
  shape.tie_embeddings = tied;
  return shape;
}

ModelShape Llama(const Sizes& s, double rope_theta = 10000) {
  ModelShape shape = Gpt(s, false);
  shape.family = ModelFamily::kLlama;
  shape.num_kv_heads = s.kv_heads;
  shape.rope_theta = rope_theta;
  return shape;
}

constexpr int64_t kGptVocabulary = 50257, kLlamaVocabulary = 32000, kLlama3Vocabulary = 128256, kBertVocabulary = 30522;
constexpr int64_t kImageClasses = 1000;  // stands for the patch projection at the one end and the classes at the other
constexpr double kLlama3Theta = 500000, kQwen2Theta = 1000000;

std::vector<ModelPreset> Gpts() {
  const auto gpt = [](int64_t hidden, int64_t layers, int64_t heads, int64_t positions) {
    return Gpt({hidden, layers, heads, heads, 4 * hidden, kGptVocabulary, positions});
  };
  return {
      {"gpt2-124m", "Radford et al. 2019", "", gpt(768, 12, 12, 1024)},
      {"gpt2-350m", "Radford et al. 2019", "", gpt(1024, 24, 16, 1024)},
      {"gpt2-774m", "Radford et al. 2019", "", gpt(1280, 36, 20, 1024)},
      {"gpt2-1.5b", "Radford et al. 2019", "", gpt(1600, 48, 25, 1024)},
      {"gpt3-1b", "GPT-3 XL, Brown et al. 2020 table 2.1; Baton", "deepspeedgpt_1.3b", gpt(2048, 24, 16, 2048)},
      {"gpt-1.3b", "GPT-3 XL, Brown et al. 2020 table 2.1; Cephalo table 4", "deepspeedgpt_1.3b", gpt(2048, 24, 32, 2048)},
      {"gpt-2.7b", "Cephalo table 2 (80 heads; GPT-3's 2.7B has 32)", "deepspeedgpt_2.7b", gpt(2560, 32, 80, 2048)},
      {"gpt-6.7b", "Cephalo table 2 (128 heads; GPT-3's 6.7B has 32)", "deepspeedgpt_6.7b", gpt(4096, 32, 128, 2048)},
      {"gpt-13b", "GPT-3 13B, Brown et al. 2020 table 2.1, hidden size 5,120", "", gpt(5120, 40, 40, 2048)},
      {"gpt-175b", "GPT-3, Brown et al. 2020 table 2.1", "deepspeedgpt_175b", gpt(12288, 96, 96, 2048)},
  };
}

std::vector<ModelPreset> Llamas() {
  const auto llama = [](int64_t hidden, int64_t layers, int64_t heads, int64_t intermediate, int64_t positions) {
    return Llama({hidden, layers, heads, heads, intermediate, kLlamaVocabulary, positions});
  };
  return {
      {"llama-0.5b", "Poplar: 0.5B of the Llama family; the paper gives no sizes, these are ours", "",
       llama(1280, 20, 20, 3456, 4096)},
      {"llama-tiny", "Cephalo table 2, model_stats.json (TinyLlama without grouped heads)", "deepspeedllama_tiny",
       llama(2048, 22, 32, 5632, 4096)},
      {"llama-1.1b", "TinyLlama, Zhang et al. 2024", "", Llama({2048, 22, 32, 4, 5632, kLlamaVocabulary, 4096})},
      {"llama-3b", "OpenLLaMA 3B, Cephalo table 2", "deepspeedllama_3b", llama(3200, 26, 32, 8640, 4096)},
      {"llama-7b", "Touvron et al. 2023 table 2; Cephalo table 2", "deepspeedllama_7b", llama(4096, 32, 32, 11008, 4096)},
      {"llama-13b", "Touvron et al. 2023 table 2; Zorse table 3", "deepspeedllama_13b", llama(5120, 40, 40, 13824, 4096)},
      {"llama-30b", "Touvron et al. 2023 table 2 (33B)", "deepspeedllama_33b", llama(6656, 60, 52, 17920, 4096)},
      {"llama-33b", "Touvron et al. 2023 table 2; Zorse table 3", "deepspeedllama_33b", llama(6656, 60, 52, 17920, 4096)},
      {"llama-65b", "Touvron et al. 2023 table 2; Zorse table 3", "deepspeedllama_65b", llama(8192, 80, 64, 22016, 4096)},
      {"llama2-7b", "Touvron et al. 2023b", "deepspeedllama_7b", llama(4096, 32, 32, 11008, 4096)},
      {"llama2-13b", "Touvron et al. 2023b", "deepspeedllama_13b", llama(5120, 40, 40, 13824, 4096)},
      {"llama2-70b", "Touvron et al. 2023b; HexiScale", "", Llama({8192, 80, 64, 8, 28672, kLlamaVocabulary, 4096})},
      {"llama3-8b", "Llama 3, Dubey et al. 2024 table 3", "",
       Llama({4096, 32, 32, 8, 14336, kLlama3Vocabulary, 8192}, kLlama3Theta)},
      {"llama3-70b", "Llama 3, Dubey et al. 2024 table 3", "",
       Llama({8192, 80, 64, 8, 28672, kLlama3Vocabulary, 8192}, kLlama3Theta)},
  };
}

// Those of their config.json, whose parameters are counted to the unit.
std::vector<ModelPreset> Published() {
  const auto llama3 = [](const Sizes& s, bool tied, double factor) {
    ModelShape shape = Llama(s, kLlama3Theta);
    shape.tie_embeddings = tied;
    shape.norm_eps = 1e-5;
    shape.rope_scaling = {factor, 1, 4, 8192};
    return shape;
  };
  const auto qwen = [](const Sizes& s, bool tied) {
    ModelShape shape = Llama(s, kQwen2Theta);
    shape.family = ModelFamily::kQwen2;
    shape.tie_embeddings = tied;
    shape.norm_eps = 1e-6;
    return shape;
  };
  ModelShape mistral = Llama({4096, 32, 32, 8, 14336, kLlamaVocabulary, 32768});
  mistral.norm_eps = 1e-5;
  mistral.layer_kinds.assign(32, {.window = 4096});
  return {
      {"llama3.1-8b", "config.json of meta-llama/Llama-3.1-8B", "",
       llama3({4096, 32, 32, 8, 14336, kLlama3Vocabulary, 131072}, false, 8)},
      {"llama3.2-1b", "config.json of meta-llama/Llama-3.2-1B", "",
       llama3({2048, 16, 32, 8, 8192, kLlama3Vocabulary, 131072}, true, 32)},
      {"llama3.2-3b", "config.json of meta-llama/Llama-3.2-3B", "",
       llama3({3072, 28, 24, 8, 8192, kLlama3Vocabulary, 131072}, true, 32)},
      {"qwen2.5-0.5b", "config.json of Qwen/Qwen2.5-0.5B", "", qwen({896, 24, 14, 2, 4864, 151936, 32768}, true)},
      {"qwen2.5-1.5b", "config.json of Qwen/Qwen2.5-1.5B", "", qwen({1536, 28, 12, 2, 8960, 151936, 131072}, true)},
      {"qwen2.5-7b", "config.json of Qwen/Qwen2.5-7B", "", qwen({3584, 28, 28, 4, 18944, 152064, 131072}, false)},
      {"mistral-7b", "config.json of mistralai/Mistral-7B-v0.1", "", mistral},
  };
}

std::vector<ModelPreset> Encoders() {
  const auto bert = [](int64_t hidden, int64_t layers, int64_t heads) {
    return Gpt({hidden, layers, heads, heads, 4 * hidden, kBertVocabulary, 1024});
  };
  const auto vit = [](int64_t hidden, int64_t layers, int64_t intermediate) {
    return Gpt({hidden, layers, 16, 16, intermediate, kImageClasses, 1024}, false);
  };
  return {
      {"bert-base", "Devlin et al. 2018", "deepspeedbert_base", bert(768, 12, 12), false},
      {"bert-large", "Devlin et al. 2018; Cephalo table 2", "deepspeedbert_large", bert(1024, 24, 16), false},
      {"bert-xlarge", "Cephalo table 2", "deepspeedbert_xlarge", bert(1536, 36, 24), false},
      {"bert-1.1b", "Poplar: 1.1B BERT; the paper gives no sizes, these are bert-xlarge's", "deepspeedbert_xlarge",
       bert(1536, 36, 24), false},
      {"vit-h", "ViT-H, Dosovitskiy et al. 2020", "deepspeedvit_h", vit(1280, 32, 5120), false},
      {"vit-g", "ViT-G, Zhai et al. 2022; Cephalo table 2", "deepspeedvit_g", vit(1664, 48, 8192), false},
      {"vit-e", "ViT-e, Chen et al. 2022; Cephalo table 2", "deepspeedvit_e", vit(1792, 56, 15360), false},
  };
}

}  // namespace

const std::vector<ModelPreset>& ModelPresets() {
  static const std::vector<ModelPreset>* const presets = [] {
    auto* all = new std::vector<ModelPreset>(Gpts());
    for (const auto& family : {Llamas(), Published(), Encoders()}) all->insert(all->end(), family.begin(), family.end());
    return all;
  }();
  return *presets;
}

}  // namespace motley::planner
