// Interleaving in a pipeline of two groups, by the number of ministages that a group has (Zorse section 5.5, figure 9: 40 % of
// the memory for 20 % of the step). A group's four devices are equal; everything is recomputed; a layer's gather takes a tenth of
// its compute. One ministage with ZeRO 2 is what all is compared with, as there: parameters stay for the step, gradients until
// they are summed. With ZeRO 3 a layer is gathered when its turn comes; where parameters wait in host memory, all of a ministage
// is.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/parameters.h"
#include "planner/plan/each_rank.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/engine_job.h"
#include "tests/bench/engine_on_time.h"

namespace motley::engine {

inline constexpr double kMostOfMemory = 0.6, kMostOfStep = 1.08;

class MinistagesBench {
 public:
  MinistagesBench(const std::string& text, bench::Report* report) : report_(*report) {
    constexpr double kForward = 8e-3, kLaunch = 0.4e-3, kGather = 0.1, kCopies = 0.5;
    job_ = MakeJob(text, BenchModel(/*hidden=*/64, kGroups * kLayersOfGroup, /*seq_len=*/16), kDevices * kMicrobatches * kSamples,
                   /*steps=*/6);
    job_.config.training.max_norm = 0;
    const double flops = ForwardFlops(job_.model, UnitKind::kLayer, kSamples, job_.config.training.seq_len);
    const double bytes = 4.0 * static_cast<double>(ParameterLayout(job_.model)[1].num_elements);
    const double compute = kMicrobatches * kForward;
    for (int d = 0; d < kGroups * kDevices; ++d) {
      DeviceDescription& device = job_.devices.emplace_back(EmulatedDevice(
          absl::StrCat("n", d, "/gpu0"), flops / (kForward - kLaunch), bytes * (kDevices - 1) / kDevices / (kGather * compute)));
      device.launch = absl::Seconds(kLaunch);
      device.host_link_bytes_per_second = bytes / kDevices / (kCopies * compute);
      device.node_host_memory_bytes = int64_t{1} << 30;
    }
  }

  // On the devices alone.
  void MeasureAlone() {
    const TimedStep one = Of(1, 2, false);
    TimedStep most;
    for (const int zero_stage : {2, 3}) {
      for (const int64_t ministages : {1, 2, 4, 12}) {
        if (zero_stage == 2 && ministages != 4 && ministages != 12) continue;
        most = Of(ministages, zero_stage, false);
        Add(absl::StrCat("ministages, ZeRO ", zero_stage, ", ", ministages), most, one);
      }
    }
    report_.AddGoal("ministages, most: memory / one ministage's", Memory(most, one), "1", kMostOfMemory);
    report_.AddGoal("ministages, most: step / one ministage's", Step(most, one), "1", kMostOfStep);
  }

  // Stepped in turn, as there.
  void MeasureOffloaded() {
    const TimedStep one = Of(1, 2, true);
    for (const int64_t ministages : {4, 12}) {
      Add(absl::StrCat("ministages, parameters offloaded, ", ministages), Of(ministages, 2, true), one);
    }
  }

 private:
  static constexpr int kGroups = 2, kDevices = 4;  // of a group
  static constexpr int64_t kLayersOfGroup = 12, kMicrobatches = 8, kSamples = 2;

  static double Memory(const TimedStep& a, const TimedStep& b) {
    return static_cast<double>(a.peak_bytes) / static_cast<double>(b.peak_bytes);
  }

  // On devices of one speed.
  static double Step(const TimedStep& a, const TimedStep& b) { return (a.seconds / a.slower) / (b.seconds / b.slower); }

  TimedStep Of(int64_t ministages, int zero_stage, bool offload) const {
    std::vector<BenchStage> stages(kGroups);
    const int64_t layers = kLayersOfGroup / ministages;
    for (int64_t first = 0, at = 0; first < kGroups * kLayersOfGroup; first += layers, ++at) {
      stages[at % kGroups].ministages.push_back({first, first + layers - 1});
    }
    for (int g = 0; g < kGroups; ++g) {
      stages[g].zero_stage = zero_stage;
      for (int d = 0; d < kDevices; ++d) {
        stages[g].ranks.push_back({g * kDevices + d, std::vector<int64_t>(kMicrobatches, kSamples), 1.0 / kDevices});
      }
    }
    const std::string name =
        absl::StrCat("ministages, ", ministages, ", ZeRO ", zero_stage, offload ? ", parameters offloaded" : "");
    return StepOnTime(name, job_, [&](const BenchJob& job) {
      planner::Plan plan = PlanOf(job, planner::ScheduleFamily::kLayered, stages, planner::OpSet::All());
      planner::ForEachRank(plan, [&](planner::RankPlan& rank) { rank.offload.parameters = offload; });
      if (offload) plan.optimizer_steps = planner::OptimizerSteps::kInTurn;
      return PlannedAs(job, plan);
    });
  }

  void Add(const std::string& name, const TimedStep& step, const TimedStep& one) {
    report_.Add(name + ": memory / one ministage's", Memory(step, one), "1");
    report_.Add(name + ": step / one ministage's", Step(step, one), "1");
    AddNear(&report_, name + ": measured / simulated", step.of_simulated(), 0.02);
    AddLateness(&report_, name, step.lateness);
  }

  bench::Report& report_;
  BenchJob job_;
};

inline void MeasureMinistages(const std::string& text, bench::Report* report) {
  MinistagesBench bench(text, report);
  bench.MeasureAlone();
  bench.MeasureOffloaded();
}

}  // namespace motley::engine
