// Steps that the host is on time with. Where it was late with more than half a percent of a step, the same is measured again on
// devices and links that are slower: then the host has more time for what it really computes.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "tests/bench/bench_report.h"
#include "tests/bench/engine_job.h"

namespace motley::engine {

inline constexpr double kMostLate = 0.005;  // of a step
inline constexpr int kSlowest = 8;

// By how much slower a run's devices are by now: where one row needed it the next ones begin so.
inline int& SlowerByNow() {
  static int slower = 1;
  return slower;
}

struct TimedStep {
  int slower = 1;  // than declared
  double seconds = 0, simulated = 0, lateness = 0;
  int64_t peak_bytes = 0;
  bool on_time() const { return lateness <= kMostLate; }
  double of_simulated() const { return seconds / simulated; }
};

using PlanFor = std::function<Planned(const BenchJob&)>;

inline TimedStep StepOf(const std::string& what, const BenchJob& job, const PlanFor& plan_for, int slower) {
  const BenchJob slow = Slower(job, slower);
  const Planned planned = plan_for(slow);
  const Trained trained = Train(slow, planned);
  const TimedStep step = {slower, trained.step_seconds, planned.result.plan.predicted.step_seconds, trained.lateness,
                          trained.peak_bytes};
  std::fprintf(stderr, "%s: %.1f ms, simulated %.1f ms, %.0f KiB, devices %d times slower, host late by %.2f %%\n", what.c_str(),
               step.seconds * 1e3, step.simulated * 1e3, static_cast<double>(step.peak_bytes) / 1024, slower,
               step.lateness * 100);
  return step;
}

inline TimedStep StepOnTime(const std::string& what, const BenchJob& job, const PlanFor& plan_for) {
  for (;;) {
    const int slower = SlowerByNow();
    const TimedStep step = StepOf(what, job, plan_for, slower);
    if (step.on_time() || slower >= kSlowest) return step;
    SlowerByNow() *= 2;
  }
}

// Steps beside those of one plan, each pair on devices of one speed.
class Pairs {
 public:
  Pairs(std::string name, BenchJob job, PlanFor plan_for)
      : name_(std::move(name)), job_(std::move(job)), plan_for_(std::move(plan_for)) {}

  struct Pair {
    TimedStep step, beside;
    double ratio() const { return step.seconds / beside.seconds; }
    bool on_time() const { return step.on_time() && beside.on_time(); }
  };
  Pair With(const std::string& what, const BenchJob& job, const PlanFor& plan_for) {
    for (;;) {
      const int slower = SlowerByNow();
      Pair pair;
      pair.beside = Beside(slower);
      const bool last = slower >= kSlowest;
      if (pair.beside.on_time() || last) pair.step = StepOf(what, job, plan_for, slower);
      if (pair.on_time() || last) return pair;
      SlowerByNow() *= 2;
    }
  }

 private:
  TimedStep Beside(int slower) {
    const auto known = known_.find(slower);
    if (known != known_.end()) return known->second;
    const TimedStep step = StepOf(name_, job_, plan_for_, slower);
    if (step.on_time()) known_[slower] = step;
    return step;
  }

  const std::string name_;
  const BenchJob job_;
  const PlanFor plan_for_;
  std::map<int, TimedStep> known_;  // by how much slower
};

// Met where the ratio is no further from 1 than that, either way.
inline void AddNear(bench::Report* report, const std::string& name, double ratio, double most_off) {
  report->AddRow({name, ratio, "1", 1 + most_off, bench::Limit::kAtMost, std::abs(ratio - 1) <= most_off});
}

inline void AddLateness(bench::Report* report, const std::string& name, double lateness) {
  report->AddGoal(name + ": host late", 100 * lateness, "%", 100 * kMostLate);
}

}  // namespace motley::engine
