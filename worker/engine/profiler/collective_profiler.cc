#include "worker/engine/profiler/collective_profiler.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/base/status_macros.h"
#include "common/model/parameters.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/profiler/transfer_room.h"
#include "worker/engine/profiler/transfer_timer.h"

namespace motley::engine {
namespace {

// A point is repeated until this much time is spent on it, three times at most; the fastest counts.
constexpr double kPointSeconds = 0.2;
constexpr int kMostRepetitions = 3;
constexpr int kGroup = 0;  // all ranks, in their order

// Rank 0 owns `largest`, the others equal parts of the rest.
std::vector<int64_t> SkewedBounds(int64_t elements, int world, double largest) {
  std::vector<int64_t> bounds = {0};
  for (int r = 1; r < world; ++r) {
    bounds.push_back(static_cast<int64_t>((largest + (1 - largest) * (r - 1) / (world - 1)) * static_cast<double>(elements)));
  }
  bounds.push_back(elements);
  return bounds;
}

int RepetitionsAt(double seconds) {
  return std::clamp(static_cast<int>(kPointSeconds / std::max(seconds, 1e-6)), 1, kMostRepetitions);
}

class RingProfiler {
 public:
  // `room`: zeros of the largest array.
  RingProfiler(DeviceBackend& backend, Communicator& communicator, DType dtype, TransferRoom& room)
      : communicator_(communicator),
        stream_(communicator.Blocks(Lane::kCollective) ? nullptr : backend.StreamOf(Lane::kCollective)),
        dtype_(dtype),
        room_(room) {}

  // Seconds of the slowest rank by the host's clock: of calls that return with their work done.
  template <typename Call>
  absl::StatusOr<double> Time(Call call) {
    double best = 0;
    int repetitions = 1;
    for (int i = 0; i < repetitions; ++i) {
      MOTLEY_RETURN_IF_ERROR(communicator_.GatherScalars({0}).status());
      const int64_t begin_ns = MonotonicNs();
      communicator_.collective_pacer().Begin(absl::Nanoseconds(begin_ns));
      MOTLEY_RETURN_IF_ERROR(call());
      communicator_.collective_pacer().End(std::nullopt);
      const double mine = (MonotonicNs() - begin_ns) * 1e-9;
      MOTLEY_ASSIGN_OR_RETURN(const auto all, communicator_.GatherScalars({mine}));
      double slowest = 0;
      for (const std::vector<double>& of_rank : all) slowest = std::max(slowest, of_rank[0]);
      best = i == 0 ? slowest : std::min(best, slowest);
      // The same on every rank: computed from what all have seen.
      if (i == 0) repetitions = RepetitionsAt(slowest);
    }
    return best;
  }

  absl::StatusOr<CollectivePoint> Point(int64_t elements, double skew) {
    const Owners owners = OwnersOf(SkewedBounds(elements, communicator_.world(), skew));
    CollectivePoint point;
    point.bytes = elements * SizeOfBytes(dtype_);
    point.skew = skew;
    MOTLEY_RETURN_IF_ERROR(communicator_.ReserveCollective(kGroup, dtype_, owners));
    MOTLEY_ASSIGN_OR_RETURN(point.all_gather_seconds,
                            TimeCollective([&] { return communicator_.AllGather(kGroup, room_.data(), dtype_, owners); }));
    MOTLEY_ASSIGN_OR_RETURN(point.reduce_scatter_seconds,
                            TimeCollective([&] { return communicator_.ReduceScatter(kGroup, room_.data(), dtype_, owners); }));
    return point;
  }

 private:
  absl::StatusOr<double> TimeCollective(const std::function<absl::Status()>& call) {
    return stream_ == nullptr ? Time(call) : TimeOnStream(call);
  }

  // The first run brings the ranks together, says how many more there is time for, and does not count.
  absl::StatusOr<double> TimeOnStream(const std::function<absl::Status()>& call) {
    MOTLEY_ASSIGN_OR_RETURN(const double first, FastestOnStream(call, 1));
    return FastestOnStream(call, RepetitionsAt(first));
  }

  // Nobody waits between the runs: one lets all ranks begin the next together.
  absl::StatusOr<double> FastestOnStream(const std::function<absl::Status()>& call, int runs) {
    LaneTimer timer = TransferTimer(*stream_, communicator_.collective_pacer(), communicator_);
    timer.Settle();
    std::vector<LaneTime> times;
    for (int i = 0; i < runs; ++i) times.push_back(timer.Measure(std::nullopt, call));
    MOTLEY_RETURN_IF_ERROR(timer.Await());
    std::vector<double> mine;
    for (const LaneTime& time : times) mine.push_back(time.seconds());
    MOTLEY_ASSIGN_OR_RETURN(const auto all, communicator_.GatherScalars(mine));
    double best = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < mine.size(); ++i) {
      double slowest = 0;
      for (const std::vector<double>& of_rank : all) slowest = std::max(slowest, of_rank[i]);
      best = std::min(best, slowest);
    }
    return best;
  }

  Communicator& communicator_;
  DeviceStream* const stream_;  // null: calls return with their work done
  const DType dtype_;
  TransferRoom& room_;
};

}  // namespace

absl::StatusOr<CollectiveProfile> ProfileRing(const RankAssignment& assignment, DeviceBackend& backend,
                                              Communicator& communicator) {
  const int64_t begin_ns = MonotonicNs();
  MOTLEY_ASSIGN_OR_RETURN(const DType dtype, ParseDType(assignment.config.training.dtype));
  CollectiveProfile profile;
  profile.devices = assignment.devices;
  if (assignment.world() == 1) return profile;
  std::vector<int64_t> sizes;
  for (const UnitSpec& unit : ParameterLayout(assignment.model)) sizes.push_back(unit.num_elements);
  const auto [smallest, largest] = std::minmax_element(sizes.begin(), sizes.end());
  MOTLEY_ASSIGN_OR_RETURN(const std::unique_ptr<TransferRoom> room,
                          TransferRoom::Make(backend, Lane::kCollective, *largest * SizeOfBytes(dtype)));
  RingProfiler profiler(backend, communicator, dtype, *room);
  MOTLEY_ASSIGN_OR_RETURN(profile.barrier_seconds, profiler.Time([&] {
    return communicator.GatherScalars({0, 0, 0, 0, 0, 0}).status();
  }));
  const double even = 1.0 / assignment.world();
  for (const int64_t elements : std::set<int64_t>{*smallest, *largest}) {
    for (const double skew : std::set<double>{even, std::max(0.5, even), 1.0}) {
      MOTLEY_ASSIGN_OR_RETURN(const CollectivePoint point, profiler.Point(elements, skew));
      profile.points.push_back(point);
    }
  }
  profile.profile_seconds = (MonotonicNs() - begin_ns) * 1e-9;
  return profile;
}

}  // namespace motley::engine
