#include "worker/engine/batch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/engine/base/this_node.h"

namespace motley::engine {
namespace {

bool ReadsTokens(const Program& program) {
  const std::vector<int32_t>& units = program.units;
  return !units.empty() && (units.front() == 0 || units.back() == program.num_units - 1);
}
bool HasHead(const Program& program) { return !program.units.empty() && program.units.back() == program.num_units - 1; }

int64_t TokensOf(const Program& program, int64_t seq_len) {
  int64_t samples = 0;
  for (const Microbatch& microbatch : program.microbatches) samples += microbatch.samples;
  return samples * seq_len;
}

// Behind the int64 numbers of a batch of rows: the positions of all microbatches, then each one's cu_seqlens.
int64_t AsInt64(int64_t int32_numbers) { return (int32_numbers + 1) / 2; }

// Reads one after the other, and knows what has been written.
class RowWriter {
 public:
  RowWriter(const Dataset& data, Split split, const Program& program, int64_t seq_len, int64_t* numbers)
      : data_(data), split_(split), seq_len_(seq_len), is_read_(ReadsTokens(program)), has_head_(HasHead(program)) {
    const int64_t tokens = TokensOf(program, seq_len);
    token_ = numbers;
    target_ = numbers + tokens;
    trained_ = numbers + (is_read_ ? 2 * tokens : 0);
    if (has_head_) counted_.resize(static_cast<size_t>(seq_len));
  }

  absl::Status Read(const std::vector<int64_t>& samples) {
    written_.lengths.emplace_back();
    const int64_t* const before = trained_;
    for (size_t s = 0; s < samples.size(); ++s) {
      RowRoom room;
      if (is_read_) room.tokens = std::exchange(token_, token_ + seq_len_);
      if (is_read_) room.targets = std::exchange(target_, target_ + seq_len_);
      if (has_head_) room.counted = counted_.data();
      MOTLEY_RETURN_IF_ERROR(OfThisNode(data_.ReadRow(split_, samples[s], room, &written_.lengths.back().emplace_back())));
      for (size_t i = 0; i < counted_.size(); ++i) {
        if (counted_[i] != 0) *trained_++ = static_cast<int64_t>(s) * seq_len_ + static_cast<int64_t>(i);
      }
    }
    if (has_head_) written_.trained.push_back(trained_ - before);
    return absl::OkStatus();
  }

  WrittenBatch End(int64_t* numbers) {
    auto* const first = reinterpret_cast<int32_t*>(trained_);
    int32_t* next = first;
    for (const auto& lengths : written_.lengths) {
      WritePositions(lengths, next);
      next += static_cast<int64_t>(lengths.size()) * seq_len_;
    }
    for (const auto& lengths : written_.lengths) {
      WriteCuSeqlens(lengths, next);
      next += DocumentsIn(lengths) + 1;
    }
    written_.numbers = trained_ - numbers + AsInt64(next - first);
    return std::move(written_);
  }

