#include "common/data/dataset.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/data/data_files.h"
#include "common/data/data_format.h"

namespace motley {
namespace {

absl::Status NotUtf8(const std::string& path, int64_t offset) {
  return absl::InvalidArgumentError(absl::StrCat("data file ", path, " is not UTF-8 text: wrong byte sequence at byte ", offset,
                                                 "; convert it (iconv) or leave it out"));
}

absl::Status HoldsNul(const std::string& path, int64_t offset) {
  return absl::InvalidArgumentError(absl::StrCat("data file ", path, " is not plain text: it holds a NUL at byte ", offset,
                                                 "; convert it (of UTF-16: iconv -f UTF-16 -t UTF-8), mend it or leave it out"));
}

// Of one file: what its first block shows it to be, and whether its bytes are text.
class TextChecker {
 public:
  absl::Status Feed(const std::string& file, std::string_view block) {
    if (std::exchange(first_, false)) MOTLEY_RETURN_IF_ERROR(CheckIsText(file, block));
    // NULs are valid UTF-8, and in no text: a database, a damaged file.
    if (const size_t nul = block.find('\0'); nul != block.npos) return HoldsNul(file, bytes_ + static_cast<int64_t>(nul));
    bytes_ += static_cast<int64_t>(block.size());
    const auto wrong = utf8_.Feed(block);
    return wrong ? NotUtf8(file, *wrong) : absl::OkStatus();
  }
  absl::Status End(const std::string& file) const {
    const auto wrong = utf8_.End();
    return wrong ? NotUtf8(file, *wrong) : absl::OkStatus();
  }

 private:
  bool first_ = true;
  int64_t bytes_ = 0;  // of the blocks before
  Utf8Checker utf8_;
};

// Walks the text once: every block is checked, digested and given to `use`.
absl::StatusOr<DataSummary> Walk(const FileDescriptor& opened, const std::string& path, const OpenBeyond& beyond,
                                 const std::function<void(std::string_view)>& use) {
  DataSummary summary;
  Sha256 sha;
  TextChecker checker;
  MOTLEY_RETURN_IF_ERROR(ForEachDataFile(
      opened, path,
      [&](const std::string& file, std::string_view block) -> absl::Status {
        MOTLEY_RETURN_IF_ERROR(checker.Feed(file, block));
        sha.Update(block.data(), block.size());
        summary.bytes += static_cast<int64_t>(block.size());
        use(block);
        return absl::OkStatus();
      },
      [&](const std::string& file) -> absl::Status { return std::exchange(checker, TextChecker()).End(file); }, beyond));
  summary.digest = sha.Hex();
  summary.tokens = summary.source_bytes = summary.bytes;
  summary.trained_tokens = std::max<int64_t>(summary.tokens - 1, 0);
  summary.greatest_token = 255;
  return summary;
}

int64_t ValidationBytes(int64_t bytes, double fraction) { return static_cast<int64_t>(static_cast<double>(bytes) * fraction); }

int64_t SamplesIn(int64_t bytes, int64_t seq_len) { return bytes > 0 ? (bytes - 1) / seq_len : 0; }

// Smallest total for which both parts hold their samples.
int64_t NeededBytes(int64_t seq_len, double fraction, int64_t validation_samples) {
  int64_t needed = seq_len + 1;
  if (fraction > 0) {
    // From just below the real-valued bounds, so that rounding cannot skip the first that fits.
    needed = std::max(static_cast<int64_t>(static_cast<double>(seq_len) / (1 - fraction)),
                      static_cast<int64_t>(static_cast<double>(validation_samples * seq_len + 1) / fraction)) -
             8;
    while (ValidationBytes(needed, fraction) <= validation_samples * seq_len) ++needed;
    while (needed - ValidationBytes(needed, fraction) <= seq_len) ++needed;
  }
  return needed;
}

}  // namespace

int64_t TrainingSamples(int64_t bytes, int64_t seq_len, double validation_fraction) {
  return SamplesIn(bytes - ValidationBytes(bytes, validation_fraction), seq_len);
}

absl::Status CheckDataSize(int64_t bytes, int64_t seq_len, double validation_fraction, int64_t validation_samples) {
  const int64_t wanted = validation_fraction > 0 ? std::max<int64_t>(validation_samples, 1) : 0;
  const int64_t validation_bytes = ValidationBytes(bytes, validation_fraction);
  if (TrainingSamples(bytes, seq_len, validation_fraction) >= 1 && SamplesIn(validation_bytes, seq_len) >= wanted)
    return absl::OkStatus();
  const std::string fewer = wanted > 1 ? absl::StrCat(" (data.validation_samples; with 1 of them ",
                                                      NeededBytes(seq_len, validation_fraction, 1), " bytes are enough)")
                                       : "";
  return absl::FailedPreconditionError(
      absl::StrCat("the data has ", bytes, " bytes; at least ", NeededBytes(seq_len, validation_fraction, wanted),
                   " are needed for training.seq_len ", seq_len, " with data.validation_fraction ", validation_fraction, " and ",
                   wanted, " validation samples", fewer));
}

absl::StatusOr<DataSummary> SummarizeData(const FileDescriptor& opened, const std::string& path, const OpenBeyond& beyond) {
  return Walk(opened, path, beyond, [](std::string_view) {});
}

absl::StatusOr<Dataset> Dataset::Read(const FileDescriptor& opened, const std::string& path, int64_t seq_len,
                                      double validation_fraction, const OpenBeyond& beyond) {
  auto text = std::make_shared<std::string>();
  Dataset data;
  MOTLEY_ASSIGN_OR_RETURN(data.summary_, Walk(opened, path, beyond, [&](std::string_view block) { text->append(block); }));
  if (absl::Status size = CheckDataSize(data.summary_.bytes, seq_len, validation_fraction, 1); !size.ok()) {
    return absl::Status(size.code(), absl::StrCat(path, ": ", size.message()));
  }
  data.text_ = std::move(text);
  data.seq_len_ = seq_len;
  data.train_bytes_ = data.summary_.bytes - ValidationBytes(data.summary_.bytes, validation_fraction);
  return data;
}

int64_t Dataset::num_validation_samples() const { return SamplesIn(summary_.bytes - train_bytes_, seq_len_); }

std::span<const uint8_t> Dataset::TrainSample(int64_t index) const {
  return {reinterpret_cast<const uint8_t*>(text_->data()) + index * seq_len_, static_cast<size_t>(seq_len_ + 1)};
}

std::span<const uint8_t> Dataset::ValidationSample(int64_t index) const {
  return {reinterpret_cast<const uint8_t*>(text_->data()) + train_bytes_ + index * seq_len_, static_cast<size_t>(seq_len_ + 1)};
}

}  // namespace motley
