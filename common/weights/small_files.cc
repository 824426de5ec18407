#include "common/weights/small_files.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/data/data_files.h"

namespace motley {
namespace {

constexpr int64_t kMostSmallBytes = int64_t{64} << 20;
constexpr char kTemplatesFolder[] = "additional_chat_templates";
constexpr std::array<std::string_view, 10> kSmallNames = {"config.json",
                                                          "generation_config.json",
                                                          "tokenizer.json",
                                                          "tokenizer_config.json",
                                                          "special_tokens_map.json",
                                                          "added_tokens.json",
                                                          "merges.txt",
                                                          "tokenizer.model",
                                                          "USE_POLICY.md",
                                                          kCardName};
constexpr std::array<std::string_view, 4> kSmallStems = {"vocab.", "chat_template.", "LICENSE", "NOTICE"};

// Adds it; a folder of such a name ("LICENSES") is none of them.
absl::Status AddOne(const std::string& folder, const std::string& name, const OpenPath& open, std::vector<SmallFile>* files) {
  const std::string path = absl::StrCat(folder, "/", name);
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor file, open(path));
  if (IsDataFolder(file)) return absl::OkStatus();
  MOTLEY_ASSIGN_OR_RETURN(std::string text, ReadSmallFile(file, path, kMostSmallBytes));
  files->push_back({name, std::move(text)});
  return absl::OkStatus();
}

}  // namespace

bool IsSmallFile(std::string_view name) {
  return std::find(kSmallNames.begin(), kSmallNames.end(), name) != kSmallNames.end() ||
         std::any_of(kSmallStems.begin(), kSmallStems.end(), [&](std::string_view stem) { return name.starts_with(stem); });
}

absl::StatusOr<std::vector<SmallFile>> ReadSmallFiles(const std::string& folder, const OpenPath& open) {
  std::vector<SmallFile> files;
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesInFolder(folder, open));
  for (const std::string& name : names) {
    if (name == kTemplatesFolder) {
      const std::string below = absl::StrCat(folder, "/", name);
      MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> templates, NamesInFolder(below, open));
      for (const std::string& entry : templates) {
        if (entry.ends_with(".jinja")) MOTLEY_RETURN_IF_ERROR(AddOne(folder, absl::StrCat(name, "/", entry), open, &files));
      }
    } else if (IsSmallFile(name)) {
      MOTLEY_RETURN_IF_ERROR(AddOne(folder, name, open, &files));
    }
  }
  return files;
}

}  // namespace motley
