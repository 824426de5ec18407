// What authentication codes cost a training step: two devices train one plan over links of 1 and 10 Gbit/s, with and without
// codes by turns, so that what else the host does falls on both. Emulated links count bytes and know nothing of codes; what is
// seen is what the codes' own time holds up.
#pragma once

#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/parameters.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/engine_job.h"
#include "tests/bench/engine_sums.h"

namespace motley::engine {

inline constexpr double kMostOverPlain = 1.01;

struct CodesCase {
  std::string name;
  double bytes_per_second;
  double compute;  // of a step, as a multiple of its transfers
};

// A step gathers the parameters for the forward and again for the backward, and sums them: of each of two devices' halves that
// is 6 bytes a parameter which a device receives, and as many that it sends, beside compute that takes as long as the case says.
inline BenchJob CodesJob(const std::string& text, const CodesCase& c) {
  BenchJob job = MakeJob(text, BenchModel(/*hidden=*/512, /*layers=*/6, /*seq_len=*/2), /*global_batch=*/2, /*steps=*/7);
  double elements = 0;
  for (const UnitSpec& unit : ParameterLayout(job.model)) elements += static_cast<double>(unit.num_elements);
  const double transfers = 6 * elements / c.bytes_per_second;
  const DeviceDescription one_flop_a_second = EmulatedDevice("any/gpu0", 1, 1);
  const auto layers = static_cast<double>(job.model.num_layers);
  const double flops = layers * DeclaredSeconds(job, one_flop_a_second, UnitKind::kLayer, 1).sum();
  for (const char* id : {"n0/gpu0", "n1/gpu0"})
    job.devices.push_back(EmulatedDevice(id, flops / (c.compute * transfers), c.bytes_per_second));
  return job;
}

inline double ProcessSeconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

// What a code costs is the same each time; what others do on the host is not.
inline double Fastest(const std::vector<double>& seconds) { return *std::min_element(seconds.begin(), seconds.end()); }

struct CodesTimes {
  std::vector<double> steps, lateness;
  double core_seconds = 0;  // of all trainings
};

inline void MeasureCodesCase(const std::string& text, const CodesCase& c, bench::Report* report) {
  constexpr int kTurns = 5;
  const BenchJob job = CodesJob(text, c);
  const Planned planned = PlannedAs(
      job, PlanOf(job, planner::ScheduleFamily::kLayered, {{{{0, job.model.num_layers - 1}}, {{0, {1}, 0.5}, {1, {1}, 0.5}}}}));
  CodesTimes plain, coded;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (const DataAuthentication authentication : {DataAuthentication::kNever, DataAuthentication::kAlways}) {
      CodesTimes& times = authentication == DataAuthentication::kNever ? plain : coded;
      const double before = ProcessSeconds();
      const Trained trained = Train(job, planned, planned.result.programs, authentication);
      times.core_seconds += ProcessSeconds() - before;
      for (const StepResult& step : trained.steps[0]) times.steps.push_back(step.step_seconds);
      times.lateness.push_back(trained.lateness);
    }
  }
  // Of both ranks: as many bytes as the busiest link carries, each way.
  const double link_seconds = LinksBound<Gather>(job, planned) + LinksBound<ReduceScatter>(job, planned);
  const double gigabytes = 1e-9 * 2 * link_seconds * c.bytes_per_second * kTurns * static_cast<double>(job.config.training.steps);
  std::fprintf(stderr,
               "codes, %s: transfers of a step %.1f ms; step without %.1f ms (median %.1f ms), with %.1f ms (%.1f ms); host late "
               "by %.2f %%, %.2f %%; core seconds %.2f, %.2f for %.2f GB\n",
               c.name.c_str(), link_seconds * 1e3, Fastest(plain.steps) * 1e3, Median(plain.steps) * 1e3,
               Fastest(coded.steps) * 1e3, Median(coded.steps) * 1e3, Median(plain.lateness) * 100, Median(coded.lateness) * 100,
               plain.core_seconds, coded.core_seconds, gigabytes);
  const double ratio = Fastest(coded.steps) / Fastest(plain.steps);
  report->AddGoal(absl::StrCat("codes, ", c.name, ": fastest step with / without"), ratio, "1", kMostOverPlain);
  report->Add(absl::StrCat("codes, ", c.name, ": core seconds a GB more, both ends"),
              (coded.core_seconds - plain.core_seconds) / gigabytes, "s");
}

inline void MeasureCodes(const std::string& text, bench::Report* report) {
  // At 10 Gbit/s the host, which plays both devices, needs more time for a step than its transfers take. Where it is late by much
  // even so, others use its cores, and only the fastest steps say something.
  for (const CodesCase& c : std::vector<CodesCase>{{"1 Gbit/s", 125e6, 1.0 / 3}, {"10 Gbit/s", 1.25e9, 2}})
    MeasureCodesCase(text, c, report);
}

}  // namespace motley::engine
