// Megatron's .idx, by which rows of tokens are read: whatever it says, nothing beyond the files is asked for.
#include <cstring>

#include "common/data/token_index.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace motley;
  const auto bytes = static_cast<int64_t>(size);
  const auto read = [&](int64_t offset, void* out, int64_t count) -> absl::Status {
    fuzz::Require(offset >= 0 && count >= 0 && offset <= bytes && count <= bytes - offset, "bytes beyond the file are asked for");
    std::memcpy(out, data + offset, static_cast<size_t>(count));
    return absl::OkStatus();
  };
  const absl::StatusOr<TokenIndex> index = TokenIndex::Open(read, bytes, "fuzz.idx");
  if (!index.ok()) return 0;
  constexpr int64_t kSeqLen = 100;
  for (const int64_t tokens : {int64_t{0}, int64_t{7}, int64_t{1000}}) {
    const bool whole = index->CheckWhole(tokens).ok();
    int64_t read_tokens = 0;
    bool all = true;
    for (int64_t document = 0; document < index->documents(); ++document) {
      const absl::StatusOr<TokenIndex::Document> found = index->Read(document, tokens, kSeqLen);
      all = all && found.ok();
      if (!found.ok()) continue;
      int64_t length = 0;
      for (const int32_t each : found->lengths) {
        fuzz::Require(each > 0, "a sequence without a token");
        length += each;
      }
      fuzz::Require(length > 0 && length <= kSeqLen && found->begin >= 0 && length <= tokens - found->begin,
                    "a document lies beyond its tokens");
      read_tokens += length;
    }
    fuzz::Require(!whole || !all || read_tokens == tokens, "documents of a whole index do not fill its tokens");
  }
  return 0;
}
