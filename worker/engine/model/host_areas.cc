#include "worker/engine/model/host_areas.h"

namespace motley::engine {

HostAreas::HostAreas(const RankAssignment& assignment, Precision precision) {
  for (int32_t unit = 0; unit < assignment.ownership.num_blocks(); ++unit) {
    const int64_t owned = assignment.ownership.NumOwned(unit, assignment.rank);
    const HostState state =
        HostStateOf(assignment.program.offloads, owned, SizeOfBytes(precision.master), SizeOfBytes(precision.compute));
    areas_.push_back({state, bytes_});
    bytes_ += state.AreaBytes();
  }
}

HostMemoryByPurpose HostAreas::by_purpose() const {
  HostMemoryByPurpose of;
  for (const auto& [state, begin] : areas_) {
    of.gradients += state.gradient;
    of.parameters += state.parameter + state.cast;
    of.optimizer += 2 * state.moment;
    (state.parameter > 0 ? of.parameters : of.optimizer) += state.AreaBytes() - state.total();
  }
  return of;
}

}  // namespace motley::engine
