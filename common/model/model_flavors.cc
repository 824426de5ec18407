// The named sizes of each family.
#include <array>

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

constexpr ModelShape Gpt2(int64_t vocab, int64_t hidden, int64_t layers, int64_t heads, int64_t positions) {
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
constexpr ModelShape Rotary(ModelFamily family, const RotarySizes& s, double norm_eps, double rope_theta) {
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
constexpr ModelShape Llama3(const RotarySizes& s) { return Rotary(ModelFamily::kLlama, s, 1e-5, 500000.0); }
constexpr ModelShape Qwen2(const RotarySizes& s) { return Rotary(ModelFamily::kQwen2, s, 1e-6, 1000000.0); }
constexpr ModelShape Phi4(const RotarySizes& s) { return Rotary(ModelFamily::kPhi3, s, 1e-5, 250000.0); }

// Vocabulary 256 is bytes. The published sizes are those of GPT-2 and Llama 3 (1B and 3B: Llama 3.2, without its
// rope scaling, which only stretches a trained model's context), those of Qwen 2.5 and of Phi-4.
constexpr std::array kFlavors = {
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
    Flavor{"phi4", "debug", Phi4({256, 64, 2, 4, 2, 192, 256, false})},
    Flavor{"phi4", "text-small", Phi4({256, 128, 6, 4, 2, 384, 512, false})},
    Flavor{"phi4", "14B", Phi4({100352, 5120, 40, 40, 10, 17920, 16384, false})},
};

std::vector<std::string> KnownNames() {
  std::vector<std::string> names;
  for (const Flavor& flavor : kFlavors) {
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
  for (const Flavor& flavor : kFlavors) {
    if (name == flavor.name) flavors.push_back(flavor.flavor);
  }
  return flavors;
}

absl::StatusOr<ModelShape> ModelFlavor(std::string_view name, std::string_view flavor) {
  for (const Flavor& known : kFlavors) {
    if (name == known.name && flavor == known.flavor) return known.shape;
  }
  const std::vector<std::string> flavors = KnownFlavors(name);
  if (flavors.empty()) return NotKnown("model name", std::string(name), KnownNames());
  return NotKnown(absl::StrCat("flavor of model ", std::string(name)), std::string(flavor), flavors);
}

}  // namespace motley
