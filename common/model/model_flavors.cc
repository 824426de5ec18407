// The named sizes of each family.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/nearest.h"
#include "common/model/model.h"

namespace motley {
namespace {

struct Flavor {
  const char* name;
  const char* flavor;
  ModelShape shape;
};

ModelShape Gpt2(int64_t vocab, int64_t hidden, int64_t layers, int64_t heads, int64_t positions) {
  return {.family = ModelFamily::kGpt2,
          .vocab_size = vocab,
          .hidden_size = hidden,
          .num_layers = layers,
          .num_heads = heads,
          .num_kv_heads = heads,
          .head_dim = hidden / heads,
          .intermediate_size = 4 * hidden,
          .max_positions = positions,
          .norm_eps = 1e-5,
          .rope_theta = 10000.0,
          .tie_embeddings = true};
}

struct RotarySizes {
  int64_t vocab, hidden, layers, heads, kv_heads, intermediate, positions;
  bool tied;
};
ModelShape Rotary(ModelFamily family, const RotarySizes& s, double norm_eps, double rope_theta) {
  return {.family = family,
          .vocab_size = s.vocab,
          .hidden_size = s.hidden,
          .num_layers = s.layers,
          .num_heads = s.heads,
          .num_kv_heads = s.kv_heads,
          .head_dim = s.hidden / s.heads,
          .intermediate_size = s.intermediate,
          .max_positions = s.positions,
          .norm_eps = norm_eps,
          .rope_theta = rope_theta,
          .tie_embeddings = s.tied};
}
ModelShape Llama3(const RotarySizes& s) { return Rotary(ModelFamily::kLlama, s, 1e-5, 500000.0); }
ModelShape Qwen2(const RotarySizes& s) { return Rotary(ModelFamily::kQwen2, s, 1e-6, 1000000.0); }
ModelShape Phi4(const RotarySizes& s) { return Rotary(ModelFamily::kPhi3, s, 1e-5, 250000.0); }
ModelShape Qwen3(const RotarySizes& s, int64_t head_dim) {
  ModelShape shape = Rotary(ModelFamily::kQwen3, s, 1e-6, 1000000.0);
  shape.head_dim = head_dim;
  return shape;
}
ModelShape Olmo2(const RotarySizes& s) { return Rotary(ModelFamily::kOlmo2, s, 1e-6, 500000.0); }
// Every fourth layer has no rotary positions; of small ones the last.
ModelShape SmolLm3(const RotarySizes& s) {
  ModelShape shape = Rotary(ModelFamily::kSmolLm3, s, 1e-6, 5000000.0);
  const int64_t interval = std::min<int64_t>(4, s.layers);
  for (int64_t layer = 0; layer < s.layers; ++layer) shape.layer_kinds.push_back({.rotary = (layer + 1) % interval != 0});
  return shape;
}

// Every sixth layer sees all tokens, of small models the last; the others have a window, and a base of their own.
ModelShape Gemma3(const RotarySizes& s, int64_t head_dim, int64_t window) {
  ModelShape shape = Rotary(ModelFamily::kGemma3, s, 1e-6, 1000000.0);
  shape.head_dim = head_dim;
  const int64_t interval = std::min<int64_t>(6, s.layers);
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    const bool full = (layer + 1) % interval == 0;
    shape.layer_kinds.push_back(full ? LayerKind() : LayerKind{.window = window, .rope_theta = 10000.0});
  }
  return shape;
}

// Vocabulary 256 is bytes. The published sizes are those of GPT-2 and Llama 3 (1B and 3B: Llama 3.2, without its
// rope scaling, which only stretches a trained model's context), those of Qwen 2.5 and 3, of Phi-4, of SmolLM 3, of OLMo 2 and of
// Gemma 3.
const std::vector<Flavor>& Flavors() {
  static const auto* const flavors = new std::vector<Flavor>{
      Flavor{"gpt2", "debug", Gpt2(256, 64, 2, 4, 256)},
      Flavor{"gpt2", "text-small", Gpt2(256, 128, 6, 4, 512)},
      Flavor{"gpt2", "text-medium", Gpt2(256, 256, 8, 8, 512)},
      Flavor{"gpt2", "124M", Gpt2(50257, 768, 12, 12, 1024)},
      Flavor{"gpt2", "350M", Gpt2(50257, 1024, 24, 16, 1024)},
      Flavor{"gpt2", "774M", Gpt2(50257, 1280, 36, 20, 1024)},
      Flavor{"gpt2", "1.5B", Gpt2(50257, 1600, 48, 25, 1024)},
      Flavor{"llama3", "debug", Llama3({256, 64, 2, 4, 2, 192, 256, false})},
      Flavor{"llama3", "text-small", Llama3({256, 128, 6, 4, 2, 384, 512, false})},
      Flavor{"llama3", "text-medium", Llama3({256, 256, 8, 8, 4, 704, 512, false})},
      Flavor{"llama3", "1B", Llama3({128256, 2048, 16, 32, 8, 8192, 131072, true})},
      Flavor{"llama3", "3B", Llama3({128256, 3072, 28, 24, 8, 8192, 131072, true})},
      Flavor{"llama3", "8B", Llama3({128256, 4096, 32, 32, 8, 14336, 8192, false})},
      Flavor{"llama3", "70B", Llama3({128256, 8192, 80, 64, 8, 28672, 8192, false})},
      Flavor{"qwen2", "debug", Qwen2({256, 64, 2, 4, 2, 192, 256, true})},
      Flavor{"qwen2", "text-small", Qwen2({256, 128, 6, 4, 2, 384, 512, true})},
      Flavor{"qwen2", "0.5B", Qwen2({151936, 896, 24, 14, 2, 4864, 32768, true})},
      Flavor{"qwen2", "1.5B", Qwen2({151936, 1536, 28, 12, 2, 8960, 131072, true})},
      Flavor{"qwen2", "7B", Qwen2({152064, 3584, 28, 28, 4, 18944, 131072, false})},
      Flavor{"qwen3", "debug", Qwen3({256, 64, 2, 4, 2, 192, 256, true}, 24)},
      Flavor{"qwen3", "text-small", Qwen3({256, 128, 6, 4, 2, 384, 512, true}, 32)},
      Flavor{"qwen3", "0.6B", Qwen3({151936, 1024, 28, 16, 8, 3072, 40960, true}, 128)},
      Flavor{"qwen3", "1.7B", Qwen3({151936, 2048, 28, 16, 8, 6144, 40960, true}, 128)},
      Flavor{"qwen3", "4B", Qwen3({151936, 2560, 36, 32, 8, 9728, 40960, true}, 128)},
      Flavor{"qwen3", "8B", Qwen3({151936, 4096, 36, 32, 8, 12288, 40960, false}, 128)},
      Flavor{"phi4", "debug", Phi4({256, 64, 2, 4, 2, 192, 256, false})},
      Flavor{"phi4", "text-small", Phi4({256, 128, 6, 4, 2, 384, 512, false})},
      Flavor{"phi4", "14B", Phi4({100352, 5120, 40, 40, 10, 17920, 16384, false})},
      Flavor{"smollm3", "debug", SmolLm3({256, 64, 2, 4, 2, 192, 256, true})},
      Flavor{"smollm3", "text-small", SmolLm3({256, 128, 6, 4, 2, 384, 512, true})},
      Flavor{"smollm3", "3B", SmolLm3({128256, 2048, 36, 16, 4, 11008, 65536, true})},
      Flavor{"olmo2", "debug", Olmo2({256, 64, 2, 4, 2, 192, 256, false})},
      Flavor{"olmo2", "text-small", Olmo2({256, 128, 6, 4, 2, 384, 512, false})},
      Flavor{"olmo2", "1B", Olmo2({100352, 2048, 16, 16, 16, 8192, 4096, false})},
      Flavor{"olmo2", "7B", Olmo2({100352, 4096, 32, 32, 32, 11008, 4096, false})},
      Flavor{"gemma3", "debug", Gemma3({256, 64, 2, 4, 2, 192, 256, true}, 24, 16)},
      Flavor{"gemma3", "text-small", Gemma3({256, 128, 6, 4, 1, 384, 512, true}, 32, 64)},
      Flavor{"gemma3", "270M", Gemma3({262144, 640, 18, 4, 1, 2048, 32768, true}, 256, 512)},
      Flavor{"gemma3", "1B", Gemma3({262144, 1152, 26, 4, 1, 6912, 32768, true}, 256, 512)},
  };
  return *flavors;
}

std::vector<std::string> KnownNames() {
  std::vector<std::string> names;
  for (const Flavor& flavor : Flavors()) {
    if (names.empty() || names.back() != flavor.name) names.push_back(flavor.name);
  }
  return names;
}

absl::Status NotKnown(const std::string& what, const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = NearestWord(word, known);
  return absl::NotFoundError(absl::StrCat(what, " ", Quoted(word), " is not known",
                                          nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?"),
                                          nearest.empty() ? "; " : " ", "Known: ", absl::StrJoin(known, ", ")));
}

}  // namespace

std::vector<std::string> KnownFlavors(std::string_view name) {
  std::vector<std::string> flavors;
  for (const Flavor& flavor : Flavors()) {
    if (name == flavor.name) flavors.push_back(flavor.flavor);
  }
  return flavors;
}

absl::StatusOr<ModelShape> ModelFlavor(std::string_view name, std::string_view flavor) {
  for (const Flavor& known : Flavors()) {
    if (name == known.name && flavor == known.flavor) return known.shape;
  }
  const std::vector<std::string> flavors = KnownFlavors(name);
  if (flavors.empty()) return NotKnown("model name", std::string(name), KnownNames());
  return NotKnown(absl::StrCat("flavor of model ", std::string(name)), std::string(flavor), flavors);
}

}  // namespace motley
