// One rank's samples of a step, as the tensors that its microbatches compute on. Thread-compatible. docs/inside/rows.md
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/data/dataset.h"
#include "common/program/program.h"
#include "worker/engine/operators/borders.h"

namespace motley::engine {

// By microbatch.
struct Batch {
  // [samples, seq_len] int64, views of one tensor. Undefined where the rank has neither the embedding nor the head.
  std::vector<at::Tensor> tokens, targets;
  // Places among samples * seq_len whose targets count, ascending, int64. Undefined: all do, or the rank has no head.
  std::vector<at::Tensor> trained;
  // Of data that has rows; empty: each sample is one document.
  std::vector<Borders> borders;

  // Targets of the whole step that count, of all ranks. Where a BatchLoader made it, else 0.
  int64_t trained_tokens = 0;

  // Null: each sample is one document.
  const Borders* BordersOf(int32_t microbatch) const {
    return borders.empty() ? nullptr : &borders[static_cast<size_t>(microbatch)];
  }
  // Of a rank with the head.
  int64_t TrainedTokens(int32_t microbatch) const {
    const auto m = static_cast<size_t>(microbatch);
    return trained[m].defined() ? trained[m].numel() : targets[m].numel();
  }
};

// The dataset's indices of a microbatch's samples.
using SamplesOf = std::function<std::vector<int64_t>(const Microbatch&)>;

// `device`: where the tensors are to be. Errors are of the data's reading; but for Fault::kStorage they are this node's
// (Fault::kNode).
absl::StatusOr<Batch> MakeBatch(const Dataset& data, Split split, const Program& program, int64_t seq_len, c10::Device device,
                                const SamplesOf& samples_of);

// Targets of these samples that count. The same errors.
absl::StatusOr<int64_t> CountTrained(const Dataset& data, Split split, const std::vector<int64_t>& samples);

// ---- its parts, where what is written is not yet where it is used ----

// What the host keeps of a batch that was written.
struct WrittenBatch {
  int64_t numbers = 0;  // that were written; 0: the rank needs none
  // Of data that has rows, by microbatch; else empty.
  std::vector<std::vector<DocumentLengths>> lengths;
  std::vector<int64_t> trained;  // places that count; empty where the rank has no head
};

// Numbers that a batch has at most.
int64_t MostNumbers(const Dataset& data, const Program& program, int64_t seq_len);
// The tokens of all microbatches, their targets; of rows then what counts, positions and borders.
absl::StatusOr<WrittenBatch> WriteBatch(const Dataset& data, Split split, const Program& program, int64_t seq_len,
                                        const SamplesOf& samples_of, int64_t* numbers);
// The views of a tensor that begins with what was written; of an undefined one where that is nothing.
Batch ViewsOf(const at::Tensor& numbers, const WrittenBatch& written, const Program& program, int64_t seq_len);

}  // namespace motley::engine
