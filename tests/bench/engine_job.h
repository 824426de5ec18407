// What engine_bench runs: a job on emulated devices that are never measured, since what they declare is what they do; its plan's
// programs with the seconds that they are simulated to take; and training with them, each rank a thread of this process.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/job/job.h"
#include "common/model/operators.h"
#include "planner/graph/program_graph.h"
#include "planner/live/live_inputs.h"
#include "planner/live/planner.h"
#include "planner/plan/each_rank.h"
#include "planner/plan/unit_slices.h"
#include "planner/simulator/step_graph.h"
#include "tests/planner/scheduled.h"
#include "tests/worker/engine/fake_host.h"
#include "worker/engine/base/memory.h"
#include "worker/engine/device/host_backend.h"
#include "worker/engine/engine.h"

namespace motley::engine {

struct BenchJob {
  std::vector<DeviceDescription> devices;  // in rank order
  ModelShape model;
  JobConfig config;
};

// A bench has nobody to report an error to.
template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "engine_bench: %s\n", value.status().ToString().c_str());
  std::exit(1);
}

inline double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// No cap of memory: one process has one allocator.
inline DeviceDescription EmulatedDevice(const std::string& id, double flops_per_second, double link_bytes_per_second) {
  DeviceDescription device;
  device.id = DeviceId(id);
  device.model = "emulated";
  device.kind = DeviceKind::kEmulated;
  device.flops_per_second = flops_per_second;
  device.link_bytes_per_second = device.node_link_bytes_per_second = link_bytes_per_second;
  return device;
}

// The same on devices and links that take so many times as long.
inline BenchJob Slower(BenchJob job, double times) {
  for (DeviceDescription& device : job.devices) {
    device.launch *= times;
    for (double* rate : {&device.flops_per_second, &device.link_bytes_per_second, &device.node_link_bytes_per_second,
                         &device.host_link_bytes_per_second}) {
      *rate /= times;
    }
  }
  return job;
}

// The smallest text model of that size: bytes as tokens.
inline ModelShape BenchModel(int64_t hidden, int64_t layers, int64_t seq_len) {
  return {.family = ModelFamily::kGpt2,
          .vocab_size = 256,
          .hidden_size = hidden,
          .num_layers = layers,
          .num_heads = 4,
          .num_kv_heads = 4,
          .head_dim = hidden / 4,
          .intermediate_size = 4 * hidden,
          .max_positions = seq_len,
          .tie_embeddings = false};
}

inline BenchJob MakeJob(const std::string& text, const ModelShape& model, int64_t global_batch, int64_t steps) {
  BenchJob job;
  job.model = model;
  job.config.data = {.path = text, .validation_fraction = 0, .validation_samples = 0};
  job.config.training.steps = steps;
  job.config.training.seq_len = model.max_positions;
  job.config.training.global_batch_size = global_batch;
  return job;
}

// ---- what devices declare ----

struct UnitSeconds {
  double forward = 0, backward = 0;                // of a step
  double backward_input = 0, backward_weight = 0;  // of a backward in two
  double evaluated = 0;                            // a forward, of a head with its loss: what a profile measures
  double sum() const { return forward + backward; }
};

// Of one microbatch.
inline UnitSeconds DeclaredSeconds(const BenchJob& job, const DeviceDescription& device, UnitKind unit, int64_t samples) {
  const int64_t seq_len = job.config.training.seq_len;
  double forward = 0, input = 0, weight = 0;
  for (const OpCost& cost : UnitOperators(job.model, unit, samples, seq_len, DType::kFloat32)) {
    forward += cost.forward_flops;
    input += cost.backward_input_flops;
    weight += cost.backward_weight_flops;
  }
  const auto seconds = [&device](double flops) { return absl::ToDoubleSeconds(device.launch) + flops / device.flops_per_second; };
  return {TrainsInBackward(unit) ? 0 : seconds(forward), seconds(input + weight), seconds(input), seconds(weight),
          seconds(forward)};
}

