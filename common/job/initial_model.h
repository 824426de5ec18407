// The model of a HuggingFace folder that a job begins with, as it is seen where the job is submitted.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/model/model.h"

namespace motley {

struct InitialModel {
  std::string config, config_json;  // path and text of its config.json; empty: the folder holds no such model, but checkpoints
};
// INVALID_ARGUMENT: the folder is here and cannot be a start. Others: it is not seen here; the nodes may see it.
absl::StatusOr<InitialModel> ReadInitialModel(const std::string& initial);
// What is wrong where the job says a model as well; empty: it is the folder's.
std::string WhyOtherModel(const InitialModel& initial, const ModelShape& said, int64_t seq_len);

}  // namespace motley
