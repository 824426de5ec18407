// Layered gradient accumulation against gathering for every microbatch, in Cephalo's own regime (section 4.5, figure 8): GPT 6.7B
// on 16 V100s, 16 microbatches of one sample on each, layers recomputed. Published: 6x, and 7.3x once communication overlaps with
// compute. What decides is how long one layer's gather takes beside its forward of a microbatch; two emulated devices have the
// same ratio: more of them would only keep the host busier.
#pragma once

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "planner/cluster/cluster_file.h"
#include "planner/cluster/links.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/engine_job.h"

namespace motley::engine {

inline constexpr double kLayeredGain = 6, kLayeredOverlappedGain = 7.3, kMostOverBound = 1.02;

// One layer's forward of one sample of 512 tokens in float32 on a V100 of 16 GB: Cephalo's published latencies, model
// deepspeedgpt_6.7b, card v100x16, the first point of the forward curve. (Its backward takes 2.07 of it; here it is 2.)
inline constexpr double kForwardSeconds = 17.264e-3;

// The paper says 100 Gbit/s for its cluster as a whole; AWS lists 25 for these machines.
inline constexpr double kPaperOverListRate = 4;

// Of the layer's parameters in float32 over the 16 V100s of Cephalo's cluster B: two machines, at the rate that AWS lists.
inline double GatherSeconds() {
  constexpr double kHidden = 4096, kLayerElements = 12 * kHidden * kHidden + 13 * kHidden;
  const planner::Cluster cluster = OrDie(planner::LoadCluster("cephalo-b"));
  std::vector<int> devices;
  for (size_t d = 0; d < cluster.devices.size(); ++d) {
    if (cluster.kinds[cluster.devices[d].kind].name.find("V100") != std::string::npos) devices.push_back(static_cast<int>(d));
  }
  const planner::Links links(cluster);
  return links.SecondsAlone(links.Ring(planner::Collective::kAllGather, devices, 4 * kLayerElements));
}

inline BenchJob CephaloRegimeJob(const std::string& text, double gather_over_forward) {
  constexpr int kDevices = 2, kMicrobatches = 16;
  // A launch, so that the host keeps up with what has hardly a FLOP (the embedding).
  constexpr double kForward = 5e-3, kLaunch = 0.4e-3;
  BenchJob job = MakeJob(text, BenchModel(/*hidden=*/128, /*layers=*/5, /*seq_len=*/8), kDevices * kMicrobatches, /*steps=*/4);
  const double flops = ForwardFlops(job.model, UnitKind::kLayer, 1, job.config.training.seq_len) / (kForward - kLaunch);
  const auto bytes = static_cast<double>(4 * ParameterLayout(job.model)[1].num_elements);
  const double received = bytes * (kDevices - 1) / kDevices;
  for (int d = 0; d < kDevices; ++d) {
    job.devices.push_back(EmulatedDevice("n" + std::to_string(d) + "/gpu0", flops, received / (gather_over_forward * kForward)));
    job.devices.back().launch = absl::Seconds(kLaunch);
  }
  return job;
}

inline Planned OneStage(const BenchJob& job, planner::ScheduleFamily schedule) {
  BenchStage stage;
  stage.ministages = {{0, job.model.num_layers - 1}};
  const auto devices = static_cast<int64_t>(job.devices.size());
  const std::vector<int64_t> microbatches(job.config.training.global_batch_size / devices, 1);
  for (int d = 0; d < devices; ++d) stage.ranks.push_back({d, microbatches, 1.0 / static_cast<double>(devices)});
  return PlannedAs(job, PlanOf(job, schedule, {stage}, planner::OpSet::All()));
}

// The same work with nothing beside anything: compute waits for the collective before it in the text, and the other way round.
inline std::vector<Program> WithoutOverlap(std::vector<Program> programs) {
  for (Program& program : programs) {
    int32_t last = -1;
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      Instruction& instruction = program.instructions[i];
      std::vector<int32_t>& after = instruction.after;
      if (last >= 0 && LaneOf(instruction.op) != LaneOf(program.instructions[last].op) &&
          std::find(after.begin(), after.end(), last) == after.end()) {
        after.insert(std::upper_bound(after.begin(), after.end(), last), last);
      }
      last = static_cast<int32_t>(i);
    }
  }
  return programs;
}

class LayeredBench {
 public:
  LayeredBench(const std::string& text, bench::Report* report)
      : ratio_(GatherSeconds() / kForwardSeconds), job_(CephaloRegimeJob(text, ratio_)), report_(*report) {}

  void Measure() {
    report_.Add("layered: a layer's gather / its forward of a microbatch", ratio_, "1");
    const Planned layered = OneStage(job_, planner::ScheduleFamily::kLayered);
    const Planned often = OneStage(job_, planner::ScheduleFamily::k1F1B);
    const double often_alone = Seconds("gather per microbatch, no overlap", often, WithoutOverlap(often.result.programs));
    const double layered_alone = Seconds("layered, no overlap", layered, WithoutOverlap(layered.result.programs));
    const double often_beside = Seconds("gather per microbatch, overlap", often, often.result.programs);
    const double layered_beside = Seconds("layered, overlap", layered, layered.result.programs);
    const auto gain = [&](const char* name, double slow, double fast, double goal) {
      report_.AddGoal(name, slow / fast, "1", goal, bench::Limit::kAtLeast);
    };
    gain("layered: times faster, neither overlaps", often_alone, layered_alone, kLayeredGain);
    gain("layered: times faster, both overlap", often_beside, layered_beside, kLayeredOverlappedGain);
    report_.Add("layered: times faster than gathers that overlap, itself without", often_beside / layered_alone, "1");
    report_.Add("layered: times faster with overlap than without", layered_alone / layered_beside, "1");
    SimulateFasterLinks();
  }

 private:
  // The same at the paper's own rate for its cluster, simulated alone.
  void SimulateFasterLinks() {
    BenchJob job = job_;
    for (DeviceDescription& device : job.devices) {
      device.link_bytes_per_second *= kPaperOverListRate;
      device.node_link_bytes_per_second *= kPaperOverListRate;
    }
    const Planned layered = OneStage(job, planner::ScheduleFamily::kLayered);
    const Planned often = OneStage(job, planner::ScheduleFamily::k1F1B);
    const double alone = SimulatedSeconds(often, WithoutOverlap(often.result.programs)) /
                         SimulatedSeconds(layered, WithoutOverlap(layered.result.programs));
    const double beside = SimulatedSeconds(often, often.result.programs) / SimulatedSeconds(layered, layered.result.programs);
    report_.Add("layered: simulated at the paper's rate, times faster, neither overlaps", alone, "1");
    report_.Add("layered: simulated at the paper's rate, times faster, both overlap", beside, "1");
  }

  double Seconds(const std::string& name, const Planned& planned, const std::vector<Program>& programs) {
    const double bound = SimulatedSeconds(planned, programs);
    const Trained trained = Train(job_, planned, programs);
    std::fprintf(stderr, "%s: %.1f ms, simulated %.1f ms, host late by %.2f %%\n", name.c_str(), trained.step_seconds * 1e3,
                 bound * 1e3, trained.lateness * 100);
    report_.AddGoal("layered: " + name + ", measured / simulated", trained.step_seconds / bound, "1", kMostOverBound);
    return trained.step_seconds;
  }

  const double ratio_;
  const BenchJob job_;
  bench::Report& report_;
};

inline void MeasureLayered(const std::string& text, bench::Report* report) { LayeredBench(text, report).Measure(); }

}  // namespace motley::engine