inline UnitProfile DeclaredUnit(const BenchJob& job, const DeviceDescription& device, UnitKind unit) {
  UnitProfile profile;
  for (int64_t samples = 1; samples <= std::max<int64_t>(2, job.config.training.global_batch_size); samples *= 2) {
    const UnitSeconds seconds = DeclaredSeconds(job, device, unit, samples);
    const int64_t saved = SavedBytes(job.model, unit, samples, job.config.training.seq_len, DType::kFloat32);
    profile.points.push_back(
        {samples, seconds.evaluated, seconds.backward, saved, 0, seconds.backward_input, seconds.backward_weight});
  }
  return profile;
}

// Links are not measured together: then the planner takes them as declared.
inline planner::PlannerInput DeclaredInput(const BenchJob& job) {
  planner::PlannerInput input;
  input.cluster_name = "engine_bench";
  input.devices = job.devices;
  input.model = job.model;
  input.config = job.config;
  input.epoch = Epoch(1);
  for (const DeviceDescription& device : job.devices) {
    ComputeProfile profile;
    profile.device = device.id;
    profile.embedding = DeclaredUnit(job, device, UnitKind::kEmbedding);
    profile.layer = DeclaredUnit(job, device, UnitKind::kLayer);
    profile.head = DeclaredUnit(job, device, UnitKind::kHead);
    profile.optimizer_seconds_per_element = kOptimizerFlopsPerElement / device.flops_per_second;
    profile.step_overhead_seconds = absl::ToDoubleSeconds(device.launch);
    input.compute.push_back(std::move(profile));
  }
  return input;
}

// ---- plans ----

struct BenchRank {
  int device = 0;  // of BenchJob::devices
  std::vector<int64_t> microbatches;
  double share = 0;
};
struct BenchStage {
  std::vector<planner::LayerRange> ministages;
  std::vector<BenchRank> ranks;
  int zero_stage = 3;
};

inline planner::Plan PlanOf(const BenchJob& job, planner::ScheduleFamily schedule, const std::vector<BenchStage>& stages,
                            const planner::OpSet& recompute = {}) {
  planner::Plan plan;
  plan.strategy = "hand";
  plan.epoch = Epoch(1);
  plan.global_batch = job.config.training.global_batch_size;
  plan.seq_len = job.config.training.seq_len;
  plan.schedule = schedule;
  plan.pipelines.emplace_back();
  for (const BenchStage& s : stages) {
    planner::StagePlan stage;
    stage.ministages = s.ministages;
    stage.zero_stage = s.zero_stage;
    for (const BenchRank& r : s.ranks) {
      planner::RankPlan rank;
      rank.device = job.devices[r.device].id;
      rank.shard_ratio = r.share;
      rank.recompute = recompute;
      stage.units.push_back({{rank}, r.microbatches});
    }
    plan.pipelines[0].stages.push_back(std::move(stage));
  }
  return plan;
}

// A plan as a job gets it, with its setting.
struct Planned {
  planner::JobSetting setting;
  planner::PlanResult result;
};

inline absl::StatusOr<Planned> MakePlanned(const BenchJob& job, const std::string& strategy, const std::string& plan_json) {
  planner::PlannerInput input = DeclaredInput(job);
  input.config.planner.strategy = strategy;
  input.config.planner.plan_json = plan_json;
  Planned planned;
  MOTLEY_ASSIGN_OR_RETURN(planned.setting, planner::SettingOf(input));
  MOTLEY_ASSIGN_OR_RETURN(planned.result, planner::MakePlan(input));
  return planned;
}
inline Planned PlannedBy(const BenchJob& job, const std::string& strategy) { return OrDie(MakePlanned(job, strategy, "")); }
inline Planned PlannedAs(const BenchJob& job, const planner::Plan& plan) {
  return OrDie(MakePlanned(job, "cephalo", planner::ToJson(plan)));
}

// Of programs that may do the plan's work in another order than its own.
inline double SimulatedSeconds(const Planned& planned, const std::vector<Program>& programs) {
  const planner::ProgramGraph graph = OrDie(planner::GraphOfPrograms(*planned.setting.setting, planned.result.plan, programs));
  return planner::ToSeconds(OrDie(planner::Run(graph.graph)).end);
}

// ---- training ----

