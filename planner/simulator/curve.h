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

  // 0 at x <= 0. Below the first point the quantity is taken to be proportional or what the first segment says, whichever
  // is more; beyond the last it follows the last segment, or stays proportional where noise made that segment fall.
  double At(double x) const;

 private:
  std::vector<double> xs_, ys_;
};

}  // namespace motley::planner
