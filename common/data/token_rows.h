// Packed rows of whole documents: which tokens they have, where documents begin and what is trained on. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/data/row.h"
#include "common/data/token_index.h"
#include "common/data/token_source.h"
#include "common/data/watched_file.h"

namespace motley {

class TokenRows {
 public:
  // `index`: whose documents are the rows, of up to seq_len tokens. `mask`: a bit a token, or null where all are trained on.
  // `tokens` outlives the rows.
  TokenRows(TokenIndex index, std::shared_ptr<const WatchedFile> mask, const TokenSource& tokens, int64_t seq_len)
      : index_(std::move(index)), mask_(std::move(mask)), tokens_(tokens), seq_len_(seq_len) {}

  int64_t seq_len() const { return seq_len_; }
  // A row as common/data/row.h has it; `lengths` may be null.
  absl::Status Read(int64_t row, const RowRoom& room, DocumentLengths* lengths) const;
  // Its targets that count.
  absl::StatusOr<int64_t> CountTrained(int64_t row) const;

 private:
  // Of tokens [begin, begin + count): whether each is trained on as a target.
  absl::StatusOr<std::vector<uint8_t>> MaskOf(int64_t begin, int64_t count) const;

  const TokenIndex index_;
  const std::shared_ptr<const WatchedFile> mask_;
  const TokenSource& tokens_;
  const int64_t seq_len_;
};

}  // namespace motley
