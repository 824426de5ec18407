// Token files for tests, made the plain way: a folder as `motley data prepare` writes one, an index, and what a data set reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/sha256.h"
#include "common/data/dataset.h"
#include "common/data/token_folder.h"
#include "nlohmann/json.hpp"
#include "tests/common/base/temp_folder.h"

namespace motley {

template <typename Number>
std::string Bytes(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

// Megatron's index of sequences that lie one after the other; `documents` as it has them: from 0 to the number of sequences.
inline std::string IndexBytes(int code, int64_t token_bytes, const std::vector<int32_t>& lengths,
                              const std::vector<int64_t>& documents) {
  std::vector<int64_t> pointers;
  int64_t at = 0;
  for (const int32_t length : lengths) pointers.push_back(at * token_bytes), at += length;
  return std::string("MMIDIDX\0\0", 9) + Bytes<uint64_t>({1}) + static_cast<char>(code) + Bytes<uint64_t>({lengths.size()}) +
         Bytes<uint64_t>({documents.size()}) + Bytes(lengths) + Bytes(pointers) + Bytes(documents);
}

// What a folder holds: of rows each a list of documents, and of each of their tokens whether it is trained on.
struct TokenRowsText {
  using Document = std::vector<uint16_t>;
  std::vector<std::vector<Document>> rows;
  std::vector<bool> mask;  // by token; empty: all
};

inline nlohmann::json PartsOf(const std::string& bytes) {
  nlohmann::json parts = nlohmann::json::array();
  for (size_t at = 0; at < bytes.size(); at += kPartBytes)
    parts.push_back(Sha256Hex(std::string_view(bytes).substr(at, kPartBytes)));
  return {{"bytes", bytes.size()}, {"parts", parts}};
}

// tokens.json of these files; `own` are its other keys, and stand for what it has in common with others'.
inline nlohmann::json TokensJson(const nlohmann::json& own, const std::string& bin, const std::string& idx,
                                 const std::string& mask) {
  nlohmann::json json = {{"format", "motley-tokens"}, {"version", 1},         {"dtype", "uint16"},
                         {"vocab_size", 1000},        {"source_bytes", 5000}, {"tokenizer", Sha256Hex("tokenizer")},
                         {"chat_template", nullptr},  {"eos", "on"},          {"made_with", {{"transformers", "5.23.0"}}}};
  json["files"] = {{kTokensBin, PartsOf(bin)}, {kTokensIdx, PartsOf(idx)}};
  if (!mask.empty()) json["files"][kMaskBin] = PartsOf(mask);
  json.update(own);
  return json;
}

// The folder and what is in it; returns its path. Without a mask there is no file of one.
inline std::string WriteTokens(const std::filesystem::path& path, const nlohmann::json& own, const std::string& bin,
                               const std::string& idx, const std::string& mask) {
  std::filesystem::create_directories(path);
  const auto write = [&path](const char* name, const std::string& text) { std::ofstream(path / name, std::ios::binary) << text; };
  write(kTokensBin, bin);
  write(kTokensIdx, idx);
  if (!mask.empty()) write(kMaskBin, mask);
  write(kTokensJson, TokensJson(own, bin, idx, mask).dump(1));
  return path.string();
}

// Writes a folder of rows; returns its path. `own` are keys of its tokens.json that are not as usual.
inline std::string WriteRows(const std::filesystem::path& path, const TokenRowsText& text, int64_t seq_len,
                             const nlohmann::json& own = nlohmann::json::object()) {
  std::vector<uint16_t> tokens;
  std::vector<int32_t> lengths;
  std::vector<int64_t> rows = {0};
  int64_t trained = 0;
  for (const auto& row : text.rows) {
    for (const auto& document : row) {
      for (size_t i = 1; i < document.size(); ++i) trained += text.mask.empty() || text.mask[tokens.size() + i];
      lengths.push_back(static_cast<int32_t>(document.size()));
      tokens.insert(tokens.end(), document.begin(), document.end());
    }
    rows.push_back(static_cast<int64_t>(lengths.size()));
  }
  std::string mask((text.mask.size() + 7) / 8, '\0');
  for (size_t i = 0; i < text.mask.size(); ++i) mask[i / 8] = static_cast<char>(mask[i / 8] | (text.mask[i] ? 1 << (i % 8) : 0));
  nlohmann::json keys = {{"kind", "rows"},
                         {"seq_len", seq_len},
                         {"greatest_token", tokens.empty() ? 0 : *std::max_element(tokens.begin(), tokens.end())},
                         {"tokens", tokens.size()},
                         {"documents", lengths.size()},
                         {"rows", text.rows.size()},
                         {"trained_tokens", trained}};
  keys.update(own);
  return WriteTokens(path, keys, Bytes(tokens), IndexBytes(8, 2, lengths, rows), mask);
}
inline std::string WriteRows(const TempFolder& folder, const std::string& name, const TokenRowsText& text, int64_t seq_len) {
  return WriteRows(folder / name, text, seq_len);
}

// Writes the folder `name` of a stream of documents of ten tokens.
inline std::string WriteStream(const TempFolder& folder, const std::string& name, const std::vector<uint16_t>& tokens) {
  std::vector<int32_t> lengths(tokens.size() / 10, 10);
  if (tokens.size() % 10 > 0) lengths.push_back(static_cast<int32_t>(tokens.size() % 10));
  std::vector<int64_t> documents;
  for (size_t i = 0; i <= lengths.size(); ++i) documents.push_back(static_cast<int64_t>(i));
  const nlohmann::json keys = {{"kind", "stream"},
                               {"greatest_token", *std::max_element(tokens.begin(), tokens.end())},
                               {"tokens", tokens.size()},
                               {"documents", lengths.size()},
                               {"trained_tokens", tokens.size() - 1}};
  return WriteTokens(folder / name, keys, Bytes(tokens), IndexBytes(8, 2, lengths, documents), "");
}

// A sample as it is read whole.
struct ReadSample {
  std::vector<int64_t> tokens, targets;
  std::vector<uint8_t> counted;
  DocumentLengths lengths;
  friend bool operator==(const ReadSample&, const ReadSample&) = default;
};
inline absl::StatusOr<ReadSample> ReadRow(const Dataset& data, Split split, int64_t index, int64_t seq_len) {
  const auto size = static_cast<size_t>(seq_len);
  ReadSample row{std::vector<int64_t>(size, -1), std::vector<int64_t>(size, -1), std::vector<uint8_t>(size, 9), {}};
  const RowRoom room{row.tokens.data(), row.targets.data(), row.counted.data()};
  if (absl::Status read = data.ReadRow(split, index, room, &row.lengths); !read.ok()) return read;
  return row;
}

inline absl::StatusOr<Dataset> OpenAs(const std::string& path, int64_t seq_len, double fraction = 0,
                                      int64_t vocabulary = kAnyVocabulary) {
  const absl::StatusOr<FileDescriptor> opened = OpenData(path);
  DataOptions options;
  options.vocabulary = vocabulary;
  return opened.ok() ? Dataset::Read(*opened, path, seq_len, fraction, options) : opened.status();
}

inline TokenRowsText TwoRows() {
  TokenRowsText text;
  text.rows = {{{1, 2, 3}, {4, 5}}, {{6}, {7, 8}, {9}}, {{10, 11, 12, 13, 14, 15}}};
  return text;
}

}  // namespace motley