 private:
  const Dataset& data_;
  const Split split_;
  const int64_t seq_len_;
  const bool is_read_, has_head_;
  int64_t *token_, *target_, *trained_;  // where the next ones belong
  std::vector<uint8_t> counted_;         // of one row
  WrittenBatch written_;
};

absl::StatusOr<WrittenBatch> WriteSamples(const Dataset& data, Split split, const Program& program, int64_t seq_len,
                                          const SamplesOf& samples_of, int64_t* numbers) {
  const int64_t tokens = TokensOf(program, seq_len);
  int64_t *token = numbers, *target = numbers + tokens;
  for (const Microbatch& microbatch : program.microbatches) {
    for (const int64_t sample : samples_of(microbatch)) {
      MOTLEY_RETURN_IF_ERROR(OfThisNode(data.ReadRow(split, sample, {.tokens = token, .targets = target}, nullptr)));
      token += seq_len;
      target += seq_len;
    }
  }
  return WrittenBatch{.numbers = 2 * tokens, .lengths = {}, .trained = {}};
}

void AddViewsOfRows(const at::Tensor& numbers, const WrittenBatch& written, int64_t first, int64_t seq_len, Batch& batch) {
  for (size_t m = 0; m < written.trained.size(); ++m) {
    batch.trained[m] = numbers.narrow(0, first, written.trained[m]);
    first += written.trained[m];
  }
  const at::Tensor small = numbers.narrow(0, first, written.numbers - first).view(at::kInt);
  int64_t position = 0, border = 0;
  for (const auto& lengths : written.lengths) border += static_cast<int64_t>(lengths.size()) * seq_len;
  for (const auto& lengths : written.lengths) {
    const int64_t tokens = static_cast<int64_t>(lengths.size()) * seq_len, borders = DocumentsIn(lengths) + 1;
    batch.borders.push_back({lengths, small.narrow(0, border, borders), small.narrow(0, position, tokens)});
    position += tokens;
    border += borders;
  }
}

}  // namespace

int64_t MostNumbers(const Dataset& data, const Program& program, int64_t seq_len) {
  const int64_t tokens = TokensOf(program, seq_len), of_text = ReadsTokens(program) ? 2 * tokens : 0;
  if (!data.has_rows() || program.units.empty()) return of_text;
  // Documents of one token.
  const int64_t borders = tokens + static_cast<int64_t>(program.microbatches.size());
  return of_text + (HasHead(program) ? tokens : 0) + AsInt64(tokens + borders);
}

absl::StatusOr<WrittenBatch> WriteBatch(const Dataset& data, Split split, const Program& program, int64_t seq_len,
                                        const SamplesOf& samples_of, int64_t* numbers) {
  if (MostNumbers(data, program, seq_len) == 0) return WrittenBatch();
  if (!data.has_rows()) return WriteSamples(data, split, program, seq_len, samples_of, numbers);
  RowWriter writer(data, split, program, seq_len, numbers);
  for (const Microbatch& microbatch : program.microbatches) MOTLEY_RETURN_IF_ERROR(writer.Read(samples_of(microbatch)));
  return writer.End(numbers);
}

Batch ViewsOf(const at::Tensor& numbers, const WrittenBatch& written, const Program& program, int64_t seq_len) {
  Batch batch;
  for (auto* of_microbatches : {&batch.tokens, &batch.targets, &batch.trained}) {
    of_microbatches->resize(program.microbatches.size());
  }
  if (!numbers.defined()) return batch;
  const int64_t read = ReadsTokens(program) ? 2 * TokensOf(program, seq_len) : 0;
  if (!written.lengths.empty()) AddViewsOfRows(numbers, written, read, seq_len, batch);
  if (read == 0) return batch;
  const at::Tensor rows = numbers.narrow(0, 0, read).view({2, -1, seq_len});
  int64_t first = 0;
  for (size_t m = 0; m < program.microbatches.size(); ++m) {
    const int64_t samples = program.microbatches[m].samples;
    batch.tokens[m] = rows[0].narrow(0, first, samples);
    batch.targets[m] = rows[1].narrow(0, first, samples);
    first += samples;
  }
  return batch;
}

absl::StatusOr<int64_t> CountTrained(const Dataset& data, Split split, const std::vector<int64_t>& samples) {
  absl::StatusOr<int64_t> trained = data.CountTrained(split, samples);
  if (!trained.ok()) return OfThisNode(trained.status());
  return trained;
}

absl::StatusOr<Batch> MakeBatch(const Dataset& data, Split split, const Program& program, int64_t seq_len, c10::Device device,
                                const SamplesOf& samples_of) {
  const int64_t most = MostNumbers(data, program, seq_len);
  if (most == 0) return ViewsOf({}, {}, program, seq_len);
  const at::Tensor numbers = at::empty({most}, at::kLong);
  MOTLEY_ASSIGN_OR_RETURN(const WrittenBatch written,
                          WriteBatch(data, split, program, seq_len, samples_of, numbers.mutable_data_ptr<int64_t>()));
  return ViewsOf(numbers.narrow(0, 0, written.numbers).to(device), written, program, seq_len);
}

}  // namespace motley::engine
