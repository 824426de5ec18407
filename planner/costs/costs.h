// What computing and keeping cost on each kind of device of a cluster: seconds and bytes, for whole layers, parts of layers
// (tensor parallelism) and single operators (recomputation). From measured curves where there are any, else estimated.
// Immutable after Create, thread-safe. Seconds are doubles; the simulator rounds them to picoseconds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/operators.h"
#include "common/model/parameters.h"
#include "common/program/host_state.h"
#include "common/program/offload_kinds.h"
#include "planner/cluster/cluster.h"
#include "planner/cluster/measured_collectives.h"
#include "planner/costs/latency_book.h"
#include "planner/costs/nccl_buffers.h"
#include "planner/costs/share_curve.h"
#include "planner/costs/workload.h"
#include "planner/plan/op_set.h"

namespace motley::planner {

class Roofline;

// Where a kind's numbers come from.
struct Provenance {
  std::string source;  // "zorse/model_latencies.json: ...", "estimated from A10G by peak rate"
  bool estimated = false;
  double low = 1, high = 1;          // confidence range of seconds, as factors
  std::vector<std::string> repairs;  // of the numbers that are used
  std::string doubt;                 // a sentence where they cannot well be right; or empty
};

// Of elements that a rank owns.
struct OwnedBytes {
  int64_t parameters = 0, gradients = 0, optimizer = 0;
};

class Costs {
 public:
  // `book` may be nullptr. INVALID_ARGUMENT: a workload or cluster that does not pass its Validate.
  static absl::StatusOr<Costs> Create(const Cluster& cluster, const Workload& workload, const LatencyBook* book);

  // The same costs of some of the kinds, in this order: those of `cluster`, a part of the one that these are of.
  Costs OfKinds(const std::vector<int>& kinds, const Cluster& cluster) const;

  const Workload& workload() const { return workload_; }
  const std::vector<UnitSpec>& layout() const { return layout_; }
  int num_kinds() const { return static_cast<int>(kinds_.size()); }

  // Of one unit for `samples` (>= 0; need not be whole) on a device of `kind`. `share`: the part of the unit's heads and
  // columns that this rank of a tensor-parallel group computes; norms and residuals are not divided. 0 samples: 0.
  // A step's forward of a whole head takes no time: its backward does the work (common/model/operators.h, TrainsInBackward).
  double ForwardSeconds(int kind, UnitKind unit, double samples, double share = 1) const;
  double BackwardSeconds(int kind, UnitKind unit, double samples, double share = 1) const;  // without recomputation
  // Of a forward that keeps nothing, a head's with its loss.
  double EvaluationSeconds(int kind, UnitKind unit, double samples, double share = 1) const;
  // Forward time of the operators in `ops` once more. OpSet::All() of a whole layer: its ForwardSeconds. Of a share of it, what
  // the ranks have summed is kept, and what makes it never runs again.
  double RecomputeSeconds(int kind, UnitKind unit, OpSet ops, double samples, double share = 1) const;
  // The backward in two instructions (zero bubble): the gradient of the input, and of the weights. As measured, else half of
  // BackwardSeconds each.
  double BackwardInputSeconds(int kind, UnitKind unit, double samples, double share = 1) const;
  double BackwardWeightSeconds(int kind, UnitKind unit, double samples, double share = 1) const;
  // Of one call that steps so many elements; its launch counts however few they are. 0 elements: 0.
  double OptimizerSeconds(int kind, double elements) const;
  // Every time of this kind becomes `factor` times as long: wrong profiles, for questions of the kind "what if".
  void ScaleSeconds(int kind, double factor);
  // The same seconds, with the bytes of the other way to keep state.
  void KeepStateAs(StateKeeping state) {
    workload_.state = state;
    if (state == StateKeeping::kEngine) workload_.state_bytes_per_parameter = 0;
  }
  const Provenance& provenance(int kind) const { return kinds_[kind].provenance; }

