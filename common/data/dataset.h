// Text as bytes: any UTF-8 file, or the files of a folder (and its subfolders; hidden ones left out) in order of their paths,
// each once. Tokens are bytes (vocabulary 256). Sample i is bytes [i*seq_len, i*seq_len + seq_len], inputs the first seq_len of
// them, targets the last seq_len.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/files.h"
#include "common/data/data_files.h"
#include "common/data/data_summary.h"

namespace motley {

// Size and digest of opened data (data_files.h) without keeping the text; the path names it in errors. NOT_FOUND /
// PERMISSION_DENIED / INVALID_ARGUMENT (not UTF-8, or a NUL: file and byte offset; a table, an archive, ...: data_format.h).
absl::StatusOr<DataSummary> SummarizeData(const FileDescriptor& opened, const std::string& path, const OpenBeyond& beyond = {});

// Whether so many bytes hold a training sample and `validation_samples` validation samples (none with fraction 0).
// FAILED_PRECONDITION says how many bytes are needed. The last floor(bytes * fraction) bytes are the validation part.
absl::Status CheckDataSize(int64_t bytes, int64_t seq_len, double validation_fraction, int64_t validation_samples);

// Samples of the training part of so many bytes; one pass over the data takes each once.
int64_t TrainingSamples(int64_t bytes, int64_t seq_len, double validation_fraction);

// Thread-safe after construction.
class Dataset {
 public:
  // The whole text of opened data, with the errors of SummarizeData. FAILED_PRECONDITION when a split has no sample: says how
  // many bytes are needed.
  static absl::StatusOr<Dataset> Read(const FileDescriptor& opened, const std::string& path, int64_t seq_len,
                                      double validation_fraction, const OpenBeyond& beyond = {});

  int64_t num_train_samples() const { return train_bytes_ > 0 ? (train_bytes_ - 1) / seq_len_ : 0; }
  int64_t num_validation_samples() const;
  const DataSummary& summary() const { return summary_; }
  // seq_len + 1 bytes; `index` below the number of samples.
  std::span<const uint8_t> TrainSample(int64_t index) const;
  std::span<const uint8_t> ValidationSample(int64_t index) const;

 private:
  Dataset() = default;
  std::shared_ptr<const std::string> text_;
  DataSummary summary_;
  int64_t seq_len_ = 0;
  int64_t train_bytes_ = 0;
};

}  // namespace motley
