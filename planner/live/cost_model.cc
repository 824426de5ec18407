#include "planner/live/cost_model.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/operators.h"
#include "common/status_macros.h"

namespace motley::planner {
namespace {

bool SamePoints(const UnitProfile& a, const UnitProfile& b) {
  return std::equal(a.points.begin(), a.points.end(), b.points.begin(), b.points.end(),
                    [](const ComputePoint& x, const ComputePoint& y) {
                      return x.microbatch == y.microbatch && x.forward_seconds == y.forward_seconds &&
                             x.backward_seconds == y.backward_seconds && x.saved_bytes == y.saved_bytes &&
                             x.workspace_bytes == y.workspace_bytes;
                    });
}

absl::Status CheckPoints(const UnitProfile& profile, const DeviceId& device, const char* unit) {
  const auto error = [&](const std::string& what) {
    return absl::InvalidArgumentError(
        absl::StrCat("profile of ", device.value(), ", ", unit, ": ", what, "; profile the device again"));
  };
  if (profile.points.empty()) return error("no points");
  int64_t previous = 0;
  for (const ComputePoint& p : profile.points) {
    if (p.microbatch <= previous) return error("microbatches must be positive and ascending");
    previous = p.microbatch;
    const bool seconds_ok = std::isfinite(p.forward_seconds) && std::isfinite(p.backward_seconds) && p.forward_seconds >= 0 &&
                            p.backward_seconds >= 0;
    if (!seconds_ok || p.saved_bytes < 0 || p.workspace_bytes < 0)
      return error(absl::StrCat("negative or infinite value at microbatch ", p.microbatch));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CostModel> CostModel::Create(const PlannerInput& input) {
  CostModel cost;
  if (input.devices.empty()) return absl::InvalidArgumentError("there is no device to plan for; start a worker with devices");
  if (input.devices.size() != input.compute.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.devices.size(), " devices but ", input.compute.size(), " compute profiles; profile every device"));
  }
  MOTLEY_ASSIGN_OR_RETURN(cost.dtype_, ParseDType(input.config.training.dtype));
  cost.model_ = input.model;
  cost.layout_ = ParameterLayout(input.model);
  for (const UnitSpec& unit : cost.layout_) cost.num_parameters_ += unit.num_elements;
  cost.seq_len_ = input.config.training.seq_len;
  cost.memory_reserve_ = input.config.planner.memory_reserve;
  for (size_t i = 0; i < input.devices.size(); ++i) MOTLEY_RETURN_IF_ERROR(cost.AddRank(input.devices[i], input.compute[i]));
  if (input.devices.size() > 1) MOTLEY_RETURN_IF_ERROR(cost.SetCollectives(input.collectives));
  return cost;
}

absl::Status CostModel::AddRank(const DeviceDescription& device, const ComputeProfile& profile) {
  if (profile.device != device.id) {
    return absl::InvalidArgumentError(absl::StrCat("the profile in the place of ", device.id.value(), " is of ",
                                                   profile.device.value(), "; give them in one order"));
  }
  Rank rank;
  rank.device = device;
  rank.profiles = {profile.embedding, profile.layer, profile.head};
  const char* const names[] = {"embedding", "layer", "head"};
  for (size_t u = 0; u < rank.profiles.size(); ++u) {
    MOTLEY_RETURN_IF_ERROR(CheckPoints(rank.profiles[u], device.id, names[u]));
    std::vector<double> xs, forward, backward, saved, workspace;
    for (const ComputePoint& p : rank.profiles[u].points) {
      xs.push_back(static_cast<double>(p.microbatch));
      forward.push_back(p.forward_seconds);
      backward.push_back(p.backward_seconds);
      saved.push_back(static_cast<double>(p.saved_bytes));
      workspace.push_back(std::max(static_cast<double>(p.workspace_bytes), workspace.empty() ? 0.0 : workspace.back()));
    }
    rank.units[u] = {Curve(xs, forward), Curve(xs, backward), Curve(xs, saved), Curve(xs, workspace)};
  }
  rank.optimizer_seconds_per_element = profile.optimizer_seconds_per_element;
  rank.overhead_seconds = profile.step_overhead_seconds;
  rank.context_bytes = profile.context_bytes;
  ranks_.push_back(std::move(rank));
  return absl::OkStatus();
}

absl::Status CostModel::SetCollectives(const CollectiveProfile& profile) {
  if (profile.points.empty())
    return absl::InvalidArgumentError("the collective profile is empty; profile the collectives of these devices");
  std::map<int64_t, std::map<double, CollectivePoint>> by_size;
  for (const CollectivePoint& p : profile.points) {
    if (p.bytes <= 0 || !(p.skew > 0) || p.skew > 1 || !(p.all_gather_seconds >= 0) || !(p.reduce_scatter_seconds >= 0)) {
      return absl::InvalidArgumentError(absl::StrCat("collective profile: bad point of ", p.bytes, " bytes, skew ", p.skew));
    }
    by_size[p.bytes][p.skew] = p;
    skews_.push_back(p.skew);
  }
  for (const auto& [bytes, points] : by_size) {
    SizedCurve gather{static_cast<double>(bytes), {}, {}}, reduce = gather;
    for (const auto& [skew, p] : points) {
      gather.skews.push_back(skew);
      gather.seconds.push_back(p.all_gather_seconds);
      reduce.skews.push_back(skew);
      reduce.seconds.push_back(p.reduce_scatter_seconds);
    }
    gather_.push_back(std::move(gather));
    reduce_.push_back(std::move(reduce));
  }
  std::sort(skews_.begin(), skews_.end());
  skews_.erase(std::unique(skews_.begin(), skews_.end()), skews_.end());
  barrier_seconds_ = profile.barrier_seconds;
  return absl::OkStatus();
}

// Over skew: linear between measured skews, constant outside them. Over bytes: linear, never below zero.
double CostModel::Collective(const std::vector<SizedCurve>& curves, int64_t bytes, double skew) {
  const auto at_size = [skew](const SizedCurve& curve) {
    const auto right = std::lower_bound(curve.skews.begin(), curve.skews.end(), skew);
    if (right == curve.skews.begin()) return curve.seconds.front();
    if (right == curve.skews.end()) return curve.seconds.back();
    const size_t r = static_cast<size_t>(right - curve.skews.begin());
    const double t = (skew - curve.skews[r - 1]) / (curve.skews[r] - curve.skews[r - 1]);
    return curve.seconds[r - 1] + t * (curve.seconds[r] - curve.seconds[r - 1]);
  };
  if (curves.empty() || bytes <= 0) return 0;
  const double x = static_cast<double>(bytes);
  if (curves.size() == 1) return at_size(curves[0]) * x / curves[0].bytes;
  size_t right = 1;
  while (right + 1 < curves.size() && curves[right].bytes < x) ++right;
  const double y0 = at_size(curves[right - 1]), y1 = at_size(curves[right]);
  const double slope = (y1 - y0) / (curves[right].bytes - curves[right - 1].bytes);
  return std::max(0.0, y0 + slope * (x - curves[right - 1].bytes));
}

double CostModel::ForwardSeconds(int rank, UnitKind unit, int64_t microbatch) const {
  return Curves(rank, unit).forward.At(static_cast<double>(microbatch));
}
double CostModel::BackwardSeconds(int rank, UnitKind unit, int64_t microbatch) const {
  return Curves(rank, unit).backward.At(static_cast<double>(microbatch));
}
double CostModel::OptimizerSeconds(int rank, int64_t elements) const {
  return At(rank).optimizer_seconds_per_element * static_cast<double>(elements);
}

int64_t CostModel::SavedBytes(int rank, UnitKind unit, int64_t microbatch) const {
  const auto saved = static_cast<int64_t>(std::ceil(Curves(rank, unit).saved.At(static_cast<double>(microbatch))));
  return unit == UnitKind::kEmbedding ? saved : std::max(saved, BoundaryBytes(microbatch));
}
int64_t CostModel::WorkspaceBytes(int rank, UnitKind unit, int64_t microbatch) const {
  return static_cast<int64_t>(std::ceil(Curves(rank, unit).workspace.At(static_cast<double>(microbatch))));
}
int64_t CostModel::BoundaryBytes(int64_t microbatch) const { return motley::BoundaryBytes(model_, microbatch, seq_len_, dtype_); }

int64_t CostModel::MemoryBytes(int rank) const {
  const int64_t bytes = At(rank).device.memory_bytes;
  return bytes > 0 ? bytes : kUnlimitedBytes;
}
int64_t CostModel::UsableBytes(int rank) const {
  return static_cast<int64_t>(std::floor(static_cast<double>(MemoryBytes(rank)) * (1 - memory_reserve_)));
}

bool CostModel::SameKind(int a, int b) const {
  const Rank& x = At(a);
  const Rank& y = At(b);
  for (size_t u = 0; u < x.profiles.size(); ++u) {
    if (!SamePoints(x.profiles[u], y.profiles[u])) return false;
  }
  return x.context_bytes == y.context_bytes && x.device.memory_bytes == y.device.memory_bytes;
}

}  // namespace motley::planner
