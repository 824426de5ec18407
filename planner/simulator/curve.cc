#include "planner/simulator/curve.h"

#include <algorithm>
#include <utility>

namespace motley::planner {

Curve::Curve(std::vector<double> xs, std::vector<double> ys) : xs_(std::move(xs)), ys_(std::move(ys)) {}

double Curve::At(double x) const {
  if (xs_.empty() || x <= 0) return 0;
  const size_t n = xs_.size();
  if (x <= xs_.front()) {
    const double proportional = ys_.front() * x / xs_.front();
    if (n == 1) return proportional;
    const double slope = (ys_[1] - ys_[0]) / (xs_[1] - xs_[0]);
    return std::clamp(ys_[0] + slope * (x - xs_[0]), proportional, std::max(proportional, ys_[0]));
  }
  if (x >= xs_.back()) {
    const double proportional = ys_.back() * x / xs_.back();
    if (n == 1) return proportional;
    const double slope = (ys_[n - 1] - ys_[n - 2]) / (xs_[n - 1] - xs_[n - 2]);
    return slope > 0 ? ys_.back() + slope * (x - xs_.back()) : proportional;
  }
  const size_t right = static_cast<size_t>(std::upper_bound(xs_.begin(), xs_.end(), x) - xs_.begin());
  const double t = (x - xs_[right - 1]) / (xs_[right] - xs_[right - 1]);
  return ys_[right - 1] + t * (ys_[right] - ys_[right - 1]);
}

}  // namespace motley::planner
