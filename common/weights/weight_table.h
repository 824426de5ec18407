// Where the files of a folder of HuggingFace's hold each tensor of a model.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/dtype.h"
#include "common/model/parameters.h"
#include "common/weights/weights_folder.h"

namespace motley {

struct StoredAt {
  size_t file = 0;  // of the folder's
  StoredTensor tensor;
  DType dtype = DType::kFloat32;
};

struct WeightTable {
  std::vector<UnitSpec> layout;                // the model's
  std::vector<std::vector<StoredAt>> tensors;  // by unit and tensor of the layout
  std::optional<StoredAt> tied_head;           // a copy of the embedding that the files hold beside it
};

// Names with and without the prefix "model." or "transformer." are one; what no model computes with (GPT-2's stored masks, tables
// of rotary positions) is passed over. INVALID_ARGUMENT names the folder and the tensors: unknown or missing ones, one of another
// shape than the model's, or of a type that is not trained.
absl::StatusOr<WeightTable> MatchWeights(const WeightsFolder& folder, const ModelShape& model);

}  // namespace motley
