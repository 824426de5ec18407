#include "coordinator/epoch/host_room.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/util/quantity_text.h"

namespace motley::coordinator {

void OnHostRoom(Core& core, const RankReport& report, int64_t bytes) {
  JobRun& run = *core.state.run;
  const NodeName node = NodeOf(report.device);
  for (DeviceDescription& device : core.state.nodes.at(node).description.devices) {
    device.node_host_memory_bytes = std::min(device.node_host_memory_bytes, bytes);
  }
  if (run.host_room.empty()) run.host_room = report.message;
  EventRecord event;
  event.job = run.job;
  event.kind = kind::kHostMemoryShort;
  event.node = node;
  event.device = report.device;
  event.epoch = core.state.jobs.at(run.job).epoch;
  event.message = absl::StrCat(report.message, ": the job is planned again with ", planner::BytesText(bytes), " there");
  core.Emit(std::move(event));
}

}  // namespace motley::coordinator
