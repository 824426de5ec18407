#include "common/checkpoint/block_parts.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace motley {

absl::Status BlockParts::Add(int64_t block, std::string_view bytes) {
  if (!block_.empty() && block != numbers_[next_]) MOTLEY_RETURN_IF_ERROR(TakeBlock());
  if (next_ == numbers_.size()) return absl::DataLossError("sends more than the blocks that were asked for");
  const int64_t number = numbers_[next_];
  if (block != number) return absl::DataLossError(absl::StrCat("sends block ", block, " instead of ", number));
  if (bytes.empty()) return absl::DataLossError(absl::StrCat("sends a part of block ", number, " without bytes"));
  if (static_cast<int64_t>(block_.size() + bytes.size()) > most_bytes_) {
    return absl::DataLossError(absl::StrCat("sends more of block ", number, " than the ", most_bytes_, " bytes that one has"));
  }
  block_ += bytes;
  return static_cast<int64_t>(block_.size()) == most_bytes_ ? TakeBlock() : absl::OkStatus();
}

absl::Status BlockParts::Finish() {
  if (!block_.empty()) MOTLEY_RETURN_IF_ERROR(TakeBlock());
  if (next_ == numbers_.size()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("sends ", next_, " blocks of ", numbers_.size()));
}

absl::Status BlockParts::TakeBlock() {
  const std::string block = std::move(block_);
  block_.clear();
  return take_(numbers_[next_++], block);
}

}  // namespace motley
