// A file of bare token numbers, behind a header or none; little-endian.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/data/token_source.h"
#include "common/data/watched_file.h"

namespace motley {

enum class TokenType { kUint8, kUint16, kUint32, kInt32, kInt64 };
int64_t BytesOf(TokenType type);
// Megatron's number of it in an .idx; nothing: no type of tokens.
std::optional<TokenType> MegatronType(int code);

// Above every token that is taken.
inline constexpr int64_t kAnyVocabulary = int64_t{1} << 31;

class TokenFile : public TokenSource {
 public:
  // `offset`: of the first. INVALID_ARGUMENT where the file is shorter. Numbers from `vocabulary` on are refused at reads.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(std::shared_ptr<const WatchedFile> file, TokenType type, int64_t offset,
                                                         int64_t tokens, int64_t vocabulary = kAnyVocabulary);

  int64_t num_tokens() const override { return tokens_; }
  absl::Status Read(int64_t begin, int64_t count, int32_t* out) const override;
  // The greatest of all, 0 where there is none. Walks the whole file and gives `also` its bytes, header and all.
  absl::StatusOr<int64_t> Greatest(const std::function<void(std::string_view)>& also) const;

 private:
  absl::Status NoToken(int64_t number, int64_t at) const;
  TokenFile(std::shared_ptr<const WatchedFile> file, TokenType type, int64_t offset, int64_t tokens, int64_t vocabulary)
      : file_(std::move(file)), type_(type), offset_(offset), tokens_(tokens), vocabulary_(vocabulary) {}

  const std::shared_ptr<const WatchedFile> file_;
  const TokenType type_;
  const int64_t offset_, tokens_, vocabulary_;
};

// How a .bin without an index holds its tokens: nanoGPT's has nothing but uint16, llm.c's a header.
struct BinLayout {
  TokenType type = TokenType::kUint16;
  int64_t offset = 0;
  int64_t tokens = 0;
  friend bool operator==(const BinLayout&, const BinLayout&) = default;
};
inline constexpr int64_t kLlmcHeaderBytes = 1024;
// `head`: the file's first bytes, up to kLlmcHeaderBytes. INVALID_ARGUMENT: an odd length, a header that does not fit the file.
absl::StatusOr<BinLayout> ParseBinLayout(std::string_view head, int64_t file_bytes, const std::string& file);

}  // namespace motley
