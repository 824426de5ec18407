#include "planner/cluster/link_fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "common/base/status_macros.h"
#include "planner/cluster/links.h"

namespace motley::planner {
namespace {

struct Sample {
  int64_t bytes = 0;
  double nominal = 0, measured = 0;  // seconds
};

absl::StatusOr<std::vector<Sample>> SamplesOf(const Cluster& cluster, const CollectiveProfile& profile) {
  MOTLEY_RETURN_IF_ERROR(Validate(profile, "collective profile"));
  const Links links(cluster);
  std::vector<int> devices(cluster.devices.size());
  std::iota(devices.begin(), devices.end(), 0);
  std::vector<Sample> samples;
  for (const CollectivePoint& point : profile.points) {
    for (const auto& [collective, seconds] : {std::pair{Collective::kAllGather, point.all_gather_seconds},
                                              std::pair{Collective::kReduceScatter, point.reduce_scatter_seconds}}) {
      const Flow flow =
          links.Ring(collective, devices, static_cast<double>(point.bytes), SharesWithLargest(devices.size(), point.skew));
      samples.push_back({point.bytes, links.SecondsAlone(flow) - flow.latency_seconds, seconds});
    }
  }
  return samples;
}

// Minimises the sum of ((around + slowdown x nominal) / measured - 1)^2; around >= 0.
void Solve(const std::vector<Sample>& samples, double* around, double* slowdown) {
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (const Sample& s : samples) {
    const double a = 1 / s.measured, b = s.nominal / s.measured;
    aa += a * a, ab += a * b, bb += b * b, a1 += a, b1 += b;
  }
  const double determinant = aa * bb - ab * ab;
  // All points alike in size: nothing tells latency from rate.
  const bool both = determinant > 1e-9 * aa * bb;
  *around = both ? (a1 * bb - b1 * ab) / determinant : 0;
  *slowdown = both ? (b1 * aa - a1 * ab) / determinant : b1 / bb;
  if (*around < 0) *around = 0, *slowdown = b1 / bb;
  // Rates that do not matter beside the latency.
  if (*slowdown <= 0) *around = a1 / aa, *slowdown = 1;
}

double ErrorOfLargest(const std::vector<Sample>& samples, double around, double slowdown) {
  int64_t largest = 0;
  for (const Sample& s : samples) largest = std::max(largest, s.bytes);
  double squares = 0, count = 0;
  for (const Sample& s : samples) {
    if (s.bytes != largest) continue;
    squares += std::pow((around + slowdown * s.nominal) / s.measured - 1, 2);
    count += 1;
  }
  return std::sqrt(squares / count);
}

}  // namespace

absl::StatusOr<LinkFit> FitLinks(const Cluster& nominal, const CollectiveProfile& measured) {
  const size_t devices = nominal.devices.size();
  if (devices < 2) return absl::InvalidArgumentError("collective profile: one device has no links");
  if (measured.points.empty())
    return absl::InvalidArgumentError("collective profile: has no points; profile the collectives again");
  Cluster cluster = nominal;
  cluster.collective_efficiency = 1;
  cluster.collectives = {};
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<Sample> samples, SamplesOf(cluster, measured));
  LinkFit fit;
  double around = 0;
  Solve(samples, &around, &fit.slowdown);
  fit.latency_seconds = around / static_cast<double>(devices - 1);
  fit.error = ErrorOfLargest(samples, around, fit.slowdown);
  return fit;
}

}  // namespace motley::planner
