// A measured quantity over a size: piecewise linear between the points, linear beyond the last (Cephalo section 2.3).
// Plain value, thread-compatible.
#pragma once

#include <vector>

namespace motley::planner {

class Curve {
 public:
  Curve() = default;
  // xs ascending and positive; same length as ys.
  Curve(std::vector<double> xs, std::vector<double> ys);

  // The same made isotonic: pool adjacent violators, the least-squares fit among series that never fall. Beyond the last point it
  // follows the least-squares slope of the upper half of the points, which one noisy point does not decide.
  static Curve Isotonic(std::vector<double> xs, std::vector<double> ys);
  // Monotone cubic through the points (PCHIP: Fritsch and Carlson 1980, Butland's harmonic slopes), kept as `pieces` linear
  // pieces for each interval. ys never fall.
  static Curve Pchip(const std::vector<double>& xs, const std::vector<double>& ys, int pieces = 8);

  // 0 at x <= 0. Below the first point the quantity is taken to be proportional or what the first segment says, whichever
  // is more; beyond the last it follows the last segment, or stays proportional where noise made that segment fall.
  double At(double x) const;

  // The same shape over other units: x' = x * x_factor, y' = y * y_factor.
  Curve Scaled(double x_factor, double y_factor) const;

  bool empty() const { return xs_.empty(); }
  const std::vector<double>& xs() const { return xs_; }
  const std::vector<double>& ys() const { return ys_; }

 private:
  std::vector<double> xs_, ys_;
  double tail_slope_ = 0;  // beyond the last point; 0 = proportional
};

}  // namespace motley::planner
