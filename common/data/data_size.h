// How much data a job needs, and whether it is what the job and its model take. Plain arithmetic over what nodes say of it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/data/data_summary.h"

namespace motley {

// With this fraction all is the validation part: data of validations alone.
inline constexpr double kAllForValidation = 1.0;

// Elements of the validation part, at the end: bytes of text, tokens of a stream, rows.
int64_t ValidationPart(const DataSummary& data, double fraction);
// Samples of the training part and of the validation part. One pass over the data takes each of the former once.
int64_t TrainingSamples(const DataSummary& data, int64_t seq_len, double validation_fraction);
int64_t ValidationSamples(const DataSummary& data, int64_t seq_len, double validation_fraction);

// Whether the data hold a training sample and `validation_samples` validation samples (none with fraction 0; no training sample
// with kAllForValidation). FAILED_PRECONDITION says how many bytes, tokens or rows are needed.
absl::Status CheckDataSize(const DataSummary& data, int64_t seq_len, double validation_fraction, int64_t validation_samples);

// Whether a model of so many words can be trained on them, in samples of seq_len. FAILED_PRECONDITION: rows were made for another
// length, or a token is beyond the vocabulary.
absl::Status CheckDataFits(const DataSummary& data, int64_t seq_len, int64_t vocabulary);

// "1000 bytes", "1000 tokens", "12 rows of 2048 tokens".
std::string SizeText(const DataSummary& data);

}  // namespace motley
