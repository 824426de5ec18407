// Reads the parameters of a folder of HuggingFace's in our storage order and in the type of the job's state. Holds a few strips
// of a matrix, 24 MiB at most, and reads of the files what the ranges asked for need.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/weights/weight_source.h"
#include "common/weights/weight_table.h"

namespace motley {

class HuggingFaceWeights : public WeightSource {
 public:
  // `folder`: what FindWeightsFolder gave; `dtype`: float32 or float64. Errors: those of OpenWeightsFolder and MatchWeights; and
  // FAILED_PRECONDITION: its config.json is of another model than `model`.
  static absl::StatusOr<HuggingFaceWeights> Open(const std::string& folder, const ModelShape& model, DType dtype,
                                                 const OpenPath& open);

  // INVALID_ARGUMENT, naming tensor and place: NaN, infinite, or beyond what `dtype` holds; or a head that is stored beside a
  // tied embedding and differs from it. DATA_LOSS: the file is shorter than it was.
  absl::Status Read(int unit, int64_t begin, int64_t end, void* out) override;

  const WeightsFolder& folder() const { return folder_; }
  const WeightTable& table() const { return table_; }

 private:
  HuggingFaceWeights(WeightsFolder folder, WeightTable table, DType dtype)
      : folder_(std::move(folder)), table_(std::move(table)), dtype_(dtype) {}
  // Elements [begin, end) of a tensor as it is stored here.
  absl::Status ReadStraight(const StoredAt& at, int64_t begin, int64_t end, char* out);
  absl::Status ReadTurned(const TensorSpec& spec, const StoredAt& at, int64_t begin, int64_t end, char* out);
  absl::Status CompareTied(int64_t begin, int64_t end, const char* embedding);
  // `count` elements from `first` on, as the file has them.
  absl::Status ReadRaw(const StoredAt& at, int64_t first, int64_t count, char* out);
  absl::Status NotFinite(const StoredAt& at, int64_t element) const;

  WeightsFolder folder_;
  WeightTable table_;
  DType dtype_;
  std::vector<char> raw_, converted_, head_;
};

}  // namespace motley
