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

constexpr int kAlone = 4;  // the first does not count
// Both are given so much that the one that takes longer runs so often.
constexpr double kTogether = 8;
constexpr int kMostPieces = 500;
constexpr int kGroup = 0;  // all ranks

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
        gather_([&communicator, &room, dtype, &owners] { return communicator.AllGather(kGroup, room.data(), dtype, owners); }) {}

  absl::StatusOr<Overlap> Measure() {
    MOTLEY_ASSIGN_OR_RETURN(const double pass_seconds, Alone(compute_stream_, pass_));
    MOTLEY_ASSIGN_OR_RETURN(const double gather_seconds, Alone(collective_stream_, gather_));
    MOTLEY_ASSIGN_OR_RETURN(const auto all, communicator_.GatherScalars({pass_seconds, gather_seconds}));
    // Everybody's, so that all ranks make as many collectives.
    double longest = 0, slowest_gather = 0;
    for (const std::vector<double>& of_rank : all) {
      longest = std::max({longest, of_rank[0], of_rank[1]});
      slowest_gather = std::max(slowest_gather, of_rank[1]);
    }
    return Together(pass_seconds, PiecesFor(kTogether * longest, pass_seconds), gather_seconds,
                    PiecesFor(kTogether * longest, slowest_gather));
  }

 private:
  static int PiecesFor(double seconds, double one) {
    return static_cast<int>(std::clamp(std::ceil(seconds / std::max(one, 1e-9)), 1.0, static_cast<double>(kMostPieces)));
  }

  absl::StatusOr<double> Alone(DeviceStream& stream, const LaneTimer::Work& work) {
    LaneTimer timer = TransferTimer(stream, pacer_, communicator_);
    timer.Settle();
    std::vector<LaneTime> times;
    for (int i = 0; i < kAlone; ++i) times.push_back(timer.Measure(std::nullopt, work));
    MOTLEY_RETURN_IF_ERROR(timer.Await());
    double best = std::numeric_limits<double>::infinity();
    for (int i = 1; i < kAlone; ++i) best = std::min(best, times[i].seconds());
    return best;
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
    return Overlap{Slowdown(of_compute, pass_seconds, of_collective), Slowdown(of_collective, gather_seconds, of_compute)};
  }

  DeviceStream &compute_stream_, &collective_stream_;
  Communicator& communicator_;
  const SystemClock clock_;
  ComputePacer pacer_;  // of nobody: streams have no schedule
  const LaneTimer::Work pass_, gather_;
};

absl::StatusOr<Overlap> MeasureOne(const RankAssignment& assignment, DeviceBackend& backend, Communicator& communicator) {
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(assignment.config.training));
  int64_t largest = 0;
  for (const UnitSpec& unit : ParameterLayout(assignment.model)) largest = std::max(largest, unit.num_elements);
  MOTLEY_ASSIGN_OR_RETURN(const std::unique_ptr<TransferRoom> room,
                          TransferRoom::Make(backend, Lane::kCollective, largest * SizeOfBytes(precision.master)));
  std::vector<int64_t> bounds;
  for (int r = 0; r <= communicator.world(); ++r) bounds.push_back(largest * r / communicator.world());
  const Owners owners = OwnersOf(bounds);
  // What computes is made where it computes.
  std::optional<UnitModel> model;
  std::optional<UnitBench> bench;
  const SystemClock clock;
  ComputePacer pacer(DeviceDescription(), clock);
  LaneTimer timer(backend.StreamOf(Lane::kCompute), pacer);
  timer.Run([&] {
    const int64_t seq_len = assignment.config.training.seq_len;
    model.emplace(assignment.model, seq_len, precision.compute, backend.tensors());
    bench.emplace(*model, assignment.model, seq_len, precision, backend.tensors(), UnitKind::kLayer);
    bench->Prepare(1);
    return absl::OkStatus();
  });
  MOTLEY_RETURN_IF_ERROR(timer.Await());
  return OverlapProfiler(backend, communicator, *bench, *room, precision.master, owners).Measure();
}

}  // namespace

double Slowdown(const std::vector<LaneTime>& pieces, double alone_seconds, const std::vector<LaneTime>& others) {
  if (others.empty() || alone_seconds <= 0) return 1;
  const absl::Duration begin = others.front().begin(), end = others.back().end();
  double seconds = 0;
  int count = 0;
  for (const LaneTime& piece : pieces) {
    if (piece.begin() < begin || piece.end() > end) continue;
    seconds += piece.seconds();
    ++count;
  }
  return count == 0 ? 1 : std::max(1.0, seconds / count / alone_seconds);
}

absl::StatusOr<std::vector<Overlap>> ProfileOverlap(const RankAssignment& assignment, DeviceBackend& backend,
                                                    Communicator& communicator) {
  std::vector<Overlap> overlap;
  // The same on all ranks: one group of all has one transport.
  const bool in_streams = backend.StreamOf(Lane::kCollective) != nullptr && !communicator.Blocks(Lane::kCollective);
  if (assignment.world() == 1 || !in_streams) return overlap;
  absl::StatusOr<Overlap> mine;
  try {
    mine = MeasureOne(assignment, backend, communicator);
  } catch (const c10::OutOfMemoryError& error) {
    return absl::ResourceExhaustedError(absl::StrCat("a layer beside collectives: ", error.what_without_backtrace()));
  } catch (const c10::Error& error) {
    return absl::InternalError(absl::StrCat("a layer beside collectives: ", error.what_without_backtrace()));
  }
  MOTLEY_RETURN_IF_ERROR(mine.status());
  MOTLEY_ASSIGN_OR_RETURN(const auto all, communicator.GatherScalars({mine->compute, mine->collectives}));
  for (const std::vector<double>& of_rank : all) overlap.push_back({of_rank[0], of_rank[1]});
  return overlap;
}

}  // namespace motley::engine
