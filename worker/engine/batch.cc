#include "worker/engine/batch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <span>

namespace motley::engine {
namespace {

bool ReadsTokens(const Program& program) {
  const std::vector<int32_t>& units = program.units;
  return !units.empty() && (units.front() == 0 || units.back() == program.num_units - 1);
}

}  // namespace

Batch MakeBatch(const Dataset& data, Split split, const Program& program, int64_t seq_len, c10::Device device,
                const std::function<std::vector<int64_t>(const Microbatch&)>& samples_of) {
  Batch batch;
  batch.tokens.resize(program.microbatches.size());
  batch.targets.resize(program.microbatches.size());
  for (size_t m = 0; ReadsTokens(program) && m < program.microbatches.size(); ++m) {
    const std::vector<int64_t> samples = samples_of(program.microbatches[m]);
    const auto size = static_cast<int64_t>(samples.size());
    at::Tensor tokens = at::empty({size, seq_len}, at::kLong), targets = at::empty({size, seq_len}, at::kLong);
    int64_t* token = tokens.mutable_data_ptr<int64_t>();
    int64_t* target = targets.mutable_data_ptr<int64_t>();
    for (const int64_t sample : samples) {
      const std::span<const uint8_t> text = split == Split::kTrain ? data.TrainSample(sample) : data.ValidationSample(sample);
      for (int64_t i = 0; i < seq_len; ++i) {
        *token++ = text[i];
        *target++ = text[i + 1];
      }
    }
    batch.tokens[m] = tokens.to(device);
    batch.targets[m] = targets.to(device);
  }
  return batch;
}

}  // namespace motley::engine