// The memory in which a node's links keep their times, one file a node: ranks of one node share its NIC.
class NodeClocks {
 public:
  NodeClocks() = default;
  NodeClocks(const NodeClocks&) = delete;
  NodeClocks& operator=(const NodeClocks&) = delete;
  ~NodeClocks() {
    for (const auto& [node, fd] : files_) close(fd);
  }
  int Of(const DeviceId& device) {
    const auto [at, added] = files_.try_emplace(NodeOf(device).value(), -1);
    if (added) at->second = memfd_create("engine-bench-links", MFD_CLOEXEC);
    return at->second;
  }

 private:
  std::map<std::string, int> files_;  // by node
};

struct Trained {
  double step_seconds = 0;                     // median of all steps but the first
  double lateness = 0;                         // of the host, largest of all ranks in a median step, as a part of it
  int64_t peak_bytes = 0;                      // of the fullest rank's device in its fullest step
  std::vector<std::vector<StepResult>> steps;  // by rank: all but the first
};

inline std::vector<RankAssignment> AssignmentsOf(const BenchJob& job, const Planned& planned,
                                                 const std::vector<Program>& programs) {
  RankAssignment common;
  common.job = JobId("bench");
  common.epoch = Epoch(1);
  common.ownership = *planned.result.plan.ownership;
  common.model = job.model;
  common.config = job.config;
  const std::vector<ModelSlice> slices = OrDie(planner::SlicesOfRanks(job.model, planned.result.plan));
  std::vector<int64_t> host_bytes;
  planner::ForEachRank(planned.result.plan, [&](const planner::RankPlan& rank) {
    common.devices.push_back(rank.device);
    common.data_addresses.push_back("127.0.0.1");
    host_bytes.push_back(rank.predicted.memory.host);
  });
  std::vector<RankAssignment> assignments(common.devices.size(), common);
  for (size_t rank = 0; rank < assignments.size(); ++rank) {
    RankAssignment& own = assignments[rank];
    own.rank = static_cast<int>(rank);
    own.slice = slices[rank];
    own.device = *std::find_if(job.devices.begin(), job.devices.end(),
                               [&](const DeviceDescription& d) { return d.id == common.devices[rank]; });
    own.program = programs[rank];
    own.planned_host_bytes = host_bytes[rank];
  }
  return assignments;
}

// Between machines alone no message has a code here: all ranks are of one.
inline Trained Train(const BenchJob& job, const Planned& planned, const std::vector<Program>& programs,
                     DataAuthentication authentication = DataAuthentication::kBetweenMachines) {
  const std::vector<RankAssignment> assignments = AssignmentsOf(job, planned, programs);
  const int world = static_cast<int>(assignments.size());
  NodeClocks clocks;
  for (const RankAssignment& own : assignments) clocks.Of(own.device.id);
  FakeKv kv;
  std::vector<std::vector<StepResult>> steps(world);
  InstallCounting();
  OnRanks(world, [&](int rank) {
    FakeHost host(kv);
    HostBackend counts_apart(std::make_shared<MemoryAccount>());
    EngineOptions options;
    options.backend = &counts_apart;
    options.link_clock_fd = clocks.Of(assignments[rank].device.id);
    options.authentication = authentication;
    OrDie(CreateEngine(host, options)->Run(assignments[rank]));
    steps[rank] = host.steps;
  });
  // The first step also allocates buffers and sets libraries up.
  for (auto& of_rank : steps) of_rank.erase(of_rank.begin());
  std::vector<double> seconds, lateness;
  int64_t peak_bytes = 0;
  for (size_t s = 0; s < steps[0].size(); ++s) {
    seconds.push_back(steps[0][s].step_seconds);
    double late = 0;
    for (const auto& of_rank : steps) {
      late = std::max(late, of_rank[s].lateness_seconds);
      peak_bytes = std::max(peak_bytes, of_rank[s].peak_memory_bytes);
    }
    lateness.push_back(late / seconds.back());
  }
  return {Median(seconds), Median(lateness), peak_bytes, std::move(steps)};
}
inline Trained Train(const BenchJob& job, const Planned& planned) { return Train(job, planned, planned.result.programs); }

}  // namespace motley::engine
