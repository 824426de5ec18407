// SHA-256 of each kCheckpointBlockBytes of a stream of bytes.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/base/sha256.h"
#include "common/checkpoint/checkpoint.h"

namespace motley {

class BlockDigests {
 public:
  void Update(const void* data, int64_t bytes) {
    const char* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const int64_t count = std::min(bytes, kCheckpointBlockBytes - in_block_);
      sha_.Update(from, static_cast<size_t>(count));
      in_block_ += count;
      from += count;
      bytes -= count;
      if (in_block_ == kCheckpointBlockBytes) EndBlock();
    }
  }
  // The digests, by block; the last block may be shorter. Ends the computation.
  std::vector<std::string> Finish() {
    if (in_block_ > 0) EndBlock();
    return std::move(digests_);
  }

 private:
  void EndBlock() {
    digests_.push_back(sha_.Hex());
    sha_ = Sha256();
    in_block_ = 0;
  }
  Sha256 sha_;
  int64_t in_block_ = 0;
  std::vector<std::string> digests_;
};

}  // namespace motley
