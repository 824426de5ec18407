#include "planner/costs/workload.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"

namespace motley::planner {
namespace {

// A config.json has a few kilobytes; something else was meant when a file is larger.
constexpr int64_t kMostConfigBytes = 1 << 20;
// Far above any training; keeps every product of sizes within int64.
constexpr int64_t kMostSamples = int64_t{1} << 24;

// "meta-llama/Llama-3.1-8B": two words as HuggingFace's hub has them, and nothing that tells a path.
bool IsHubId(const std::string& name) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == name.size() || name.find('/', slash + 1) != std::string::npos) {
    return false;
  }
  return name.front() != '.' && name.front() != '~' && !absl::EndsWithIgnoreCase(name, ".json");
}

constexpr size_t kTellingLetters = 3;  // fewer begin too many names

// Presets that begin with the word or have it as a part ("qwen", "13b"); else the one that is spelled most alike, if any.
std::vector<std::string> PresetsLike(const std::string& word, const std::vector<std::string>& known) {
  std::vector<std::string> like;
  for (const std::string& preset : known) {
    const std::vector<std::string> parts = absl::StrSplit(preset, '-');
    const auto is_word = [&](const std::string& part) { return absl::EqualsIgnoreCase(part, word); };
    const bool begins = word.size() >= kTellingLetters && absl::StartsWithIgnoreCase(preset, word);
    if (begins || std::any_of(parts.begin(), parts.end(), is_word)) like.push_back(preset);
  }
  if (!like.empty()) return like;
  const std::string nearest = NearestWord(word, known);
  return nearest.empty() ? like : std::vector<std::string>{nearest};
}

absl::Status NoSuchModel(const std::string& name) {
  std::vector<std::string> known;
  for (const ModelPreset& preset : ModelPresets()) known.emplace_back(preset.name);
  const bool hub = IsHubId(name);
  const std::vector<std::string> like = PresetsLike(hub ? name.substr(name.find('/') + 1) : name, known);
  const std::string quoted = absl::StrCat("'", absl::StrJoin(like, "', '"), "'");
  if (hub) {
    return absl::NotFoundError(absl::StrCat("model '", name,
                                            "' is no file here; if it is an id of HuggingFace, download its config.json "
                                            "first (hf download ",
                                            name, " config.json) and give that file's path",
                                            like.empty() ? "" : absl::StrCat("; or take the preset ", quoted)));
  }
  if (absl::EndsWithIgnoreCase(name, ".json") || absl::StrContains(name, '/')) {
    return absl::NotFoundError(absl::StrCat("model '", name, "': there is no such file; `motley models` lists the presets"));
  }
  const std::string hint = like.empty() ? absl::StrCat(". Known: ", absl::StrJoin(known, ", "), ".")
                                        : absl::StrCat("; did you mean ", quoted, "? `motley models` lists all.");
  return absl::NotFoundError(
      absl::StrCat("model '", name, "' is neither a preset nor a file", hint, " Or give the path of a HuggingFace config.json."));
}

}  // namespace

absl::StatusOr<Workload> LoadModel(const std::string& preset_or_path) {
  Workload workload;
  workload.model_name = preset_or_path;
  for (const ModelPreset& preset : ModelPresets()) {
    if (preset.name != preset_or_path) continue;
    workload.profile_name = preset.profile_name;
    workload.model = preset.model;
    workload.causal = preset.causal;
    return workload;
  }
  std::error_code error;
  if (std::filesystem::is_directory(preset_or_path, error)) {
    return absl::NotFoundError(absl::StrCat("model ", preset_or_path, " is a directory; give its config.json or a preset"));
  }
  if (!std::filesystem::is_regular_file(preset_or_path, error)) return NoSuchModel(preset_or_path);
  MOTLEY_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(preset_or_path, kMostConfigBytes));
  MOTLEY_ASSIGN_OR_RETURN(HfModel model, ParseHfShape(text, preset_or_path));
  workload.model = model.shape;
  workload.notes = std::move(model.notes);
  return workload;
}

namespace {

absl::Status ValidateStateBytes(const Workload& workload) {
  const int64_t bytes = workload.state_bytes_per_parameter, least = 2 * SizeOfBytes(workload.dtype);
  if (bytes == 0 || (bytes >= least && bytes <= kMostStateBytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--state-bytes-per-parameter must be ", least, " to ", kMostStateBytes, " in ",
                                                 std::string(DTypeName(workload.dtype)), ", whose parameters and gradients take ",
                                                 least, ", got ", bytes));
}

}  // namespace

absl::Status Validate(const Workload& workload) {
  const ModelShape& model = workload.model;
  const std::string name = workload.model_name.empty() ? "the model" : workload.model_name;
  for (const auto& [what, size] : {std::pair{"num_layers", model.num_layers}, std::pair{"hidden_size", model.hidden_size},
                                   std::pair{"num_heads", model.num_heads}, std::pair{"num_kv_heads", model.num_kv_heads},
                                   std::pair{"head_dim", model.head_dim}, std::pair{"intermediate_size", model.intermediate_size},
                                   std::pair{"vocab_size", model.vocab_size}, std::pair{"max_positions", model.max_positions}}) {
    if (size < 1) return absl::InvalidArgumentError(absl::StrCat(name, ": ", what, " must be at least 1, got ", size));
  }
  if (workload.global_batch < 1 || workload.global_batch > kMostSamples) {
    return absl::InvalidArgumentError(absl::StrCat("global batch must be 1 to ", kMostSamples, " samples, got ",
                                                   workload.global_batch, "; give --global-batch"));
  }
  if (workload.seq_len < 1 || workload.seq_len > model.max_positions) {
    return absl::InvalidArgumentError(absl::StrCat("sequence length must be 1 to ", model.max_positions, ", the positions of ",
                                                   name, ", got ", workload.seq_len, "; give --seq-len"));
  }
  return ValidateStateBytes(workload);
}

absl::Status StateRunsHere(const Workload& workload) {
  if (workload.state_bytes_per_parameter == 0) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("jobs keep AdamW in float32; this counts ", workload.state_bytes_per_parameter,
                                               " bytes of state a parameter, as asked"));
}

}  // namespace motley::planner
