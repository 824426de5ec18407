#include "worker/engine/profiler/overlap_profiler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/parameters.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/lanes/compute_pacer.h"
#include "worker/engine/lanes/stream_lane.h"
#include "worker/engine/model/unit_bench.h"
#include "worker/engine/profiler/transfer_room.h"
#include "worker/engine/profiler/transfer_timer.h"

namespace motley::engine {
namespace {

// Alone each runs for so long, after a first time that does not count.
constexpr double kAloneSeconds = 0.5;
constexpr int kMostAlone = 3;
// Both are given so much that the one that takes longer runs so often; twice where that would take longer than this. Nothing is
// said to the worker meanwhile, which does not wait for ever.
constexpr double kTogether = 8, kLeastTogether = 2, kTogetherSeconds = 5;
constexpr int kMostPieces = 500;
constexpr double kNotMeasured = 0;
constexpr int kAttempts = 3;
constexpr int kAllRanks = 0;

class OverlapProfiler {
 public:
  OverlapProfiler(DeviceBackend& backend, Communicator& communicator, UnitBench& bench, TransferRoom& room, DType dtype,
                  const Owners& owners)
      : compute_stream_(*backend.StreamOf(Lane::kCompute)),
        collective_stream_(*backend.StreamOf(Lane::kCollective)),
        communicator_(communicator),
        pacer_(DeviceDescription(), clock_),
        pass_([&bench] {
          bench.Forward();
          bench.Backward();
          return absl::OkStatus();
        }),
        gather_(
            [&communicator, &room, dtype, &owners] { return communicator.AllGather(kAllRanks, room.data(), dtype, owners); }) {}

  absl::StatusOr<Overlap> Measure() {
    MOTLEY_ASSIGN_OR_RETURN(const Times pass, Alone(compute_stream_, pass_));
    MOTLEY_ASSIGN_OR_RETURN(const Times gather, Alone(collective_stream_, gather_));
    const double longest = std::max(pass.slowest, gather.slowest);
    const double seconds = std::max(kLeastTogether * longest, std::min(kTogether * longest, kTogetherSeconds));
    return Together(pass.mine, PiecesFor(seconds, pass.mine), gather.mine, PiecesFor(seconds, gather.slowest));
  }

 private:
  static int PiecesFor(double seconds, double one) {
    return static_cast<int>(std::clamp(std::ceil(seconds / std::max(one, 1e-9)), 1.0, static_cast<double>(kMostPieces)));
  }

  // Seconds of a piece: this rank's, and those of the slowest, by which all ranks make as many collectives.
  struct Times {
    double mine = 0, slowest = 0;
  };

  absl::StatusOr<Times> Alone(DeviceStream& stream, const LaneTimer::Work& work) {
    MOTLEY_ASSIGN_OR_RETURN(const Times first, Fastest(stream, work, 1));
    return Fastest(stream, work, std::clamp(static_cast<int>(kAloneSeconds / std::max(first.slowest, 1e-6)), 1, kMostAlone));
  }

  absl::StatusOr<Times> Fastest(DeviceStream& stream, const LaneTimer::Work& work, int runs) {
    LaneTimer timer = TransferTimer(stream, pacer_, communicator_);
    timer.Settle();
    std::vector<LaneTime> times;
    for (int i = 0; i < runs; ++i) times.push_back(timer.Measure(std::nullopt, work));
    MOTLEY_RETURN_IF_ERROR(timer.Await());
    Times fastest{std::numeric_limits<double>::infinity()};
    for (const LaneTime& time : times) fastest.mine = std::min(fastest.mine, time.seconds());
    MOTLEY_ASSIGN_OR_RETURN(const auto all, communicator_.GatherScalars({fastest.mine}));
    for (const std::vector<double>& of_rank : all) fastest.slowest = std::max(fastest.slowest, of_rank[0]);
    return fastest;
  }

  // Both streams get their work in step, so that neither waits for the host while the other is given all of its.
  absl::StatusOr<Overlap> Together(double pass_seconds, int passes, double gather_seconds, int gathers) {
    LaneTimer compute = TransferTimer(compute_stream_, pacer_, communicator_);
    LaneTimer collective = TransferTimer(collective_stream_, pacer_, communicator_);
    // When one ends with an error, the other still uses what is the caller's.
    const absl::Cleanup drained = [this] {
      Drain(compute_stream_);
      Drain(collective_stream_);
    };
    compute.Settle();
    collective.Settle();
    std::vector<LaneTime> of_compute, of_collective;
    for (int p = 0, g = 0; p < passes || g < gathers;) {
      const bool gather_is_next =
          g < gathers && (p == passes || static_cast<int64_t>(g) * passes <= static_cast<int64_t>(p) * gathers);
      if (gather_is_next) {
        of_collective.push_back(collective.Measure(std::nullopt, gather_));
        ++g;
      } else {
        of_compute.push_back(compute.Measure(std::nullopt, pass_));
        ++p;
      }
    }
    MOTLEY_RETURN_IF_ERROR(compute.Await());
    MOTLEY_RETURN_IF_ERROR(collective.Await());
    return Overlap{Slowdown(of_compute, pass_seconds, of_collective).value_or(kNotMeasured),
                   Slowdown(of_collective, gather_seconds, of_compute).value_or(kNotMeasured)};
  }

