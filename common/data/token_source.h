// Where tokens come from: text, whose bytes they are, or files of numbers. Nothing of it is held in memory.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace motley {

// Thread-safe.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual int64_t num_tokens() const = 0;
  // Tokens [begin, begin + count), which there are. FAILED_PRECONDITION names a file that changed after it was opened;
  // OUT_OF_RANGE: there are not so many; INVALID_ARGUMENT: a number that is no token of the vocabulary.
  virtual absl::Status Read(int64_t begin, int64_t count, int32_t* out) const = 0;
};

}  // namespace motley
