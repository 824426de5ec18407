#include "planner/util/curve.h"

#include <algorithm>
#include <utility>

namespace motley::planner {
namespace {

double LastSlope(const std::vector<double>& xs, const std::vector<double>& ys) {
  const size_t n = xs.size();
  return n < 2 ? 0 : std::max(0.0, (ys[n - 1] - ys[n - 2]) / (xs[n - 1] - xs[n - 2]));
}

// Least squares over the points from `begin` on.
double FittedSlope(const std::vector<double>& xs, const std::vector<double>& ys, size_t begin) {
  const double n = static_cast<double>(xs.size() - begin);
  double mean_x = 0, mean_y = 0, xy = 0, xx = 0;
  for (size_t i = begin; i < xs.size(); ++i) mean_x += xs[i] / n, mean_y += ys[i] / n;
  for (size_t i = begin; i < xs.size(); ++i) {
    xy += (xs[i] - mean_x) * (ys[i] - mean_y);
    xx += (xs[i] - mean_x) * (xs[i] - mean_x);
  }
  return xx > 0 ? std::max(0.0, xy / xx) : 0;
}

// Slopes at the points that keep a cubic monotone: harmonic means of the neighbouring segments, 0 where they differ in sign.
std::vector<double> MonotoneSlopes(const std::vector<double>& xs, const std::vector<double>& ys) {
  const size_t n = xs.size();
  std::vector<double> segment(n - 1), slope(n);
  for (size_t i = 0; i + 1 < n; ++i) segment[i] = (ys[i + 1] - ys[i]) / (xs[i + 1] - xs[i]);
  slope.front() = segment.front();
  slope.back() = segment.back();
  for (size_t i = 1; i + 1 < n; ++i) {
    if (segment[i - 1] * segment[i] <= 0) continue;
    const double left = xs[i] - xs[i - 1], right = xs[i + 1] - xs[i];
    const double a = 2 * right + left, b = right + 2 * left;
    slope[i] = (a + b) / (a / segment[i - 1] + b / segment[i]);
  }
  return slope;
}

}  // namespace

Curve::Curve(std::vector<double> xs, std::vector<double> ys)
    : xs_(std::move(xs)), ys_(std::move(ys)), tail_slope_(LastSlope(xs_, ys_)) {}

Curve Curve::Isotonic(std::vector<double> xs, std::vector<double> ys) {
  struct Block {
    double mean = 0;
    size_t count = 0;
  };
  std::vector<Block> blocks;
  for (const double y : ys) {
    blocks.push_back({y, 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean > blocks.back().mean) {
      const Block last = blocks.back();
      blocks.pop_back();
      Block& pool = blocks.back();
      const double count = static_cast<double>(pool.count + last.count);
      pool.mean = (pool.mean * static_cast<double>(pool.count) + last.mean * static_cast<double>(last.count)) / count;
      pool.count += last.count;
    }
  }
  size_t i = 0;
  for (const Block& block : blocks) {
    for (size_t k = 0; k < block.count; ++k) ys[i++] = block.mean;
  }
  Curve curve(std::move(xs), std::move(ys));
  if (curve.xs_.size() > 2) curve.tail_slope_ = FittedSlope(curve.xs_, curve.ys_, curve.xs_.size() / 2 - (curve.xs_.size() < 4));
  return curve;
}

Curve Curve::Pchip(const std::vector<double>& xs, const std::vector<double>& ys, int pieces) {
  if (xs.size() < 3) return Curve(xs, ys);
  const std::vector<double> slope = MonotoneSlopes(xs, ys);
  std::vector<double> fine_x = {xs.front()}, fine_y = {ys.front()};
  for (size_t i = 0; i + 1 < xs.size(); ++i) {
    const double width = xs[i + 1] - xs[i];
    for (int k = 1; k <= pieces; ++k) {
      const double t = static_cast<double>(k) / pieces, u = 1 - t;
      fine_x.push_back(k == pieces ? xs[i + 1] : xs[i] + t * width);
      const double y =
          ys[i] * (1 + 2 * t) * u * u + ys[i + 1] * t * t * (3 - 2 * t) + width * t * u * (slope[i] * u - slope[i + 1] * t);
      // The cubic is monotone; rounding is not.
      fine_y.push_back(std::max(fine_y.back(), k == pieces ? ys[i + 1] : y));
    }
  }
  Curve curve(std::move(fine_x), std::move(fine_y));
  curve.tail_slope_ = LastSlope(xs, ys);
  return curve;
}

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
    return tail_slope_ > 0 ? ys_.back() + tail_slope_ * (x - xs_.back()) : ys_.back() * x / xs_.back();
  }
  const size_t right = static_cast<size_t>(std::upper_bound(xs_.begin(), xs_.end(), x) - xs_.begin());
  const double t = (x - xs_[right - 1]) / (xs_[right] - xs_[right - 1]);
  return ys_[right - 1] + t * (ys_[right] - ys_[right - 1]);
}

Curve Curve::Scaled(double x_factor, double y_factor) const {
  Curve scaled = *this;
  for (double& x : scaled.xs_) x *= x_factor;
  for (double& y : scaled.ys_) y *= y_factor;
  scaled.tail_slope_ *= y_factor / x_factor;
  return scaled;
}

}  // namespace motley::planner
