#include "planner/cluster/measured_collectives.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace motley::planner {

std::vector<double> SharesWithLargest(size_t devices, double largest) {
  std::vector<double> shares(devices, (1 - largest) / static_cast<double>(devices - 1));
  shares[0] = largest;
  return shares;
}

absl::Status Validate(const CollectiveProfile& profile, const std::string& where) {
  const auto positive = [](double value) { return value > 0 && std::isfinite(value); };
  std::set<std::pair<int64_t, double>> seen;
  for (const CollectivePoint& p : profile.points) {
    const auto bad = [&](const char* what) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": the point of ", p.bytes, " bytes at largest share ", p.skew, " (",
                                                     p.all_gather_seconds, " s and ", p.reduce_scatter_seconds, " s) ", what,
                                                     "; profile the collectives again"));
    };
    if (p.bytes <= 0 || !positive(p.skew) || p.skew > 1 || !positive(p.all_gather_seconds) || !positive(p.reduce_scatter_seconds))
      return bad("makes no sense");
    if (!seen.insert({p.bytes, p.skew}).second) return bad("is there twice");
  }
  const auto rank = [&](int r) { return r >= 0 && r < static_cast<int>(profile.devices.size()); };
  for (const MeasuredLink& link : profile.links) {
    const bool times_ok = positive(link.bytes_per_second) && std::isfinite(link.latency_seconds) && link.latency_seconds >= 0;
    if (times_ok && rank(link.from) && rank(link.to) && link.from != link.to) continue;
    return absl::InvalidArgumentError(absl::StrCat(where, ": the link from rank ", link.from, " to ", link.to, " (",
                                                   link.latency_seconds, " s, ", link.bytes_per_second,
                                                   " bytes/s) makes no sense; profile the collectives again"));
  }
  const bool overlap_ok =
      (profile.overlap.empty() || profile.overlap.size() == profile.devices.size()) &&
      std::all_of(profile.overlap.begin(), profile.overlap.end(), [](const Overlap& o) {
        return std::isfinite(o.compute) && o.compute >= 1 && std::isfinite(o.collectives) && o.collectives >= 1;
      });
  if (!overlap_ok) {
    return absl::InvalidArgumentError(absl::StrCat(where,
                                                   ": how much longer work takes beside other work must be at least 1, for ",
                                                   profile.devices.size(), " devices; profile the collectives again"));
  }
  if (std::isfinite(profile.barrier_seconds) && profile.barrier_seconds >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": reducing scalars is said to take ", profile.barrier_seconds, " s; profile the collectives again"));
}

MeasuredCollectives::MeasuredCollectives(const CollectiveProfile& profile) {
  std::map<int64_t, std::map<double, CollectivePoint>> by_size;
  for (const CollectivePoint& p : profile.points) {
    by_size[p.bytes][p.skew] = p;
    largest_shares_.push_back(p.skew);
  }
  for (const auto& [bytes, points] : by_size) {
    Size& size = sizes_.emplace_back();
    size.bytes = static_cast<double>(bytes);
    for (const auto& [share, p] : points) {
      size.shares.push_back(share);
      size.gather_seconds.push_back(p.all_gather_seconds);
      size.reduce_seconds.push_back(p.reduce_scatter_seconds);
    }
  }
  std::sort(largest_shares_.begin(), largest_shares_.end());
  largest_shares_.erase(std::unique(largest_shares_.begin(), largest_shares_.end()), largest_shares_.end());
}

double MeasuredCollectives::Of(std::vector<double> Size::*seconds, double bytes, double largest_share) const {
  const auto at = [&](const Size& size) {
    const std::vector<double>& values = size.*seconds;
    const auto found = std::lower_bound(size.shares.begin(), size.shares.end(), largest_share);
    if (found == size.shares.begin()) return values.front();
    if (found == size.shares.end()) return values.back();
    const size_t r = static_cast<size_t>(found - size.shares.begin());
    const double t = (largest_share - size.shares[r - 1]) / (size.shares[r] - size.shares[r - 1]);
    return values[r - 1] + t * (values[r] - values[r - 1]);
  };
  if (bytes <= 0) return 0;
  if (sizes_.size() == 1) return at(sizes_[0]) * bytes / sizes_[0].bytes;
  size_t right = 1;
  while (right + 1 < sizes_.size() && sizes_[right].bytes < bytes) ++right;
  const double y0 = at(sizes_[right - 1]), y1 = at(sizes_[right]);
  const double slope = (y1 - y0) / (sizes_[right].bytes - sizes_[right - 1].bytes);
  return std::max(0.0, y0 + slope * (bytes - sizes_[right - 1].bytes));
}

double MeasuredCollectives::Seconds(Collective collective, double bytes, double largest_share) const {
  double seconds = 0;
  if (collective != Collective::kReduceScatter) seconds += Of(&Size::gather_seconds, bytes, largest_share);
  if (collective != Collective::kAllGather) seconds += Of(&Size::reduce_seconds, bytes, largest_share);
  return seconds;
}

}  // namespace motley::planner
