// Folders of packed rows, as `motley data prepare` writes them. docs/use/own-data.md
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/sha256.h"
#include "common/data/sampling.h"

namespace motley::engine {

// A document's tokens, and by token whether it is trained on as a target; the first never is.
struct TinyDocument {
  std::vector<uint16_t> tokens;
  std::vector<bool> trained;
};
using TinyRow = std::vector<TinyDocument>;

// Little-endian numbers one after the other.
template <typename T>
void AppendNumber(std::string& to, T number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

inline void WriteRowsFolder(const std::filesystem::path& folder, int64_t seq_len, const std::vector<TinyRow>& rows) {
  std::string bin, lengths, pointers, groups, mask;
  int64_t tokens = 0, documents = 0, trained = 0, greatest = 0;
  AppendNumber<int64_t>(groups, 0);
  for (const TinyRow& row : rows) {
    for (const TinyDocument& document : row) {
      AppendNumber<int32_t>(lengths, static_cast<int32_t>(document.tokens.size()));
      AppendNumber<int64_t>(pointers, 2 * tokens);
      for (size_t i = 0; i < document.tokens.size(); ++i, ++tokens) {
        AppendNumber<uint16_t>(bin, document.tokens[i]);
        greatest = std::max<int64_t>(greatest, document.tokens[i]);
        if (tokens % 8 == 0) mask.push_back(0);
        if (document.trained[i]) mask.back() = static_cast<char>(mask.back() | 1 << tokens % 8);
        if (document.trained[i] && i > 0) ++trained;
      }
      ++documents;
    }
    AppendNumber<int64_t>(groups, documents);
  }
  std::string idx("MMIDIDX\0\0", 9);
  AppendNumber<uint64_t>(idx, 1);
  AppendNumber<uint8_t>(idx, 8);  // uint16
  AppendNumber<int64_t>(idx, documents);
  AppendNumber<int64_t>(idx, static_cast<int64_t>(rows.size()) + 1);
  idx += lengths + pointers + groups;

  std::filesystem::create_directories(folder);
  std::string files;
  for (const auto& [name, bytes] : {std::pair("mask.bin", &mask), std::pair("tokens.bin", &bin), std::pair("tokens.idx", &idx)}) {
    std::ofstream(folder / name, std::ios::binary) << *bytes;
    absl::StrAppend(&files, files.empty() ? "" : ", ", "\"", name, "\": {\"bytes\": ", bytes->size(), ", \"parts\": [\"",
                    Sha256Hex(*bytes), "\"]}");
  }
  std::ofstream(folder / "tokens.json") << absl::StrCat(
      R"({"format": "motley-tokens", "version": 1, "kind": "rows", "dtype": "uint16", "seq_len": )", seq_len,
      ", \"vocab_size\": 256, \"greatest_token\": ", greatest, ", \"tokens\": ", tokens, ", \"documents\": ", documents,
      ", \"rows\": ", rows.size(), ", \"trained_tokens\": ", trained, ", \"source_bytes\": ", tokens, ", \"tokenizer\": \"",
      Sha256Hex("bytes"), "\", \"chat_template\": null, \"eos\": \"on\", \"files\": {", files, "}}\n");
}

// Rows of one to four documents, some shorter than the row; half of the tokens are trained on, of every eighth row none. Of a
// `seed` the same.
inline std::vector<TinyRow> DrawRows(uint64_t seed, int64_t rows, int64_t seq_len) {
  uint64_t drawn = seed;
  const auto below = [&](int64_t limit) {
    drawn = Mix64(drawn + 1);
    return static_cast<int64_t>(drawn % static_cast<uint64_t>(limit));
  };
  std::vector<TinyRow> made(static_cast<size_t>(rows));
  for (size_t r = 0; r < made.size(); ++r) {
    int64_t left = seq_len - (below(2) == 0 ? below(seq_len / 4) : 0);
    for (int64_t documents = 1 + below(4); documents > 0 && left > 0; --documents) {
      const int64_t length = documents == 1 ? left : 1 + below(left);
      TinyDocument& document = made[r].emplace_back();
      for (int64_t i = 0; i < length; ++i) {
        document.tokens.push_back(static_cast<uint16_t>('a' + below(20)));
        document.trained.push_back(i > 0 && r % 8 != 3 && below(2) == 0);
      }
      left -= length;
    }
  }
  return made;
}

}  // namespace motley::engine
