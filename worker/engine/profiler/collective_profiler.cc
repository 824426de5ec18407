#include "worker/engine/profiler/collective_profiler.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "common/base/status_macros.h"
#include "common/model/parameters.h"
#include "worker/engine/base/monotonic.h"

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

class RingProfiler {
 public:
  RingProfiler(Communicator& communicator, DType dtype, int64_t largest)
      : communicator_(communicator), dtype_(dtype), array_(static_cast<size_t>(largest * SizeOfBytes(dtype))) {}

  // Seconds of the slowest rank.
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
      if (i == 0) repetitions = std::clamp(static_cast<int>(kPointSeconds / std::max(slowest, 1e-6)), 1, kMostRepetitions);
    }
    return best;
  }

  absl::StatusOr<CollectivePoint> Point(int64_t elements, double skew) {
    const Owners owners = OwnersOf(SkewedBounds(elements, communicator_.world(), skew));
    CollectivePoint point;
    point.bytes = elements * SizeOfBytes(dtype_);
    point.skew = skew;
    MOTLEY_ASSIGN_OR_RETURN(point.all_gather_seconds,
                            Time([&] { return communicator_.AllGather(kGroup, array_.data(), dtype_, owners); }));
    MOTLEY_ASSIGN_OR_RETURN(point.reduce_scatter_seconds,
                            Time([&] { return communicator_.ReduceScatter(kGroup, array_.data(), dtype_, owners); }));
    return point;
  }

 private:
  Communicator& communicator_;
  const DType dtype_;
  std::vector<char> array_;  // zeros: sums of them stay finite
};

}  // namespace

absl::StatusOr<CollectiveProfile> ProfileRing(const RankAssignment& assignment, Communicator& communicator) {
  const int64_t begin_ns = MonotonicNs();
  MOTLEY_ASSIGN_OR_RETURN(const DType dtype, ParseDType(assignment.config.training.dtype));
  CollectiveProfile profile;
  profile.devices = assignment.devices;
  if (assignment.world() == 1) return profile;
  std::vector<int64_t> sizes;
  for (const UnitSpec& unit : ParameterLayout(assignment.model)) sizes.push_back(unit.num_elements);
  const auto [smallest, largest] = std::minmax_element(sizes.begin(), sizes.end());
  RingProfiler profiler(communicator, dtype, *largest);
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
