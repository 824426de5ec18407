// Motley's own form of measured latencies (docs/inside/profiles.md): as numbers, read strictly and written. LatencyBook makes
// curves of them. What the published form cannot say (embedding, head, optimizer, context, the model's shape) is optional here.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/dtype.h"
#include "common/model/model.h"
#include "common/session/profile.h"

namespace motley::planner {

// 1 had layers alone, 2 no bytes, 3 whole passes alone, 4 one workspace for both passes, 5 no load; all are
// read.
inline constexpr int kMotleyProfileVersion = 6;
inline constexpr int64_t kMostTokens = int64_t{1} << 24;  // of a sequence

// One unit of the model over samples: lists of the same length. What comes behind the passes may be empty: not measured, then it
// is computed.
struct MeasuredSeries {
  std::vector<double> samples, forward_seconds, backward_seconds;
  std::vector<int64_t> saved_bytes;      // kept from forward to backward, the unit's input included (the embedding's: tokens)
  std::vector<int64_t> workspace_bytes;  // the largest temporary of either pass
  std::vector<double> backward_input_seconds, backward_weight_seconds;  // of the backward in two; both or neither
  // Of this part of the unit's heads, columns and rows, as a tensor-parallel rank runs it. 0: none was measured.
  double part = 0;
  std::vector<double> part_forward_seconds, part_backward_seconds;
  std::vector<int64_t> forward_workspace_bytes;  // of workspace_bytes: the forward's, beside all that it keeps
  friend bool operator==(const MeasuredSeries&, const MeasuredSeries&) = default;
};

struct MeasuredOptimizer {
  double seconds_per_element = 0;
  double launch_seconds = 0;  // of every step, whatever it steps
  friend bool operator==(const MeasuredOptimizer&, const MeasuredOptimizer&) = default;
};

// One card with one model, sequence and dtype.
struct MeasuredCard {
  std::string model;  // a key of MotleyProfile::models, a preset, or a published name
  std::string card;
  int64_t seq_len = 0;
  DType dtype = DType::kFloat32;
  MeasuredSeries layer;
  std::optional<MeasuredSeries> embedding, head;
  std::optional<MeasuredOptimizer> optimizer;
  std::optional<int64_t> context_bytes;  // what the card holds before the first tensor of a plan
  CardLoad load;                         // how it was meanwhile; for people
};

struct MotleyProfile {
  std::string source;                        // who measured, on what
  std::map<std::string, ModelShape> models;  // shapes of those that are no presets
  std::vector<MeasuredCard> cards;
};

// Whether a JSON object is of this form.
bool IsMotleyProfile(const nlohmann::json& root);
// INVALID_ARGUMENT: another version, a key that is missing or of another type; begins with `source` and names the path. Times
// themselves are checked by who makes curves of them.
absl::StatusOr<MotleyProfile> ReadMotleyProfile(const nlohmann::json& root, const std::string& source);
// Read back as the same profile. The same profile gives the same bytes.
std::string ToJson(const MotleyProfile& profile);

}  // namespace motley::planner
