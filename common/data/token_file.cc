#include "common/data/token_file.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/data/data_error.h"
#include "common/data/little_endian.h"

namespace motley {
namespace {

constexpr int64_t kTokensAtATime = 1 << 14;

struct TypeRow {
  TokenType type;
  int64_t bytes;
  int megatron;  // 0: it has none
};
constexpr std::array kTypes = {TypeRow{TokenType::kUint8, 1, 1}, TypeRow{TokenType::kUint16, 2, 8},
                               TypeRow{TokenType::kUint32, 4, 0}, TypeRow{TokenType::kInt32, 4, 4},
                               TypeRow{TokenType::kInt64, 8, 5}};

int64_t NumberAt(const char* bytes, TokenType type) {
  switch (type) {
    case TokenType::kUint8:
      return static_cast<uint8_t>(*bytes);
    case TokenType::kUint16:
      return Little<uint16_t>(bytes);
    case TokenType::kUint32:
      return Little<uint32_t>(bytes);
    case TokenType::kInt32:
      return Little<int32_t>(bytes);
    case TokenType::kInt64:
      return Little<int64_t>(bytes);
  }
  return -1;
}

// llm.c's first numbers, by which of its programs wrote it.
struct LlmcRow {
  int32_t magic, version;
  TokenType type;
};
constexpr std::array kLlmc = {LlmcRow{20240520, 1, TokenType::kUint16}, LlmcRow{20240801, 7, TokenType::kUint32}};

}  // namespace

int64_t BytesOf(TokenType type) { return kTypes.at(static_cast<size_t>(type)).bytes; }

std::optional<TokenType> MegatronType(int code) {
  for (const TypeRow& row : kTypes) {
    if (code > 0 && row.megatron == code) return row.type;
  }
  return std::nullopt;
}

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Open(std::shared_ptr<const WatchedFile> file, TokenType type,
                                                           int64_t offset, int64_t tokens, int64_t vocabulary) {
  const int64_t room = file->bytes() - offset;
  if (offset < 0 || tokens < 0 || room < 0 || tokens > room / BytesOf(type)) {
    return WrongDataFile(file->path(), absl::StrCat("has ", file->bytes(), " bytes, too few for its ", tokens, " tokens of ",
                                                    BytesOf(type), " bytes; copy it again"));
  }
  return std::unique_ptr<TokenFile>(
      new TokenFile(std::move(file), type, offset, tokens, std::clamp<int64_t>(vocabulary, 1, kAnyVocabulary)));
}

absl::Status TokenFile::Read(int64_t begin, int64_t count, int32_t* out) const {
  if (begin < 0 || count < 0 || begin > tokens_ || count > tokens_ - begin) {
    return absl::OutOfRangeError(
        absl::StrCat("data file ", file_->path(), " has ", tokens_, " tokens; ", count, " were asked for from token ", begin));
  }
  const int64_t size = BytesOf(type_);
  std::vector<char> bytes(static_cast<size_t>(std::min(count, kTokensAtATime) * size));
  for (int64_t done = 0; done < count;) {
    const int64_t next = std::min(count - done, kTokensAtATime);
    MOTLEY_RETURN_IF_ERROR(file_->Read(offset_ + (begin + done) * size, bytes.data(), next * size));
    for (int64_t i = 0; i < next; ++i) {
      const int64_t token = NumberAt(bytes.data() + i * size, type_);
      if (token < 0 || token >= vocabulary_) return NoToken(token, begin + done + i);
      out[done + i] = static_cast<int32_t>(token);
    }
    done += next;
  }
  return absl::OkStatus();
}

absl::Status TokenFile::NoToken(int64_t number, int64_t at) const {
  return WrongDataFile(file_->path(), absl::StrCat("has ", number, " as token ", at, "; tokens are 0 to ", vocabulary_ - 1,
                                                   vocabulary_ < kAnyVocabulary ? " for this model" : "",
                                                   ": the file is damaged, or holds no tokens"));
}

absl::StatusOr<int64_t> TokenFile::Greatest(const std::function<void(std::string_view)>& also) const {
  const int64_t size = BytesOf(type_), end = offset_ + tokens_ * size;
  int64_t greatest = 0, at = 0;  // byte of the file
  // Invariant: blocks and the header are multiples of the longest number, so that none lies in two blocks.
  MOTLEY_RETURN_IF_ERROR(file_->ForEachBlock(0, file_->bytes(), [&](std::string_view block) -> absl::Status {
    also(block);
    const auto bytes = static_cast<int64_t>(block.size());
    for (int64_t i = std::max<int64_t>(offset_ - at, 0); i < std::min(bytes, end - at); i += size) {
      const int64_t token = NumberAt(block.data() + i, type_);
      if (token < 0 || token >= vocabulary_) return NoToken(token, (at + i - offset_) / size);
      greatest = std::max(greatest, token);
    }
    at += bytes;
    return absl::OkStatus();
  }));
  return greatest;
}

absl::StatusOr<BinLayout> ParseBinLayout(std::string_view head, int64_t file_bytes, const std::string& file) {
  if (head.size() >= 3 * sizeof(int32_t)) {
    const auto magic = Little<int32_t>(head.data()), version = Little<int32_t>(head.data() + 4);
    for (const LlmcRow& row : kLlmc) {
      if (magic != row.magic) continue;
      if (version != row.version) {
        return WrongDataFile(file, absl::StrCat("begins as a token file of llm.c, but of version ", version,
                                                "; Motley reads version ", row.version));
      }
      const int64_t tokens = Little<int32_t>(head.data() + 8), bytes = file_bytes - kLlmcHeaderBytes;
      if (tokens < 0 || bytes != tokens * BytesOf(row.type)) {
        return WrongDataFile(file,
                             absl::StrCat("is a token file of llm.c whose header says ", tokens, " tokens of ", BytesOf(row.type),
                                          " bytes; behind the header it has ", std::max<int64_t>(bytes, 0),
                                          " bytes: it was cut off or is damaged; copy it again"));
      }
      return BinLayout{row.type, kLlmcHeaderBytes, tokens};
    }
  }
  if (file_bytes % 2 != 0) {
    return WrongDataFile(file, absl::StrCat("has ", file_bytes,
                                            " bytes, an odd number; bare tokens have two bytes each: it was cut off, or is "
                                            "no file of tokens (Megatron's need the .idx beside them)"));
  }
  return BinLayout{TokenType::kUint16, 0, file_bytes / 2};
}

}  // namespace motley
