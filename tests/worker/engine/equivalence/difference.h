// How far two runs of one job are apart, and where most; and a run from the memory that it was predicted.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/dtype.h"
#include "common/model/model.h"
#include "tests/worker/engine/equivalence/training_run.h"

namespace motley::engine {

struct Difference {
  double relative = 0;
  std::string where;  // "grad_norm of step 3", "exp_avg of unit 2, step 1, most in transformer.h.1.ln_1.weight"
  // Takes the larger one; what is no number is larger than all.
  void Take(double other, const std::string& there);
};

struct Differences {
  Difference curve;  // loss, gradient norm and validation loss of every step
  Difference state;  // every array of every checkpoint, relative to its Euclidean norm over the unit
  // Every rank's peak bytes from the prediction, relative to it; what is nearer than kUncountedBytes is 0. Of ranks on the host.
  Difference memory;
};
inline constexpr int64_t kUncountedBytes = 64 << 10;

struct Limits {
  double curve = 0, state = 0;
  double memory = 0.03;  // the bench's goal; no complaint yet
};
// Of the type that is computed in. float32 sums in another order differ in the seventh digit, and AdamW divides what is almost
// zero by its own size. Half products are rounded by microbatch to three digits (float16: four), and moments add up differences.
// With `terms`, of tensor-parallel units, each rank's products are rounded, and their sum once more.
inline Limits LimitsOf(DType compute, bool terms = false) {
  if (IsHalf(compute)) return {terms ? 3e-2 : 2e-2, 1e-1};
  return compute == DType::kFloat64 ? Limits{1e-10, 1e-10} : Limits{1e-5, 1e-4};
}

// Steps or checkpoints that only one of them has are an infinite difference.
Differences Compare(const TrainingRun& run, const TrainingRun& reference, const ModelShape& model);

// Empty: within the limits. Else what is not, in a line.
std::string Complaint(const Differences& differences, const Limits& limits);

}  // namespace motley::engine
