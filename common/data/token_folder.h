// tokens.json of a folder that `motley data prepare` made: what its files are. docs/use/own-data.md has the folder's layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/data/data_summary.h"
#include "common/data/token_file.h"

namespace motley {

inline constexpr char kTokensJson[] = "tokens.json", kTokensBin[] = "tokens.bin", kTokensIdx[] = "tokens.idx",
                      kMaskBin[] = "mask.bin";
inline constexpr int64_t kLargestTokensJson = int64_t{64} << 20;
inline constexpr int64_t kPartBytes = int64_t{64} << 20;

// A file of the folder, digested part by part.
struct PartedFile {
  int64_t bytes = 0;
  std::vector<std::string> parts;  // SHA-256 (hex) of each kPartBytes
  friend bool operator==(const PartedFile&, const PartedFile&) = default;
};

struct TokenFolder {
  DataKind kind = DataKind::kStream;  // kStream or kRows
  int64_t seq_len = 0;                // of rows
  TokenType type = TokenType::kUint16;
  int64_t vocabulary = 0, greatest_token = 0;
  int64_t tokens = 0, documents = 0, rows = 0, trained_tokens = 0, source_bytes = 0;
  std::string tokenizer;  // SHA-256 (hex) of its tokenizer.json
  PartedFile tokens_bin, tokens_idx;
  PartedFile mask_bin;  // of no bytes: there is none
  friend bool operator==(const TokenFolder&, const TokenFolder&) = default;
};

// INVALID_ARGUMENT, beginning with "data file SOURCE": no such JSON, or numbers that do not fit each other. What it returns fits:
// sizes are those of the counts, and there is a digest for each part.
absl::StatusOr<TokenFolder> ParseTokenFolder(std::string_view text, const std::string& source);
// Whether a file of this name and text is meant to be one, whatever is wrong with it.
bool IsMeantAsTokenFolder(std::string_view text);

// Bytes of a mask of so many tokens: one bit each.
inline int64_t MaskBytes(int64_t tokens) { return tokens / 8 + (tokens % 8 != 0); }

}  // namespace motley
