// A thousand steps of two ranks with everything in host memory that may wait there, in float16 with its loss scale and steps that
// overflow: whether the process, the devices and the host's blocks hold as much at the end as at the begin.
#pragma once

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "planner/plan/each_rank.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/engine_job.h"

namespace motley::engine {

// Of this process. VmRSS of /proc/self/status.
inline double ResidentKib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == "VmRSS:" && status >> kib) return kib;
  }
  return 0;
}

struct LeastAndMost {
  double least = 0, most = 0;
  void Take(double value) {
    least = most == 0 ? value : std::min(least, value);
    most = std::max(most, value);
  }
};

class FlatBench {
 public:
  FlatBench(const std::string& text, bench::Report* report) : report_(*report) {
    job_ = MakeJob(text, BenchModel(/*hidden=*/64, /*layers=*/4, /*seq_len=*/16), /*global_batch=*/8, kSteps);
    job_.config.training.mixed_precision_param = "float16";
    // As fast as the host.
    for (const char* id : {"n0/gpu0", "n1/gpu0"}) {
      job_.devices.push_back(EmulatedDevice(id, 1e15, 1e12));
      job_.devices.back().node_host_memory_bytes = int64_t{1} << 30;
    }
  }

  void Measure() {
    const Planned planned = Plan();
    const std::vector<RankAssignment> assignments = AssignmentsOf(job_, planned, planned.result.programs);
    FakeKv kv;
    InstallCounting();
    OnRanks(static_cast<int>(assignments.size()), [&](int rank) {
      FakeHost host(kv);
      // A step's spans are the host's to keep; here nobody does.
      host.on_step = [&, rank](const StepResult& step) {
        if (rank == 0) TakeStep(step);
        host.steps.clear();
      };
      HostBackend counts_apart(std::make_shared<MemoryAccount>());
      EngineOptions options;
      options.backend = &counts_apart;
      options.overflows = [](int64_t step) { return step % kOverflowsEach == kOverflowsEach / 2; };
      OrDie(CreateEngine(host, options)->Run(assignments[rank]));
    });
    Add();
  }

 private:
  // The first steps also make what libraries keep, and room for what two lanes hold at once.
  static constexpr int64_t kSteps = 1000, kFirst = 100, kOverflowsEach = 50;

  Planned Plan() const {
    BenchStage stage;
    stage.ministages = {{0, job_.model.num_layers - 1}};
    stage.ranks = {{0, {2, 2}, 0.5}, {1, {2, 2}, 0.5}};
    planner::Plan plan = PlanOf(job_, planner::ScheduleFamily::kLayered, {stage}, planner::OpSet::All());
    plan.dtype = DType::kFloat16;
    planner::ForEachRank(plan, [&](planner::RankPlan& rank) { rank.offload = OffloadKinds::All(); });
    return PlannedAs(job_, plan);
  }

  void TakeStep(const StepResult& step) {
    skipped_ += step.skipped;
    if (step.step < kFirst) return;
    const double resident = ResidentKib();
    if (step.step == kFirst) first_resident_kib_ = resident;
    last_resident_kib_ = resident;
    held_.Take(static_cast<double>(step.held_memory_bytes));
    peak_.Take(static_cast<double>(step.peak_memory_bytes));
    host_.Take(static_cast<double>(step.host_memory_bytes));
    if (step.step % kFirst != 0) return;
    std::fprintf(stderr, "flat, step %ld: resident %.0f KiB, device %.0f KiB held, %.0f KiB at most, host %.0f KiB\n",
                 static_cast<long>(step.step), resident, held_.most / 1024, peak_.most / 1024, host_.most / 1024);
  }

  void Add() {
    report_.Add("flat, steps that overflowed", static_cast<double>(skipped_), "1");
    report_.AddGoal("flat, resident memory: after 1000 steps / after 100", last_resident_kib_ / first_resident_kib_, "1", 1.01);
    report_.AddGoal("flat, device, held: fullest step / emptiest", held_.most / held_.least, "1", 1);
    // Lanes run side by side: what is there at once differs by what one of them holds for a moment.
    report_.AddGoal("flat, device, at most: fullest step / emptiest", peak_.most / peak_.least, "1", 1.01);
    report_.AddGoal("flat, host's block: fullest step / emptiest", host_.most / host_.least, "1", 1);
  }

  bench::Report& report_;
  BenchJob job_;
  int64_t skipped_ = 0;
  double first_resident_kib_ = 0, last_resident_kib_ = 0;
  LeastAndMost held_, peak_, host_;
};

inline void MeasureFlat(const std::string& text, bench::Report* report) { FlatBench(text, report).Measure(); }

}  // namespace motley::engine
