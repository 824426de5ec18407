#include "common/data/dataset.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/data/data_size.h"

namespace motley {

absl::StatusOr<DataSummary> SummarizeData(const FileDescriptor& opened, const std::string& path, const OpenBeyond& beyond,
                                          KnownParts* known) {
  DataOptions options;
  options.beyond = beyond;
  options.known = known;
  MOTLEY_ASSIGN_OR_RETURN(DataSource source, OpenDataSource(opened, path, options));
  return std::move(source.summary);
}

absl::StatusOr<Dataset> Dataset::Read(const FileDescriptor& opened, const std::string& path, int64_t seq_len,
                                      double validation_fraction, const DataOptions& options) {
  Dataset data;
  MOTLEY_ASSIGN_OR_RETURN(data.source_, OpenDataSource(opened, path, options));
  const DataSummary& summary = data.source_.summary;
  absl::Status good = CheckDataFits(summary, seq_len, options.vocabulary);
  if (good.ok()) good = CheckDataSize(summary, seq_len, validation_fraction, 1);
  if (!good.ok()) return absl::Status(good.code(), absl::StrCat(path, ": ", good.message()));
  data.seq_len_ = seq_len;
  data.train_samples_ = TrainingSamples(summary, seq_len, validation_fraction);
  data.validation_samples_ = ValidationSamples(summary, seq_len, validation_fraction);
  const int64_t all = summary.kind == DataKind::kRows ? summary.rows : summary.tokens;
  data.validation_begin_ = all - ValidationPart(summary, validation_fraction);
  return data;
}

absl::Status Dataset::CheckIndex(Split split, int64_t index) const {
  if (index >= 0 && index < num_samples(split)) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("the data has ", num_samples(split), " samples, and not one of number ", index));
}

absl::Status Dataset::ReadRow(Split split, int64_t index, const RowRoom& room, DocumentLengths* lengths) const {
  MOTLEY_RETURN_IF_ERROR(CheckIndex(split, index));
  if (has_rows()) return source_.rows->Read(FirstOf(split) + index, room, lengths);
  if (lengths != nullptr) lengths->assign(1, static_cast<int32_t>(seq_len_));
  if (room.counted != nullptr) std::fill_n(room.counted, seq_len_, uint8_t{1});
  if (room.tokens == nullptr && room.targets == nullptr) return absl::OkStatus();
  std::vector<int32_t> tokens(static_cast<size_t>(seq_len_ + 1));
  MOTLEY_RETURN_IF_ERROR(source_.tokens->Read(FirstOf(split) + index * seq_len_, seq_len_ + 1, tokens.data()));
  if (room.tokens != nullptr) std::copy_n(tokens.begin(), seq_len_, room.tokens);
  if (room.targets != nullptr) std::copy_n(tokens.begin() + 1, seq_len_, room.targets);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Dataset::CountTrained(Split split, std::span<const int64_t> indices) const {
  int64_t trained = 0;
  for (const int64_t index : indices) {
    MOTLEY_RETURN_IF_ERROR(CheckIndex(split, index));
    if (!has_rows()) {
      trained += seq_len_;
      continue;
    }
    MOTLEY_ASSIGN_OR_RETURN(const int64_t more, source_.rows->CountTrained(FirstOf(split) + index));
    trained += more;
  }
  return trained;
}

}  // namespace motley
