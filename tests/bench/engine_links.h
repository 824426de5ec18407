// The data plane where ranks share links, against the links' bound: collectives of two groups at once, and hand-overs of stages
// of unlike width.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/engine_job.h"
#include "tests/planner/lowering/hand_overs.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/transport/connect_communicator.h"

namespace motley::engine {

inline constexpr double kMostOverLinks = 1.05;
inline constexpr double kSharedRate = 20e6;  // of each node's NIC
inline constexpr int kRepetitions = 5;

using AdjustOptions = std::function<void(CommunicatorOptions&)>;

// Connects the devices' ranks and runs body(rank, communicator) on each.
template <typename Body>
void WithDevices(const std::vector<DeviceDescription>& devices, const AdjustOptions& adjust, Body body) {
  FakeKv kv;
  NodeClocks clocks;
  for (const DeviceDescription& device : devices) clocks.Of(device.id);
  OnRanks(static_cast<int>(devices.size()), [&](int rank) {
    FakeHost host(kv);
    const auto links = OrDie(LinkClock::Map(clocks.Of(devices[rank].id)));
    CommunicatorOptions options;
    options.rank = rank;
    options.device = devices[rank];
    options.groups = {EveryRank(static_cast<int>(devices.size()))};
    for (const DeviceDescription& device : devices) {
      options.devices.push_back(device.id);
      options.data_addresses.push_back("127.0.0.1");
    }
    adjust(options);
    const auto communicator = OrDie(ConnectCommunicator(options, host, *links));
    body(rank, *communicator);
  });
}

inline void DieOf(const absl::Status& status) {
  if (!status.ok()) OrDie(absl::StatusOr<int>(status));
}

inline double LargestOfAll(Communicator& communicator, double mine) {
  double largest = mine;
  for (const std::vector<double>& of_rank : OrDie(communicator.GatherScalars({mine}))) largest = std::max(largest, of_rank[0]);
  return largest;
}

// Seconds from a common start, which the call gets, to when the slowest rank has come back. Threads wake up milliseconds apart.
template <typename Call>
double SecondsTogether(Communicator& communicator, Call call) {
  const double begin = LargestOfAll(communicator, static_cast<double>(MonotonicNs()) * 1e-9);
  call(absl::Seconds(begin));
  return LargestOfAll(communicator, static_cast<double>(MonotonicNs()) * 1e-9 - begin);
}

// On its lane's schedule.
template <typename Call>
void OnLane(TransferPacer& pacer, absl::Duration ready, Call call) {
  pacer.Begin(ready);
  DieOf(call());
  pacer.End(std::nullopt);
}

// ---- two groups at once ----

struct GroupTimes {
  double all_gather = 0, reduce_scatter = 0;  // medians
};

// Three nodes of two cards; a ring of the first cards and one of the second, so that both cross every NIC.
inline GroupTimes TimeTwoGroups(const std::vector<int64_t>& bounds) {
  std::vector<DeviceDescription> devices;
  for (int rank = 0; rank < 6; ++rank) {
    devices.push_back(EmulatedDevice(absl::StrCat("n", rank / 2, "/gpu", rank % 2), 0, kSharedRate));
    devices.back().link_bytes_per_second = 10 * kSharedRate;
  }
  std::vector<double> gather, reduce;
  WithDevices(
      devices,
      [](CommunicatorOptions& options) {
        options.groups = {{0, 2, 4}, {1, 3, 5}};
      },
      [&](int rank, Communicator& communicator) {
        std::vector<float> array(bounds.back(), 1.0f);
        const Owners owners = OwnersOf(bounds);
        TransferPacer& pacer = communicator.collective_pacer();
        for (int i = 0; i < kRepetitions; ++i) {
          const double gathered = SecondsTogether(communicator, [&](absl::Duration begin) {
            OnLane(pacer, begin, [&] { return communicator.AllGather(rank % 2, array.data(), DType::kFloat32, owners); });
          });
          const double reduced = SecondsTogether(communicator, [&](absl::Duration begin) {
            OnLane(pacer, begin, [&] { return communicator.ReduceScatter(rank % 2, array.data(), DType::kFloat32, owners); });
          });
          if (rank == 0) gather.push_back(gathered);
          if (rank == 0) reduce.push_back(reduced);
        }
      });
  return {Median(gather), Median(reduce)};
}

// Every NIC carries for both groups what its card must receive, or has to send: all but the smallest share.
inline void MeasureGroups(const std::string&, bench::Report* report) {
  constexpr int64_t kElements = 1'200'000;
  for (const double largest : {1.0 / 3, 0.5, 1.0}) {
    const auto end = static_cast<int64_t>(largest * kElements);
    const std::vector<int64_t> bounds = {0, end, end + (kElements - end) / 2, kElements};
    const int64_t smallest = kElements - bounds[2];
    const double bound = 2 * 4 * static_cast<double>(kElements - std::min(smallest, end)) / kSharedRate;
    const GroupTimes times = TimeTwoGroups(bounds);
    const std::string name = absl::StrCat("two groups, largest share ", std::round(100 * largest) / 100);
    std::fprintf(stderr, "%s: all-gathers %.1f ms, reduce-scatters %.1f ms, bound %.1f ms\n", name.c_str(),
                 times.all_gather * 1e3, times.reduce_scatter * 1e3, bound * 1e3);
    report->AddGoal(name + ": all-gathers / bound", times.all_gather / bound, "1", kMostOverLinks);
    report->AddGoal(name + ": reduce-scatters / bound", times.reduce_scatter / bound, "1", kMostOverLinks);
  }
}

// ---- hand-overs of many to many ----

using planner::HandOver;
using planner::HandOvers;
using planner::HandOversOf;

inline void RunHandOvers(Communicator& communicator, const HandOvers& mine, absl::Duration begin) {
  std::thread sender([&] {
    for (const HandOver& h : mine.sends) {
      const std::vector<char> data(h.bytes);
      OnLane(communicator.send_pacer(), begin, [&] { return communicator.Send(h.peer, data.data(), h.bytes); });
    }
  });
  for (const HandOver& h : mine.receives) {
    std::vector<char> room(h.bytes);
    OnLane(communicator.receive_pacer(), begin, [&] { return communicator.Receive(h.peer, room.data(), h.bytes); });
  }
  sender.join();
}

// Median seconds until every rank has handed over everything, all data there at the begin.
inline double TimeHandOvers(const std::vector<DeviceDescription>& devices, const std::vector<HandOvers>& ranks) {
  std::vector<double> seconds;
  const AdjustOptions peers = [&](CommunicatorOptions& options) {
    for (const HandOver& h : ranks[options.rank].sends) options.sends_to.insert(h.peer);
    for (const HandOver& h : ranks[options.rank].receives) options.receives_from.insert(h.peer);
  };
  WithDevices(devices, peers, [&](int rank, Communicator& communicator) {
    for (int i = 0; i < kRepetitions; ++i) {
      const double took =
          SecondsTogether(communicator, [&](absl::Duration begin) { RunHandOvers(communicator, ranks[rank], begin); });
      if (rank == 0) seconds.push_back(took);
    }
  });
  return Median(seconds);
}

inline std::vector<int64_t> Pieces(int64_t samples, int64_t pieces) { return std::vector<int64_t>(pieces, samples / pieces); }

inline Planned TwoRanksAndThree(const BenchJob& job, int64_t microbatches) {
  const int64_t batch = job.config.training.global_batch_size;
  const std::vector<int64_t> of_two = Pieces(batch / 2, microbatches), of_three = Pieces(batch / 3, microbatches);
  const double third = 1.0 / 3;
  return PlannedAs(job, PlanOf(job, planner::ScheduleFamily::kGPipe,
                               {{{{0, 0}}, {{0, of_two, 0.5}, {1, of_two, 0.5}}},
                                {{{1, 1}}, {{2, of_three, third}, {3, of_three, third}, {4, of_three, 1 - 2 * third}}}}));
}

// The order of hand-overs is the lowering's own. What it costs and what the transport adds to it are rows of their own.
inline void MeasureHandOvers(const std::string& text, bench::Report* report) {
  constexpr int64_t kSampleBytes = 250'000;
  BenchJob job = MakeJob(text, BenchModel(/*hidden=*/64, /*layers=*/2, /*seq_len=*/16), /*global_batch=*/24, /*steps=*/1);
  for (int d = 0; d < 5; ++d) job.devices.push_back(EmulatedDevice(absl::StrCat("n", d, "/gpu0"), 1e9, kSharedRate));
  for (const int64_t microbatches : {1, 2, 4}) {
    const Planned planned = TwoRanksAndThree(job, microbatches);
    for (const bool forward : {true, false}) {
      planner::Border border;
      for (const Program& program : planned.result.programs) {
        border.ranks.push_back(forward ? HandOversOf<SendActivation, ReceiveActivation>(program, kSampleBytes)
                                       : HandOversOf<SendGradient, ReceiveGradient>(program, kSampleBytes));
        border.rates.push_back(kSharedRate);
      }
      const double links = border.LaneSeconds(), order = border.OrderSeconds();
      const double seconds = TimeHandOvers(job.devices, border.ranks);
      const std::string name =
          absl::StrCat("hand-over, ", forward ? "2 ranks to 3, " : "3 ranks to 2, ", microbatches, " a rank");
      std::fprintf(stderr, "%s: %.1f ms, in this order %.1f ms, links' bound %.1f ms\n", name.c_str(), seconds * 1e3, order * 1e3,
                   links * 1e3);
      report->AddGoal(name + ": measured / links' bound", seconds / links, "1", kMostOverLinks);
      report->AddGoal(name + ": measured / in the program's order", seconds / order, "1", kMostOverLinks);
    }
  }
}

}  // namespace motley::engine
