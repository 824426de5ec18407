// What is to be trained, for planning without a job: shape, batch, precision.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/dtype.h"
#include "common/model/model.h"

namespace motley::planner {

// Who keeps what where the type is a half one. Both have a float32 master and two float32 moments, divided by ZeRO.
enum class StateKeeping {
  kPapers,  // parameters and gradients in the half type beside them, as DeepSpeed: what published plans and tables count
  kEngine,  // parameters in the half type only where they are gathered, gradients in float32 (docs/use/training-semantics.md)
};

struct Workload {
  std::string model_name;    // "llama-7b", or the config.json's path
  std::string profile_name;  // the name under which published latencies list it ("deepspeedllama_7b"); empty = none known
  ModelShape model;          // encoders are priced as GPT-2 layers with full attention
  bool causal = true;
  int64_t global_batch = 0;  // samples a step
  int64_t seq_len = 0;       // tokens (or patches) of a sample
  DType dtype = DType::kFloat32;
  StateKeeping state = StateKeeping::kPapers;  // Setting::Create: the engine's, but for published systems and other optimizers
  // Of the whole training state, instead of AdamW's in float32: what another optimizer would change. 0 = AdamW. What is not
  // parameters and gradients counts as the optimizer's. Jobs keep AdamW, so no plan that counts otherwise runs.
  int64_t state_bytes_per_parameter = 0;
  std::vector<std::string> notes;  // what the model has that `model` does not say, for people
};

struct ModelPreset {
  std::string_view name;          // "llama-7b"
  std::string_view what;          // source: paper and table
  std::string_view profile_name;  // in the published latencies
  ModelShape model;
  bool causal = true;
};
const std::vector<ModelPreset>& ModelPresets();

// Twice what AdamW takes in float64.
inline constexpr int64_t kMostStateBytes = 64;

// A preset's name or the path of a HuggingFace config.json. Fills model_name, profile_name, model, causal, notes. NOT_FOUND
// names the nearest preset; config.json's errors name the keys.
absl::StatusOr<Workload> LoadModel(const std::string& preset_or_path);

// Batch, sequence within the model's positions, bytes of state. INVALID_ARGUMENT names field and remedy.
absl::Status Validate(const Workload& workload);
// UNIMPLEMENTED: the workload counts another training state than the engine keeps.
absl::Status StateRunsHere(const Workload& workload);

}  // namespace motley::planner
