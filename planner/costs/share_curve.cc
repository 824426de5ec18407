#include "planner/costs/share_curve.h"

#include <algorithm>
#include <vector>

namespace motley::planner {

void ShareCurve::SetPart(double part, Curve seconds) {
  part_ = part;
  of_part_ = std::move(seconds);
  std::vector<double> nothing;
  for (const double samples : whole_.xs()) {
    const double of_part = OfPart(samples);
    nothing.push_back(std::clamp((of_part - part_ * whole_.At(samples)) / (1 - part_), 0.0, of_part));
  }
  of_nothing_ = Curve::Isotonic(whole_.xs(), std::move(nothing));
}

double ShareCurve::OfPart(double samples) const { return std::max(of_part_.At(samples), part_ * whole_.At(samples)); }

// Each is a mean of two curves that rise with the samples, so it rises, too.
double ShareCurve::At(double samples, double share) const {
  const double whole = whole_.At(samples);
  if (share >= 1) return whole;
  if (!has_part()) return Modelled(samples, share);
  const double of_part = OfPart(samples);
  if (share >= part_) return of_part + (share - part_) / (1 - part_) * std::max(0.0, whole - of_part);
  const double of_nothing = std::min(of_part, of_nothing_.At(samples));
  return of_nothing + share / part_ * (of_part - of_nothing);
}

double ShareCurve::Modelled(double samples, double share) const {
  const double seconds = whole_.At(samples);
  if (share >= 1 || seconds <= launch_seconds_) return seconds;
  return launch_seconds_ + (seconds - launch_seconds_) * (undivided_ + (1 - undivided_) * share);
}

ShareCurve ShareCurve::Like(Curve whole) const {
  const double first = whole_.xs().front(), launch = launch_seconds_ * whole.At(first) / whole_.At(first);
  ShareCurve other(std::move(whole), launch, undivided_);
  if (!has_part()) return other;
  std::vector<double> of_part;
  for (const double samples : other.whole_.xs()) {
    of_part.push_back(other.whole_.At(samples) * OfPart(samples) / whole_.At(samples));
  }
  other.SetPart(part_, Curve::Isotonic(other.whole_.xs(), std::move(of_part)));
  return other;
}

void ShareCurve::Scale(double factor) {
  for (Curve* curve : {&whole_, &of_part_, &of_nothing_}) *curve = curve->Scaled(1, factor);
  launch_seconds_ *= factor;
}

}  // namespace motley::planner
