// A job's samples: where its data lie, which are for training, and what a sample is. Sample i of text (whose bytes are the
// tokens, vocabulary 256) and of other streams is tokens [i*seq_len, i*seq_len + seq_len]: inputs the first seq_len of them,
// targets the last seq_len. Of rows it is row i.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/files.h"
#include "common/data/data_files.h"
#include "common/data/data_source.h"
#include "common/data/data_summary.h"
#include "common/data/row.h"

namespace motley {

// The summary of opened data, and DataOptions::known (data_source.h); the path names it in errors.
absl::StatusOr<DataSummary> SummarizeData(const FileDescriptor& opened, const std::string& path, const OpenBeyond& beyond = {},
                                          KnownParts* known = nullptr);

enum class Split { kTrain, kValidation };

// Thread-safe after construction. What it reads it does not keep.
class Dataset {
 public:
  // With the errors of OpenDataSource, CheckDataSize and, with a vocabulary, CheckDataFits. The last share of the data is the
  // validation part, of text and streams in bytes and tokens, of rows in rows; with kAllForValidation all is.
  static absl::StatusOr<Dataset> Read(const FileDescriptor& opened, const std::string& path, int64_t seq_len,
                                      double validation_fraction, const DataOptions& options = {});

  int64_t num_samples(Split split) const { return split == Split::kTrain ? train_samples_ : validation_samples_; }
  const DataSummary& summary() const { return source_.summary; }
  // Rows have borders and weights of their own; without, each sample is one document of which all targets count.
  bool has_rows() const { return source_.rows != nullptr; }

  // `index` below num_samples; `lengths` may be null. FAILED_PRECONDITION names a file that is not any more what was opened.
  absl::Status ReadRow(Split split, int64_t index, const RowRoom& room, DocumentLengths* lengths) const;
  // Targets of these samples that count.
  absl::StatusOr<int64_t> CountTrained(Split split, std::span<const int64_t> indices) const;

  // Whether nothing is left to compare, the comparing, and what makes it necessary once more (data_source.h).
  bool is_proven() const { return source_.is_proven(); }
  absl::Status Prove(Proof& proof) const { return motley::Prove(source_, proof); }
  int64_t BytesToProve() const { return motley::BytesToProve(source_); }
  absl::StatusOr<bool> TakeTouched(bool look) const { return motley::TakeTouched(source_, look); }

 private:
  Dataset() = default;
  absl::Status CheckIndex(Split split, int64_t index) const;
  // The number of a split's first row, or of its first token.
  int64_t FirstOf(Split split) const { return split == Split::kTrain ? 0 : validation_begin_; }

  DataSource source_;
  int64_t seq_len_ = 0;
  int64_t train_samples_ = 0, validation_samples_ = 0;
  int64_t validation_begin_ = 0;
};

}  // namespace motley
