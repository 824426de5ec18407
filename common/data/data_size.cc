#include "common/data/data_size.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/count.h"

namespace motley {
namespace {

// Of what samples are cut, or which samples are.
int64_t Elements(const DataSummary& data) {
  switch (data.kind) {
    case DataKind::kText:
      return data.bytes;
    case DataKind::kStream:
      return data.tokens;
    case DataKind::kRows:
      return data.rows;
  }
  return 0;
}

std::string Named(DataKind kind) { return kind == DataKind::kText ? "bytes" : kind == DataKind::kStream ? "tokens" : "rows"; }

int64_t Part(int64_t elements, double fraction) { return static_cast<int64_t>(static_cast<double>(elements) * fraction); }

// A row is a sample; of others a sample shares a token with the next.
int64_t SamplesIn(DataKind kind, int64_t elements, int64_t seq_len) {
  if (kind == DataKind::kRows) return elements;
  return elements > 0 ? (elements - 1) / seq_len : 0;
}
int64_t ElementsFor(DataKind kind, int64_t samples, int64_t seq_len) {
  if (kind == DataKind::kRows) return samples;
  return samples > 0 ? samples * seq_len + 1 : 0;
}

// Smallest total for which both parts hold their samples.
int64_t Needed(DataKind kind, int64_t seq_len, double fraction, int64_t validation_samples) {
  const int64_t validation = ElementsFor(kind, validation_samples, seq_len), training = ElementsFor(kind, 1, seq_len);
  if (fraction >= kAllForValidation) return validation;
  if (fraction <= 0) return training;
  // From just below the real-valued bounds, so that rounding cannot skip the first that fits.
  int64_t needed = std::max(static_cast<int64_t>(static_cast<double>(training - 1) / (1 - fraction)),
                            static_cast<int64_t>(static_cast<double>(validation) / fraction)) -
                   8;
  needed = std::max<int64_t>(needed, 0);
  while (Part(needed, fraction) < validation) ++needed;
  while (needed - Part(needed, fraction) < training) ++needed;
  return needed;
}

}  // namespace

int64_t ValidationPart(const DataSummary& data, double fraction) { return Part(Elements(data), fraction); }

int64_t TrainingSamples(const DataSummary& data, int64_t seq_len, double validation_fraction) {
  return SamplesIn(data.kind, Elements(data) - ValidationPart(data, validation_fraction), seq_len);
}

int64_t ValidationSamples(const DataSummary& data, int64_t seq_len, double validation_fraction) {
  return SamplesIn(data.kind, ValidationPart(data, validation_fraction), seq_len);
}

absl::Status CheckDataSize(const DataSummary& data, int64_t seq_len, double validation_fraction, int64_t validation_samples) {
  const bool trains = validation_fraction < kAllForValidation;
  const int64_t wanted = validation_fraction > 0 ? std::max<int64_t>(validation_samples, 1) : 0;
  if ((!trains || TrainingSamples(data, seq_len, validation_fraction) >= 1) &&
      ValidationSamples(data, seq_len, validation_fraction) >= wanted) {
    return absl::OkStatus();
  }
  const std::string unit = Named(data.kind);
  const std::string fewer = wanted > 1
                                ? absl::StrCat(" (data.validation_samples; with 1 of them ",
                                               Needed(data.kind, seq_len, validation_fraction, 1), " ", unit, " are enough)")
                                : "";
  const std::string with =
      trains ? absl::StrCat(" with data.validation_fraction ", validation_fraction, " and ", wanted, " validation samples", fewer,
                            wanted > 0 ? "; or give the validations data of their own: data.validation_path" : "")
             : absl::StrCat(" and ", wanted, " validation samples", fewer);
  return absl::FailedPreconditionError(absl::StrCat("the data has ", Elements(data), " ", unit, "; at least ",
                                                    Needed(data.kind, seq_len, validation_fraction, wanted),
                                                    " are needed for training.seq_len ", seq_len, with));
}

absl::Status CheckDataFits(const DataSummary& data, int64_t seq_len, int64_t vocabulary) {
  if (data.kind == DataKind::kRows && data.row_tokens != seq_len) {
    return absl::FailedPreconditionError(absl::StrCat(
        "its rows were made for sequences of ", data.row_tokens, " tokens, and training.seq_len is ", seq_len,
        "; set training.seq_len to ", data.row_tokens, ", or prepare them anew: motley data prepare --seq-len ", seq_len));
  }
  if (data.kind != DataKind::kText && data.greatest_token >= vocabulary) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it has token ", data.greatest_token, ", and the model has ", vocabulary, " of them (vocab_size), 0 to ", vocabulary - 1,
        "; take the tokens of the model's own tokenizer, or give a model of a greater vocab_size (model.config)"));
  }
  return absl::OkStatus();
}

std::string SizeText(const DataSummary& data) {
  switch (data.kind) {
    case DataKind::kText:
      return Count(data.bytes, "byte");
    case DataKind::kStream:
      return Count(data.tokens, "token");
    case DataKind::kRows:
      return absl::StrCat(Count(data.rows, "row"), " of ", data.row_tokens, " tokens");
  }
  return "";
}

}  // namespace motley
