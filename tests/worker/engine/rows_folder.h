// Folders of packed rows, as `motley data prepare` writes them. docs/use/own-data.md
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "common/base/sha256.h"
#include "common/data/sampling.h"
#include "tests/common/data/token_data.h"

namespace motley::engine {

// A document's tokens, and by token whether it is trained on as a target; the first never is.
struct TinyDocument {
  std::vector<uint16_t> tokens;
  std::vector<bool> trained;
};
using TinyRow = std::vector<TinyDocument>;

// Its tokens are bytes, as the tiny models have them.
inline void WriteRowsFolder(const std::filesystem::path& folder, int64_t seq_len, const std::vector<TinyRow>& rows) {
  TokenRowsText text;
  for (const TinyRow& row : rows) {
    text.rows.emplace_back();
    for (const TinyDocument& document : row) {
      text.rows.back().push_back(document.tokens);
      text.mask.insert(text.mask.end(), document.trained.begin(), document.trained.end());
    }
  }
  WriteRows(folder, text, seq_len, {{"vocab_size", 256}, {"tokenizer", Sha256Hex("bytes")}});
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
