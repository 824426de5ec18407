// A sample as the engine takes it: seq_len positions, the target of each, and which of them count. Plain values.
#pragma once

#include <cstdint>
#include <vector>

namespace motley {

// Where a data set writes a row. All three have seq_len elements and may be unset (not wanted).
struct RowRoom {
  int64_t* tokens = nullptr;
  int64_t* targets = nullptr;  // what follows the position in its document; 0 where nothing counts
  uint8_t* counted = nullptr;  // 1: the position's target is trained on
};

// Lengths of a row's documents, in order; their sum is seq_len. What a row lacks at its end is one more document, that counts
// nothing. A sample of a stream is one document.
using DocumentLengths = std::vector<int32_t>;

}  // namespace motley
