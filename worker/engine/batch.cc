#include "worker/engine/batch.h"

#include <ATen/ATen.h>

namespace motley::engine {

Batch MakeBatch(const Dataset& data, Split split, std::span<const int64_t> samples, const std::vector<int64_t>& microbatches,
                int64_t seq_len) {
  Batch batch;
  size_t next = 0;
  for (const int64_t size : microbatches) {
    at::Tensor tokens = at::empty({size, seq_len}, at::kLong);
    at::Tensor targets = at::empty({size, seq_len}, at::kLong);
    int64_t* token = tokens.mutable_data_ptr<int64_t>();
    int64_t* target = targets.mutable_data_ptr<int64_t>();
    for (int64_t s = 0; s < size; ++s, ++next) {
      const std::span<const uint8_t> text =
          split == Split::kTrain ? data.TrainSample(samples[next]) : data.ValidationSample(samples[next]);
      for (int64_t i = 0; i < seq_len; ++i) {
        *token++ = text[i];
        *target++ = text[i + 1];
      }
    }
    batch.tokens.push_back(std::move(tokens));
    batch.targets.push_back(std::move(targets));
  }
  return batch;
}

}  // namespace motley::engine
