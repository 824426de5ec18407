#include "common/weights/small_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/data/data_files.h"

namespace motley {
namespace {

constexpr int64_t kMostSmallBytes = int64_t{64} << 20;
// The largest tokenizers have some 40 MB (256,000 tokens, with the model that they were made from).
constexpr int64_t kMostSmallBytesInAll = int64_t{128} << 20;
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

int64_t SizeOf(const FileDescriptor& file) {
  struct stat found;
  return ::fstat(file.get(), &found) == 0 ? static_cast<int64_t>(found.st_size) : 0;
}

// "config.json", "additional_chat_templates/tool_use.jinja"; what else has such a name may be among them.
absl::StatusOr<std::vector<std::string>> SmallNamesIn(const std::string& folder, const OpenPath& open) {
  std::vector<std::string> found;
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesInFolder(folder, open));
  for (const std::string& name : names) {
    if (name == kTemplatesFolder) {
      MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> templates, NamesInFolder(absl::StrCat(folder, "/", name), open));
      for (const std::string& entry : templates) {
        if (entry.ends_with(".jinja")) found.push_back(absl::StrCat(name, "/", entry));
      }
    } else if (IsSmallFile(name)) {
      found.push_back(name);
    }
  }
  return found;
}

// Counts what they hold, one after the other.
class SmallBytes {
 public:
  absl::Status Add(const std::string& path, int64_t bytes) {
    if (bytes > kMostSmallBytes) {
      return absl::InvalidArgumentError(absl::StrCat(path, " has ", bytes,
                                                     " bytes, and a tokenizer or another small file of a model", " may have ",
                                                     kMostSmallBytes, "; move it elsewhere if it is none"));
    }
    if ((sum_ += bytes) <= kMostSmallBytesInAll) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": with it the small files of the model (tokenizer, templates, licences) ", "have ", sum_,
                     " bytes, and they may have ", kMostSmallBytesInAll, "; move elsewhere what does not belong to the model"));
  }

 private:
  int64_t sum_ = 0;
};

}  // namespace

bool IsSmallFile(std::string_view name) {
  return std::find(kSmallNames.begin(), kSmallNames.end(), name) != kSmallNames.end() ||
         std::any_of(kSmallStems.begin(), kSmallStems.end(), [&](std::string_view stem) { return name.starts_with(stem); });
}

absl::StatusOr<std::vector<SmallFile>> ReadSmallFiles(const std::string& folder, const OpenPath& open) {
  std::vector<SmallFile> files;
  SmallBytes bytes;
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, SmallNamesIn(folder, open));
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(folder, "/", name);
    MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor file, open(path));
    if (IsDataFolder(file)) continue;  // "LICENSES"
    MOTLEY_RETURN_IF_ERROR(bytes.Add(path, SizeOf(file)));
    MOTLEY_ASSIGN_OR_RETURN(std::string text, ReadSmallFile(file, path, kMostSmallBytes));
    files.push_back({name, std::move(text)});
  }
  return files;
}

absl::Status CheckSmallFiles(const std::string& folder, const OpenPath& open) {
  SmallBytes bytes;
  const absl::StatusOr<std::vector<std::string>> names = SmallNamesIn(folder, open);
  if (!names.ok()) return absl::OkStatus();
  for (const std::string& name : *names) {
    const std::string path = absl::StrCat(folder, "/", name);
    const absl::StatusOr<FileDescriptor> file = open(path);
    if (file.ok() && !IsDataFolder(*file)) MOTLEY_RETURN_IF_ERROR(bytes.Add(path, SizeOf(*file)));
  }
  return absl::OkStatus();
}

}  // namespace motley
