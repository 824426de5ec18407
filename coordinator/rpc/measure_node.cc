#include "coordinator/rpc/measure_node.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/status_macros.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/members/registry.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {

absl::Status MeasureNode(Core& core, const v1::MeasureNodeRequest& request, v1::MeasureNodeResponse* response) {
  const NodeName name(request.node());
  const auto node = core.state.nodes.find(name);
  if (node == core.state.nodes.end())
    return absl::NotFoundError(absl::StrCat("no node ", Echo(request.node()), "; `motley nodes` lists them"));
  Batch batch;
  batch.unmeasured = Ids(node->second.description.devices);
  batch.events.push_back(NodeEvent(kind::kProfile, name, "what was measured of it is forgotten, as a user asked"));
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  for (const DeviceId& device : batch.unmeasured) core.state.speeds.erase(device);

  JobRun* const run = core.state.run ? &*core.state.run : nullptr;
  const bool used = run != nullptr && std::any_of(run->considered.begin(), run->considered.end(),
                                                  [&](const DeviceDescription& device) { return NodeOf(device.id) == name; });
  if (used) {
    run->measure_again = absl::StrCat("node ", name.value(), " is measured again, as a user asked");
    response->set_job_id(run->job.value());
  }
  Drive(core);
  return absl::OkStatus();
}

}  // namespace motley::coordinator
