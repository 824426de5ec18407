#include "worker/engine/profiler/compute_profiler.h"

#include <optional>
#include <string>

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/lanes/lane_timer.h"
#include "worker/engine/profiler/optimizer_profiler.h"
#include "worker/engine/profiler/soak.h"
#include "worker/engine/profiler/timed_runs.h"
#include "worker/engine/profiler/unit_profiler.h"

namespace motley::engine {
namespace {

// In the order in which they are measured.
struct BudgetedUnit {
  UnitKind kind;
  UnitProfile ComputeProfile::*profile;
  double seconds;  // the time allowed for it
  double share;    // the most that it takes of what those before it have left of a card's limit
};
constexpr BudgetedUnit kUnits[] = {{UnitKind::kEmbedding, &ComputeProfile::embedding, 0.3, 0.25},
                                   {UnitKind::kLayer, &ComputeProfile::layer, 2.5, 0.6},
                                   {UnitKind::kHead, &ComputeProfile::head, 0.8, 0.8}};
// Longer for devices with a declared speed: a node's are measured at the same time, those at the host's speed one by one.
constexpr double kDeclaredBudget = 1.6;
// A card repeats its runs, so that its clocks are those of its work.
constexpr double kSoakedBudget = 2;
// Of a card's profile, from its first tensor to its last: a slow one is measured by less.
constexpr absl::Duration kLongestOfCard = absl::Seconds(60);

// While it lives, the device refuses nothing: what one layer needs is known even where it does not fit, and the planner judges.
class CapLift {
 public:
  CapLift(DeviceBackend& backend, const DeviceId& device)
      : backend_(backend), device_(device.value()), cap_bytes_(backend.MemoryCapBytes()) {
    backend_.SetMemoryCap(0, device_);
  }
  ~CapLift() { backend_.SetMemoryCap(cap_bytes_, device_); }
  CapLift(const CapLift&) = delete;
  CapLift& operator=(const CapLift&) = delete;
  int64_t cap_bytes() const { return cap_bytes_; }  // 0 = there was none

 private:
  DeviceBackend& backend_;
  const std::string device_;
  const int64_t cap_bytes_;
};

void MeasureUnits(const ProfiledRank& rank, ComputeProfile* profile) {
  const bool soaked = rank.backend.soak() > absl::ZeroDuration();
  const double budget = rank.assignment.device.flops_per_second > 0 ? kDeclaredBudget : soaked ? kSoakedBudget : 1;
  for (const BudgetedUnit& unit : kUnits) {
    profile->*unit.profile = MeasureUnit(rank, unit.kind, budget * unit.seconds, rank.time.EndOf(unit.share));
  }
}

}  // namespace

ComputeProfile ProfileUnits(const RankAssignment& assignment, DeviceBackend& backend, ComputePacer& pacer, ProfileTime& time) {
  if (backend.soak() > absl::ZeroDuration()) time.set_limit(kLongestOfCard);
  const auto precision = PrecisionOf(assignment.config.training);
  TORCH_CHECK(precision.ok(), std::string(precision.status().message()));
  const CapLift lift(backend, assignment.device.id);

  ComputeProfile profile;
  profile.device = assignment.device.id;
  profile.digest =
      ComputeProfileDigest(assignment.device, assignment.model, assignment.config.training.seq_len, precision->compute);
  const int64_t before = backend.CurrentBytes();
  std::optional<UnitModel> model;  // its tables are made where they are used
  LaneTimer timer(backend.StreamOf(Lane::kCompute), pacer);
  timer.Run([&] {
    model.emplace(assignment.model, assignment.config.training.seq_len, precision->compute, backend.tensors(), ModelSlice(),
                  backend.kernels());
    return absl::OkStatus();
  });
  Check(timer.Await());
  profile.context_bytes = backend.CurrentBytes() - before;
  std::optional<UnitModel> part;
  if (const ModelSlice slice = SliceToMeasure(assignment.model); !slice.whole()) {
    timer.Run([&] {
      part.emplace(assignment.model, assignment.config.training.seq_len, precision->compute, backend.tensors(), slice,
                   backend.kernels());
      return absl::OkStatus();
    });
    Check(timer.Await());
  }
  const ProfiledRank rank{assignment, *precision, backend, pacer, time, lift.cap_bytes(), *model, part ? &*part : nullptr};
  Soak(rank);
  MeasureUnits(rank, &profile);
  if (!profile.layer.points.empty()) {
    timer.Run([&] {
      profile.attention = model->NameOfAttention(profile.layer.points.back().microbatch, backend.tensors());
      return absl::OkStatus();
    });
    Check(timer.Await());
  }
  const OptimizerTimes optimizer = MeasureOptimizer(assignment, *precision, backend, pacer);
  profile.optimizer_seconds_per_element = optimizer.seconds_per_element;
  profile.step_overhead_seconds = optimizer.launch_seconds;
  // By now the card has the kernels of all units, and cuBLAS its workspace among the allocator's bytes.
  if (const int64_t beside = backend.BytesBesideAllocator(); beside > 0) {
    profile.context_bytes = backend.CurrentBytes() - before + beside;
  }
  profile.profile_seconds = absl::ToDoubleSeconds(time.spent());
  profile.cut_short = time.cut_short();
  return profile;
}

}  // namespace motley::engine