  // Bytes. Parameters in compute dtype; gradients as the workload keeps them; optimizer: master copy (for half types) and two
  // moments.
  int64_t UnitElements(UnitKind unit) const;  // a tied head counts its norm alone
  // Of them, what a rank of a tensor-parallel group has as the engine cuts a unit: its share of what is divided, and all else.
  int64_t UnitElements(UnitKind unit, double share) const;
  int64_t TotalElements() const { return total_elements_; }
  int64_t element_bytes() const { return SizeOfBytes(workload_.dtype); }
  int64_t gradient_bytes() const { return casts_gathered() ? SizeOfBytes(DType::kFloat32) : element_bytes(); }
  // Of an element in a collective over a stage's ranks. An all-reduce is a sum of gradients and a gather of parameters.
  double RingBytes(Collective collective) const;
  // A gathered array is cast from the master: where it is not resident, nobody keeps one in compute dtype.
  bool casts_gathered() const { return workload_.state == StateKeeping::kEngine && IsHalf(workload_.dtype); }
  // What of elements that a rank owns waits in host memory. As the papers keep state, the master copy goes with the moments.
  HostState InHost(const OffloadKinds& offloads, double owned) const;
  // The rest of it, which stays on the device in shards of the rank. As the engine keeps state, a master copy counts with the
  // moments and waits with the parameters. Where a whole unit's array stays (a home), its bytes take a shard's place.
  OwnedBytes OnDevice(const OffloadKinds& offloads, int64_t owned) const;
  int64_t optimizer_bytes_per_element() const;  // 8 for float32, 12 for the half types, 16 for float64, unless the workload says
  int64_t StateBytesPerElement() const {
    return (casts_gathered() ? 0 : element_bytes()) + gradient_bytes() + optimizer_bytes_per_element();
  }
  // Kept from forward to backward beside the unit's input, when `recomputed` operators keep nothing. All(): 0.
  int64_t SavedBytes(int kind, UnitKind unit, OpSet recomputed, double samples, double share = 1) const {
    return SavedBytesOf(recomputed.all() || samples <= 0 ? 0 : SavedOfSample(kind, unit, recomputed, share), samples);
  }
  // The same in two steps, where one asks for several numbers of samples.
  double SavedOfSample(int kind, UnitKind unit, OpSet recomputed, double share = 1) const;
  static int64_t SavedBytesOf(double of_sample, double samples) {
    return samples > 0 ? static_cast<int64_t>(of_sample * samples + 0.5) : 0;
  }
  // Of the unit between the two halves of a backward as the engine runs them, the gradient of its output included.
  int64_t WaitingBytes(int kind, UnitKind unit, double samples, double share = 1) const;
  // Of what is counted: what was measured of the unit's saved bytes.
  double SavedFactor(int kind, UnitKind unit) const;
  int64_t BoundaryBytes(double samples) const;  // one activation between units
  // What the ranks of a tensor-parallel unit must know of the logits: kNumbersOfALogitsRow of each token.
  int64_t RowBytes(double samples) const;
  // The largest temporary of forward or backward.
  int64_t WorkspaceBytes(int kind, UnitKind unit, double samples, double share = 1) const;
  // Of a forward that keeps everything, beside all of that; 0 where nobody measured.
  int64_t ForwardWorkspaceBytes(int kind, UnitKind unit, double samples) const;
  int64_t ContextBytes(int kind) const;  // the driver's and cuBLAS's; communicators come beside
  bool LaunchesAhead(int kind) const { return At(kind).launches_ahead; }
  const NcclSite& nccl(int kind) const { return At(kind).nccl; }
  // FLOPs of a training step over `samples`: causal, without recomputation.
  double ModelFlops(double samples) const;
  // Of one layer's recomputation, counted as ModelFlops counts. `share` as above.
  double RecomputeFlops(OpSet ops, double samples, double share = 1) const;
  // As the papers count a step, whatever is recomputed: 4/3 of forward + backward, attention in full.
  double PublishedFlops(double samples) const;

  // Operators of a layer with their part of the layer's forward seconds on `kind` and saved bytes a sample: of the tensor that an
  // operator makes, which recomputing it frees. (RecomputeSeconds adds an operator that must run again with it.)
  struct OperatorCost {
    Op op;
    double forward_part = 0;  // parts add up to 1
    double saved_bytes_per_sample = 0;
    bool divided = true;        // its work, by tensor parallelism
    bool saved_divided = true;  // its saved bytes, likewise
  };
  const std::vector<OperatorCost>& Operators(int kind) const { return kinds_[kind].operators; }

 private:
  struct BackwardHalves {
    ShareCurve input, weight;
  };
  struct Kind {
    std::array<ShareCurve, 3> forward, backward;  // by UnitKind
    std::array<std::optional<BackwardHalves>, 3> halves;
    std::array<double, 3> forward_launch{};  // part that does not shrink with a share
    std::vector<OperatorCost> operators;
    MeasuredOptimizer optimizer;
    std::array<double, 3> saved_factor = {1, 1, 1};  // measured saved bytes / computed ones
    std::array<Curve, 3> workspace;                  // measured; empty = computed
    std::array<Curve, 3> forward_workspace;          // measured; empty = none
    int64_t context_bytes = 0;
    bool launches_ahead = true;
    NcclSite nccl;
    Provenance provenance;
  };
  const Kind& At(int kind) const { return kinds_[kind]; }
  void CountBytesAndFlops();
  void AddKind(const CardKind& card, const LatencyBook* book);
  void AddUnit(const Roofline& roofline, UnitKind unit, UnitCurves whole, const PartialCurves& partial, Kind* kind);
  void AddMeasuredBytes(const LatencyExtras& extras, Kind* kind) const;
  double ComputedSavedBytes(UnitKind unit, OpSet recomputed, double share) const;  // of a sample
  double ComputedWorkspaceBytes(UnitKind unit, double samples, double share) const;
  OpSet RunAgain(OpSet ops, double share) const;  // of what a rank recomputes
  // Of single operators, as they were had no part been measured.
  double OperatorSeconds(const Kind& at, OpSet ops, double samples, double share) const;
  Costs() = default;
  Workload workload_;
  std::vector<UnitSpec> layout_;
  std::array<int64_t, 3> elements_{}, divided_elements_{};  // by UnitKind
  int64_t total_elements_ = 0;
  double model_flops_ = 0, published_flops_ = 0;  // of a sample
  struct OperatorFlops {
    Op op;
    double forward = 0;  // of a sample
    bool divided = true;
  };
  std::vector<OperatorFlops> layer_flops_;
  std::array<std::vector<OperatorCost>, 3> saved_;  // by UnitKind: bytes and what tensor parallelism divides
  struct Waiting {
    double whole = 0, divided = 0;  // bytes of a sample; what of them tensor parallelism divides
  };
  std::array<Waiting, 3> waiting_;
  std::array<double, 3> workspace_divided_{}, workspace_whole_{};  // bytes of a sample
  std::vector<Kind> kinds_;
};

}  // namespace motley::planner