  DeviceStream &compute_stream_, &collective_stream_;
  Communicator& communicator_;
  const SystemClock clock_;
  ComputePacer pacer_;  // of nobody: streams have no schedule
  const LaneTimer::Work pass_, gather_;
};

// By rank; empty where on one of them the two hardly ran together.
absl::StatusOr<std::vector<Overlap>> OfAllRanks(OverlapProfiler& profiler, Communicator& communicator) {
  MOTLEY_ASSIGN_OR_RETURN(const Overlap mine, profiler.Measure());
  MOTLEY_ASSIGN_OR_RETURN(const auto all, communicator.GatherScalars({mine.compute, mine.collectives}));
  std::vector<Overlap> overlap;
  for (const std::vector<double>& of_rank : all) {
    if (of_rank[0] == kNotMeasured || of_rank[1] == kNotMeasured) return std::vector<Overlap>();
    overlap.push_back({of_rank[0], of_rank[1]});
  }
  return overlap;
}

absl::StatusOr<std::vector<Overlap>> MeasureLayer(const RankAssignment& assignment, DeviceBackend& backend,
                                                  Communicator& communicator) {
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(assignment.config.training));
  int64_t largest = 0;
  for (const UnitSpec& unit : ParameterLayout(assignment.model)) largest = std::max(largest, unit.num_elements);
  MOTLEY_ASSIGN_OR_RETURN(const std::unique_ptr<TransferRoom> room,
                          TransferRoom::Make(backend, Lane::kCollective, largest * SizeOfBytes(precision.master)));
  std::vector<int64_t> bounds;
  for (int r = 0; r <= communicator.world(); ++r) bounds.push_back(largest * r / communicator.world());
  const Owners owners = OwnersOf(bounds);
  MOTLEY_RETURN_IF_ERROR(communicator.ReserveCollective(kAllRanks, precision.master, owners));
  // What computes is made where it computes.
  std::optional<UnitModel> model;
  std::optional<UnitBench> bench;
  const SystemClock clock;
  ComputePacer pacer(DeviceDescription(), clock);
  LaneTimer timer(backend.StreamOf(Lane::kCompute), pacer);
  timer.Run([&] {
    const int64_t seq_len = assignment.config.training.seq_len;
    model.emplace(assignment.model, seq_len, precision.compute, backend.tensors(), ModelSlice(), backend.kernels());
    bench.emplace(*model, assignment.model, seq_len, precision, backend.tensors(), UnitKind::kLayer);
    bench->Prepare(1);
    return absl::OkStatus();
  });
  MOTLEY_RETURN_IF_ERROR(timer.Await());
  OverlapProfiler profiler(backend, communicator, *bench, *room, precision.master, owners);
  std::vector<Overlap> overlap;
  // Where a host is busy, the two may miss each other; all ranks see the same and try again together.
  for (int attempt = 0; attempt < kAttempts && overlap.empty(); ++attempt) {
    MOTLEY_ASSIGN_OR_RETURN(overlap, OfAllRanks(profiler, communicator));
  }
  return overlap;
}

}  // namespace

std::optional<double> Slowdown(const std::vector<LaneTime>& pieces, double alone_seconds, const std::vector<LaneTime>& others) {
  if (others.empty() || alone_seconds <= 0) return std::nullopt;
  const absl::Duration begin = others.front().begin(), end = others.back().end();
  double seconds = 0;
  int count = 0;
  for (const LaneTime& piece : pieces) {
    if (piece.begin() < begin || piece.end() > end) continue;
    seconds += piece.seconds();
    ++count;
  }
  if (count == 0) return std::nullopt;
  return std::max(1.0, seconds / count / alone_seconds);
}

absl::StatusOr<std::vector<Overlap>> ProfileOverlap(const RankAssignment& assignment, DeviceBackend& backend,
                                                    Communicator& communicator) {
  // The same on all ranks: one group of all has one transport.
  const bool in_streams = backend.StreamOf(Lane::kCollective) != nullptr && !communicator.Blocks(Lane::kCollective);
  if (assignment.world() == 1 || !in_streams) return std::vector<Overlap>();
  try {
    return MeasureLayer(assignment, backend, communicator);
  } catch (const c10::OutOfMemoryError& error) {
    return absl::ResourceExhaustedError(absl::StrCat("a layer beside collectives: ", error.what_without_backtrace()));
  } catch (const c10::Error& error) {
    return absl::InternalError(absl::StrCat("a layer beside collectives: ", error.what_without_backtrace()));
  }
}

}  // namespace motley::engine
