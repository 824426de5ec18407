// Time of uneven all-gather and reduce-scatter over equal paced links, against the lower bound, for shares from even to
// one owner of everything. docs/collectives.md explains the bound and what the columns of Gloo's own all-gather are.
//
//   collectives_bench [ranks] [megabytes] [MB/s of each link] [repetitions] [--check]
//
// --check: exit 1 when a time is more than 15 % above its bound.
#include <gloo/allgatherv.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/worker/engine/fake_host.h"
#include "worker/engine/gloo_communicator.h"
#include "worker/engine/gloo_store.h"
#include "worker/engine/monotonic.h"

namespace motley::engine {
namespace {

struct Setup {
  int ranks = 5;
  int64_t elements = 0;  // float32
  double bytes_per_second = 0;
  int repetitions = 3;
};

// Rank 0 holds `largest`, the others share the rest.
std::vector<int64_t> Bounds(const Setup& setup, double largest) {
  std::vector<int64_t> bounds = {0};
  for (int r = 1; r <= setup.ranks; ++r) {
    const double before = largest + (1 - largest) * (r - 1) / std::max(setup.ranks - 1, 1);
    bounds.push_back(r == setup.ranks ? setup.elements : static_cast<int64_t>(before * setup.elements));
  }
  return bounds;
}

int64_t LargestTransfer(const std::vector<int64_t>& bounds) {
  int64_t smallest = bounds.back();
  for (size_t r = 1; r < bounds.size(); ++r) smallest = std::min(smallest, bounds[r] - bounds[r - 1]);
  return (bounds.back() - smallest) * 4;
}

struct Times {
  double all_gather = 1e30, reduce_scatter = 1e30, gloo_unpaced = 1e30;
};

double Slowest(Communicator& communicator, double mine) {
  double slowest = 0;
  const std::vector<std::vector<double>> all = communicator.GatherScalars({mine}).value();
  for (const auto& scalars : all) slowest = std::max(slowest, scalars[0]);
  return slowest;
}

Times Measure(const Setup& setup, const std::vector<int64_t>& bounds) {
  FakeKv kv;
  Times best;
  OnRanks(setup.ranks, [&](int rank) {
    FakeHost host(kv);
    auto links = LinkClock::Map(-1);
    CommunicatorOptions options;
    options.rank = rank;
    for (int r = 0; r < setup.ranks; ++r) {
      options.devices.emplace_back("n" + std::to_string(r) + "/gpu0");
      options.data_addresses.push_back("127.0.0.1");
    }
    options.device.link_bytes_per_second = setup.bytes_per_second;
    auto communicator = ConnectCommunicator(options, host, **links);
    if (!communicator.ok()) {
      std::fprintf(stderr, "%s\n", communicator.status().ToString().c_str());
      std::exit(1);
    }
    std::vector<float> array(setup.elements, 1.0f);
    auto timed = [&](auto&& call, double& time) {
      (void)(*communicator)->GatherScalars({0});
      const int64_t begin_ns = MonotonicNs();
      call(absl::Nanoseconds(begin_ns));
      const double slowest = Slowest(**communicator, (MonotonicNs() - begin_ns) * 1e-9);
      if (rank == 0) time = std::min(time, slowest);
    };
    gloo::transport::tcp::attr attributes("127.0.0.1");
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, setup.ranks);
    GlooStore store(host, "own/", absl::Seconds(30));
    context->connectFullMesh(store, device);
    for (int i = 0; i < setup.repetitions; ++i) {
      timed([&](absl::Duration now) { (void)(*communicator)->AllGatherV(array.data(), DType::kFloat32, bounds, now); }, best.all_gather);
      timed([&](absl::Duration now) { (void)(*communicator)->ReduceScatterV(array.data(), DType::kFloat32, bounds, now); },
            best.reduce_scatter);
      timed([&](absl::Duration) {
        gloo::AllgathervOptions gather(context);
        std::vector<size_t> counts;
        for (int r = 0; r < setup.ranks; ++r) counts.push_back(bounds[r + 1] - bounds[r]);
        std::vector<float> mine(counts[rank] + 1);
        gather.setInput(mine.data(), counts[rank]);
        gather.setOutput(array.data(), counts);
        gather.setTag(i);
        gloo::allgatherv(gather);
      }, best.gloo_unpaced);
    }
  });
  return best;
}

int Run(const Setup& setup, bool check) {
  std::printf("%d ranks, %.1f MB, links of %.0f MB/s each way, best of %d\n", setup.ranks, setup.elements * 4e-6,
              setup.bytes_per_second * 1e-6, setup.repetitions);
  std::printf("largest share  bound ms  all-gather  ratio  reduce-scatter  ratio  Gloo: whole blocks*  ratio  unpaced ms\n");
  bool good = true;
  const double even = 1.0 / setup.ranks;
  for (double skew : {even, 0.35, 0.5, 0.75, 0.9, 1.0}) {
    const std::vector<int64_t> bounds = Bounds(setup, std::max(skew, even));
    const double bound = LargestTransfer(bounds) / setup.bytes_per_second;
    const Times times = Measure(setup, bounds);
    // Gloo's ring: in each of n - 1 rounds every rank passes on one whole block, and the next round waits for the largest.
    const double blocks = std::max(skew, even) * setup.elements * 4 * (setup.ranks - 1) / setup.bytes_per_second;
    std::printf("%13.2f %9.1f %11.1f %6.3f %15.1f %6.3f %20.1f %6.2f %11.1f\n", skew, bound * 1e3, times.all_gather * 1e3,
                times.all_gather / bound, times.reduce_scatter * 1e3, times.reduce_scatter / bound, blocks * 1e3, blocks / bound,
                times.gloo_unpaced * 1e3);
    good = good && times.all_gather <= 1.15 * bound && times.reduce_scatter <= 1.15 * bound;
  }
  std::printf("* computed from its schedule for these links; the last column is Gloo's allgatherv measured on bare loopback\n");
  return check && !good ? 1 : 0;
}

}  // namespace
}  // namespace motley::engine

int main(int argc, char** argv) {
  const bool check = argc > 1 && std::strcmp(argv[argc - 1], "--check") == 0;
  if (check) --argc;
  motley::engine::Setup setup;
  if (argc > 1) setup.ranks = std::atoi(argv[1]);
  setup.elements = static_cast<int64_t>((argc > 2 ? std::atof(argv[2]) : 10) * 250000);
  setup.bytes_per_second = (argc > 3 ? std::atof(argv[3]) : 50) * 1e6;
  if (argc > 4) setup.repetitions = std::atoi(argv[4]);
  return motley::engine::Run(setup, check);
}
