#include "common/data/token_rows.h"

#include <numeric>

#include "common/base/status_macros.h"

namespace motley {

absl::StatusOr<std::vector<uint8_t>> TokenRows::MaskOf(int64_t begin, int64_t count) const {
  std::vector<uint8_t> bits(static_cast<size_t>(count), 1);
  if (mask_ == nullptr || count == 0) return bits;
  const int64_t first = begin / 8, last = (begin + count - 1) / 8;
  std::vector<unsigned char> bytes(static_cast<size_t>(last - first + 1));
  MOTLEY_RETURN_IF_ERROR(mask_->Read(first, bytes.data(), static_cast<int64_t>(bytes.size())));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = begin + i;
    bits[static_cast<size_t>(i)] = (bytes[static_cast<size_t>(at / 8 - first)] >> (at % 8)) & 1;
  }
  return bits;
}

absl::Status TokenRows::Read(int64_t row, const RowRoom& room, DocumentLengths* lengths) const {
  MOTLEY_ASSIGN_OR_RETURN(const TokenIndex::Document found, index_.Read(row, tokens_.num_tokens(), seq_len_));
  const int64_t filled = std::accumulate(found.lengths.begin(), found.lengths.end(), int64_t{0});
  if (lengths != nullptr) {
    lengths->assign(found.lengths.begin(), found.lengths.end());
    if (filled < seq_len_) lengths->push_back(static_cast<int32_t>(seq_len_ - filled));
  }
  if (room.tokens == nullptr && room.targets == nullptr && room.counted == nullptr) return absl::OkStatus();
  std::vector<int32_t> tokens(static_cast<size_t>(filled));
  if (room.tokens != nullptr || room.targets != nullptr) {
    MOTLEY_RETURN_IF_ERROR(tokens_.Read(found.begin, filled, tokens.data()));
  }
  std::vector<uint8_t> mask;
  if (room.counted != nullptr) {
    MOTLEY_ASSIGN_OR_RETURN(mask, MaskOf(found.begin, filled));
  }
  int64_t at = 0;
  const auto put = [&](int64_t token, int64_t target, uint8_t counted) {
    if (room.tokens != nullptr) room.tokens[at] = token;
    if (room.targets != nullptr) room.targets[at] = target;
    if (room.counted != nullptr) room.counted[at] = counted;
    ++at;
  };
  for (const int32_t length : found.lengths) {
    // What follows a document's last token is no target of it.
    for (int32_t i = 0; i + 1 < length; ++i) {
      const auto here = static_cast<size_t>(at);
      put(tokens[here], tokens[here + 1], mask.empty() ? 1 : mask[here + 1]);
    }
    put(tokens[static_cast<size_t>(at)], 0, 0);
  }
  while (at < seq_len_) put(0, 0, 0);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TokenRows::CountTrained(int64_t row) const {
  MOTLEY_ASSIGN_OR_RETURN(const TokenIndex::Document found, index_.Read(row, tokens_.num_tokens(), seq_len_));
  const int64_t filled = std::accumulate(found.lengths.begin(), found.lengths.end(), int64_t{0});
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<uint8_t> mask, MaskOf(found.begin, filled));
  int64_t trained = 0;
  auto bit = mask.begin();
  for (const int32_t length : found.lengths) {
    trained += std::accumulate(bit + 1, bit + length, int64_t{0});  // the first is no target
    bit += length;
  }
  return trained;
}

}  // namespace motley
