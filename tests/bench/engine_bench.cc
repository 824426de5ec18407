// Profile, plan, train: the whole path in one process, ranks as threads on emulated devices. Prints for `even` and `cephalo` the
// predicted and the measured step, what the engine added beyond the declared times, and how late the host was.
//
//   engine_bench TEXT [steps] [sum of GFLOP/s] [MB/s of each link]
//
// Memory caps are left out: one process has one allocator.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "common/data/dataset.h"
#include "common/job/job.h"
#include "planner/live/planner.h"
#include "tests/worker/engine/fake_host.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/engine.h"

namespace motley::engine {
namespace {

struct Cluster {
  std::vector<DeviceDescription> devices;
};

// Five unequal devices on three nodes, as the demo's.
Cluster MakeCluster(double sum_gflops, double link_megabytes) {
  const std::vector<std::pair<const char*, double>> parts = {
      {"n1/gpu0", 0.36}, {"n1/gpu1", 0.24}, {"n2/gpu0", 0.2}, {"n2/gpu1", 0.12}, {"n3/gpu0", 0.08}};
  Cluster cluster;
  for (const auto& [id, part] : parts) {
    DeviceDescription device;
    device.id = DeviceId(id);
    device.model = "emulated";
    device.kind = DeviceKind::kEmulated;
    device.memory_bytes = int64_t{1} << 30;
    device.flops_per_second = part * sum_gflops * 1e9;
    device.launch = absl::Milliseconds(1);
    device.link_bytes_per_second = link_megabytes * 1e6;
    device.node_link_bytes_per_second = link_megabytes * 1e6;
    cluster.devices.push_back(device);
  }
  return cluster;
}

RankAssignment BaseAssignment(const Cluster& cluster, int rank, const JobConfig& config, const ModelShape& model) {
  RankAssignment a;
  a.job = JobId("bench");
  a.epoch = Epoch(1);
  a.rank = rank;
  for (const DeviceDescription& device : cluster.devices) {
    a.devices.push_back(device.id);
    a.data_addresses.push_back("127.0.0.1");
  }
  a.device = cluster.devices[rank];
  a.device.memory_bytes = 0;
  a.model = model;
  a.config = config;
  return a;
}

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}

planner::PlannerInput Profile(const Cluster& cluster, const JobConfig& config, const ModelShape& model) {
  planner::PlannerInput input;
  input.devices = cluster.devices;
  input.model = model;
  input.config = config;
  input.epoch = Epoch(1);
  const int world = static_cast<int>(cluster.devices.size());
  const int64_t begin_ns = MonotonicNs();
  FakeKv kv;
  for (int r = 0; r < world; ++r) {  // in turn: they share an allocator
    FakeHost host(kv);
    RankAssignment alone = BaseAssignment(cluster, r, config, model);
    alone.batch_size = config.training.global_batch_size;
    input.compute.push_back(OrDie(CreateEngine(host, {})->ProfileCompute(alone)));
  }
  const int64_t middle_ns = MonotonicNs();
  OnRanks(world, [&](int r) {
    FakeHost host(kv);
    const CollectiveProfile profile =
        OrDie(CreateEngine(host, {})->ProfileCollectives(BaseAssignment(cluster, r, config, model)));
    if (r == 0) input.collectives = profile;
  });
  std::printf("profiled: compute %.1f s in all, collectives %.1f s\n", (middle_ns - begin_ns) * 1e-9,
              (MonotonicNs() - middle_ns) * 1e-9);
  for (const CollectivePoint& p : input.collectives.points) {
    std::printf("  %8.3f MB skew %.2f: all-gather %.1f ms, reduce-scatter %.1f ms\n", p.bytes * 1e-6, p.skew,
                p.all_gather_seconds * 1e3, p.reduce_scatter_seconds * 1e3);
  }
  return input;
}

void Train(const Cluster& cluster, planner::PlannerInput input, const std::string& strategy) {
  input.config.planner.strategy = strategy;
  const planner::PlanResult result = OrDie(planner::MakePlan(input));
  const planner::StagePlan& stage = result.plan.pipelines[0].stages[0];
  const int world = static_cast<int>(stage.units.size());
  std::printf("\n%s: %s\n", strategy.c_str(), planner::ToText(result.plan).c_str());
  if (world != static_cast<int>(cluster.devices.size())) {
    std::printf("  uses %d of the devices; not run\n", world);
    return;
  }
  FakeKv kv;
  std::vector<StepResult> steps;
  std::vector<double> busy(world), lateness(world);
  OnRanks(world, [&](int r) {
    RankAssignment a = BaseAssignment(cluster, r, input.config, input.model);
    a.microbatches = stage.units[r].microbatches;
    a.placement = result.placement;
    a.program = result.programs[r];
    FakeHost host(kv);
    OrDie(CreateEngine(host, {})->Run(a));
    if (r == 0) steps = host.steps;
    busy[r] = host.steps.back().lanes.busy[0];
    lateness[r] = host.steps.back().lateness_seconds;
  });
  std::vector<double> seconds;
  for (size_t i = 1; i < steps.size(); ++i) seconds.push_back(steps[i].step_seconds);
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  const double median = seconds[seconds.size() / 2], predicted = result.plan.predicted.step_seconds;
  std::printf("%s: step %.1f ms measured (median), %.1f ms predicted, error %+.2f %%; loss %.4f -> %.4f\n", strategy.c_str(),
              median * 1e3, predicted * 1e3, (median / predicted - 1) * 100, steps.front().loss, steps.back().loss);
  for (int r = 0; r < world; ++r)
    std::printf("  rank %d busy %.1f ms, late %.2f ms in the last step\n", r, busy[r] * 1e3, lateness[r] * 1e3);
}

}  // namespace
}  // namespace motley::engine

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: engine_bench TEXT [steps] [sum of GFLOP/s] [MB/s of each link]\n");
    return 64;
  }
  motley::JobConfig config;
  config.data.path = argv[1];
  config.training.steps = argc > 2 ? std::atoi(argv[2]) : 8;
  config.training.seq_len = 128;
  config.training.global_batch_size = 32;
  const motley::ModelShape model = {.family = motley::ModelFamily::kGpt2,
                                    .vocab_size = 256,
                                    .hidden_size = 128,
                                    .num_layers = 4,
                                    .num_heads = 4,
                                    .num_kv_heads = 4,
                                    .head_dim = 32,
                                    .intermediate_size = 512,
                                    .max_positions = 128,
                                    .tie_embeddings = true};
  const auto cluster = motley::engine::MakeCluster(argc > 3 ? std::atof(argv[3]) : 15, argc > 4 ? std::atof(argv[4]) : 20);
  const auto input = motley::engine::Profile(cluster, config, model);
  for (const char* strategy : {"even", "cephalo"}) motley::engine::Train(cluster, input, strategy);
  return 0;
}
