// Time of uneven all-gather and reduce-scatter over equal paced links, against the lower bound, for shares from even to
// one owner of everything; and of the sums of tensor-parallel groups of 2 to 4 ranks. docs/inside/collectives.md explains the
// bounds and what the columns of Gloo's own all-gather are.
//
//   collectives_bench [ranks] [megabytes] [MB/s of each link] [repetitions] [--check]
//   collectives_bench codes [megabytes]
//   collectives_bench gloo-rank RANK RANKS ADDRESS FOLDER MEGABYTES LARGEST_SHARE
//
// codes: what authentication codes cost on links that nothing paces: a hand-over over loopback with and without them.
// --check: exit 1 when a time is more than 15 % above its bound. gloo-rank: one process of Gloo's own all-gather, for
// gloo_shaped.sh, which gives every process a network namespace with a link shaped by the kernel.
#include <gloo/allgatherv.h>
#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/transport/tcp/device.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/worker/engine/fake_host.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/transport/connect_communicator.h"

namespace motley::engine {
namespace {

constexpr double kMostOverBound = 1.15;  // with --check

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

// The largest of everybody's.
double Largest(Communicator& communicator, double mine) {
  double largest = mine;
  const std::vector<std::vector<double>> all = communicator.GatherScalars({mine}).value();
  for (const auto& scalars : all) largest = std::max(largest, scalars[0]);
  return largest;
}

void GlooAllGather(const std::shared_ptr<gloo::Context>& context, const std::vector<int64_t>& bounds, std::vector<float>& array,
                   int tag) {
  gloo::AllgathervOptions gather(context);
  std::vector<size_t> counts;
  for (size_t r = 0; r + 1 < bounds.size(); ++r) counts.push_back(bounds[r + 1] - bounds[r]);
  std::vector<float> mine(counts[context->rank] + 1);
  gather.setInput(mine.data(), counts[context->rank]);
  gather.setOutput(array.data(), counts);
  gather.setTag(tag);
  gloo::allgatherv(gather);
}

std::shared_ptr<gloo::rendezvous::Context> ConnectGloo(int rank, int ranks, const char* address, gloo::rendezvous::Store& store) {
  gloo::transport::tcp::attr attributes(address);
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  return context;
}

// One process of Gloo's own all-gather; rank 0 prints the best of three in milliseconds.
int GlooRank(char** argv) {
  Setup setup;
  const int rank = std::atoi(argv[0]);
  setup.ranks = std::atoi(argv[1]);
  setup.elements = static_cast<int64_t>(std::atof(argv[4]) * 250000);
  const std::vector<int64_t> bounds = Bounds(setup, std::max(std::atof(argv[5]), 1.0 / setup.ranks));
  gloo::rendezvous::FileStore store(argv[3]);
  const auto context = ConnectGloo(rank, setup.ranks, argv[2], store);
  std::vector<float> array(setup.elements);
  double best = 1e30;
  for (int i = 0; i < 3; ++i) {
    gloo::BarrierOptions before(context), after(context);
    before.setTag(100 + i);
    gloo::barrier(before);
    const int64_t begin_ns = MonotonicNs();
    GlooAllGather(context, bounds, array, i);
    after.setTag(200 + i);
    gloo::barrier(after);
    best = std::min(best, (MonotonicNs() - begin_ns) * 1e-6);
  }
  if (rank == 0) std::printf("%.1f\n", best);
  return 0;
}

// `body(rank, communicator)` on each rank, a thread.
template <typename Body>
void OnLinks(const Setup& setup, Body body) {
  FakeKv kv;
  OnRanks(setup.ranks, [&](int rank) {
    FakeHost host(kv);
    auto links = LinkClock::Map(-1);
    CommunicatorOptions options;
    options.rank = rank;
    options.groups = {EveryRank(setup.ranks)};
    for (int r = 0; r < setup.ranks; ++r) {
      options.devices.emplace_back(absl::StrCat("n", r, "/gpu0"));
      options.data_addresses.push_back("127.0.0.1");
    }
    options.device.link_bytes_per_second = setup.bytes_per_second;
    auto communicator = ConnectCommunicator(options, host, **links);
    if (!communicator.ok()) {
      std::fprintf(stderr, "%s\n", communicator.status().ToString().c_str());
      std::exit(1);
    }
    body(rank, **communicator);
  });
}

// Of the slowest rank, from a common start: on a busy host threads wake up milliseconds apart.
struct Taken {
  double seconds = 0;
  double scheduled = 0;  // as its lane counts them, which knows no wake-ups
};
template <typename Call>
Taken TimeOf(Communicator& communicator, Call call) {
  TransferPacer& pacer = communicator.collective_pacer();
  const double begin = Largest(communicator, MonotonicNs() * 1e-9);
  pacer.Begin(absl::Seconds(begin));
  call();
  pacer.End(std::nullopt);
  const double seconds = MonotonicNs() * 1e-9 - begin;
  return {Largest(communicator, seconds), Largest(communicator, absl::ToDoubleSeconds(pacer.end()) - begin)};
}

Times Measure(const Setup& setup, const std::vector<int64_t>& bounds) {
  gloo::rendezvous::HashStore gloo_store;
  Times best;
  OnLinks(setup, [&](int rank, Communicator& communicator) {
    std::vector<float> array(setup.elements, 1.0f);
    const Owners owners = OwnersOf(bounds);
    auto timed = [&](auto&& call, double& time) {
      const double seconds = TimeOf(communicator, call).seconds;
      if (rank == 0) time = std::min(time, seconds);
    };
    const auto context = ConnectGloo(rank, setup.ranks, "127.0.0.1", gloo_store);
    for (int i = 0; i < setup.repetitions; ++i) {
      timed([&] { (void)communicator.AllGather(0, array.data(), DType::kFloat32, owners); }, best.all_gather);
      timed([&] { (void)communicator.ReduceScatter(0, array.data(), DType::kFloat32, owners); }, best.reduce_scatter);
      timed([&] { GlooAllGather(context, bounds, array, i); }, best.gloo_unpaced);
    }
  });
  return best;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// An all-reduce of the setup's elements, made ten times as often as the setup says: medians.
Taken MeasureSum(const Setup& setup) {
  std::vector<double> seconds, scheduled;
  OnLinks(setup, [&](int rank, Communicator& communicator) {
    std::vector<float> array(setup.elements, 1.0f);
    const auto sum = [&] { (void)communicator.AllReduce(0, array.data(), DType::kFloat32, setup.elements); };
    for (int i = 0; i < 10 * setup.repetitions; ++i) {
      const Taken taken = TimeOf(communicator, sum);
      if (rank != 0) continue;
      seconds.push_back(taken.seconds);
      scheduled.push_back(taken.scheduled);
    }
  });
  return {Median(seconds), Median(scheduled)};
}

// False when one is further above its bound than it may be.
bool PrintSums(Setup setup) {
  std::printf("sums of a group of    KiB  bound ms  median  ratio  as a lane counts it  ratio\n");
  bool good = true;
  for (const int64_t kibibytes : {64, 256, 1024, 4096}) {
    for (setup.ranks = 2; setup.ranks <= 4; ++setup.ranks) {
      setup.elements = kibibytes * 256;
      const double bytes = static_cast<double>(setup.elements) * 4;
      const double bound = 2.0 * (setup.ranks - 1) / setup.ranks * bytes / setup.bytes_per_second;
      const Taken taken = MeasureSum(setup);
      std::printf("%18d %6lld %9.2f %7.2f %6.3f %20.2f %6.3f\n", setup.ranks, static_cast<long long>(kibibytes), bound * 1e3,
                  taken.seconds * 1e3, taken.seconds / bound, taken.scheduled * 1e3, taken.scheduled / bound);
      good = good && taken.seconds <= kMostOverBound * bound;
    }
  }
  return good;
}

double ThreadSeconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return used.tv_sec + used.tv_nsec * 1e-9;
}

struct HandOverCost {
  double seconds = 0, sender_seconds = 0, receiver_seconds = 0;  // of the clock; of a core
};

// The cheapest of `repetitions`, from rank 0 to rank 1.
HandOverCost MeasureHandOver(DataAuthentication authentication, std::vector<char>& from, std::vector<char>& to, int repetitions) {
  HandOverCost best{1e30, 1e30, 1e30};
  const auto bytes = static_cast<int64_t>(from.size());
  FakeKv kv;
  OnRanks(2, [&](int rank) {
    FakeHost host(kv);
    auto links = LinkClock::Map(-1);
    CommunicatorOptions options;
    options.rank = rank;
    options.devices = {DeviceId("a/gpu0"), DeviceId("b/gpu0")};
    options.data_addresses = {"127.0.0.1", "127.0.0.1"};
    options.authentication = authentication;
    (rank == 0 ? options.sends_to : options.receives_from).insert(1 - rank);
    auto communicator = ConnectCommunicator(options, host, **links).value();
    for (int i = 0; i < repetitions; ++i) {
      const double begin = ThreadSeconds();
      const int64_t begin_ns = MonotonicNs();
      (void)(rank == 0 ? communicator->Send(1, from.data(), bytes) : communicator->Receive(0, to.data(), bytes));
      double& used = rank == 0 ? best.sender_seconds : best.receiver_seconds;
      used = std::min(used, ThreadSeconds() - begin);
      if (rank == 1) best.seconds = std::min(best.seconds, (MonotonicNs() - begin_ns) * 1e-9);
    }
  });
  return best;
}

int RunCodes(int64_t megabytes) {
  std::vector<char> from(megabytes * 1'000'000, 'x'), to(from.size());
  const double gigabytes = from.size() * 1e-9;
  std::printf("a hand-over of %.2f GB over loopback, best of 5\n", gigabytes);
  std::printf("codes    GB/s  core seconds a GB: sender  receiver\n");
  for (const DataAuthentication authentication : {DataAuthentication::kNever, DataAuthentication::kAlways}) {
    const HandOverCost cost = MeasureHandOver(authentication, from, to, 5);
    std::printf("%-6s %6.2f %26.3f %9.3f\n", authentication == DataAuthentication::kNever ? "none" : "GMAC",
                gigabytes / cost.seconds, cost.sender_seconds / gigabytes, cost.receiver_seconds / gigabytes);
  }
  return 0;
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
    good = good && times.all_gather <= kMostOverBound * bound && times.reduce_scatter <= kMostOverBound * bound;
  }
  std::printf("* computed from its schedule for these links; the last column is Gloo's allgatherv measured on bare loopback\n");
  good = PrintSums(setup) && good;
  return check && !good ? 1 : 0;
}

}  // namespace
}  // namespace motley::engine

int main(int argc, char** argv) {
  if (argc == 8 && std::strcmp(argv[1], "gloo-rank") == 0) return motley::engine::GlooRank(argv + 2);
  if (argc > 1 && std::strcmp(argv[1], "codes") == 0) {
    return motley::engine::RunCodes(argc > 2 ? std::max(std::atoll(argv[2]), 1LL) : 500);
  }
  const bool check = argc > 1 && std::strcmp(argv[argc - 1], "--check") == 0;
  if (check) --argc;
  motley::engine::Setup setup;
  if (argc > 1) setup.ranks = std::atoi(argv[1]);
  setup.elements = static_cast<int64_t>((argc > 2 ? std::atof(argv[2]) : 10) * 250000);
  setup.bytes_per_second = (argc > 3 ? std::atof(argv[3]) : 50) * 1e6;
  if (argc > 4) setup.repetitions = std::atoi(argv[4]);
  return motley::engine::Run(setup, check);
}
