// Megatron's .idx: where the sequences of a file of tokens lie, and which of them form a document. It is read where it is needed
// and never held: an index of many short documents is as large as their tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/data/token_file.h"

namespace motley {

inline constexpr std::string_view kTokenIndexMagic("MMIDIDX\0\0", 9);

// Thread-safe where its reader is.
class TokenIndex {
 public:
  // Exactly so many bytes at `offset`, which the file has.
  using ReadBytes = std::function<absl::Status(int64_t offset, void* out, int64_t bytes)>;

  // The header alone is looked at, against the file's size. INVALID_ARGUMENT begins with "data file FILE".
  static absl::StatusOr<TokenIndex> Open(ReadBytes read, int64_t file_bytes, std::string file);

  TokenType type() const { return type_; }
  int64_t sequences() const { return sequences_; }
  // Megatron's documents; for our rows a document is a row.
  int64_t documents() const { return documents_; }

  // That its sequences lie one after the other and fill a file of so many tokens, and that its documents fill it. Walks it once.
  absl::Status CheckWhole(int64_t tokens) const;

  struct Document {
    int64_t begin = 0;             // token
    std::vector<int32_t> lengths;  // of its sequences, each at least 1
  };
  // `document` below documents(). INVALID_ARGUMENT where it is not in `tokens`, or longer than `most_tokens`.
  absl::StatusOr<Document> Read(int64_t document, int64_t tokens, int64_t most_tokens) const;

 private:
  TokenIndex() = default;
  absl::Status Wrong(const std::string& what) const;
  int64_t LengthsAt() const;
  int64_t PointersAt() const;
  int64_t DocumentsAt() const;
  absl::Status CheckSequences(int64_t tokens) const;
  absl::Status CheckDocuments() const;

  ReadBytes read_;
  std::string file_;
  TokenType type_ = TokenType::kUint16;
  int64_t sequences_ = 0, documents_ = 0;
};

}  // namespace motley
