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

}  // namespace motley::engine
