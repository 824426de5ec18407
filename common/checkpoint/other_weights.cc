#include "common/checkpoint/other_weights.h"

#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr char kHuggingFace[] = "HuggingFace weights";
constexpr char kGiveInstead[] =
    ", which cannot be a start; give a HuggingFace folder of safetensors, a job of Motley or its checkpoint folder";
// Nodes find such a folder before anybody looks for a checkpoint there.
constexpr char kNoCheckpoint[] =
    " and no checkpoint; to begin a job with them the workers must be of a build that reads safetensors: upgrade them";

// The weights of transformers, whole or in shards, of PyTorch alone, and of llama.cpp.
std::string KindOf(std::string_view file) {
  const auto is = [file](std::string_view begin, std::string_view end) { return file.starts_with(begin) && file.ends_with(end); };
  if (is("", ".safetensors") || is("", ".safetensors.index.json")) return kHuggingFace;
  if (is("pytorch_model", ".bin") || is("pytorch_model", ".bin.index.json")) return "weights of PyTorch (.bin)";
  if (is("", ".gguf")) return "weights of llama.cpp";
  if (is("", ".pth") || is("", ".pt") || is("", ".ckpt") || is("", ".distcp")) return "weights of another program";
  return "";
}

}  // namespace

std::string OtherWeightsIn(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const std::string kind = KindOf(fs::path(path).filename().string());
    if (kind == kHuggingFace) return absl::StrCat(path, " is a file of ", kind, "; give the folder that it lies in");
    return kind.empty() ? "" : absl::StrCat(path, " is a file of ", kind, kGiveInstead);
  }
  std::set<std::string> kinds;
  bool config = false, snapshots = false;
  for (fs::directory_iterator entry(path, error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (std::string kind = KindOf(name); !kind.empty()) kinds.insert(std::move(kind));
    config |= name == "config.json";
    snapshots |= name == "snapshots";
  }
  if (kinds.contains(kHuggingFace)) return absl::StrCat(path, " holds ", kHuggingFace, kNoCheckpoint);
  if (!kinds.empty()) return absl::StrCat(path, " holds ", *kinds.begin(), kGiveInstead);
  if (config) return absl::StrCat(path, " holds a HuggingFace model's config.json", kNoCheckpoint);
  if (snapshots) return absl::StrCat(path, " is a download of HuggingFace's hub", kNoCheckpoint);
  return "";
}

}  // namespace motley
