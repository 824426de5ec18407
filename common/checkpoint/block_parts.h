// Blocks of a file that come in parts, put together in the order in which they were asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace motley {

// Not thread-safe.
class BlockParts {
 public:
  using Take = std::function<absl::Status(int64_t block, std::string_view bytes)>;

  // `take` gets each block whole; what it says ends the reading. A block of `most_bytes` is whole with its last byte, a shorter
  // one with the next one's first, or the end.
  BlockParts(std::vector<int64_t> numbers, int64_t most_bytes, Take take)
      : numbers_(std::move(numbers)), most_bytes_(most_bytes), take_(std::move(take)) {}

  // DATA_LOSS: not of what comes next. Else what `take` said.
  absl::Status Add(int64_t block, std::string_view bytes);
  // Nothing more comes. DATA_LOSS: some of the blocks did not.
  absl::Status Finish();

 private:
  absl::Status TakeBlock();

  const std::vector<int64_t> numbers_;
  const int64_t most_bytes_;
  const Take take_;
  size_t next_ = 0;
  std::string block_;
};

}  // namespace motley
