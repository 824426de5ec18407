#include "common/data/token_index.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/data/data_error.h"
#include "common/data/little_endian.h"

namespace motley {
namespace {

// magic, u64 version, u8 type, u64 sequences, u64 document indices
constexpr int64_t kVersionAt = 9, kTypeAt = 17, kSequencesAt = 18, kIndicesAt = 26, kHeaderBytes = 34;
constexpr uint64_t kIndexVersion = 1;
constexpr int64_t kLengthBytes = 4, kPointerBytes = 8;
constexpr int64_t kAtATime = 1 << 14;  // sequences in a walk

}  // namespace

absl::Status TokenIndex::Wrong(const std::string& what) const { return WrongDataFile(file_, what); }

int64_t TokenIndex::LengthsAt() const { return kHeaderBytes; }
int64_t TokenIndex::PointersAt() const { return LengthsAt() + kLengthBytes * sequences_; }
int64_t TokenIndex::DocumentsAt() const { return PointersAt() + kPointerBytes * sequences_; }

absl::StatusOr<TokenIndex> TokenIndex::Open(ReadBytes read, int64_t file_bytes, std::string file) {
  TokenIndex index;
  index.read_ = std::move(read);
  index.file_ = std::move(file);
  char head[kHeaderBytes];
  if (file_bytes < kHeaderBytes) {
    return index.Wrong(absl::StrCat("has ", file_bytes, " bytes, too few for an index of tokens (Megatron's .idx)"));
  }
  MOTLEY_RETURN_IF_ERROR(index.read_(0, head, kHeaderBytes));
  if (std::string_view(head, kTokenIndexMagic.size()) != kTokenIndexMagic) {
    return index.Wrong(
        "is no index of tokens (Megatron's .idx): its first bytes are others; give the one that was written with the .bin");
  }
  const auto version = Little<uint64_t>(head + kVersionAt);
  if (version != kIndexVersion)
    return index.Wrong(absl::StrCat("is an index of version ", version, "; Motley reads version ", kIndexVersion));
  const int code = static_cast<unsigned char>(head[kTypeAt]);
  const std::optional<TokenType> type = MegatronType(code);
  if (!type) {
    return index.Wrong(
        absl::StrCat("says type ", code, " of its tokens; Motley reads 1 (uint8), 4 (int32), 5 (int64) and 8 (uint16)"));
  }
  index.type_ = *type;
  const auto sequences = Little<uint64_t>(head + kSequencesAt), indices = Little<uint64_t>(head + kIndicesAt);
  // Each below what the file could hold, so that no sum overflows.
  const auto most = static_cast<uint64_t>(file_bytes) / kPointerBytes;
  const bool fits = sequences <= most && indices <= most &&
                    kHeaderBytes + static_cast<int64_t>(sequences) * (kLengthBytes + kPointerBytes) +
                            static_cast<int64_t>(indices) * kPointerBytes ==
                        file_bytes;
  if (!fits) {
    return index.Wrong(absl::StrCat("says ", sequences, " sequences and ", indices, " document indices, which do not make its ",
                                    file_bytes, " bytes: it was cut off or is damaged; copy it again"));
  }
  if (indices == 0) return index.Wrong("has no document index, not even the end of the last");
  index.sequences_ = static_cast<int64_t>(sequences);
  index.documents_ = static_cast<int64_t>(indices) - 1;
  return index;
}

absl::Status TokenIndex::CheckSequences(int64_t tokens) const {
  const int64_t size = BytesOf(type_);
  std::vector<char> lengths(static_cast<size_t>(std::min(sequences_, kAtATime) * kLengthBytes));
  std::vector<char> pointers(static_cast<size_t>(std::min(sequences_, kAtATime) * kPointerBytes));
  int64_t end = 0;  // tokens of the sequences before
  for (int64_t done = 0; done < sequences_;) {
    const int64_t next = std::min(sequences_ - done, kAtATime);
    MOTLEY_RETURN_IF_ERROR(read_(LengthsAt() + done * kLengthBytes, lengths.data(), next * kLengthBytes));
    MOTLEY_RETURN_IF_ERROR(read_(PointersAt() + done * kPointerBytes, pointers.data(), next * kPointerBytes));
    for (int64_t i = 0; i < next; ++i) {
      const int64_t length = Little<int32_t>(lengths.data() + i * kLengthBytes);
      if (Little<int64_t>(pointers.data() + i * kPointerBytes) != end * size || length < 0) {
        return Wrong(absl::StrCat("says of sequence ", done + i,
                                  " another place or length than one behind the sequences before it; "
                                  "merge the files anew with their own program"));
      }
      if (length > tokens - end) {
        return Wrong(absl::StrCat("has ", sequences_, " sequences, and number ", done + i, " ends beyond the ", tokens,
                                  " tokens of the .bin beside it: one of the two was cut off, or they are not of one pair"));
      }
      end += length;
    }
    done += next;
  }
  if (end == tokens) return absl::OkStatus();
  return Wrong(absl::StrCat("has sequences of ", end, " tokens, the .bin beside it ", tokens, ": they are not of one pair"));
}

absl::Status TokenIndex::CheckDocuments() const {
  std::vector<char> block(static_cast<size_t>(std::min(documents_ + 1, kAtATime) * kPointerBytes));
  int64_t before = 0;
  for (int64_t done = 0; done <= documents_;) {
    const int64_t next = std::min(documents_ + 1 - done, kAtATime);
    MOTLEY_RETURN_IF_ERROR(read_(DocumentsAt() + done * kPointerBytes, block.data(), next * kPointerBytes));
    for (int64_t i = 0; i < next; ++i) {
      const auto at = Little<int64_t>(block.data() + i * kPointerBytes);
      if (at < before || at > sequences_ || (done + i == 0 && at != 0)) {
        return Wrong(
            absl::StrCat("says that document ", done + i, " begins at sequence ", at, " of ", sequences_, ": it is damaged"));
      }
      before = at;
    }
    done += next;
  }
  return before == sequences_ ? absl::OkStatus()
                              : Wrong(absl::StrCat("has documents of ", before, " sequences, but ", sequences_, " sequences"));
}

absl::Status TokenIndex::CheckWhole(int64_t tokens) const {
  MOTLEY_RETURN_IF_ERROR(CheckSequences(tokens));
  return CheckDocuments();
}

absl::StatusOr<TokenIndex::Document> TokenIndex::Read(int64_t document, int64_t tokens, int64_t most_tokens) const {
  if (document < 0 || document >= documents_)
    return Wrong(absl::StrCat("has ", documents_, " documents, not one of number ", document));
  const auto damaged = [&] { return Wrong(absl::StrCat("is damaged where it tells of document ", document, "; copy it again")); };
  char ends[2 * kPointerBytes];
  MOTLEY_RETURN_IF_ERROR(read_(DocumentsAt() + document * kPointerBytes, ends, sizeof(ends)));
  const auto first = Little<int64_t>(ends), last = Little<int64_t>(ends + kPointerBytes);
  // Each of its sequences has a token at least.
  if (first < 0 || last <= first || last > sequences_ || last - first > most_tokens) return damaged();
  char pointer[kPointerBytes];
  MOTLEY_RETURN_IF_ERROR(read_(PointersAt() + first * kPointerBytes, pointer, sizeof(pointer)));
  const auto at = Little<int64_t>(pointer);
  if (at < 0 || at % BytesOf(type_) != 0) return damaged();
  Document found;
  found.begin = at / BytesOf(type_);
  if (found.begin > tokens) return damaged();
  std::vector<char> lengths(static_cast<size_t>((last - first) * kLengthBytes));
  MOTLEY_RETURN_IF_ERROR(read_(LengthsAt() + first * kLengthBytes, lengths.data(), static_cast<int64_t>(lengths.size())));
  int64_t room = std::min(most_tokens, tokens - found.begin);
  for (int64_t i = 0; i < last - first; ++i) {
    const auto length = Little<int32_t>(lengths.data() + i * kLengthBytes);
    if (length < 1 || length > room) return damaged();
    room -= length;
    found.lengths.push_back(length);
  }
  return found;
}

}  // namespace motley
