// Which files beside the weights belong to a published model: its texts, of which an export has the same bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/weights/weights_folder.h"

namespace motley {

inline constexpr char kCardName[] = "README.md", kTemplatesFolder[] = "additional_chat_templates";

// Tokenizer, templates, how to generate, config.json, under what terms, and its card, which is about the weights in that folder.
bool IsSmallFile(std::string_view name);

struct SmallFile {
  std::string name;  // "tokenizer.json", "additional_chat_templates/tool_use.jinja"
  std::string text;
};
// Those of a folder, sorted by name. INVALID_ARGUMENT names one that is too large to be one (64 MiB), or with which all are too
// large together (128 MiB): they are held in memory, and kept beside the checkpoints.
absl::StatusOr<std::vector<SmallFile>> ReadSmallFiles(const std::string& folder, const OpenPath& open);
// That refusal, before anything is read or trained. What cannot be opened now is passed over.
absl::Status CheckSmallFiles(const std::string& folder, const OpenPath& open);

}  // namespace motley
