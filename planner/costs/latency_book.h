// Measured latencies of one transformer layer: model -> card -> sequence -> dtype -> forward and backward seconds over the batch.
// Reads the form published by Zorse and Cephalo (milliseconds; scalars, linear fits, or fits and series) and Motley's own
// profiles (docs/inside/profiles.md). Immutable after parsing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/dtype.h"
#include "common/model/model.h"
#include "common/model/parameters.h"
#include "planner/costs/motley_profile.h"
#include "planner/util/curve.h"

namespace motley::planner {

// Profiles are a few hundred kilobytes; anything beyond this is another file.
inline constexpr int64_t kMostProfileBytes = int64_t{64} << 20;

struct UnitCurves {
  Curve forward, backward;  // seconds over samples
};

// What was measured of a unit beside its whole passes, at the same samples. Empty where nobody did.
struct PartialCurves {
  Curve backward_input, backward_weight;  // of the backward in two
  double part = 0;                        // of heads, columns and rows, as a tensor-parallel rank runs it; 0: none
  Curve part_forward, part_backward;
};

// Measured bytes of one unit; none where nobody measured them.
struct UnitBytes {
  double saved_per_sample = 0;  // kept from forward to backward, the unit's input included; the most of the points; 0 = unknown
  Curve workspace;              // the largest temporary, over samples
  Curve forward_workspace;      // the forward's, beside all that it keeps
};

// What Motley's own profiles say of a card beside the layer's seconds; absent where nobody measured it.
struct LatencyExtras {
  std::array<UnitBytes, 3> bytes;        // by UnitKind
  std::array<PartialCurves, 3> partial;  // by UnitKind
  std::optional<UnitCurves> embedding, head;
  std::optional<MeasuredOptimizer> optimizer;
  std::optional<int64_t> context_bytes;
};

struct LatencyEntry {
  std::string model;  // as the file names it
  std::string card;   // normalised to the device table's name ("v100x16" -> "V100-16GB"); as written where unknown
  int64_t seq_len = 0;
  DType dtype = DType::kFloat32;
  Curve forward, backward;          // seconds over samples; isotonic, linear beyond the series
  std::string source;               // "FILE: MODEL/CARD/SEQ/DTYPE"
  bool fitted_only = false;         // no series: a linear fit
  std::optional<ModelShape> shape;  // of the model, where the file says it; then it and not the name tells models apart
  LatencyExtras extras;
  std::vector<std::string> repairs;  // made when it was read, each with its place in the file
};

// The device table's name of a card that a profile names in its own way ("v100x16": "V100-16GB"); as it is where unknown.
std::string ProfileCardName(const std::string& label);

class LatencyBook {
 public:
  // INVALID_ARGUMENT: larger than kMostProfileBytes, not JSON, negative or non-finite times, shapes that are none of the known,
  // another version of Motley's form, a key that it does not have, two entries of one key; names the path in the file.
  // Repairs (isotonic, outliers, negative intercepts, a published card with two labels) are made and listed.
  static absl::StatusOr<LatencyBook> Parse(std::string_view json, std::string_view source);
  // The same of a file, of which no more is read than may be. Errors of ReadSmallFile.
  static absl::StatusOr<LatencyBook> Load(const std::string& path);
  static LatencyBook Of(LatencyEntry entry);
  // What Parse gives for the profile's JSON.
  static absl::StatusOr<LatencyBook> Of(const MotleyProfile& profile, const std::string& source);
  // Entries of later books win.
  void Merge(LatencyBook other);

  const std::vector<LatencyEntry>& entries() const { return entries_; }
  std::vector<std::string> repairs() const;  // of all entries
  // nullptr when there is none.
  const LatencyEntry* Find(std::string_view model, std::string_view card, int64_t seq_len, DType dtype) const;

 private:
  void Add(LatencyEntry entry);

  std::vector<LatencyEntry> entries_;  // in the order of model, card, sequence, dtype
};

}  // namespace motley::planner
