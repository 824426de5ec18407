// tokens.json of a folder of prepared tokens.
#include "common/data/token_folder.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace motley;
  const absl::StatusOr<TokenFolder> folder = ParseTokenFolder(fuzz::Text(data, size), "fuzz/tokens.json");
  if (!folder.ok()) {
    fuzz::Require(folder.status().message().size() < 2000, "an error repeats what it was given");
    return 0;
  }
  fuzz::Require(IsMeantAsTokenFolder(fuzz::Text(data, size)), "a folder that is taken is not told from text");
  fuzz::Require(folder->tokens > 0 && folder->greatest_token < folder->vocabulary && folder->trained_tokens < folder->tokens,
                "counts that cannot be");
  fuzz::Require((folder->kind == DataKind::kRows) == (folder->rows > 0) && (folder->rows > 0) == (folder->seq_len > 0),
                "rows of no length, or a stream of rows");
  for (const PartedFile* file : {&folder->tokens_bin, &folder->tokens_idx, &folder->mask_bin}) {
    const auto parts = static_cast<int64_t>(file->parts.size());
    fuzz::Require(parts == file->bytes / kPartBytes + (file->bytes % kPartBytes != 0), "a part without a digest");
  }
  fuzz::Require(folder->tokens_bin.bytes == folder->tokens * BytesOf(folder->type), "a size that is not of its tokens");
  return 0;
}
