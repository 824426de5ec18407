// Seconds of one pass of a unit over samples: of the whole unit, and of the share of its heads, columns and rows that a
// tensor-parallel rank computes. Immutable but for Scale, thread-compatible.
#pragma once

#include <utility>

#include "planner/util/curve.h"

namespace motley::planner {

class ShareCurve {
 public:
  ShareCurve() = default;
  // Of no share anything was measured: launches do not shrink with it, nor does the undivided part of the rest.
  ShareCurve(Curve whole, double launch_seconds, double undivided)
      : whole_(std::move(whole)), launch_seconds_(launch_seconds), undivided_(undivided) {}

  // `seconds` were measured of a share of `part` (above 0, below 1). Then seconds are straight in the share: from what is there
  // without any over the part to the whole.
  void SetPart(double part, Curve seconds);
  bool has_part() const { return part_ > 0; }

  // Never falls with samples, nor with a share below 1; and a share never takes less than that share of the whole, on which lower
  // bounds rest (docs/inside/lower-bound.md). The whole alone may take less than a share: it runs in fewer pieces. 0 samples: 0.
  double At(double samples, double share) const;
  // What At would be had no part been measured.
  double Modelled(double samples, double share) const;

  const Curve& whole() const { return whole_; }
  // Of another pass over the same unit: a share takes as much of its whole as here.
  ShareCurve Like(Curve whole) const;
  void Scale(double factor);

 private:
  double OfPart(double samples) const;

  Curve whole_;
  double launch_seconds_ = 0, undivided_ = 0;
  double part_ = 0;             // 0: none measured
  Curve of_part_, of_nothing_;  // of `part_`; what a share of nothing would take
};

}  // namespace motley::planner
