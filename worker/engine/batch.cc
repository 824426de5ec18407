#include "worker/engine/batch.h"

#include <ATen/ATen.h>

#include <utility>

#include "common/base/fault.h"
#include "common/base/status_macros.h"

namespace motley::engine {
namespace {

bool ReadsTokens(const Program& program) {
  const std::vector<int32_t>& units = program.units;
  return !units.empty() && (units.front() == 0 || units.back() == program.num_units - 1);
}

// The job was planned for data that its nodes had read: what is wrong with it now may be wrong on this machine alone.
absl::Status OfThisNode(absl::Status status) {
  return FaultOf(status) == Fault::kStorage ? status : WithFault(std::move(status), Fault::kNode);
}

}  // namespace

int64_t BatchSize(const Program& program, int64_t seq_len) {
  int64_t samples = 0;
  for (const Microbatch& microbatch : program.microbatches) samples += microbatch.samples;
  return ReadsTokens(program) ? 2 * samples * seq_len : 0;
}

absl::Status WriteBatch(const Dataset& data, Split split, const Program& program, int64_t seq_len, const SamplesOf& samples_of,
                        int64_t* numbers) {
  int64_t *token = numbers, *target = numbers + BatchSize(program, seq_len) / 2;
  for (const Microbatch& microbatch : program.microbatches) {
    for (const int64_t sample : samples_of(microbatch)) {
      const RowRoom room = {.tokens = token, .targets = target, .counted = nullptr};
      if (absl::Status read = data.ReadRow(split, sample, room, nullptr); !read.ok()) return OfThisNode(std::move(read));
      token += seq_len;
      target += seq_len;
    }
  }
  return absl::OkStatus();
}

Batch ViewsOf(const at::Tensor& numbers, const Program& program, int64_t seq_len) {
  Batch batch;
  batch.tokens.resize(program.microbatches.size());
  batch.targets.resize(program.microbatches.size());
  if (!numbers.defined()) return batch;
  const at::Tensor rows = numbers.view({2, -1, seq_len});
  int64_t first = 0;
  for (size_t m = 0; m < program.microbatches.size(); ++m) {
    const int64_t samples = program.microbatches[m].samples;
    batch.tokens[m] = rows[0].narrow(0, first, samples);
    batch.targets[m] = rows[1].narrow(0, first, samples);
    first += samples;
  }
  return batch;
}

absl::StatusOr<Batch> MakeBatch(const Dataset& data, Split split, const Program& program, int64_t seq_len, c10::Device device,
                                const SamplesOf& samples_of) {
  const int64_t size = BatchSize(program, seq_len);
  if (size == 0) return ViewsOf({}, program, seq_len);
  const at::Tensor numbers = at::empty({size}, at::kLong);
  MOTLEY_RETURN_IF_ERROR(WriteBatch(data, split, program, seq_len, samples_of, numbers.mutable_data_ptr<int64_t>()));
  return ViewsOf(numbers.to(device), program, seq_len);
}

}  // namespace motley::engine
