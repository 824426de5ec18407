#include "common/checkpoint/other_weights.h"

#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr char kGiveInstead[] = ", which cannot be a start yet; give a job of Motley or its checkpoint folder";

// The weights of transformers, whole or in shards, of PyTorch alone, and of llama.cpp.
std::string KindOf(std::string_view file) {
  const auto is = [file](std::string_view begin, std::string_view end) { return file.starts_with(begin) && file.ends_with(end); };
  if (is("", ".safetensors") || is("", ".safetensors.index.json") || is("pytorch_model", ".bin") ||
      is("pytorch_model", ".bin.index.json")) {
    return "HuggingFace weights";
  }
  if (is("", ".gguf")) return "weights of llama.cpp";
  if (is("", ".pth") || is("", ".pt") || is("", ".ckpt") || is("", ".distcp")) return "weights of another program";
  return "";
}

}  // namespace

std::string OtherWeightsIn(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const std::string kind = KindOf(fs::path(path).filename().string());
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
  if (!kinds.empty()) return absl::StrCat(path, " holds ", *kinds.begin(), kGiveInstead);
  if (config) return absl::StrCat(path, " holds a HuggingFace model's config.json and no checkpoint", kGiveInstead);
  if (snapshots) return absl::StrCat(path, " is a download of HuggingFace's hub", kGiveInstead);
  return "";
}

}  // namespace motley
