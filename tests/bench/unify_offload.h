// auto that may offload beside auto that may not, over many clusters.
#pragma once

#include <algorithm>
#include <cmath>

#include "tests/bench/bench_report.h"

namespace motley::planner {

// auto's step, 0 where nothing fits; and the seconds of a processor that it took to find it.
struct AskedAuto {
  double step_seconds = 0, planning_seconds = 0;
};

class OffloadRatios {
 public:
  // `beaten`: less is no difference.
  explicit OffloadRatios(double beaten) : beaten_(beaten) {}

  void Add(const AskedAuto& with, const AskedAuto& without) {
    if (without.step_seconds == 0) {
      alone_ += with.step_seconds > 0 ? 1 : 0;
      return;
    }
    ++both_;
    // What fits without fits where offload is allowed, too.
    const double ratio = with.step_seconds > 0 ? with.step_seconds / without.step_seconds : INFINITY;
    slower_ += ratio > 1 + beaten_ ? 1 : 0;
    faster_ += ratio < 1 - beaten_ ? 1 : 0;
    worst_ = std::max(worst_, ratio);
    log_gain_ -= std::log(ratio);
    planning_with_ += with.planning_seconds;
    planning_without_ += without.planning_seconds;
    worst_planning_ = std::max(worst_planning_, with.planning_seconds / without.planning_seconds);
  }

  void AddTo(bench::Report* report) const {
    report->Add("offload, clusters with a plan without it", both_, "1");
    report->Add("offload, clusters with a plan with it alone", alone_, "1");
    report->Add("offload, clusters where it is faster", faster_, "1");
    report->AddGoal("offload, clusters where it is slower", slower_, "1", 0);
    report->AddGoal("offload, step beside without, worst", worst_, "1", 1 + beaten_);
    report->Add("offload, step without beside with, geometric mean", both_ > 0 ? std::exp(log_gain_ / both_) : 1, "1");
    report->AddGoal("offload, planning beside without", both_ > 0 ? planning_with_ / planning_without_ : 1, "1", 1.5);
    report->Add("offload, planning beside without, worst", worst_planning_, "1");
  }

 private:
  const double beaten_;
  int both_ = 0, alone_ = 0, slower_ = 0, faster_ = 0;
  double worst_ = 1, log_gain_ = 0, planning_with_ = 0, planning_without_ = 0, worst_planning_ = 0;
};

}  // namespace motley::planner
