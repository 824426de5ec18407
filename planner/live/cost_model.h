// What an instruction costs on each rank, from the profiles: seconds and bytes. Ranks are positions in the input's device
// list. Immutable after Create, so thread-safe. Seconds are doubles, sizes are bytes.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/parameters.h"
#include "planner/live/planner.h"
#include "planner/util/curve.h"

namespace motley::planner {

// Capacity of a device whose description does not limit its memory: enough for anything, small enough to add up.
inline constexpr int64_t kUnlimitedBytes = int64_t{1} << 44;

class CostModel {
 public:
  // INVALID_ARGUMENT: profiles missing, in another order than the devices, or without points; unknown dtype.
  static absl::StatusOr<CostModel> Create(const PlannerInput& input);

  int world() const { return static_cast<int>(ranks_.size()); }
  const ModelShape& model() const { return model_; }
  const std::vector<UnitSpec>& layout() const { return layout_; }
  int64_t num_parameters() const { return num_parameters_; }
  int64_t seq_len() const { return seq_len_; }
  DType dtype() const { return dtype_; }
  int64_t element_bytes() const { return SizeOfBytes(dtype_); }
  const DeviceDescription& device(int rank) const { return At(rank).device; }

  double ForwardSeconds(int rank, UnitKind unit, int64_t microbatch) const;
  double BackwardSeconds(int rank, UnitKind unit, int64_t microbatch) const;
  double OptimizerSeconds(int rank, int64_t elements) const;
  double StepOverheadSeconds(int rank) const { return At(rank).overhead_seconds; }

  // Kept from forward to backward, the input included: for layers and head never less than the boundary.
  int64_t SavedBytes(int rank, UnitKind unit, int64_t microbatch) const;
  int64_t WorkspaceBytes(int rank, UnitKind unit, int64_t microbatch) const;  // never falls as the microbatch grows
  int64_t BoundaryBytes(int64_t microbatch) const;                            // one activation between units
  int64_t ContextBytes(int rank) const { return At(rank).context_bytes; }
  int64_t MemoryBytes(int rank) const;  // of the device
  int64_t UsableBytes(int rank) const;  // less config.planner.memory_reserve, which no plan uses

  // Of a whole array of `bytes`; `skew` is the largest share. 0 on one device.
  double AllGatherSeconds(int64_t bytes, double skew) const { return Collective(gather_, bytes, skew); }
  double ReduceScatterSeconds(int64_t bytes, double skew) const { return Collective(reduce_, bytes, skew); }
  double BarrierSeconds() const { return barrier_seconds_; }
  // The skews that were measured, ascending.
  const std::vector<double>& measured_skews() const { return skews_; }

  // Whether two ranks cost the same everywhere, so that a search may treat them as one kind.
  bool SameKind(int a, int b) const;

 private:
  struct UnitCurves {
    Curve forward, backward, saved, workspace;
  };
  struct Rank {
    DeviceDescription device;
    std::array<UnitCurves, 3> units;  // by UnitKind
    std::array<UnitProfile, 3> profiles;
    double optimizer_seconds_per_element = 0, overhead_seconds = 0;
    int64_t context_bytes = 0;
  };
  // One collective at one array size, over skew.
  struct SizedCurve {
    double bytes = 0;
    std::vector<double> skews, seconds;
  };

  CostModel() = default;
  const Rank& At(int rank) const { return ranks_[static_cast<size_t>(rank)]; }
  const UnitCurves& Curves(int rank, UnitKind unit) const { return At(rank).units[static_cast<size_t>(unit)]; }
  static double Collective(const std::vector<SizedCurve>& curves, int64_t bytes, double skew);
  absl::Status AddRank(const DeviceDescription& device, const ComputeProfile& profile);
  absl::Status SetCollectives(const CollectiveProfile& profile);

  ModelShape model_;
  std::vector<UnitSpec> layout_;
  int64_t num_parameters_ = 0, seq_len_ = 0;
  DType dtype_ = DType::kFloat32;
  double memory_reserve_ = 0, barrier_seconds_ = 0;
  std::vector<Rank> ranks_;
  std::vector<SizedCurve> gather_, reduce_;
  std::vector<double> skews_;
};

}  // namespace motley::planner
